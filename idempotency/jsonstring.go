package idempotency

import (
	"unicode/utf16"
	"unicode/utf8"
)

// plain marks the bytes that stand for themselves in a JSON string and need no
// look at their neighbours.
var plain = func() (t [256]bool) {
	for b := 0x20; b < utf8.RuneSelf; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

// str reads a string, writes its canonical form and returns its unescaped text.
// The text is part of the document or of c.text.
func (c *canonicalizer) str() ([]byte, *JSONError) {
	in, start := c.in, c.pos+1
	for i := start; i < len(in); {
		b := in[i]
		if plain[b] {
			i++
			continue
		}
		switch {
		case b == '"': // without escapes the text already is canonical
			c.out = append(c.out, in[start-1:i+1]...)
			c.pos = i + 1
			return in[start:i], nil
		case b == '\\':
			return c.escapedStr(start, i)
		case b < 0x20:
			c.pos = i
			return nil, c.fail("A string contains a control character that is not escaped.")
		}
		size := validRune(in[i:])
		if size == 0 {
			c.pos = i
			return nil, c.fail("A string is not valid UTF-8.")
		}
		i += size
	}
	c.pos = len(in)
	return nil, c.fail("The document ends inside a string.")
}

// escapedStr goes on with a string that starts at start and has its first
// backslash at i.
func (c *canonicalizer) escapedStr(start, i int) ([]byte, *JSONError) {
	in, mark := c.in, len(c.text)
	c.text = append(c.text, in[start:i]...)
	for i < len(in) {
		b := in[i]
		if plain[b] {
			c.text = append(c.text, b)
			i++
			continue
		}
		switch {
		case b == '"':
			text := c.text[mark:len(c.text):len(c.text)]
			c.out = appendString(c.out, text)
			c.pos = i + 1
			return text, nil
		case b == '\\':
			size, reason := c.escape(in[i:])
			if size == 0 {
				c.pos = i
				return nil, c.fail(reason)
			}
			i += size
			continue
		case b < 0x20:
			c.pos = i
			return nil, c.fail("A string contains a control character that is not escaped.")
		}
		size := validRune(in[i:])
		if size == 0 {
			c.pos = i
			return nil, c.fail("A string is not valid UTF-8.")
		}
		c.text = append(c.text, in[i:i+size]...)
		i += size
	}
	c.pos = len(in)
	return nil, c.fail("The document ends inside a string.")
}

// escape decodes the escape at the start of s into c.text and returns its length,
// or 0 and the reason of the refusal.
func (c *canonicalizer) escape(s []byte) (size int, reason string) {
	const bad = "A string contains an invalid escape."
	if len(s) < 2 {
		return 0, bad
	}
	b := s[1]
	switch b {
	case '"', '\\', '/':
	case 'b':
		b = '\b'
	case 'f':
		b = '\f'
	case 'n':
		b = '\n'
	case 'r':
		b = '\r'
	case 't':
		b = '\t'
	case 'u':
		r, ok := hex4(s)
		if !ok {
			return 0, bad
		}
		if !utf16.IsSurrogate(r) {
			c.text = utf8.AppendRune(c.text, r)
			return 6, ""
		}
		// Half a pair is no character. Parsers replace it, drop it or keep it, so
		// two of them would see two requests.
		low, _ := hex4(s[6:])
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return 0, "A string contains half of a surrogate pair."
		}
		c.text = utf8.AppendRune(c.text, r)
		return 12, ""
	default:
		return 0, bad
	}
	c.text = append(c.text, b)
	return 2, ""
}

// hex4 reads \uXXXX at the start of s.
func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, b := range s[2:6] {
		if 'A' <= b && b <= 'F' {
			b |= 0x20
		}
		digit, ok := lowerHex(b)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}

// validRune returns the length of the UTF-8 sequence at the start of s, or 0.
func validRune(s []byte) int {
	r, size := utf8.DecodeRune(s)
	if r == utf8.RuneError && size <= 1 {
		return 0
	}
	return size
}

// appendString appends s as a JSON string with as few escapes as JSON allows, in
// the spelling of RFC 8785. What is not UTF-8 becomes U+FFFD.
func appendString[T string | []byte](dst []byte, s T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		b := s[i]
		if plain[b] {
			dst = append(dst, b)
			i++
			continue
		}
		if b >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		}
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		}
		i++
	}
	return append(dst, '"')
}
