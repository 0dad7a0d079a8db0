package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// member is the JSON of a payment with one member replaced: "" removes it.
func member(no, name, value string) []byte {
	members := []string{"order_no", "channel", "method", "amount", "currency", "subject", "payer"}
	values := map[string]string{"order_no": `"` + no + `"`, "channel": `"stripe"`, "method": `"card"`, "amount": "1000", "currency": `"USD"`,
		"subject": `"s"`, "payer": `{"payment_method":"pm_card_visa"}`}
	if _, known := values[name]; !known && name != "" {
		members = append(members, name)
	}
	if name != "" {
		values[name] = value
	}
	var parts []string
	for _, m := range members {
		if values[m] != "" {
			parts = append(parts, `"`+m+`":`+values[m])
		}
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}

// wrongMembers are values that nobody may send.
var wrongMembers = []struct{ name, value string }{
	{"amount", "0"}, {"amount", "-5"}, {"amount", "10.5"}, {"amount", "1000.0"}, {"amount", "1e2"}, {"amount", "1E3"}, {"amount", `"1000"`},
	{"amount", "9000000000000001"}, {"amount", "10000000000000000"}, {"amount", "99999999999999999999999999"}, {"amount", "null"},
	{"amount", "true"}, {"amount", "[1000]"}, {"amount", "01000"}, {"amount", "+1000"}, {"amount", "0x3e8"}, {"amount", "1_000"},
	{"amount", "NaN"}, {"amount", "-0"}, {"amount", "9000000000000000"}, // the last is over what the channel takes
	{"currency", `"XXX"`}, {"currency", `"usd"`}, {"currency", `"US"`}, {"currency", `"USDD"`}, {"currency", "840"}, {"currency", `""`}, {"currency", `"U D"`},
	{"order_no", `"a b/../x"`}, {"order_no", `""`}, {"order_no", `"` + strings.Repeat("x", 65) + `"`}, {"order_no", `"é"`}, {"order_no", `"a\u0000b"`},
	{"order_no", `"a'; DROP TABLE orders;--"`}, {"order_no", "7"}, {"order_no", ""}, {"order_no", "null"},
	{"channel", `"paypal"`}, {"channel", `""`}, {"channel", "null"}, {"channel", ""}, {"method", `"cash"`}, {"method", ""}, {"method", "7"},
	{"subject", `""`}, {"subject", `"a\u0007b"`}, {"subject", `"a\nb"`}, {"subject", `"` + strings.Repeat("x", 128) + `"`}, {"subject", "1"},
	{"payer", `"pm_card_visa"`}, {"payer", `{"payment_method":7}`}, {"payer", `{"unknown":"x"}`}, {"payer", `{"payment_method":"pm_card\u0000"}`},
	{"return_url", `"javascript:alert(1)"`}, {"return_url", `"/relative"`}, {"return_url", "7"},
	{"status", `"SUCCEEDED"`}, {"paid_at", `"2030-01-01T00:00:00Z"`}, {"channel_number", `"X"`}, {"Amount", "1"}, {"id", `"pay_1"`}, {"effective", "true"},
	{"capture", `"sometimes"`}, {"part", `"a"`}, {"account", `"nobody"`}, {"account", "7"},
}

// Whatever is wrong with a request's form or values is refused before anything
// is stored or sent, and the same key then works with the right body.
func TestF05_X12_WrongValues(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("bad")
	for _, m := range wrongMembers {
		key := newKey()
		r := w.do(request{method: "POST", path: "/v1/payments", key: key, body: member(no, m.name, m.value)})
		unknownThing := (m.name == "channel" || m.name == "account") && r.code == http.StatusUnprocessableEntity && r.problem().Code == "channel-not-configured"
		if !unknownThing && (r.code != http.StatusBadRequest || r.problem().Code != "invalid-request" && r.problem().Code != "request-not-fingerprintable") {
			t.Errorf("%s %s: %s", m.name, m.value, r)
		}
		if !strings.HasPrefix(r.head.Get("Content-Type"), "application/problem+json") || r.head.Get("Request-Id") == "" {
			t.Errorf("%s %s: Content-Type %q, Request-Id %q", m.name, m.value, r.head.Get("Content-Type"), r.head.Get("Request-Id"))
		}
	}
	if r := w.get("/v1/orders/" + no); r.code != http.StatusNotFound {
		t.Errorf("an order was stored: %s", r)
	}
	if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 0 {
		t.Errorf("%d objects on the books", n)
	}
	if r := w.do(request{method: "POST", path: "/v1/payments", key: newKey(), body: member(no, "", "")}); r.code != http.StatusCreated {
		t.Errorf("the right request: %s", r)
	}
	w.paidOnce(t, no)
}

// What is not JSON, or not one object of it.
func TestF05_WrongBodies(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("badbody")
	good := string(member(no, "", ""))
	for name, body := range map[string]string{
		"empty": "", "text": "hello", "cut": good[:len(good)-1], "two": good + good, "array": "[" + good + "]", "null": "null", "string": `"x"`,
		"comma": strings.Replace(good, "}}", "},}", 1), "comment": good[:len(good)-1] + "/* */}", "single quotes": strings.ReplaceAll(good, `"`, "'"),
		"doubled inside": strings.Replace(good, `{"payment_method":"pm_card_visa"}`, `{"payment_method":"pm_card_visa","payment_method":"x"}`, 1),
		"doubled escape": strings.Replace(good, `"amount":1000`, `"amount":1000,"amoun\u0074":1`, 1),
		"not UTF-8":      strings.Replace(good, `"s"`, "\"\xff\xfe\"", 1), "lone surrogate": strings.Replace(good, `"s"`, `"\ud800"`, 1),
		"BOM": "\ufeff" + good, "deep": strings.Repeat("[", 100000), "NUL": good + "\x00",
	} {
		r := w.do(request{method: "POST", path: "/v1/payments", key: newKey(), body: []byte(body)})
		if r.code != http.StatusBadRequest {
			t.Errorf("%s: %s", name, r)
		}
	}
	big := append(bytes.Repeat([]byte(" "), 1<<20), good...)
	if r := w.do(request{method: "POST", path: "/v1/payments", key: newKey(), body: big}); r.err == nil && r.code != http.StatusRequestEntityTooLarge {
		t.Errorf("over 1 MiB: %s", r)
	}
	for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"} {
		r := w.do(request{method: "POST", path: "/v1/payments", key: newKey(), body: []byte(good), head: map[string]string{"Content-Type": ct}})
		if r.code != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %s", ct, r)
		}
	}
	if r := w.get("/v1/orders/" + no); r.code != http.StatusNotFound {
		t.Errorf("an order was stored: %s", r)
	}
	r := w.do(request{method: "POST", path: "/v1/payments", key: newKey(), body: []byte(good), head: map[string]string{"Content-Type": "application/json; charset=utf-8"}})
	if r.code != http.StatusCreated {
		t.Errorf("the right request: %s", r)
	}
}

// Who has no key, a wrong one, or one of another environment.
func TestX04_WrongCredentials(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("auth")
	for name, value := range map[string]string{
		"none": "", "nonsense": "Bearer nope", "unknown": "Bearer sk_test_0123456789abcdef", "basic": "Basic c2tfZGV2X3BheW9uY2U6", "bare": w.key,
		"live": "Bearer " + strings.Replace(w.key, "sk_dev_", "sk_live_", 1), "case": "Bearer " + strings.ToUpper(w.key), "long": "Bearer sk_test_" + strings.Repeat("x", 5000),
		"longer": "Bearer " + w.key + "x", "shorter": "Bearer " + w.key[:len(w.key)-1],
	} {
		r := w.do(request{method: "POST", path: "/v1/payments", key: newKey(), body: pay{order: no}.body(), noAuth: true, head: map[string]string{"Authorization": value}})
		if r.code != http.StatusUnauthorized || r.problem().Code != "unauthorized" {
			t.Errorf("%s: %s", name, r)
		}
	}
	r := w.do(request{method: "GET", path: "/v1/orders/" + no, noAuth: true, head: map[string]string{"X-Forwarded-For": "127.0.0.1", "Host": "localhost", "X-Merchant": devMerchant}})
	if r.code != http.StatusUnauthorized {
		t.Errorf("with friendly headers: %s", r)
	}
	if r := w.get("/v1/orders/" + no); r.code != http.StatusNotFound {
		t.Errorf("an order was stored: %s", r)
	}
}

// Ids and addresses of nothing.
func TestX12_UnknownThings(t *testing.T) {
	t.Parallel()
	w := steady(t)
	for path, want := range map[string]int{
		"/v1/payments/pay_00000000000000000000000000": 404, "/v1/payments/nonsense": 404, "/v1/payments/..%2f..%2fetc": 404,
		"/v1/payments/pay_0000000000000000000000000'": 404, "/v1/orders/nobody-has-it": 404, "/v1/orders/a%20b": 404, "/v1/nothing": 404, "/v2/payments": 404,
		"/v1/payments?limit=0": 400, "/v1/payments?limit=501": 400, "/v1/payments?limit=x": 400, "/v1/payments?after=nonsense%00": 400,
		"/v1/payments?status=NOPE": 400, "/v1/payments?unknown=1": 400, "/v1/orders?limit=-1": 400,
	} {
		if r := w.get(path); r.code != want {
			t.Errorf("%s: %s, want %d", path, r, want)
		}
	}
	for _, path := range []string{"/v1/payments/pay_00000000000000000000000000/cancel", "/v1/payments/pay_00000000000000000000000000/sync", "/v1/orders/nobody-has-it/close"} {
		if r := w.post(path, map[string]any{}); r.code != http.StatusNotFound {
			t.Errorf("POST %s: %s", path, r)
		}
	}
	if r := w.do(request{method: "DELETE", path: "/v1/payments/pay_00000000000000000000000000"}); r.code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %s", r)
	}
	for _, path := range []string{"/v1/orders/x/amend", "/v1/orders"} {
		if r := w.post(path, map[string]any{"amount": -1}); r.code != http.StatusBadRequest {
			t.Errorf("POST %s with a negative amount: %s", path, r)
		}
	}
}

// Text in every script reaches the channel and comes back unharmed; the order
// and its page show it as text.
func TestS12_Subjects(t *testing.T) {
	t.Parallel()
	w := steady(t)
	for i, subject := range []string{"支付测试 ☕", `"quotes" & <b>tags</b> 'x'`, "back\\slash %2B +", strings.Repeat("中", 127), " leading", "a'b\"c;--"} {
		no := newOrder("S12")
		r := w.pay(pay{order: no, extra: map[string]any{"subject": subject}})
		if r.code != http.StatusCreated {
			t.Errorf("%q: %s", subject, r)
			continue
		}
		w.paidOnce(t, no)
		if got := w.get("/v1/orders/" + no); !bytes.Contains(got.body, []byte(fmt.Sprintf(`"order_no":%q`, no))) || i == 0 && !bytes.Contains(got.body, []byte(subject)) {
			t.Errorf("%q: %s", subject, got)
		}
		page := &api{base: *w.order(no).CheckoutURL}
		if p := page.do(request{method: "GET", noAuth: true}); p.code != http.StatusOK || bytes.Contains(p.body, []byte("<b>tags</b>")) {
			t.Errorf("the page of %q: %d", subject, p.code)
		}
	}
}
