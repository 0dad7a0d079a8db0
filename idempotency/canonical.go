package idempotency

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// MaxJSONDepth is how deep arrays and objects may nest in a JSON body.
const MaxJSONDepth = 64

// keptBuffer is the largest buffer, in bytes, that goes back into a pool. One
// large request must not hold its memory for ever.
const keptBuffer = 64 << 10

// JSONError says why a document has no canonical form.
type JSONError struct {
	// Pointer is the JSON pointer (RFC 6901) of the value at fault, "" for the
	// whole document. Where it would grow too long it names an enclosing value.
	Pointer string
	// Offset is the number of bytes before the place at fault.
	Offset int
	// Reason is a sentence for the client. It does not quote values.
	Reason string
}

// Error names the place and the reason.
func (e *JSONError) Error() string {
	return fmt.Sprintf("idempotency: JSON at %q, byte %d: %s", e.Pointer, e.Offset, e.Reason)
}

// Pointers are shown to clients and come from the client's own member names;
// these limits (bytes) keep an error small whatever the body is.
const (
	maxPointerName = 64
	maxPointer     = 256
)

// under puts one reference token in front of the pointer.
func (e *JSONError) under(token string) *JSONError {
	token = pointerToken(token)
	switch {
	case len(token) > maxPointerName:
		e.Pointer = ""
	case len(token)+len(e.Pointer) >= maxPointer:
		e.Pointer = "/" + token
	default:
		e.Pointer = "/" + token + e.Pointer
	}
	return e
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func pointerToken(name string) string { return pointerEscapes.Replace(name) }

// CanonicalJSON returns the one form that all spellings of the same JSON document
// share (R15): no white space, members sorted by code point of their names,
// strings unescaped and written with as few escapes as possible, numbers exactly
// as the client wrote them. 1, 1.0 and 1e0 stay different, and no number passes
// through a float, so 9007199254740993 keeps its last digit.
//
// It refuses, with a [*JSONError], whatever two parsers might read differently:
// duplicate member names, anything after the document, invalid UTF-8, lone
// surrogates, a byte order mark; and nesting deeper than [MaxJSONDepth]. The
// result is never longer than body and shares no memory with it.
func CanonicalJSON(body []byte) ([]byte, error) {
	out, err := appendCanonical(make([]byte, 0, len(body)), body)
	if err != nil { // a nil *JSONError must not become an error
		return nil, err
	}
	return out, nil
}

// canonicalizer is one pass over a document. Members are written to out as they
// come and put in order when their object ends; no tree is built.
type canonicalizer struct {
	in      []byte
	pos     int
	depth   int
	out     []byte
	members []member // of all objects that are open; each object owns the tail
	text    []byte   // holds names that had escapes
	scratch []byte   // an object's bytes while they are put in order
}

// member is out[start:end], a name with its value; name is unescaped.
type member struct {
	name       []byte
	start, end int
}

var canonicalizers = sync.Pool{New: func() any { return new(canonicalizer) }}

// appendCanonical appends the canonical form of body to dst. After an error the
// contents of dst beyond its old length mean nothing.
func appendCanonical(dst, body []byte) ([]byte, *JSONError) {
	c := canonicalizers.Get().(*canonicalizer)
	c.in, c.pos, c.depth, c.out = body, 0, 0, dst
	err := c.document()
	out := c.out
	c.release()
	if err != nil {
		return dst, err
	}
	return out, nil
}

// release gives the working memory back without a reference to the request.
func (c *canonicalizer) release() {
	c.in, c.out = nil, nil
	clear(c.members) // after an error; an object that ended has cleared its own
	c.members, c.text = c.members[:0], c.text[:0]
	const memberSize = 40
	if cap(c.scratch) <= keptBuffer && cap(c.text) <= keptBuffer && cap(c.members)*memberSize <= keptBuffer {
		canonicalizers.Put(c)
	}
}

func (c *canonicalizer) document() *JSONError {
	if err := c.value(); err != nil {
		return err
	}
	if c.space(); c.pos < len(c.in) {
		return c.fail("There is something after the end of the document.")
	}
	return nil
}

func (c *canonicalizer) fail(reason string) *JSONError {
	return &JSONError{Offset: c.pos, Reason: reason}
}

// value reads one value with the white space before it.
func (c *canonicalizer) value() *JSONError {
	switch b := c.peek(); b {
	case '{':
		return c.nested(c.object)
	case '[':
		return c.nested(c.array)
	case '"':
		mark := len(c.text)
		_, err := c.str()
		c.text = c.text[:mark] // a value's text is needed no longer
		return err
	case 't':
		return c.literal("true")
	case 'f':
		return c.literal("false")
	case 'n':
		return c.literal("null")
	case 0:
		if c.pos == len(c.in) {
			return c.fail("The document ends where a value was expected.")
		}
	}
	return c.number()
}

// nested runs read one level deeper, behind the opening bracket.
func (c *canonicalizer) nested(read func() *JSONError) *JSONError {
	if c.depth == MaxJSONDepth {
		return c.fail("The document nests deeper than " + strconv.Itoa(MaxJSONDepth) + " levels.")
	}
	c.depth++
	c.take()
	err := read()
	c.depth--
	return err
}

func (c *canonicalizer) array() *JSONError {
	if c.peek() == ']' {
		c.take()
		return nil
	}
	for i := 0; ; i++ {
		if err := c.value(); err != nil {
			return err.under(strconv.Itoa(i))
		}
		switch c.peek() {
		case ',':
			c.take()
		case ']':
			c.take()
			return nil
		default:
			return c.fail("A comma or the end of the array was expected.")
		}
	}
}

func (c *canonicalizer) object() *JSONError {
	base, open := len(c.members), len(c.out)
	if c.peek() == '}' {
		c.take()
		return nil
	}
	for {
		if c.peek() != '"' {
			return c.fail("A member name in double quotes was expected.")
		}
		start := len(c.out)
		name, err := c.str()
		if err != nil {
			return err
		}
		if c.peek() != ':' {
			return c.fail("A colon was expected.").under(string(name))
		}
		c.take()
		if err := c.value(); err != nil {
			return err.under(string(name))
		}
		c.members = append(c.members, member{name, start, len(c.out)})
		switch c.peek() {
		case ',':
			c.take()
		case '}':
			err := c.order(c.members[base:], open)
			clear(c.members[base:])
			c.members = c.members[:base]
			c.take()
			return err
		default:
			return c.fail("A comma or the end of the object was expected.")
		}
	}
}

// order puts the members of one object, written from out[open] on, into the order
// of their names, and refuses two of one name. UTF-8 sorts by bytes as by code
// points.
func (c *canonicalizer) order(members []member, open int) *JSONError {
	byName := func(a, b member) int { return bytes.Compare(a.name, b.name) }
	sorted := slices.IsSortedFunc(members, byName)
	if !sorted {
		slices.SortFunc(members, byName)
	}
	for i := 1; i < len(members); i++ {
		if bytes.Equal(members[i-1].name, members[i].name) {
			return c.fail("The object has two members of this name.").under(string(members[i].name))
		}
	}
	if sorted {
		return nil
	}
	c.scratch = append(c.scratch[:0], c.out[open:]...)
	c.out = c.out[:open]
	for i, m := range members {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, c.scratch[m.start-open:m.end-open]...)
	}
	return nil
}

// literal reads one of the three words.
func (c *canonicalizer) literal(word string) *JSONError {
	if !bytes.HasPrefix(c.in[c.pos:], []byte(word)) {
		return c.fail("A value was expected.")
	}
	c.pos += len(word)
	c.out = append(c.out, word...)
	return nil
}

// number reads a number and copies it as it is written.
func (c *canonicalizer) number() *JSONError {
	start := c.pos
	if c.at() == '-' {
		c.pos++
	}
	if c.at() == '0' {
		c.pos++
	} else if !c.digits() {
		return c.fail("A value was expected.")
	}
	if c.at() == '.' {
		c.pos++
		if !c.digits() {
			return c.fail("A digit was expected after the point.")
		}
	}
	if c.at()|0x20 == 'e' {
		c.pos++
		if b := c.at(); b == '+' || b == '-' {
			c.pos++
		}
		if !c.digits() {
			return c.fail("A digit was expected in the exponent.")
		}
	}
	c.out = append(c.out, c.in[start:c.pos]...)
	return nil
}

// digits skips decimal digits and reports whether there was one.
func (c *canonicalizer) digits() bool {
	start := c.pos
	for isDigit(c.at()) {
		c.pos++
	}
	return c.pos > start
}

// at returns the next byte, or 0 at the end, where 0 is no byte of JSON.
func (c *canonicalizer) at() byte {
	if c.pos < len(c.in) {
		return c.in[c.pos]
	}
	return 0
}

func (c *canonicalizer) space() {
	for c.pos < len(c.in) {
		switch c.in[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte without taking it.
func (c *canonicalizer) peek() byte {
	c.space()
	return c.at()
}

// take copies the next byte, which the caller has peeked at.
func (c *canonicalizer) take() {
	c.out = append(c.out, c.in[c.pos])
	c.pos++
}
