package httpapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
)

func TestT01SameRequestTwice(t *testing.T) {
	w := newWorld(t)
	first, again := w.pay("k", goodBody), w.pay("k", goodBody)
	first.ok(201)
	again.ok(201)
	if !bytes.Equal(first.body, again.body) || again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s %v", again.body, again.header)
	}
	if w.engine.executed() != 1 {
		t.Errorf("executed %d times", w.engine.executed())
	}
	// Member order and white space are not the request; values are.
	w.pay("k", `{ "subject":"a book","payer":{"payment_method":"pm_card_visa"},"currency":"USD","amount":100,"method":"card","channel":"stripe","order_no":"A1"}`).ok(201)
}

func TestT02NoKey(t *testing.T) {
	w := newWorld(t)
	a := w.call("POST", "/v1/payments", goodBody)
	m := a.problem(400, "idempotency-key-missing")
	if a.header.Get("Link") != `<https://docs.example/errors#idempotency-key-missing>; rel="describedby"` || m["safe_new_key"] != true {
		t.Errorf("%v %s", a.header, a.body)
	}
	if len(w.engine.calls) != 0 {
		t.Error("the engine was called")
	}
}

func TestT03BadKeys(t *testing.T) {
	w := newWorld(t)
	for name, headers := range map[string][]string{
		"256 characters": {"Idempotency-Key: " + strings.Repeat("x", 256)}, "empty": {"Idempotency-Key: "}, "blank": {"Idempotency-Key:    "},
		"tab inside": {"Idempotency-Key: a\tb"}, "not ASCII": {"Idempotency-Key: café"}, "two members": {"Idempotency-Key: a,b"},
		"two lines": {"Idempotency-Key: a", "Idempotency-Key: b"}, "open quote": {`Idempotency-Key: "abc`}, "space inside": {"Idempotency-Key: a b"},
		"semicolon": {"Idempotency-Key: a;b"}, "backslash": {`Idempotency-Key: a\b`}, "after the quotes": {`Idempotency-Key: "a"b`},
		"empty quotes": {`Idempotency-Key: ""`}, "control": {"Idempotency-Key: a\x01b"}, "bad escape": {`Idempotency-Key: "a\n"`},
	} {
		a := w.call("POST", "/v1/payments", goodBody, headers...)
		a.problem(400, "idempotency-key-invalid")
		if bytes.Contains(a.body, []byte("xxxx")) || bytes.Contains(a.body, []byte("caf")) {
			t.Errorf("R8: %s: the key is in the answer", name)
		}
		w.call("POST", "/v1/orders/A1/close", "{}", headers...).problem(400, "idempotency-key-invalid")
	}
	if len(w.engine.calls) != 0 {
		t.Error("the engine was called")
	}
	w.pay("a", goodBody).ok(201)
	w.pay(strings.Repeat("x", 255), goodBody).ok(201)
}

func TestT04TwoSpellingsOfOneKey(t *testing.T) {
	w := newWorld(t)
	w.pay("abc", goodBody).ok(201)
	for _, spelling := range []string{`"abc"`, `"abc";v=1`, ` abc `} {
		if a := w.pay(spelling, goodBody); a.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s is another key", spelling)
		}
	}
	if w.pay("ABC", goodBody); w.engine.executed() != 2 {
		t.Error("R7: keys are compared without case")
	}
}

func TestT06GetIgnoresTheKey(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{paid()}
	for _, key := range []string{"used", `"broken`, ""} {
		for _, method := range []string{"GET", "HEAD"} {
			a := w.call(method, "/v1/payments/"+payID, "", "Idempotency-Key: "+key)
			if a.code != 200 || a.header.Get("Idempotency-Status") != "" || a.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s with key %q: %d %v", method, key, a.code, a.header)
			}
			if a := w.call(method, "/v1/payments/x", "", "Idempotency-Key: "+key); a.code != 404 {
				t.Errorf("%s of no id: %d", method, a.code)
			}
		}
	}
}

func TestT07OtherRequestSameKey(t *testing.T) {
	w := newWorld(t)
	w.pay("k", goodBody).ok(201)
	w.pay("k", strings.Replace(goodBody, "100", "101", 1)).problem(422, "idempotency-key-reused")
	if a := w.pay("k", goodBody); a.code != 201 || a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the first result was touched: %d", a.code)
	}
	if w.engine.executed() != 1 {
		t.Error("executed twice")
	}
}

func TestT08OtherAddressSameKey(t *testing.T) {
	w := newWorld(t)
	w.pay("k", goodBody).ok(201)
	w.call("POST", "/v1/payments?x=1", goodBody, "Idempotency-Key: k").problem(400, "invalid-request")
	a := w.call("PATCH", "/v1/payments", goodBody, "Idempotency-Key: k")
	a.problem(405, "method-not-allowed")
	if allow := a.header.Get("Allow"); allow != "GET, HEAD, POST" {
		t.Errorf("Allow %q", allow)
	}
	w.call("POST", "/v1/payments/", goodBody, "Idempotency-Key: k").problem(404, "not-found")
	w.call("GET", "/v1/payments/"+payID+"/", "").problem(404, "not-found")
	w.call("GET", "/v1//payments", "").problem(404, "not-found")
	w.call("GET", "/v1/../v1/payments", "").problem(404, "not-found")
	w.call("GET", "/nothing", "", "Authorization: -").problem(404, "not-found")
	if w.engine.executed() != 1 || len(w.engine.calls) != 1 {
		t.Error("something was executed")
	}
}

func TestT10DuplicateMember(t *testing.T) {
	w := newWorld(t)
	a := w.pay("k", strings.Replace(goodBody, `"amount":100`, `"amount":100,"amount":1`, 1))
	a.problem(400, "invalid-request")
	if a.pointers() != "/amount" {
		t.Errorf("%s", a.body)
	}
	w.pay("k", goodBody).ok(201)
	w.call("POST", "/v1/orders", `{"order_no":"A","order_no":"A"}`).problem(400, "invalid-request")
}

func TestT11LargeIntegersKeepTheirLastDigit(t *testing.T) {
	w := newWorld(t)
	body := func(n string) string { return strings.Replace(goodBody, `"amount":100`, `"amount":`+n, 1) }
	w.pay("k", body("8999999999999993")).ok(201)
	w.pay("k", body("8999999999999992")).problem(422, "idempotency-key-reused")
	if got := w.engine.calls[0].Amount; got != 8999999999999993 {
		t.Errorf("amount %d", got)
	}
}

func TestT14EncodedBody(t *testing.T) {
	w := newWorld(t)
	for _, coding := range []string{"gzip", "br", "identity, gzip"} {
		w.pay("k", goodBody, "Content-Encoding: "+coding).problem(415, "unsupported-media-type")
	}
	w.pay("k", goodBody, "Content-Encoding: identity").ok(201)
}

func TestT15TwoMerchantsOneKey(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{paid()}
	w.pay("k", goodBody).ok(201)
	a := w.pay("k", goodBody, "Authorization: Bearer "+otherKey)
	if a.ok(201); a.header.Get("Idempotency-Replayed") != "" || w.engine.executed() != 2 {
		t.Error("one merchant saw the other's record")
	}
	w.call("GET", "/v1/payments/"+payID, "").ok(200)
	w.call("GET", "/v1/payments/"+payID, "", "Authorization: Bearer "+otherKey).problem(404, "not-found")
}

func TestT16TwoEnvironmentsOneKey(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{paid()}
	w.pay("k", goodBody).ok(201)
	w.pay("k", goodBody, "Authorization: Bearer "+liveKey).ok(201)
	if w.engine.executed() != 2 || w.engine.calls[1].Order.Environment != payonce.Live {
		t.Error("test and live share a record")
	}
	w.call("GET", "/v1/payments/"+payID, "", "Authorization: Bearer "+liveKey).problem(404, "not-found")
}

func TestT17RotatedCredential(t *testing.T) {
	w := newWorld(t)
	w.pay("k", goodBody).ok(201)
	if a := w.pay("k", goodBody, "Authorization: Bearer "+rotatedKey); a.header.Get("Idempotency-Replayed") != "true" {
		t.Error("R10: a new credential of the same merchant does not find the record")
	}
}

// TestR14MediaTypeParameters: the media type is part of the request, its
// parameters are not.
func TestR14MediaTypeParameters(t *testing.T) {
	w := newWorld(t)
	w.pay("k", goodBody).ok(201)
	if a := w.pay("k", goodBody, "Content-Type: Application/JSON; charset=UTF-8"); a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// TestR18UnknownSecret: a stored fingerprint that cannot be compared is a fault
// of the service, never 422.
func TestR18UnknownSecret(t *testing.T) {
	w := newWorld(t)
	w.pay("k", goodBody).ok(201)
	for k, r := range w.engine.known {
		r.Fingerprint.Secret = "lost"
		w.engine.known[k] = r
	}
	w.pay("k", goodBody).problem(500, "record-corrupt")
	if !strings.Contains(w.logs.String(), `fingerprint under an unknown secret`) {
		t.Error("the log does not say why")
	}
}

// TestR72LookUp: the key of a look-up obeys the header's rules and is hashed in
// the caller's scope.
func TestR72LookUp(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{paid()}
	for _, spelling := range []string{"abc", "%22abc%22"} {
		w.call("GET", "/v1/payments?idempotency_key="+spelling, "").ok(200)
		want := idempotency.Scope{Environment: "test", Tenant: "m1"}.Record("abc")
		if w.reader.filter.Key == nil || *w.reader.filter.Key != want {
			t.Errorf("%s: looked for another record", spelling)
		}
	}
	for _, bad := range []string{"", "a,b", "%22abc", "a%20b", strings.Repeat("x", 256)} {
		w.call("GET", "/v1/payments?idempotency_key="+bad, "").problem(400, "idempotency-key-invalid")
	}
}

// TestR19BrokenBody: a body that does not arrive leaves nothing.
func TestR19BrokenBody(t *testing.T) {
	w := newWorld(t)
	r := httptest.NewRequest("POST", "/v1/payments", brokenReader{})
	r.Header.Set("Authorization", "Bearer "+apiKey)
	r.Header.Set("Content-Type", mediaJSON)
	r.Header.Set("Idempotency-Key", "k")
	w.do(r).problem(400, "invalid-request")
	if len(w.engine.calls) != 0 {
		t.Error("the engine was called")
	}
	w.pay("k", goodBody).ok(201)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, http.ErrBodyReadAfterClose }

// TestR66MemoryBudget: bodies of all requests together are bounded, and the
// budget is given back.
func TestR66MemoryBudget(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxBuffers = int64(len(goodBody)) })
	for range 3 {
		w.pay("k", goodBody).ok(201)
		w.pay("k", goodBody+" ").problem(503, "idempotency-unavailable")
	}
	if n := w.handler.(*api).buffered.Load(); n != 0 {
		t.Errorf("%d bytes were not given back", n)
	}
}
