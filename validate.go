package payonce

import (
	"unicode"
	"unicode/utf8"
)

// ValidOrderNo reports whether s can name an order: 1–64 of [A-Za-z0-9_-].
func ValidOrderNo(s string) bool { return validName(s, 64) }

// ValidPart reports whether s can name a share of a split order: as an order
// number.
func ValidPart(s string) bool { return validName(s, 64) }

func validName(s string, limit int) bool {
	if len(s) < 1 || len(s) > limit {
		return false
	}
	for i := range len(s) {
		c := s[i]
		ok := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
		if !ok {
			return false
		}
	}
	return true
}

// ValidSubject reports whether s can be the subject of an order: 1–127
// characters of valid UTF-8 without control characters.
func ValidSubject(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	n := utf8.RuneCountInString(s)
	if n < 1 || n > 127 {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}
