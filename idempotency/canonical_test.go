package idempotency

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestR15_CanonicalForm(t *testing.T) {
	cases := []struct{ in, want string }{
		{`{}`, `{}`}, {`[]`, `[]`}, {`""`, `""`}, {`0`, `0`}, {`true`, `true`}, {`false`, `false`}, {`null`, `null`},
		{" \t\r\n{ \"b\" : 1 ,\n \"a\" : [ 1 , 2 ] } \n", `{"a":[1,2],"b":1}`},
		{`{"b":{"d":1,"c":2},"a":{"z":[{"y":1,"x":2}]}}`, `{"a":{"z":[{"x":2,"y":1}]},"b":{"c":2,"d":1}}`},
		{`[ { } , [ ] ]`, `[{},[]]`},
		// numbers as written
		{`[1,1.0,1e0,1E0,1e+0,-0,0.10,12345678901234567890123]`, `[1,1.0,1e0,1E0,1e+0,-0,0.10,12345678901234567890123]`},
		// strings unescaped
		{`"\u0041\/\u00e9\ud83d\ude00\uD83D\uDE00"`, `"A/é😀😀"`},
		{`"\"\\\b\f\n\r\t\u0000\u001F\u007f\u2028"`, "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\u2028\""},
		{`"\u0008\u000a\u0022\u005c"`, `"\b\n\"\\"`},
		{`"<&>"`, `"<&>"`},
		// names are sorted by what they say, not by how they are spelled
		{`{"b":1,"\u0061":2}`, `{"a":2,"b":1}`},
		{`{"a":1,"\u0009":2,"\"":3,"Z":4,"":5}`, `{"":5,"\t":2,"\"":3,"Z":4,"a":1}`},
		// by code point: U+FF5E before U+1F600, although UTF-16 sorts otherwise
		{`{"😀":1,"～":2,"é":3,"z":4}`, `{"z":4,"é":3,"～":2,"😀":1}`},
		{`{"\ud83d\ude00":1,"\uff5e":2}`, `{"～":2,"😀":1}`},
		{`{"aa":1,"a":2,"ab":3}`, `{"a":2,"aa":1,"ab":3}`},
		{`{"a":1,"A":2}`, `{"A":2,"a":1}`},
		{`{"\u006e1":"\u0041\u0042","\u006e0":"\u0043"}`, `{"n0":"C","n1":"AB"}`},
	}
	for _, c := range cases {
		got, err := CanonicalJSON([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("CanonicalJSON(%s)\n got %s, %v\nwant %s", c.in, got, err, c.want)
		}
	}
}

func TestR15_RefusedDocuments(t *testing.T) {
	cases := []struct{ in, pointer, reason string }{
		{``, "", "ends where a value"},
		{` `, "", "ends where a value"},
		{`{"a":1,"a":1}`, "/a", "two members"},
		{`{"amount":100,"amount":1}`, "/amount", "two members"},
		{`{"a":1,"b":2,"\u0061":3}`, "/a", "two members"},
		{`{"x":[0,{"a/b~c":1,"a/b~c":2}]}`, "/x/1/a~1b~0c", "two members"},
		{`{"":1,"":2}`, "/", "two members"},
		{`{} {}`, "", "after the end"},
		{`{}x`, "", "after the end"},
		{"{}\x00", "", "after the end"},
		{`1 2`, "", "after the end"},
		{"\ufeff{}", "", "value was expected"},
		{"{\"a\":\"\xff\"}", "/a", "UTF-8"},
		{"{\"a\":\"\xed\xa0\x80\"}", "/a", "UTF-8"},
		{"{\"a\":\"\xc0\x80\"}", "/a", "UTF-8"},
		{"{\"a\":\"\\n\xe2\x82\"}", "/a", "UTF-8"},
		{"{\"a\xff\":1}", "", "UTF-8"},
		{`{"a":"\ud800"}`, "/a", "surrogate"},
		{`{"a":"\ud800x"}`, "/a", "surrogate"},
		{`{"a":"\ud800\u0041"}`, "/a", "surrogate"},
		{`{"a":"\ud800\ud800"}`, "/a", "surrogate"},
		{`{"a":"\udc00"}`, "/a", "surrogate"},
		{`{"\ud800":1}`, "", "surrogate"},
		{"\"a\tb\"", "", "control"},
		{"\"\\n\tb\"", "", "control"},
		{`"\x"`, "", "escape"},
		{`"\u12g4"`, "", "escape"},
		{`"\u12`, "", "escape"},
		{`"\`, "", "escape"},
		{`"abc`, "", "inside a string"},
		{`"\n`, "", "inside a string"},
		{`{"a":01}`, "", "comma or the end"},
		{`{"a":1.}`, "/a", "after the point"},
		{`{"a":1e}`, "/a", "exponent"},
		{`{"a":+1}`, "/a", "value was expected"},
		{`{"a":-}`, "/a", "value was expected"},
		{`{"a":.5}`, "/a", "value was expected"},
		{`{"a":NaN}`, "/a", "value was expected"},
		{`{"a":nul}`, "/a", "value was expected"},
		{`{"a":True}`, "/a", "value was expected"},
		{`{a:1}`, "", "member name"},
		{`{'a':1}`, "", "member name"},
		{`{"a" 1}`, "/a", "colon"},
		{`{"a":1,}`, "", "member name"},
		{`{"a":1`, "", "comma or the end of the object"},
		{`[1,]`, "/1", "value was expected"},
		{`[1 2]`, "", "comma or the end of the array"},
		{`[`, "/0", "ends where a value"},
		{`// c`, "", "value was expected"},
	}
	for _, c := range cases {
		got, err := CanonicalJSON([]byte(c.in))
		var e *JSONError
		if !errors.As(err, &e) {
			t.Errorf("CanonicalJSON(%q) = %s, %v; want a *JSONError", c.in, got, err)
			continue
		}
		if e.Pointer != c.pointer || !strings.Contains(e.Reason, c.reason) || e.Offset < 0 || e.Offset > len(c.in) {
			t.Errorf("CanonicalJSON(%q): %v; want pointer %q, reason %q", c.in, err, c.pointer, c.reason)
		}
	}
}

func TestR15_DepthIsBounded(t *testing.T) {
	for _, shape := range []struct{ open, middle, end string }{{"[", "", "]"}, {`{"a":`, "1", "}"}} {
		nest := func(n int) []byte {
			return []byte(strings.Repeat(shape.open, n) + shape.middle + strings.Repeat(shape.end, n))
		}
		if _, err := CanonicalJSON(nest(MaxJSONDepth)); err != nil {
			t.Errorf("%d levels: %v", MaxJSONDepth, err)
		}
		_, err := CanonicalJSON(nest(MaxJSONDepth + 1))
		var e *JSONError
		if !errors.As(err, &e) || !strings.Contains(e.Reason, "nests deeper") {
			t.Errorf("%d levels: %v", MaxJSONDepth+1, err)
		}
		if _, err := CanonicalJSON(nest(500_000)); err == nil {
			t.Error("half a million levels are accepted")
		}
	}
	// Width is not depth.
	if _, err := CanonicalJSON([]byte("[" + strings.Repeat("[],", 1000) + "[]]")); err != nil {
		t.Errorf("a thousand arrays side by side: %v", err)
	}
}

func TestR15_PointerStaysSmall(t *testing.T) {
	long := strings.Repeat("n", 100_000)
	short := strings.Repeat("s", maxPointerName)
	deep := strings.Repeat(`{"`+short+`":`, 20) + "x"
	for doc, want := range map[string]string{
		`{"` + long + `":x}`:                     "",
		`{"a":{"` + long + `":{"b":x}}}`:         "/a",
		`{"` + long + `":1,"` + long + `":2}`:    "",
		`{"` + strings.Repeat("s", 65) + `":[x]`: "",
		`{"` + short + `":[x]`:                   "/" + short + "/0",
	} {
		_, err := CanonicalJSON([]byte(doc))
		var e *JSONError
		if !errors.As(err, &e) || e.Pointer != want {
			t.Errorf("document of %d bytes: %.200v; want pointer %q", len(doc), err, want)
		}
	}
	_, err := CanonicalJSON([]byte(deep))
	var e *JSONError
	if !errors.As(err, &e) || len(e.Pointer) > maxPointer || !strings.HasPrefix(e.Pointer, "/"+short) {
		t.Errorf("deep document: %v", err)
	}
}

func TestR15_ErrorNamesPlaceAndReason(t *testing.T) {
	_, err := CanonicalJSON([]byte(`{"a":[1,x]}`))
	const want = `idempotency: JSON at "/a/1", byte 8: A value was expected.`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The working memory is pooled; a refused document must leave nothing behind.
func TestCanonicalJSON_AfterARefusal(t *testing.T) {
	for range 100 {
		if _, err := CanonicalJSON([]byte(`{"z":1,"\u0062":{"y":2,"\u0063":[{"q":`)); err == nil {
			t.Fatal("accepted")
		}
		got, err := CanonicalJSON([]byte(`{"b":1,"\u0061":"\u0041"}`))
		if err != nil || string(got) != `{"a":"A","b":1}` {
			t.Fatalf("got %s, %v", got, err)
		}
	}
}

func TestCanonicalJSON_SharesNoMemory(t *testing.T) {
	in := []byte(`{"a":"text"}`)
	out, err := CanonicalJSON(in)
	if err != nil {
		t.Fatal(err)
	}
	clear(in)
	if string(out) != `{"a":"text"}` {
		t.Errorf("the result changed with its source: %s", out)
	}
}

func TestCanonicalJSON_ManyMembers(t *testing.T) {
	const n = 20_000
	var in, want strings.Builder
	for i := range n {
		fmt.Fprintf(&in, `,"%05d":%d`, n-1-i, n-1-i)
		fmt.Fprintf(&want, `,"%05d":%d`, i, i)
	}
	got, err := CanonicalJSON([]byte("{" + in.String()[1:] + "}"))
	if err != nil || string(got) != "{"+want.String()[1:]+"}" {
		t.Errorf("%d members are not sorted: %v", n, err)
	}
}
