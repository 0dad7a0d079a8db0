package idempotency

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// printableRange is the set of characters that a key may have.
var printableRange = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x21, Hi: 0x7e, Stride: 1}}, LatinOffset: 1}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"", " ", "abc", `"abc"`, `"a\"b\\c"`, `"abc";a=1;b="x";c=:YQ==:;d=@1;e=%"%c3%a9"`, "a,b", `"abc`, "café",
		"a\tb", `"a","b"`, "\xff", `""`, `"abc" ;a`, `"abc";a=-1.5;b=?1;c=*tok/x`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		k, present, err := ParseKey(http.Header{HeaderKey: {line}}, KeyOptions{})
		if !present {
			t.Fatal("the header was sent")
		}
		if err != nil {
			if p, ok := err.(*Problem); !ok || p.Status != 400 || p.Code != CodeKeyInvalid || k != "" {
				t.Fatalf("%q: %v with a key of %d bytes", line, err, len(k))
			}
			return
		}
		if len(k) == 0 || len(k) > MaxKeyLength {
			t.Fatalf("%q: a key of %d bytes", line, len(k))
		}
		for _, r := range k.Value() {
			if !unicode.Is(printableRange, r) {
				t.Fatalf("%q: the key holds %q", line, r)
			}
		}
		if again, err := ParseKeyText(quoteKey(k.Value()), KeyOptions{StrictStructuredField: true}); err != nil || again != k {
			t.Fatalf("%q: the key in quotes is another one: %v", line, err)
		}
	})
}

func FuzzCanonicalJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[1,1.0,1e0,-0.1E+2]`, `{"b":1,"a":{"d":[],"c":null}}`, `"\u0041\ud83d\ude00\n\/"`, `{"a":1,"a":2}`,
		`"\ud800"`, "\"\xff\"", `[[[[]]]]`, ` { "x" : true , "\u0078" : false } `, `{"a":1}x`, `01`, "\ufeff{}", `{"😀":1,"～":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		original := bytes.Clone(in)
		out, err := CanonicalJSON(in)
		if !bytes.Equal(in, original) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			e := err.(*JSONError)
			if e.Offset < 0 || e.Offset > len(in) || len(e.Pointer) > maxPointer || !utf8.ValidString(e.Pointer) {
				t.Fatalf("%q: %v", in, err)
			}
			return
		}
		if !json.Valid(in) {
			t.Fatalf("%q is accepted and is no JSON", in)
		}
		if len(out) > len(in) || !utf8.Valid(out) {
			t.Fatalf("%q has the form %q", in, out)
		}
		checkMeaning(t, in, out)
		if again, err := CanonicalJSON(out); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("the form of %q is %q, %v", out, again, err)
		}
	})
}

func FuzzParsePrefer(f *testing.F) {
	for _, seed := range []string{
		"wait=10", "respond-async", `respond-async, wait="1\0";x=",", foo`, "wait=99999999999999999999", `a="`, ",;=", `wait="10\`,
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		p := ParsePrefer(http.Header{"Prefer": {first, second}}, MaxWait)
		if p.Wait < 0 || p.Wait > MaxWait || p.Wait%time.Second != 0 {
			t.Fatalf("%q, %q: wait %v", first, second, p.Wait)
		}
		// What is understood by itself is understood in front of anything.
		if own := ParsePrefer(http.Header{"Prefer": {first}}, MaxWait); own.Wait != 0 && own.Wait != p.Wait || own.RespondAsync && !p.RespondAsync {
			t.Fatalf("%q: %+v, followed by %q: %+v", first, own, second, p)
		}
	})
}
