package idempotency

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// secretMark is in every bad key below, so that a test can see whether a refusal
// shows the key.
const secretMark = "s3cr3t"

func keyHeader(lines ...string) http.Header {
	h := make(http.Header)
	for _, line := range lines {
		h.Add(HeaderKey, line)
	}
	return h
}

func wantKeyInvalid(t *testing.T, err error) {
	t.Helper()
	var p *Problem
	if !errors.As(err, &p) {
		t.Fatalf("error %v, want a *Problem", err)
	}
	if p.Code != CodeKeyInvalid || p.Status != http.StatusBadRequest || p.Retry != RetryNever || !p.SafeNewKey {
		t.Errorf("problem %+v, want 400 %s", p, CodeKeyInvalid)
	}
	body, _ := p.MarshalJSON()
	if bytes.Contains(body, []byte(secretMark)) || strings.Contains(err.Error(), secretMark) {
		t.Errorf("the refusal shows the key: %s", body)
	}
}

// badKeys are header lines that hold no single valid key, by what is wrong.
var badKeys = map[string][]string{
	"empty":                      {""},
	"blank":                      {"   "},
	"blank with tab":             {" \t "},
	"256 characters":             {secretMark + strings.Repeat("x", MaxKeyLength+1-len(secretMark))},
	"quoted, 256 characters":     {`"` + secretMark + strings.Repeat("x", MaxKeyLength+1-len(secretMark)) + `"`},
	"tab inside":                 {secretMark + "\tb"},
	"space inside":               {secretMark + " b"},
	"quoted space":               {`"` + secretMark + ` b"`},
	"quoted tab":                 {"\"" + secretMark + "\tb\""},
	"quoted control":             {"\"" + secretMark + "\x01\""},
	"quoted DEL":                 {"\"" + secretMark + "\x7f\""},
	"quoted non-ASCII":           {`"` + secretMark + `é"`},
	"quoted escaped then DEL":    {"\"" + secretMark + "\\\"\x7f\""},
	"NUL":                        {secretMark + "\x00"},
	"DEL":                        {secretMark + "\x7f"},
	"line break":                 {secretMark + "\nb"},
	"non-ASCII":                  {secretMark + "café"},
	"full-width digits":          {secretMark + "１２"},
	"invalid UTF-8":              {secretMark + "\xff"},
	"comma":                      {secretMark + ",b"},
	"only a comma":               {","},
	"two lines":                  {secretMark, "b"},
	"two equal lines":            {secretMark, secretMark},
	"two quoted lines":           {`"` + secretMark + `"`, `"b"`},
	"second line empty":          {secretMark, ""},
	"quoted list":                {`"` + secretMark + `","b"`},
	"quoted list, spaced":        {`"` + secretMark + `" , "b"`},
	"unterminated":               {`"` + secretMark},
	"unterminated escape":        {`"` + secretMark + `\`},
	"only a quote":               {`"`},
	"unknown escape":             {`"` + secretMark + `\n"`},
	"quoted empty":               {`""`},
	"quoted empty, parameter":    {`"";a=1`},
	"text after the quote":       {`"` + secretMark + `"x`},
	"space before parameter":     {`"` + secretMark + `" ;a`},
	"empty parameter":            {`"` + secretMark + `";`},
	"upper-case parameter":       {`"` + secretMark + `";A=1`},
	"parameter without value":    {`"` + secretMark + `";a=`},
	"bad boolean":                {`"` + secretMark + `";a=?2`},
	"bad number":                 {`"` + secretMark + `";a=1.`},
	"too many digits":            {`"` + secretMark + `";a=1234567890123456`},
	"too many digits in front":   {`"` + secretMark + `";a=1234567890123.5`},
	"too many digits behind":     {`"` + secretMark + `";a=1.2345`},
	"bad date":                   {`"` + secretMark + `";a=@1.5`},
	"unterminated bytes":         {`"` + secretMark + `";a=:YQ==`},
	"bad bytes":                  {`"` + secretMark + `";a=:Y~:`},
	"bad display string":         {`"` + secretMark + `";a=%"%C3%A9"`},
	"display string, not UTF-8":  {`"` + secretMark + `";a=%"%ff"`},
	"display string, cut":        {`"` + secretMark + `";a=%"%c`},
	"display string, no quote":   {`"` + secretMark + `";a=%x`},
	"display string, open":       {`"` + secretMark + `";a=%"x`},
	"display string, control":    {`"` + secretMark + "\";a=%\"\x01\""},
	"list inside parameter":      {`"` + secretMark + `";a=(1 2)`},
	"bare with parameter":        {secretMark + ";a=1"},
	"bare with quote":            {secretMark + `"`},
	"bare with backslash":        {secretMark + `\`},
	"unterminated parameter":     {`"` + secretMark + `";a="x`},
	"comma after the parameters": {`"` + secretMark + `";a=1,"b"`},
}

func TestT03_BadKeysAreRefused(t *testing.T) {
	for name, lines := range badKeys {
		t.Run(name, func(t *testing.T) {
			k, present, err := ParseKey(keyHeader(lines...), KeyOptions{})
			wantKeyInvalid(t, err)
			if k != "" || !present {
				t.Errorf("key of %d bytes, present %v; want none, present", len(k), present)
			}
		})
	}
}

func TestR05_AbsentHeaderIsNoError(t *testing.T) {
	for _, h := range []http.Header{nil, {}, {"Idempotency-Key": {}}, {"Other": {"x"}}} {
		if k, present, err := ParseKey(h, KeyOptions{}); k != "" || present || err != nil {
			t.Errorf("ParseKey(%v) = %q, %v, %v", h, k.Value(), present, err)
		}
	}
}

func TestT04_BothSpellingsNameTheSameKey(t *testing.T) {
	cases := []struct{ line, want string }{
		{`abc`, "abc"},
		{`"abc"`, "abc"},
		{"  abc\t", "abc"},
		{` "abc" `, "abc"},
		{`ABC`, "ABC"},
		{`a=b:c/d'e%20*?@`, "a=b:c/d'e%20*?@"},
		{`?1`, "?1"},
		{`"a,b;c"`, "a,b;c"},
		{`"a\"b\\c"`, `a"b\c`},
		{`"\\"`, `\`},
		{`"abc";a`, "abc"},
		{`"abc"; a;  b=1;c=-1.5;d="x\"y";e=tok/en:1;f=:YQ==:;g=?0;h=@-17;i=%"f%c3%bcr";*j=*`, "abc"},
		{strings.Repeat("k", MaxKeyLength), strings.Repeat("k", MaxKeyLength)},
		{`"` + strings.Repeat(`\"`, MaxKeyLength) + `"`, strings.Repeat(`"`, MaxKeyLength)},
		{"!", "!"}, {"~", "~"},
		{"123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"},
		{"../../etc/passwd", "../../etc/passwd"},
		{"'OR'1'='1", "'OR'1'='1"},
	}
	for _, c := range cases {
		k, present, err := ParseKey(keyHeader(c.line), KeyOptions{})
		if err != nil || !present || k.Value() != c.want {
			t.Errorf("ParseKey(%s) = %q, %v, %v; want %q", c.line, k.Value(), present, err, c.want)
		}
		if k, err := ParseKeyText(c.line, KeyOptions{}); err != nil || k.Value() != c.want {
			t.Errorf("ParseKeyText(%s) = %q, %v; want %q", c.line, k.Value(), err, c.want)
		}
	}
}

func TestR07_KeysAreCaseSensitive(t *testing.T) {
	s := Scope{"live", "m1"}
	if s.Record("abc") == s.Record("ABC") {
		t.Error("abc and ABC have one record")
	}
}

func TestR06_StrictRefusesTheBareForm(t *testing.T) {
	strict := KeyOptions{StrictStructuredField: true}
	_, _, err := ParseKey(keyHeader(secretMark), strict)
	wantKeyInvalid(t, err)
	if k, _, err := ParseKey(keyHeader(`"abc"`), strict); err != nil || k != "abc" {
		t.Errorf("quoted key: %q, %v", k.Value(), err)
	}
}

func TestR07_ValidatorMayRefuseMore(t *testing.T) {
	const key = secretMark + `"\x`
	refuseWith := func(text string) KeyOptions {
		return KeyOptions{Validate: func(k string) error {
			if k != key {
				t.Errorf("validator got %q, want the decoded key", k)
			}
			if text == "" {
				return nil
			}
			return errors.New(text)
		}}
	}
	const line = `"` + secretMark + `\"\\x"`
	for text, shown := range map[string]bool{
		"The key must be a UUID.":        true,
		"not a UUID: " + key:             false,
		fmt.Sprintf("bad key %q", key):   false,
		fmt.Sprintf("bad key '%s'", key): false,
	} {
		_, err := ParseKeyText(line, refuseWith(text))
		wantKeyInvalid(t, err)
		if got := err.(*Problem).Detail == text; got != shown {
			t.Errorf("text %q shown: %v, want %v", text, got, shown)
		}
	}
	if k, err := ParseKeyText(line, refuseWith("")); err != nil || k.Value() != key {
		t.Errorf("accepted key: %q, %v", k.Value(), err)
	}
}

func TestR08_KeyIsNeverPrinted(t *testing.T) {
	k := Key(secretMark)
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%10s"} {
		fmt.Fprintf(&out, verb+"\n", k)
		fmt.Fprintf(&out, verb+"\n", struct{ K Key }{k})
	}
	fmt.Fprintln(&out, k, &k, []Key{k}, map[Key]Key{k: k}, k.String(), k.GoString())
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("request", "key", k, "in", struct{ K Key }{k})
	}
	doc, err := json.Marshal(map[string]any{"key": k})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(doc)
	hexed := fmt.Sprintf("%x", secretMark)
	for _, form := range []string{secretMark, hexed, strings.ToUpper(hexed)} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the key is printed as %s in\n%s", form, out.String())
		}
	}
	if _, err := ParseKeyText(k.String(), KeyOptions{}); err == nil {
		t.Error("the redacted text is itself a valid key: two keys that were stored by mistake would be one")
	}
	if k.Value() != secretMark {
		t.Error("Value does not give the key")
	}
}

func TestT06_KeysMeanNothingOnSafeMethods(t *testing.T) {
	for method, want := range map[string]bool{
		"GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true,
		"POST": false, "PATCH": false, "PUT": false, "DELETE": false, "get": false, "": false,
	} {
		if got := SafeMethod(method); got != want {
			t.Errorf("SafeMethod(%q) = %v, want %v", method, got, want)
		}
	}
}
