package alipay

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// maxDepth bounds the nesting of an answer; those of the sheet stay below six.
const maxDepth = 32

var (
	errNotObject = errors.New("alipay: the answer is no JSON object")
	errDoubled   = errors.New("alipay: the answer holds a member twice")
	errNoNode    = errors.New("alipay: the answer holds no node of this method")
	errNode      = errors.New("alipay: the node cannot be read")
	errForged    = errors.New("alipay: the signature does not fit the node")
)

// member is one member of a JSON object: its decoded name and the exact bytes of
// its value.
type member struct {
	name string
	raw  []byte
}

// members takes one JSON object apart without touching its values. A name that
// comes twice is an error: two readers could choose differently. Where the bytes
// are no UTF-8 they are scanned as GB18030, whose characters may end in a byte
// that looks like a backslash or a brace.
func members(b []byte) ([]member, error) {
	s := &scanner{b: b, wide: !utf8.Valid(b)}
	s.space()
	if !s.take('{') {
		return nil, errNotObject
	}
	var out []member
	s.space()
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return nil, errNotObject
		}
		s.space()
		token := s.value()
		if len(token) == 0 || token[0] != '"' {
			return nil, errNotObject
		}
		name, ok := textOf(token)
		s.space()
		if !ok || !s.take(':') {
			return nil, errNotObject
		}
		s.space()
		raw := s.value()
		if len(raw) == 0 {
			return nil, errNotObject
		}
		for _, m := range out {
			if m.name == name {
				return nil, errDoubled
			}
		}
		if out = append(out, member{name, raw}); len(out) > 256 {
			return nil, errNotObject
		}
		s.space()
	}
	s.space()
	if s.at != len(s.b) {
		return nil, errNotObject
	}
	return out, nil
}

// scanner finds where JSON values end.
type scanner struct {
	b    []byte
	at   int
	wide bool
}

func (s *scanner) space() {
	for s.at < len(s.b) && strings.IndexByte(" \t\r\n", s.b[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

// value returns the bytes of the value that begins here, nil when it does not
// end. What is inside is checked when it is decoded, after verification.
func (s *scanner) value() []byte {
	start, depth := s.at, 0
	for s.at < len(s.b) {
		switch c := s.b[s.at]; {
		case c == '"':
			if !s.text() {
				return nil
			}
		case c == '{' || c == '[':
			s.at++
			if depth++; depth > maxDepth {
				return nil
			}
			continue
		case c == '}' || c == ']':
			if depth == 0 {
				return nil
			}
			s.at++
			depth--
		case depth == 0:
			for s.at < len(s.b) && strings.IndexByte(",}] \t\r\n", s.b[s.at]) < 0 {
				s.at++
			}
		default:
			s.at++
			continue
		}
		if depth == 0 {
			return s.b[start:s.at]
		}
	}
	return nil
}

// text skips a string with its quotes.
func (s *scanner) text() bool {
	for s.at++; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; {
		case c == '\\', s.wide && c >= 0x81 && c <= 0xFE:
			s.at++
		case c == '"':
			s.at++
			return true
		}
	}
	return false
}

// readable turns bytes into UTF-8: as they are where they are that already, else
// from GB18030, which holds GBK and GB2312.
func readable(b []byte) ([]byte, bool) {
	if utf8.Valid(b) {
		return b, true
	}
	out, err := simplifiedchinese.GB18030.NewDecoder().Bytes(b)
	return out, err == nil && !bytes.ContainsRune(out, utf8.RuneError)
}

func textOf(raw []byte) (string, bool) {
	raw, ok := readable(raw)
	if !ok || len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// envelope is an answer taken apart, not verified.
type envelope struct {
	node     []byte // exactly as received
	sign, sn string // "" where the answer has none
}

// cut finds the node of a method in an answer, in whatever order its members
// come.
func cut(body []byte, method string) (envelope, error) {
	var e envelope
	list, err := members(body)
	if err != nil {
		return e, err
	}
	own := strings.ReplaceAll(method, ".", "_") + "_response"
	for _, m := range list {
		switch m.name {
		case own, "error_response":
			if e.node != nil {
				return e, errDoubled // which of the two is signed?
			}
			e.node = m.raw
		case "sign", "alipay_cert_sn":
			text, ok := textOf(m.raw)
			if !ok {
				return e, errNode
			}
			if m.name == "sign" {
				e.sign = text
			} else {
				e.sn = text
			}
		}
	}
	if e.node == nil {
		return e, errNoNode
	}
	return e, nil
}

// reply is a node that was read, after its signature was checked.
type reply struct {
	signed        bool
	code, subCode string
	fields        map[string]json.RawMessage
}

// read verifies and reads an answer's node. What is read is exactly what was
// verified: where Alipay signed the other spelling of slashes, that spelling.
func (k keyring) read(body []byte, method string) (reply, error) {
	var r reply
	e, err := cut(body, method)
	if err != nil {
		return r, err
	}
	node := e.node
	if e.sign != "" {
		sig, err := signature(e.sign)
		if err != nil {
			return r, err
		}
		if node = k.verified(e.node, sig, e.sn); node == nil {
			return r, errForged
		}
		r.signed = true
	}
	node, ok := readable(node)
	if !ok || !json.Valid(node) {
		return r, errNode
	}
	list, err := members(node)
	if err != nil {
		return r, err
	}
	r.fields = make(map[string]json.RawMessage, len(list))
	for _, m := range list {
		r.fields[m.name] = m.raw
	}
	if r.code = r.text("code"); r.code == "" {
		return r, errNode
	}
	r.subCode = r.text("sub_code")
	return r, nil
}

// verified returns the text that the signature covers: the node as received or,
// as the official SDK tries too, with its slashes spelt the other way.
func (k keyring) verified(node, sig []byte, sn string) []byte {
	if k.verify(node, sig, sn) {
		return node
	}
	plain := bytes.ReplaceAll(node, []byte(`\/`), []byte(`/`))
	escaped := bytes.ReplaceAll(plain, []byte(`/`), []byte(`\/`))
	for _, other := range [...][]byte{plain, escaped} {
		if !bytes.Equal(other, node) && k.verify(other, sig, sn) {
			return other
		}
	}
	return nil
}

// text returns a member that is a string, "" where it is none or missing.
func (r *reply) text(name string) string {
	s, _ := textOf(r.fields[name])
	return s
}
