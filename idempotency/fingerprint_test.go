package idempotency

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

var testScope = Scope{Environment: "live", Tenant: "m1"}

func testSecret(id string, first byte) Secret {
	key := make([]byte, 32)
	for i := range key {
		key[i] = first + byte(i)
	}
	return Secret{ID: id, Key: key}
}

func newFingerprinter(t testing.TB) *Fingerprinter {
	t.Helper()
	f, err := NewFingerprinter(testSecret("s1", 0))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func payment() Request {
	return Request{
		Method: "POST", EscapedPath: "/v1/payments", ContentType: "application/json",
		Body: []byte(`{"amount":100,"name":"é"}`),
	}
}

func sumOf(t testing.TB, f *Fingerprinter, r Request) Fingerprint {
	t.Helper()
	fp, err := f.Sum(testScope, r)
	if err != nil {
		t.Fatal(err)
	}
	return fp
}

// The expected values were computed by another program, from R13 to R15 alone.
func TestR13_GoldenFingerprints(t *testing.T) {
	multipartBody := "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n" +
		"--B\r\nContent-Disposition: form-data; name=f; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n" +
		"Content-Transfer-Encoding: base64\r\n\r\naGk=\r\n--B--\r\n"
	cases := map[string]struct {
		change func(*Request)
		want   string
	}{
		"JSON": {func(r *Request) {
			r.ContentType, r.Body = "Application/JSON; charset=utf-8", []byte(` {"name":"\u00e9", "amount":100}`)
		},
			"785c25bd55ad0497e2a7095fb533182154f7ea3800d7900ef9e4f243240d22bb"},
		"bytes": {func(r *Request) {
			r.RawQuery, r.ContentType, r.APIVersion, r.Extra = "x=1", "text/plain", "2024-01-01", []string{"a", ""}
			r.Body = []byte(`{ "amount":100 }`)
		}, "cfee7f0d3e536d96cc493d4d2f8965a491c7b1cf41f971ada849b62b5243e8fc"},
		"forced bytes": {func(r *Request) { r.RawBody, r.Body = true, []byte(`{ "a":1 }`) }, "80644feb35c2a452dd85084766e80e62d38f25edb6e62c7838a5560dc6e2c1de"},
		"no body":      {func(r *Request) { r.Body = nil }, "89de801840d437941523bd07b54c0dafbb7ef41157791eebfc48f556059086ac"},
		"multipart": {func(r *Request) { r.ContentType, r.Body = "multipart/form-data; boundary=B", []byte(multipartBody) },
			"b81424c13459ff53424964b1471e3e2c9c9511b66e9005a862e7c6b0712209cc"},
	}
	f := newFingerprinter(t)
	for name, c := range cases {
		r := payment()
		c.change(&r)
		fp := sumOf(t, f, r)
		if got := hex.EncodeToString(fp.Sum[:]); got != c.want || fp.Version != 1 || fp.Secret != "s1" {
			t.Errorf("%s: %s, version %d, secret %q; want %s, 1, s1", name, got, fp.Version, fp.Secret, c.want)
		}
	}
}

func TestR14_WhatMakesRequestsDifferent(t *testing.T) {
	f := newFingerprinter(t)
	stored := sumOf(t, f, payment())
	cases := map[string]func(*Request){
		"T7 amount":            func(r *Request) { r.Body = []byte(`{"amount":101,"name":"é"}`) },
		"T8 path":              func(r *Request) { r.EscapedPath = "/v1/payments/pay_1/refunds" },
		"T8 trailing slash":    func(r *Request) { r.EscapedPath += "/" },
		"T8 query":             func(r *Request) { r.RawQuery = "x=1" },
		"T8 method":            func(r *Request) { r.Method = "PATCH" },
		"escaped path":         func(r *Request) { r.EscapedPath = "/v1/%70ayments" },
		"query into path":      func(r *Request) { r.EscapedPath, r.RawQuery = "/v1/payments?x", "" },
		"media type":           func(r *Request) { r.ContentType = "application/vnd.x+json" },
		"no media type":        func(r *Request) { r.ContentType = "" },
		"API version":          func(r *Request) { r.APIVersion = "2" },
		"one extra":            func(r *Request) { r.Extra = []string{""} },
		"extra value":          func(r *Request) { r.Extra = []string{"a"} },
		"no body":              func(r *Request) { r.Body = nil },
		"member added":         func(r *Request) { r.Body = []byte(`{"amount":100,"name":"é","x":null}`) },
		"bytes of the body":    func(r *Request) { r.RawBody = true },
		"precomposed or not":   func(r *Request) { r.Body = []byte(`{"amount":100,"name":"e\u0301"}`) },
		"number as a string":   func(r *Request) { r.Body = []byte(`{"amount":"100","name":"é"}`) },
		"other number format":  func(r *Request) { r.Body = []byte(`{"amount":100.0,"name":"é"}`) },
		"other exponent":       func(r *Request) { r.Body = []byte(`{"amount":1e2,"name":"é"}`) },
		"case of a name":       func(r *Request) { r.Body = []byte(`{"Amount":100,"name":"é"}`) },
		"white space in value": func(r *Request) { r.Body = []byte(`{"amount":100,"name":"é "}`) },
	}
	for name, change := range cases {
		r := payment()
		change(&r)
		if same, err := f.Match(stored, testScope, r); same || err != nil {
			t.Errorf("%s: Match = %v, %v; want a difference", name, same, err)
		}
	}
	for _, s := range []Scope{{"test", "m1"}, {"live", "m2"}, {"livem", "1"}} {
		if same, err := f.Match(stored, s, payment()); same || err != nil {
			t.Errorf("scope %+v: Match = %v, %v; want a difference", s, same, err)
		}
	}
}

func TestR15_WhatDoesNotMakeRequestsDifferent(t *testing.T) {
	f := newFingerprinter(t)
	stored := sumOf(t, f, payment())
	for name, change := range map[string]func(*Request){
		"nothing":      func(*Request) {},
		"member order": func(r *Request) { r.Body = []byte(`{"name":"é","amount":100}`) },
		"white space":  func(r *Request) { r.Body = []byte("\n{ \"amount\" : 100 , \"name\" : \"é\" }\n") },
		"escapes":      func(r *Request) { r.Body = []byte(`{"\u0061mount":100,"name":"\u00E9"}`) },
		"charset":      func(r *Request) { r.ContentType = " APPLICATION/json ; charset=UTF-8" },
		"empty extra":  func(r *Request) { r.Extra = []string{} },
	} {
		r := payment()
		change(&r)
		if same, err := f.Match(stored, testScope, r); !same || err != nil {
			t.Errorf("%s: Match = %v, %v; want the same request", name, same, err)
		}
	}
}

func TestT11_LargeIntegersKeepTheirLastDigit(t *testing.T) {
	f := newFingerprinter(t)
	r := payment()
	r.Body = []byte(`{"id":9007199254740993}`)
	stored := sumOf(t, f, r)
	r.Body = []byte(`{"id":9007199254740992}`)
	if same, err := f.Match(stored, testScope, r); same || err != nil {
		t.Errorf("Match = %v, %v; two ids that one float64 stands for are taken for one", same, err)
	}
}

func TestT10_DuplicateMembersAreRefused(t *testing.T) {
	f := newFingerprinter(t)
	for _, media := range []string{"application/json", "application/problem+json", "application/json;v=1"} {
		r := payment()
		r.ContentType, r.Body = media, []byte(`{"amount":100,"amount":1}`)
		_, err := f.Sum(testScope, r)
		var p *Problem
		if !errors.As(err, &p) {
			t.Fatalf("%s: %v, want a *Problem", media, err)
		}
		want := FieldError{Pointer: "/amount", Message: "The object has two members of this name."}
		if p.Code != CodeNotFingerprintable || p.Status != 400 || len(p.Errors) != 1 || p.Errors[0] != want {
			t.Errorf("%s: %+v", media, p)
		}
		var cause *JSONError
		if !errors.As(err, &cause) {
			t.Errorf("%s: the cause is lost", media)
		}
		// The same key comes again with a corrected body: nothing stuck.
		r.Body = []byte(`{"amount":100}`)
		sumOf(t, f, r)
	}
	r := payment()
	r.ContentType, r.Body = "text/plain", []byte(`{"amount":100,"amount":1}`)
	sumOf(t, f, r) // other types are bytes
}

func TestR15_MultipartIgnoresTheBoundary(t *testing.T) {
	f := newFingerprinter(t)
	part := func(name, file, media, text string) string {
		s := "Content-Disposition: form-data; name=\"" + name + "\""
		if file != "" {
			s += "; filename=\"" + file + "\""
		}
		if media != "" {
			s += "\r\nContent-Type: " + media
		}
		return s + "\r\n\r\n" + text
	}
	form := func(boundary string, parts ...string) Request {
		r := payment()
		r.ContentType = "multipart/form-data; boundary=" + boundary
		r.Body = []byte("--" + boundary + "\r\n" + strings.Join(parts, "\r\n--"+boundary+"\r\n") + "\r\n--" + boundary + "--\r\n")
		return r
	}
	a, b := part("a", "", "", "1"), part("f", "x.txt", "text/plain", "hello")
	stored := sumOf(t, f, form("AAA", a, b))
	if same, err := f.Match(stored, testScope, form("BBBB", a, b)); !same || err != nil {
		t.Errorf("another boundary: %v, %v", same, err)
	}
	for name, r := range map[string]Request{
		"value":     form("AAA", part("a", "", "", "2"), b),
		"name":      form("AAA", part("b", "", "", "1"), b),
		"file name": form("AAA", a, part("f", "y.txt", "text/plain", "hello")),
		"path":      form("AAA", a, part("f", "d/x.txt", "text/plain", "hello")),
		"type":      form("AAA", a, part("f", "x.txt", "text/html", "hello")),
		"bytes":     form("AAA", a, part("f", "x.txt", "text/plain", "hello ")),
		"order":     form("AAA", b, a),
		"one less":  form("AAA", a),
		"one twice": form("AAA", a, b, b),
	} {
		if same, err := f.Match(stored, testScope, r); same || err != nil {
			t.Errorf("%s: Match = %v, %v; want a difference", name, same, err)
		}
	}
	for name, change := range map[string]func(*Request){
		"no boundary":     func(r *Request) { r.ContentType = "multipart/form-data" },
		"broken type":     func(r *Request) { r.ContentType = "multipart/form-data; boundary=\"AAA" },
		"not closed":      func(r *Request) { r.Body = r.Body[:len(r.Body)-8] },
		"cut in a header": func(r *Request) { r.Body = r.Body[:20] },
		"not multipart":   func(r *Request) { r.Body = []byte("hello") },
		"bad disposition": func(r *Request) { r.Body = bytes.Replace(r.Body, []byte(`name="a"`), []byte(`name="a`), 1) },
	} {
		r := form("AAA", a, b)
		change(&r)
		_, err := f.Sum(testScope, r)
		var p *Problem
		if !errors.As(err, &p) || p.Code != CodeNotFingerprintable || p.Status != 400 {
			t.Errorf("%s: %v; want 400 %s", name, err, CodeNotFingerprintable)
		}
	}
}

func TestR18_SecretsRotate(t *testing.T) {
	first, second := testSecret("s1", 0), testSecret("s2", 7)
	old := newFingerprinter(t)
	stored := sumOf(t, old, payment())

	rotated, err := NewFingerprinter(second, first)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := rotated.Match(stored, testScope, payment()); !same || err != nil {
		t.Errorf("after the rotation: %v, %v; an honest retry becomes a 422", same, err)
	}
	other := payment()
	other.Body = []byte(`{"amount":101}`)
	if same, err := rotated.Match(stored, testScope, other); same || err != nil {
		t.Errorf("after the rotation, other request: %v, %v", same, err)
	}
	fresh := sumOf(t, rotated, payment())
	if fresh.Secret != "s2" || fresh.Sum == stored.Sum {
		t.Errorf("new fingerprints are written under %q", fresh.Secret)
	}
	// A node that does not have the secret yet knows nothing: neither equal nor
	// different.
	if same, err := old.Match(fresh, testScope, payment()); same || !errors.Is(err, ErrUnknownSecret) {
		t.Errorf("unknown secret: %v, %v", same, err)
	}
	stored.Version = 2
	if same, err := rotated.Match(stored, testScope, payment()); same || !errors.Is(err, ErrUnknownVersion) {
		t.Errorf("unknown version: %v, %v", same, err)
	}
	if same, err := rotated.Match(Fingerprint{}, testScope, payment()); same || err == nil {
		t.Errorf("zero fingerprint: %v, %v", same, err)
	}
	bad := payment()
	bad.Body = []byte(`{`)
	if same, err := rotated.Match(fresh, testScope, bad); same || err == nil {
		t.Errorf("malformed request: %v, %v", same, err)
	}
}

func TestR13_BadSecretsAreRefused(t *testing.T) {
	good := testSecret("s1", 0)
	for name, secrets := range map[string][]Secret{
		"no id":       {{ID: "", Key: good.Key}},
		"long id":     {{ID: strings.Repeat("i", 65), Key: good.Key}},
		"no key":      {{ID: "s1"}},
		"short key":   {{ID: "s1", Key: good.Key[:15]}},
		"id twice":    {good, testSecret("s1", 9)},
		"short older": {good, {ID: "s0", Key: good.Key[:8]}},
	} {
		if f, err := NewFingerprinter(secrets[0], secrets[1:]...); err == nil || f != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestR13_SecretIsCopiedAndNeverPrinted(t *testing.T) {
	s := Secret{ID: "s1", Key: []byte("0123456789abcdef-" + secretMark)}
	f, err := NewFingerprinter(s)
	if err != nil {
		t.Fatal(err)
	}
	before := sumOf(t, f, payment())
	text := fmt.Sprintf("%v %+v %#v %s %q %x %v %v", s, s, s, s, s, s, &s, struct{ S Secret }{s})
	if strings.Contains(text, secretMark) || strings.Contains(text, hex.EncodeToString([]byte(secretMark))) {
		t.Errorf("the secret is printed: %s", text)
	}
	if doc, err := json.Marshal(s); err == nil {
		t.Errorf("the secret is encoded: %s", doc)
	}
	clear(s.Key)
	if sumOf(t, f, payment()) != before {
		t.Error("changing the caller's slice changed the fingerprint")
	}
}

func TestR14_RequestOfTakesTheRequestLine(t *testing.T) {
	var got Request
	h := http.StripPrefix("/api", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = RequestOf(r, []byte("body"))
	}))
	r := httptest.NewRequest("POST", "/api/v1/a%2Fb%70?x=%20&&y", nil)
	r.Header.Set("Content-Type", "text/plain; charset=x")
	h.ServeHTTP(httptest.NewRecorder(), r)
	want := Request{Method: "POST", EscapedPath: "/api/v1/a%2Fb%70", RawQuery: "x=%20&&y", ContentType: "text/plain; charset=x"}
	if got.Method != want.Method || got.EscapedPath != want.EscapedPath || got.RawQuery != want.RawQuery ||
		got.ContentType != want.ContentType || string(got.Body) != "body" {
		t.Errorf("got %+v", got)
	}
	out, err := http.NewRequest("POST", "http://host/v1/a%2Fb?q", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := RequestOf(out, nil); got.EscapedPath != "/v1/a%2Fb" || got.RawQuery != "q" {
		t.Errorf("a request without request line: %+v", got)
	}
}

func TestFingerprinter_IsSafeForConcurrentUse(t *testing.T) {
	f := newFingerprinter(t)
	bodies := [][]byte{[]byte(`{"b":1,"a":2}`), []byte(`{"b":2,"a":"\u0041"}`), []byte(`{"a":`)}
	want := make([]Fingerprint, len(bodies))
	for i, body := range bodies {
		r := payment()
		r.Body = body
		want[i], _ = f.Sum(testScope, r)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 300 {
				j := (i + n) % len(bodies)
				r := payment()
				r.Body = bodies[j]
				if got, _ := f.Sum(testScope, r); got != want[j] {
					t.Errorf("body %d: another fingerprint under load", j)
					return
				}
			}
		})
	}
	wg.Wait()
}
