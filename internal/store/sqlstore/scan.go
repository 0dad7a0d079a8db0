package sqlstore

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// scanner is a destination of one column. NULL is the zero value: outer joins
// and nullable columns need no other type.
type scanner func(src any) error

// Scan implements sql.Scanner.
func (f scanner) Scan(src any) error { return f(src) }

func asString(src any) (string, error) {
	switch v := src.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	}
	return "", fmt.Errorf("column holds %T, not text", src)
}

func asInt(src any) (int64, error) {
	switch v := src.(type) {
	case nil:
		return 0, nil
	case int64:
		return v, nil
	case []byte:
		return strconv.ParseInt(string(v), 10, 64)
	case string:
		return strconv.ParseInt(v, 10, 64)
	}
	return 0, fmt.Errorf("column holds %T, not an integer", src)
}

func textTo[T ~string](p *T) scanner {
	return func(src any) error {
		s, err := asString(src)
		*p = T(s)
		return err
	}
}

func intTo[T ~int | ~int64](p *T) scanner {
	return func(src any) error {
		n, err := asInt(src)
		*p = T(n)
		return err
	}
}

func boolTo(p *bool) scanner {
	return func(src any) error {
		n, err := asInt(src)
		*p = n != 0
		return err
	}
}

func timeTo(p *time.Time) scanner {
	return func(src any) error {
		n, err := asInt(src)
		*p = fromMicros(n)
		return err
	}
}

func bytesTo(p *[]byte) scanner {
	return func(src any) error {
		s, err := asString(src)
		*p = nil
		if src != nil {
			*p = []byte(s)
		}
		return err
	}
}

// fixedTo fills a hash or salt.
func fixedTo(p []byte) scanner {
	return func(src any) error {
		s, err := asString(src)
		if err == nil && src != nil && len(s) != len(p) {
			err = fmt.Errorf("column holds %d bytes instead of %d", len(s), len(p))
		}
		clear(p)
		copy(p, s)
		return err
	}
}

// jsonTo reads JSON text; "" is the zero value.
func jsonTo[T any](p *T) scanner {
	return func(src any) error {
		var zero T
		*p = zero
		s, err := asString(src)
		if err != nil || s == "" {
			return err
		}
		return json.Unmarshal([]byte(s), p)
	}
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// nullMicros is NULL for the zero time: "never" is not a time.
func nullMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func nullText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// jsonText is "" for nil pointers and empty slices.
func jsonText(v any, empty bool) string {
	if empty {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types that are stored as JSON always marshal
	}
	return string(b)
}

// human makes text for people storable everywhere: a channel's message with a
// zero byte or broken UTF-8 must not keep a fact about money from being stored.
func human(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// blob is never NULL: no bytes and no value are the same thing.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
