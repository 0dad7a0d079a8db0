package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
)

// with puts members into goodBody, replacing those of the same name.
func with(members string) string {
	body := strings.TrimSuffix(goodBody, "}")
	name, _, _ := strings.Cut(strings.TrimPrefix(members, `"`), `"`)
	if i := strings.Index(body, `"`+name+`":`); i >= 0 {
		end := strings.IndexAny(body[i:], ",")
		if end < 0 || name == "payer" {
			return body[:i] + members + "}"
		}
		return body[:i] + members + body[i+end:] + "}"
	}
	return body + "," + members + "}"
}

// TestBadPaymentBodies: everything wrong with form or values is 400
// invalid-request, names the member, and reaches nothing.
func TestBadPaymentBodies(t *testing.T) {
	w := newWorld(t)
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, c := range []struct{ name, body, pointers string }{
		{"malformed", `{"order_no":`, "/order_no"},
		{"text", `hello`, ""},
		{"two documents", goodBody + goodBody, ""},
		{"array", `[]`, ""},
		{"null", `null`, ""},
		{"empty object", `{}`, "/channel /method /order_no"},
		{"not UTF-8", with("\"subject\":\"\xff\""), "/subject"},
		{"half a surrogate pair", with(`"subject":"\ud800"`), "/subject"},
		{"raw control character", with("\"subject\":\"a\nb\""), "/subject"},
		{"deep", with(`"x":` + deep), "/x" + strings.Repeat("/0", 63)},
		{"byte order mark", "\ufeff" + goodBody, ""},
		{"unknown member", with(`"status":"SUCCEEDED"`), "/status"},
		{"member in other case", with(`"Amount":100`), "/Amount"},
		{"escaped pointer", with(`"a/b~c":1`), "/a~1b~0c"},
		{"duplicate under another spelling", with(`"amoun\u0074":1`), "/amount"},
		{"amount 0", with(`"amount":0`), "/amount"},
		{"amount negative", with(`"amount":-5`), "/amount"},
		{"amount -0", with(`"amount":-0`), "/amount"},
		{"amount fraction", with(`"amount":10.5`), "/amount"},
		{"amount 1.0", with(`"amount":1.0`), "/amount"},
		{"amount 1e2", with(`"amount":1e2`), "/amount"},
		{"amount 1E+2", with(`"amount":1E+2`), "/amount"},
		{"amount text", with(`"amount":"100"`), "/amount"},
		{"amount true", with(`"amount":true`), "/amount"},
		{"amount array", with(`"amount":[100]`), "/amount"},
		{"amount above the cap", with(`"amount":9000000000000001`), "/amount"},
		{"amount above int64", with(`"amount":99999999999999999999`), "/amount"},
		{"currency unknown", with(`"currency":"XXX"`), "/currency"},
		{"currency lower case", with(`"currency":"usd"`), "/currency"},
		{"currency gold", with(`"currency":"XAU"`), "/currency"},
		{"currency number", with(`"currency":840`), "/currency"},
		{"order_no with path", with(`"order_no":"a b/../x"`), "/order_no"},
		{"order_no empty", with(`"order_no":""`), "/order_no"},
		{"order_no null", with(`"order_no":null`), "/order_no"},
		{"order_no 65", with(`"order_no":"` + strings.Repeat("a", 65) + `"`), "/order_no"},
		{"order_no not ASCII", with(`"order_no":"é"`), "/order_no"},
		{"order_no newline", with(`"order_no":"a\n"`), "/order_no"},
		{"subject empty", with(`"subject":""`), "/subject"},
		{"subject 128", with(`"subject":"` + strings.Repeat("茶", 128) + `"`), "/subject"},
		{"subject control", with(`"subject":"a\u0000b"`), "/subject"},
		{"subject C1 control", with(`"subject":"a\u0085b"`), "/subject"},
		{"channel unknown", with(`"channel":"paypal"`), "/channel"},
		{"channel in other case", with(`"channel":"Stripe"`), "/channel"},
		{"method unknown", with(`"method":"sepa"`), "/method"},
		{"method empty", with(`"method":""`), "/method"},
		{"method of another channel", with(`"method":"qr"`), "/method"},
		{"account", with(`"account":"a b"`), "/account"},
		{"part", with(`"part":"a b"`), "/part"},
		{"capture manual", with(`"capture":"manual"`), "/capture"},
		{"payer text", with(`"payer":"me"`), "/payer"},
		{"payer unknown member", with(`"payer":{"card_number":"4242"}`), "/payer/card_number"},
		{"payer number", with(`"payer":{"openid":1}`), "/payer/openid"},
		{"payer blank", with(`"payer":{"payment_method":"pm x"}`), "/payer/payment_method"},
		{"payer long", with(`"payer":{"buyer_id":"` + strings.Repeat("x", 256) + `"}`), "/payer/buyer_id"},
		{"client_ip", with(`"payer":{"client_ip":"1.2.3"}`), "/payer/client_ip"},
		{"client_ip with zone", with(`"payer":{"client_ip":"fe80::1%eth0"}`), "/payer/client_ip"},
		{"return_url relative", with(`"return_url":"/back"`), "/return_url"},
		{"return_url script", with(`"return_url":"javascript:alert(1)"`), "/return_url"},
		{"return_url without host", with(`"return_url":"https:///x"`), "/return_url"},
		{"return_url with user", with(`"return_url":"https://u:p@shop.example"`), "/return_url"},
		{"return_url long", with(`"return_url":"https://shop.example/` + strings.Repeat("x", 2048) + `"`), "/return_url"},
		{"return_url control", with(`"return_url":"https://shop.example/\u0007"`), "/return_url"},
		{"payment_token number", with(`"payment_token":1`), "/payment_token"},
		{"several at once", `{"order_no":"a b","amount":0,"channel":"stripe","method":"qr","x":1}`, "/amount /method /order_no /x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.pay("k", c.body)
			a.problem(400, "invalid-request")
			if got := a.pointers(); got != c.pointers {
				t.Errorf("pointers %q, want %q: %s", got, c.pointers, a.body)
			}
		})
	}
	if len(w.engine.calls) != 0 {
		t.Error("a bad request reached the engine")
	}
	w.pay("k", goodBody).ok(201) // R4: the same key with a corrected body
}

func TestNoBody(t *testing.T) {
	w := newWorld(t)
	a := w.call("POST", "/v1/payments", "", "Idempotency-Key: k")
	a.problem(400, "invalid-request")
	if a.pointers() != "/channel /method /order_no" {
		t.Errorf("%s", a.body)
	}
}

// TestErrorsAreBounded: what a client sends a lot of does not come back.
func TestErrorsAreBounded(t *testing.T) {
	w := newWorld(t)
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, `,"%s%d":1`, strings.Repeat("x", 90), i)
	}
	a := w.pay("k", strings.TrimSuffix(goodBody, "}")+b.String()+"}")
	a.problem(400, "invalid-request")
	if len(a.body) > 8<<10 {
		t.Errorf("the answer has %d bytes", len(a.body))
	}
}

// TestErrorsDoNotQuote: values of members never come back (they may be secret).
func TestErrorsDoNotQuote(t *testing.T) {
	w := newWorld(t)
	for _, members := range []string{
		`"payer":{"payment_method":"canary canary"}`, `"payer":{"client_ip":"canary"}`, `"payment_token":"canary canary"`,
		`"return_url":"canary"`, `"subject":"canary\u0000"`, `"order_no":"canary canary"`, `"account":"canary canary"`,
	} {
		a := w.pay("k", with(members))
		a.problem(400, "invalid-request")
		if strings.Contains(string(a.body), "canary") {
			t.Errorf("%s: %s", members, a.body)
		}
	}
}

// TestPaymentTokenRefused: tokens are not offered yet, and saying so is not 400.
func TestPaymentTokenRefused(t *testing.T) {
	w := newWorld(t)
	w.pay("k", with(`"payment_token":"tok_01JGQ0000000000000000000AA"`)).problem(422, "payment-token-invalid")
	if len(w.engine.calls) != 0 {
		t.Error("the engine was called")
	}
}

func TestMediaTypes(t *testing.T) {
	w := newWorld(t)
	for _, media := range []string{"-", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/json; x=1", "application/vnd.api+json", "json", "application/json,text/plain"} {
		w.pay("k", goodBody, "Content-Type: "+media).problem(415, "unsupported-media-type")
	}
	w.pay("k", goodBody, "Content-Type: application/json", "Content-Type: application/json").problem(415, "unsupported-media-type")
	w.pay("k", goodBody, "Content-Type: application/json;charset=utf-8").ok(201)
}

func TestBodyLimit(t *testing.T) {
	w := newWorld(t)
	pad := strings.Repeat(" ", 1<<20-len(goodBody))
	w.pay("k", goodBody+pad).ok(201)
	w.pay("k2", goodBody+pad+" ").problem(413, "too-large")
	w.call("POST", "/v1/orders/A1/close", "{}"+strings.Repeat(" ", 1<<20)).problem(413, "too-large")
}

// TestQueryStrictness: what is not documented, sent twice or not decodable is
// refused on every route.
func TestQueryStrictness(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ method, path, pointers string }{
		{"GET", "/v1/payments?x=1", "/query/x"},
		{"GET", "/v1/payments?limit=1&limit=2", "/query/limit"},
		{"GET", "/v1/payments?limit=0", "/query/limit"},
		{"GET", "/v1/payments?limit=501", "/query/limit"},
		{"GET", "/v1/payments?limit=+5", "/query/limit"},
		{"GET", "/v1/payments?limit=5.0", "/query/limit"},
		{"GET", "/v1/payments?limit=", "/query/limit"},
		{"GET", "/v1/payments?after=pay_1", "/query/after"},
		{"GET", "/v1/payments?after=b3JkXzAx", "/query/after"},
		{"GET", "/v1/payments?status=PAID", "/query/status"},
		{"GET", "/v1/payments?order_no=a%20b", "/query/order_no"},
		{"GET", "/v1/payments?channel_number=a%20b&status=x", "/query/channel_number /query/status"},
		{"GET", "/v1/payments?limit=%zz", ""},
		{"GET", "/v1/payments?a;b", ""},
		{"GET", "/v1/orders?status=OPEN", "/query/status"},
		{"GET", "/v1/orders/A1?wait=1", "/query/wait"},
		{"GET", "/v1/payments/" + payID + "?wait=31", "/query/wait"},
		{"GET", "/v1/payments/" + payID + "?wait=-1", "/query/wait"},
		{"GET", "/v1/payments/" + payID + "?wait=1s", "/query/wait"},
		{"POST", "/v1/orders/A1/close?x", "/query/x"},
		{"GET", "/healthz?x=1", "/query/x"},
	} {
		body := ""
		if c.method == "POST" {
			body = "{}"
		}
		r := w.call(c.method, c.path, body)
		r.problem(400, "invalid-request")
		if got := r.pointers(); got != c.pointers {
			t.Errorf("%s: pointers %q, want %q", c.path, got, c.pointers)
		}
	}
}

// TestEmptyBodies: calls without members take {} and no body at all, and
// nothing else.
func TestEmptyBodies(t *testing.T) {
	w := newWorld(t)
	w.engine.onSync = func(engine.ActionRequest, string) (*payonce.Payment, error) { return paid(), nil }
	for _, body := range []string{"", "{}", " { } "} {
		w.call("POST", "/v1/payments/"+payID+"/sync", body).ok(200)
	}
	for body, pointers := range map[string]string{`{"x":1}`: "/x", `[]`: "", `null`: "", `1`: "", `{`: ""} {
		a := w.call("POST", "/v1/payments/"+payID+"/sync", body)
		a.problem(400, "invalid-request")
		if a.pointers() != pointers {
			t.Errorf("%s: %s", body, a.body)
		}
	}
}

// FuzzDecode: the decoder agrees with the canonical form of whatever document it
// is shown, and never runs off its end.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{goodBody, `{}`, `[{"a":[1,"]"]}]`, `{"payer":{"openid":"\"}"}}`, ` null `, `-1`, `"\\"`, `{"amount":1e2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		canonical, err := idempotency.CanonicalJSON(body)
		if err != nil {
			return
		}
		var a, b paymentRequest
		errA, errB := decode(body, paymentMembers, &a, checkPayment), decode(canonical, paymentMembers, &b, checkPayment)
		if (errA == nil) != (errB == nil) {
			t.Fatalf("%v and %v", errA, errB)
		}
		if errA == nil && a != b {
			t.Fatalf("%+v and %+v", a, b)
		}
		if errA == nil && (orderNoRule(a.OrderNo) != "" || a.Amount < 0 || a.Amount > int64(payonce.MaxAmount)) {
			t.Fatalf("accepted %+v", a)
		}
	})
}
