package idempotency

import (
	"strings"
	"unicode/utf8"
)

// This file reads the part of RFC 9651 (structured fields) that a key needs: a
// String, and parameters, which are checked and thrown away.

// sfString decodes the String at the start of s, whose first byte is known to be a
// quote, and returns what follows it.
func sfString(s string) (text, rest string, ok bool) {
	end := strings.IndexAny(s[1:], `"\`) + 1
	if end > 0 && s[end] == '"' && printable(s[1:end]) {
		return s[1:end], s[end+1:], true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", s, false
			}
			b.WriteByte(s[i])
		case c < 0x20 || c > 0x7e:
			return "", s, false
		default:
			b.WriteByte(c)
		}
	}
	return "", s, false
}

// sfParameters reports whether s holds parameters and nothing else.
func sfParameters(s string) bool {
	for s != "" {
		if s[0] != ';' {
			return false
		}
		s = strings.TrimLeft(s[1:], " ")
		n := sfKeyLength(s)
		if n == 0 {
			return false
		}
		s = s[n:]
		if s != "" && s[0] == '=' {
			rest, ok := sfSkipItem(s[1:])
			if !ok {
				return false
			}
			s = rest
		}
	}
	return true
}

// sfKeyLength returns the length of the parameter name at the start of s, or 0.
func sfKeyLength(s string) int {
	for i := range len(s) {
		c := s[i]
		first := isLower(c) || c == '*'
		if first || i > 0 && (isDigit(c) || c == '_' || c == '-' || c == '.') {
			continue
		}
		return i
	}
	return len(s)
}

// sfSkipItem skips one bare item of any type.
func sfSkipItem(s string) (rest string, ok bool) {
	if s == "" {
		return s, false
	}
	switch c := s[0]; {
	case c == '"':
		_, rest, ok = sfString(s)
		return rest, ok
	case c == '-' || isDigit(c):
		return sfSkipNumber(s, true)
	case c == '@':
		return sfSkipNumber(s[1:], false)
	case c == '?':
		if len(s) < 2 || s[1] != '0' && s[1] != '1' {
			return s, false
		}
		return s[2:], true
	case c == ':':
		return sfSkipBytes(s[1:])
	case c == '%':
		return sfSkipDisplay(s[1:])
	case c == '*' || isLower(c|0x20):
		n := 1
		for n < len(s) && (isTokenChar(s[n]) || s[n] == ':' || s[n] == '/') {
			n++
		}
		return s[n:], true
	}
	return s, false
}

// sfSkipNumber skips an Integer (at most 15 digits) or, where decimal is set, a
// Decimal (at most 12 digits, a point, 1 to 3 digits).
func sfSkipNumber(s string, decimal bool) (rest string, ok bool) {
	s = strings.TrimPrefix(s, "-")
	n := digits(s)
	if n == 0 || n > 15 {
		return s, false
	}
	whole := n
	s = s[n:]
	if !decimal || s == "" || s[0] != '.' {
		return s, true
	}
	n = digits(s[1:])
	if whole > 12 || n == 0 || n > 3 {
		return s, false
	}
	return s[1+n:], true
}

// sfSkipBytes skips the rest of a Byte Sequence. Padding is not judged, as the
// RFC advises.
func sfSkipBytes(s string) (rest string, ok bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == ':':
			return s[i+1:], true
		case isLower(c | 0x20), isDigit(c), c == '+', c == '/', c == '=':
		default:
			return s, false
		}
	}
	return s, false
}

// sfSkipDisplay skips the rest of a Display String: quoted, with percent escapes
// in lower case that must make valid UTF-8.
func sfSkipDisplay(s string) (rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return s, false
	}
	var text []byte
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[i+1:], utf8.Valid(text)
		case c == '%':
			if i+2 >= len(s) {
				return s, false
			}
			high, ok1 := lowerHex(s[i+1])
			low, ok2 := lowerHex(s[i+2])
			if !ok1 || !ok2 {
				return s, false
			}
			text = append(text, high<<4|low)
			i += 2
		case c < 0x20 || c > 0x7e:
			return s, false
		default:
			text = append(text, c)
		}
	}
	return s, false
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// digits counts the decimal digits at the start of s.
func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func lowerHex(c byte) (byte, bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isTokenChar reports whether c may stand in a token of RFC 9110.
func isTokenChar(c byte) bool {
	return isDigit(c) || isLower(c|0x20) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
