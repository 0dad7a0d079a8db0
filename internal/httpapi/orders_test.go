package httpapi

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

const goodOrder = `{"order_no":"A1","amount":100,"currency":"USD","subject":"a book"}`

func orderWith(members string) string {
	return strings.TrimSuffix(goodOrder, "}") + "," + members + "}"
}

func TestCreateOrder(t *testing.T) {
	w := newWorld(t)
	var got engine.OrderRequest
	res := &engine.OrderResult{Order: openOrder(), Created: true}
	w.engine.onCreate = func(r engine.OrderRequest) (*engine.OrderResult, error) { got = r; return res, nil }

	a := w.call("POST", "/v1/orders", orderWith(`"policy":"split","expires_at":"2030-01-02T14:00:00.1234567+01:00","metadata":{"b":"2","a":"1\n"}`))
	m := a.ok(201)
	if m["checkout_url"] != "https://pay.example/checkout/A1" || a.header.Get("Location") != "/v1/orders/A1" || m["metadata"] != nil {
		t.Errorf("%s %v", a.body, a.header)
	}
	ends := time.Date(2030, 1, 2, 13, 0, 0, 123456000, time.UTC)
	if got.Amount != 100 || got.Policy != "split" || !got.ExpiresAt.Equal(ends) || got.Metadata != `{"a":"1\n","b":"2"}` || got.Order.OrderNo != "A1" || got.Action != "order" {
		t.Errorf("%+v", got)
	}
	res.Created = false
	if a := w.call("POST", "/v1/orders", goodOrder); a.code != 200 || a.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%d", a.code)
	}
	w.engine.onCreate = func(engine.OrderRequest) (*engine.OrderResult, error) {
		return nil, &engine.Refusal{Err: payonce.Errorf(payonce.CodeOrderMismatch, "other amount"), Order: openOrder()}
	}
	w.call("POST", "/v1/orders", goodOrder).problem(409, "order-mismatch")
}

// TestR42OrderReplay: a repetition with the key that made the order says 201
// again, one with a key that met it says 200.
func TestR42OrderReplay(t *testing.T) {
	w := newWorld(t)
	w.engine.onCreate = func(engine.OrderRequest) (*engine.OrderResult, error) {
		return &engine.OrderResult{Order: openOrder(), Replayed: true}, nil
	}
	record := idempotency.Scope{Environment: "test", Tenant: "m1"}.Record("k")
	for at, want := range map[time.Time]int{noon: 201, noon.Add(time.Second): 200} {
		w.reader.records[record] = &store.Replay{Key: store.KeyRecord{CreatedAt: at}, Order: openOrder()}
		a := w.call("POST", "/v1/orders", goodOrder, "Idempotency-Key: k")
		if a.ok(want); a.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v", a.header)
		}
	}
}

func TestBadOrderBodies(t *testing.T) {
	w := newWorld(t)
	many := `"m0":"x"`
	for i := range 50 {
		many += `,"n` + strconv.Itoa(i) + `":"x"`
	}
	for _, c := range []struct{ name, body, pointers string }{
		{"empty", `{}`, "/amount /currency /order_no /subject"},
		{"policy", orderWith(`"policy":"instalments"`), "/policy"},
		{"expires_at text", orderWith(`"expires_at":"tomorrow"`), "/expires_at"},
		{"expires_at without zone", orderWith(`"expires_at":"2031-01-01T00:00:00"`), "/expires_at"},
		{"expires_at comma", orderWith(`"expires_at":"2031-01-01T00:00:00,5Z"`), "/expires_at"},
		{"expires_at number", orderWith(`"expires_at":1900000000`), "/expires_at"},
		{"expires_at now", orderWith(`"expires_at":"2030-01-02T12:00:00.123456Z"`), "/expires_at"},
		{"expires_at day that is none", orderWith(`"expires_at":"2031-02-30T00:00:00Z"`), "/expires_at"},
		{"metadata text", orderWith(`"metadata":"x"`), "/metadata"},
		{"metadata number", orderWith(`"metadata":{"a":1}`), "/metadata/a"},
		{"metadata nested", orderWith(`"metadata":{"a":{"b":"c"}}`), "/metadata/a"},
		{"metadata null value", orderWith(`"metadata":{"a":null}`), "/metadata/a"},
		{"metadata long value", orderWith(`"metadata":{"a":"` + strings.Repeat("x", 501) + `"}`), "/metadata/a"},
		{"metadata control", orderWith(`"metadata":{"a":"\u0000"}`), "/metadata/a"},
		{"metadata empty name", orderWith(`"metadata":{"":"x"}`), "/metadata/"},
		{"metadata 51", orderWith(`"metadata":{` + many + `}`), "/metadata"},
		{"payment's member", orderWith(`"channel":"stripe"`), "/channel"},
	} {
		a := w.call("POST", "/v1/orders", c.body)
		a.problem(400, "invalid-request")
		if got := a.pointers(); got != c.pointers {
			t.Errorf("%s: pointers %q, want %q", c.name, got, c.pointers)
		}
	}
}

// TestExpiredOrderSentAgain: the repetition of a request for a known order is no
// mistake because time went by.
func TestExpiredOrderSentAgain(t *testing.T) {
	w := newWorld(t)
	w.engine.onCreate = func(engine.OrderRequest) (*engine.OrderResult, error) {
		return &engine.OrderResult{Order: openOrder()}, nil
	}
	w.reader.orders[openOrder().Key] = &store.OrderWithPayments{Order: openOrder()}
	w.call("POST", "/v1/orders", orderWith(`"expires_at":"2030-01-02T12:00:00Z"`)).ok(200)
}

func TestReadOrders(t *testing.T) {
	w := newWorld(t)
	p := withQR(inState(payonce.Pending))
	w.reader.orders[openOrder().Key] = &store.OrderWithPayments{Order: openOrder(), Payments: []*payonce.Payment{p}}
	m := w.call("GET", "/v1/orders/A1", "").ok(200)
	first := m["payments"].([]any)[0].(map[string]any)
	if first["id"] != payID || first["next_check_at"] == nil || at(first, "action", "type") != "qr_code" {
		t.Errorf("%v", m)
	}
	for _, no := range []string{"B2", "a%20b", "a%2Fb", strings.Repeat("a", 65)} {
		w.call("GET", "/v1/orders/"+no, "").problem(404, "not-found")
	}
	w.call("GET", "/v1/orders/A1", "", "Authorization: Bearer "+liveKey).problem(404, "not-found")
	list := w.call("GET", "/v1/orders", "").ok(200)
	if data := list["data"].([]any); len(data) != 1 || list["has_more"] != false || list["next"] != nil {
		t.Errorf("%v", list)
	}
}

func TestAmendAndClose(t *testing.T) {
	w := newWorld(t)
	w.engine.onAmend = func(a engine.ActionRequest, no string, amount payonce.Amount, subject string) (*engine.OrderResult, error) {
		if no != "A1" || amount != 7 || subject != "tea" || a.Action != "amend" {
			t.Errorf("%s %d %s %+v", no, amount, subject, a)
		}
		return &engine.OrderResult{Order: openOrder(), Proven: true}, nil
	}
	w.call("POST", "/v1/orders/A1/amend", `{"amount":7,"subject":"tea"}`).ok(200)
	for body, pointers := range map[string]string{`{}`: "/amount", `{"amount":0}`: "/amount", `{"amount":1,"currency":"EUR"}`: "/currency", `{"amount":1,"subject":""}`: "/subject"} {
		a := w.call("POST", "/v1/orders/A1/amend", body)
		if a.problem(400, "invalid-request"); a.pointers() != pointers {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	res := &engine.OrderResult{Order: openOrder(), Payments: []*payonce.Payment{inState(payonce.Unknown)}}
	w.engine.onClose = func(a engine.ActionRequest, no string) (*engine.OrderResult, error) { return res, nil }
	a := w.call("POST", "/v1/orders/A1/close", "{}", "Idempotency-Key: k")
	if a.ok(202); a.header.Get("Retry-After") == "" || a.header.Get("Idempotency-Status") != "pending" {
		t.Errorf("%v", a.header)
	}
	res.Proven, res.Replayed = true, true
	a = w.call("POST", "/v1/orders/A1/close", "{}", "Idempotency-Key: k")
	if a.ok(200); a.header.Get("Idempotency-Replayed") != "true" || a.header.Get("Idempotency-Status") != "replayed" {
		t.Errorf("%v", a.header)
	}
	w.call("POST", "/v1/orders/a%20b/close", "{}").problem(404, "not-found")
	w.call("POST", "/v1/orders/a%20b/amend", `{"amount":7}`).problem(404, "not-found")
}
