package httpapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/payonce/payonce"
)

// This file reads request bodies that idempotency has found to be one JSON
// document: well-formed, UTF-8, not too deep, no member twice. What is left to
// refuse is what the document says.

// member is one member of a request's object.
type member[T any] struct {
	name     string
	required bool // absent and null are refused
	read     func(d *decoder, into *T)
}

// maxErrors bounds how many wrong members one answer names.
const maxErrors = 20

// decoder walks a document once and collects everything that is wrong with it.
type decoder struct {
	in    []byte
	pos   int
	path  []string // names of the members around the present value
	wrong []payonce.Field
}

// decode reads the body into v and returns an invalid-request error that names
// every wrong member. check, which may be nil, compares members with each other.
func decode[T any](body []byte, members []member[T], v *T, check func(d *decoder, v *T)) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	var space [4]string
	d := decoder{in: body, path: space[:0]}
	object(&d, members, v)
	if check != nil {
		check(&d, v)
	}
	if len(d.wrong) > 0 {
		return invalid(d.wrong)
	}
	return nil
}

// invalid makes the error of some wrong members or parameters. The order does
// not depend on the order in which they were found.
func invalid(wrong []payonce.Field) error {
	slices.SortStableFunc(wrong, func(a, b payonce.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
	detail := "The request has a value that is not allowed; errors says where."
	if len(wrong) > 1 {
		detail = "The request has values that are not allowed; errors says where."
	}
	return &payonce.Error{Code: payonce.CodeInvalidRequest, Detail: detail, Fields: wrong}
}

// object reads the present value as an object with these members.
func object[T any](d *decoder, members []member[T], v *T) {
	var seen uint64
	if !d.each(func(name string) {
		i := slices.IndexFunc(members, func(m member[T]) bool { return m.name == name })
		switch {
		case i < 0:
			d.fail("There is no such member.")
			d.skip()
		case d.peek() == 'n':
			d.skip() // null is the same as absent
		default:
			seen |= 1 << i
			members[i].read(d, v)
		}
	}) {
		return
	}
	for i := range members {
		if members[i].required && seen&(1<<i) == 0 {
			d.failAt(members[i].name, "The member is required.")
		}
	}
}

// each calls f at the value of each member; f must consume it. It is false when
// the value is not an object.
func (d *decoder) each(f func(name string)) bool {
	if d.peek() != '{' {
		d.fail("An object is needed.")
		d.skip()
		return false
	}
	d.pos++
	for d.peek() != '}' {
		name := d.str()
		d.peek()
		d.pos++ // the colon
		d.path = append(d.path, name)
		f(name)
		d.path = d.path[:len(d.path)-1]
		if d.peek() == ',' {
			d.pos++
		}
	}
	d.pos++
	return true
}

// text reads a string that the rule accepts. A rule returns a sentence that says
// what is allowed, "" when all is well.
func (d *decoder) text(rule func(string) string) string {
	if d.peek() != '"' {
		d.fail("A string is needed.")
		d.skip()
		return ""
	}
	s := d.str()
	if says := rule(s); says != "" {
		d.fail(says)
	}
	return s
}

// integer reads an integer between low and high that is written as one: 1.0, 1e2
// and "1" mean different things to different parsers.
func (d *decoder) integer(low, high int64) int64 {
	const form = "An integer is needed, written with digits alone."
	c := d.peek()
	start := d.pos
	d.skip()
	if c != '-' && (c < '0' || c > '9') {
		d.fail(form)
		return 0
	}
	text := string(d.in[start:d.pos])
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case strings.ContainsAny(text, ".eE") || text == "-0":
		d.fail(form)
	case err != nil || n < low || n > high:
		d.fail("An integer from " + strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10) + " is needed.")
	}
	return n
}

// peek skips white space and returns the next byte, 0 at the end.
func (d *decoder) peek() byte {
	for d.pos < len(d.in) {
		switch c := d.in[d.pos]; c {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return c
		}
	}
	return 0
}

// str reads a string at its opening quote.
func (d *decoder) str() string {
	d.peek()
	start := d.pos
	d.pos++
	escaped := false
	for d.in[d.pos] != '"' {
		if d.in[d.pos] == '\\' {
			escaped = true
			d.pos++
		}
		d.pos++
	}
	d.pos++
	if !escaped {
		return string(d.in[start+1 : d.pos-1])
	}
	var s string
	_ = json.Unmarshal(d.in[start:d.pos], &s) // was found to be well-formed
	return s
}

// skip passes over the present value.
func (d *decoder) skip() {
	depth := 0
	for {
		switch d.peek() {
		case 0:
			return
		case '{', '[':
			depth++
			d.pos++
		case '}', ']':
			depth--
			d.pos++
		case '"':
			d.str()
		case ',', ':':
			d.pos++
		default:
			for d.pos < len(d.in) && !strings.ContainsRune(" \t\n\r,:]}", rune(d.in[d.pos])) {
				d.pos++
			}
		}
		if depth == 0 {
			return
		}
	}
}

// fail notes what is wrong with the present value. It never quotes the value.
func (d *decoder) fail(says string) { d.note(d.path, says) }

// failAt notes what is wrong with a member of the present object.
func (d *decoder) failAt(name, says string) { d.note(append(d.path, name), says) }

func (d *decoder) note(path []string, says string) {
	if len(d.wrong) >= maxErrors {
		return
	}
	var b strings.Builder
	for _, name := range path {
		b.WriteString("/")
		b.WriteString(pointerToken(name))
	}
	d.wrong = append(d.wrong, payonce.Field{Pointer: b.String(), Message: says})
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointerToken is a name as part of a JSON pointer. Names come from the client;
// a long one is cut, so that an error stays small.
func pointerToken(name string) string {
	const limit = 64
	if len(name) > limit {
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return pointerEscapes.Replace(name)
}
