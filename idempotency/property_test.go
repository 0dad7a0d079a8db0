package idempotency

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// value is a JSON document that can be spelled in many ways: nil, bool,
// json.Number, string, []any or object.
type object struct {
	names  []string
	values []any
}

func documents(depth int) *rapid.Generator[any] {
	scalars := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?`), func(s string) any { return json.Number(s) }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
	)
	if depth == 0 {
		return scalars
	}
	inner := documents(depth - 1)
	return rapid.OneOf(scalars,
		rapid.Map(rapid.SliceOfN(inner, 0, 4), func(a []any) any { return a }),
		rapid.Custom(func(t *rapid.T) any {
			names := rapid.SliceOfNDistinct(rapid.String(), 0, 6, rapid.ID[string]).Draw(t, "names")
			values := rapid.SliceOfN(inner, len(names), len(names)).Draw(t, "values")
			return object{names, values}
		}))
}

// spell writes the document in one of its spellings.
func spell(t *rapid.T, b *strings.Builder, v any) {
	space := func() { b.WriteString(rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r\n"}).Draw(t, "space")) }
	text := func(s string) {
		b.WriteByte('"')
		for _, r := range s {
			spellRune(t, b, r)
		}
		b.WriteByte('"')
	}
	space()
	switch v := v.(type) {
	case object:
		order := make([]int, len(v.names))
		for i := range order {
			order[i] = i
		}
		b.WriteByte('{')
		for i, j := range rapid.Permutation(order).Draw(t, "order") {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			text(v.names[j])
			space()
			b.WriteByte(':')
			spell(t, b, v.values[j])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			spell(t, b, item)
		}
		space()
		b.WriteByte(']')
	case string:
		text(v)
	default:
		doc, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(doc)
	}
	space()
}

// spellRune writes one character bare where JSON allows it, or as an escape.
func spellRune(t *rapid.T, b *strings.Builder, r rune) {
	mustEscape := r < 0x20 || r == '"' || r == '\\'
	if !mustEscape && !rapid.Bool().Draw(t, "escape") {
		b.WriteRune(r)
		return
	}
	quoted := asciiJSON(r)
	if rapid.Bool().Draw(t, "upper") {
		quoted = strings.ReplaceAll(strings.ToUpper(quoted), `\U`, `\u`)
	}
	b.WriteString(quoted)
}

// asciiJSON spells a character with \u escapes alone.
func asciiJSON(r rune) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	unit := func(u rune) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[u>>shift&15])
		}
	}
	if r < 0x10000 {
		unit(r)
	} else {
		r -= 0x10000
		unit(0xd800 + r>>10)
		unit(0xdc00 + r&0x3ff)
	}
	return b.String()
}

func TestR15_AllSpellingsHaveOneForm(t *testing.T) {
	all := documents(3)
	rapid.Check(t, func(t *rapid.T) {
		doc := all.Draw(t, "document")
		var a, b strings.Builder
		spell(t, &a, doc)
		spell(t, &b, doc)
		first, err := CanonicalJSON([]byte(a.String()))
		if err != nil {
			t.Fatalf("%s: %v", a.String(), err)
		}
		second, err := CanonicalJSON([]byte(b.String()))
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("two spellings of one document:\n%s\n%s\nhave the forms\n%s\n%s\n%v", a.String(), b.String(), first, second, err)
		}
		again, err := CanonicalJSON(first)
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("the form of %s is %s, %v", first, again, err)
		}
		checkMeaning(t, []byte(a.String()), first)
	})
}

// Two documents of different meaning never have one form.
func TestR15_OtherValuesHaveAnotherForm(t *testing.T) {
	all := documents(2)
	rapid.Check(t, func(t *rapid.T) {
		var a, b strings.Builder
		spell(t, &a, all.Draw(t, "a"))
		spell(t, &b, all.Draw(t, "b"))
		first, err1 := CanonicalJSON([]byte(a.String()))
		second, err2 := CanonicalJSON([]byte(b.String()))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		same := reflect.DeepEqual(decode(t, []byte(a.String())), decode(t, []byte(b.String())))
		if bytes.Equal(first, second) != same {
			t.Fatalf("%s and %s: same meaning %v, forms %s and %s", a.String(), b.String(), same, first, second)
		}
	})
}

type fataler interface{ Fatalf(string, ...any) }

// checkMeaning asks the standard library, as a second opinion, whether two
// spellings say the same, with numbers as they are written.
func checkMeaning(t fataler, a, b []byte) {
	if x, y := decode(t, a), decode(t, b); !reflect.DeepEqual(x, y) {
		t.Fatalf("%s and %s do not mean the same", a, b)
	}
}

func decode(t fataler, doc []byte) any {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("the standard library refuses %q: %v", doc, err)
	}
	return v
}

// quoteKey writes a key as a String of RFC 9651.
func quoteKey(k string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(k) + `"`
}

func TestR06_KeysRoundTrip(t *testing.T) {
	keys := rapid.StringOfN(rapid.RuneFrom(nil, printableRange), 1, MaxKeyLength, -1)
	rapid.Check(t, func(t *rapid.T) {
		key := keys.Draw(t, "key")
		quoted, _, err := ParseKey(http.Header{HeaderKey: {quoteKey(key)}}, KeyOptions{})
		if err != nil || quoted.Value() != key {
			t.Fatalf("%q in quotes: %q, %v", key, quoted.Value(), err)
		}
		bare, err := ParseKeyText(key, KeyOptions{})
		if strings.ContainsAny(key, `",;\`) {
			if err == nil && !strings.HasPrefix(key, `"`) {
				t.Fatalf("%q is accepted bare", key)
			}
			return
		}
		if err != nil || bare.Value() != key {
			t.Fatalf("%q bare: %q, %v", key, bare.Value(), err)
		}
		s := Scope{"live", "m1"}
		if s.Record(bare) != s.Record(quoted) {
			t.Fatalf("the two spellings of %q have two records", key)
		}
	})
}
