package wechatpay

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/payonce/payonce"
)

var errObject = errors.New("wechatpay: no JSON object, or one with a member twice")

// members are the values of one JSON object by their exact names. The standard
// decoder would take a name in other case, and the last of two.
type members map[string]json.RawMessage

func object(b []byte) (members, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errObject
	}
	out := members{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok || len(out) == 256 {
			return nil, errObject
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return nil, errObject
		}
		if _, twice := out[name]; twice {
			return nil, errObject
		}
		out[name] = raw
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('}') {
		return nil, errObject
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errObject
	}
	return out, nil
}

// object returns a member that is an object.
func (m members) object(name string) (members, error) { return object(m[name]) }

// text returns a member that is a string, "" where it is none or missing.
func (m members) text(name string) string {
	s, _ := m.optional(name)
	return s
}

// optional tells a member that is missing, null or a string from one that is
// something else.
func (m members) optional(name string) (string, bool) {
	raw, ok := m[name]
	if !ok || string(raw) == "null" {
		return "", true
	}
	if raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// list returns a member that is an array of objects.
func (m members) list(name string) ([]members, bool) {
	var raws []json.RawMessage
	if json.Unmarshal(m[name], &raws) != nil {
		return nil, false
	}
	out := make([]members, len(raws))
	for i, raw := range raws {
		o, err := object(raw)
		if err != nil {
			return nil, false
		}
		out[i] = o
	}
	return out, true
}

// fen returns a member that is a whole number of fen: digits alone.
func (m members) fen(name string) (payonce.Amount, bool) {
	raw := string(m[name])
	n, err := strconv.ParseInt(raw, 10, 64)
	return payonce.Amount(n), err == nil && n >= 1 && strconv.FormatInt(n, 10) == raw
}
