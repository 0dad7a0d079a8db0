package e2e

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"
)

const soon = 30 * time.Second // until a story has to be at its end, generous on a busy machine

// The same request twice: one payment, one record, byte-equal answers.
func TestT01_F01_SameRequestTwice(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T01"), newKey()
	a, b := w.pay(pay{order: no, key: key}), w.pay(pay{order: no, key: key})
	if a.code != http.StatusCreated || a.payment().Status != "SUCCEEDED" || a.replayed() {
		t.Fatalf("first: %s", a)
	}
	if b.code != a.code || !bytes.Equal(a.body, b.body) || !b.replayed() {
		t.Fatalf("second: %s, marked %v, want the bytes of %s", b, b.replayed(), a)
	}
	for _, op := range []string{"create", "confirm"} {
		if n := w.calls(t, op, no); n != 1 {
			t.Errorf("%d calls of %s, want 1", n, op)
		}
	}
	if p := w.paidOnce(t, no); p.ID != a.payment().ID {
		t.Errorf("the order is paid by %s, the answer shows %s", p.ID, a.payment().ID)
	}
}

// One happy path is exactly one object of type charge on the books.
func TestC12_OneObjectForOneOrder(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("C12")
	w.pay(pay{order: no})
	w.paidOnce(t, no)
	if all := w.sim.books(t).of(w.numbers(no)...); len(all) != 1 {
		t.Errorf("objects on the books: %+v", all)
	}
}

func TestT02_NoKey(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("T02")
	r := w.do(request{method: "POST", path: "/v1/payments", body: pay{order: no}.body()})
	if r.code != http.StatusBadRequest || r.problem().Code != "idempotency-key-missing" || !strings.HasPrefix(r.head.Get("Content-Type"), "application/problem+json") {
		t.Errorf("without key: %s %s", r, r.head.Get("Content-Type"))
	}
	if !strings.Contains(r.head.Get("Link"), "describedby") {
		t.Errorf("Link is %q", r.head.Get("Link"))
	}
	if w.get("/v1/orders/"+no).code != http.StatusNotFound {
		t.Error("an order was stored")
	}
}

// Both spellings of a key name the same key.
func TestT04_QuotedKeyIsTheSameKey(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T04"), newKey()
	a, b := w.pay(pay{order: no, key: key}), w.pay(pay{order: no, key: `"` + key + `"`})
	if b.code != http.StatusCreated || !b.replayed() || !bytes.Equal(a.body, b.body) {
		t.Errorf("quoted: %s", b)
	}
	w.paidOnce(t, no)
}

// On reading methods the header means nothing.
func TestT06_ReadingIgnoresKeys(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T06"), newKey()
	id := w.pay(pay{order: no, key: key}).payment().ID
	for _, k := range []string{key, `"unterminated`, "a,b"} {
		for _, method := range []string{"GET", "HEAD"} {
			for path, want := range map[string]int{"/v1/payments/" + id: 200, "/v1/payments/pay_00000000000000000000000000": 404} {
				r := w.do(request{method: method, path: path, key: k})
				if r.code != want || r.replayed() {
					t.Errorf("%s %s with key %q: %s", method, path, k, r)
				}
			}
		}
	}
}

// The same key with another body is refused, and the first result stays.
func TestT07_I04_KeyReused(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T07"), newKey()
	a := w.pay(pay{order: no, key: key})
	r := w.pay(pay{order: no, key: key, amount: 1001})
	if r.code != http.StatusUnprocessableEntity || r.problem().Code != "idempotency-key-reused" {
		t.Errorf("other amount: %s", r)
	}
	if r := w.pay(pay{order: newOrder("T07"), key: key}); r.code != http.StatusUnprocessableEntity {
		t.Errorf("other order: %s", r)
	}
	if b := w.pay(pay{order: no, key: key}); b.code != http.StatusCreated || !b.replayed() || !bytes.Equal(a.body, b.body) {
		t.Errorf("the original again: %s", b)
	}
	w.paidOnce(t, no)
}

// A key that is reused while its first request is under way is refused too.
func TestT07_KeyReusedWhileInProgress(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T07b"), newKey()
	w.slow(t, no, "confirm", 1500*time.Millisecond, 1)
	first := make(chan resp, 1)
	go func() { first <- w.pay(pay{order: no, key: key}) }()
	until(t, soon, "the call is under way", func() bool { return w.calls(t, "confirm", no) == 1 })
	if r := w.pay(pay{order: no, key: key, amount: 1001}); r.code != http.StatusUnprocessableEntity {
		t.Errorf("other amount in progress: %s", r)
	}
	if r := <-first; r.code != http.StatusCreated {
		t.Errorf("first: %s", r)
	}
	w.paidOnce(t, no)
}

// A key belongs to its method, path and query.
func TestT08_KeyOnAnotherPath(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T08"), newKey()
	p := pay{order: no, key: key, card: threeDS}
	id := w.pay(p).payment().ID
	if r := w.do(request{method: "POST", path: "/v1/payments/" + id + "/cancel", key: key, body: map[string]any{}}); r.code != http.StatusUnprocessableEntity {
		t.Errorf("on cancel: %s", r)
	}
	if r := w.do(request{method: "POST", path: "/v1/payments?x=1", key: key, body: p.body()}); r.code != http.StatusBadRequest {
		t.Errorf("undocumented parameter: %s", r)
	}
	if r := w.do(request{method: "PATCH", path: "/v1/payments", key: key, body: p.body()}); r.code != http.StatusMethodNotAllowed {
		t.Errorf("PATCH: %s", r)
	}
	if r := w.do(request{method: "POST", path: "/v1/payments/", key: key, body: p.body()}); r.code != http.StatusNotFound {
		t.Errorf("trailing slash: %s", r)
	}
	if got := w.payment(id); got.Status != "PENDING" {
		t.Errorf("the payment is %s", got.Status)
	}
}

// A refused body binds nothing: the key may be used again with a right one.
func TestT10_DoubledMember(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T10"), newKey()
	raw := []byte(`{"order_no":"` + no + `","channel":"stripe","method":"card","amount":1000,"amount":1,"currency":"USD","subject":"end to end","payer":{"payment_method":"pm_card_visa"}}`)
	r := w.do(request{method: "POST", path: "/v1/payments", key: key, body: raw})
	if r.code != http.StatusBadRequest || r.problem().Code != "invalid-request" && r.problem().Code != "request-not-fingerprintable" {
		t.Errorf("doubled member: %s", r)
	}
	if r := w.pay(pay{order: no, key: key}); r.code != http.StatusCreated || r.replayed() {
		t.Errorf("the right body with the same key: %s", r)
	}
	w.paidOnce(t, no)
}

// Numbers are compared as they are written, not as floating point.
func TestT11_G12_NeighbouringNumbersDiffer(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T11"), newKey()
	make := func(amount string) resp {
		return w.do(request{method: "POST", path: "/v1/orders", key: key,
			body: []byte(`{"order_no":"` + no + `","amount":` + amount + `,"currency":"USD","subject":"s"}`)})
	}
	if r := make("8999999999999999"); r.code != http.StatusCreated || r.order().Amount != 8999999999999999 {
		t.Errorf("first: %s", r)
	}
	if r := make("8999999999999998"); r.code != http.StatusUnprocessableEntity {
		t.Errorf("one less: %s", r)
	}
	if o := w.order(no); o.Amount != 8999999999999999 {
		t.Errorf("the order has %d", o.Amount)
	}
}

// What the service was asked to take is what the channel took, to the unit.
func TestG12_AmountsReachTheBooksExactly(t *testing.T) {
	t.Parallel()
	w := steady(t)
	for _, c := range []struct {
		amount   int64
		currency string
	}{{1999, "USD"}, {58, "EUR"}, {1001, "JPY"}, {99999999, "USD"}, {1000, "KWD"}, {57, "GBP"}} {
		no := newOrder("G12")
		r := w.pay(pay{order: no, amount: c.amount, currency: c.currency})
		if r.code != http.StatusCreated {
			t.Errorf("%d %s: %s", c.amount, c.currency, r)
			continue
		}
		took := w.taken(t, no)
		if len(took) != 1 || took[0].Amount != c.amount || took[0].Currency != c.currency {
			t.Errorf("%d %s on the books: %+v", c.amount, c.currency, took)
		}
	}
}

// A compressed body is refused, whatever is in it.
func TestT14_CompressedBody(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("T14")
	for name, body := range map[string][]byte{"bytes": {0x1f, 0x8b, 8, 0}, "bomb": bytes.Repeat([]byte{0}, 10<<20)} {
		r := w.do(request{method: "POST", path: "/v1/payments", key: newKey(), body: body, head: map[string]string{"Content-Encoding": "gzip"}})
		if r.err == nil && r.code != http.StatusUnsupportedMediaType && r.code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %s", name, r)
		}
	}
	if r := w.pay(pay{order: no}); r.code != http.StatusCreated {
		t.Errorf("afterwards: %s", r)
	}
}

// A payment is found by the key of its caller.
func TestT06_LookUpByKey(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("lookup"), newKey()
	id := w.pay(pay{order: no, key: key}).payment().ID
	if r := w.get("/v1/payments?idempotency_key=" + key); r.code != http.StatusOK || !bytes.Contains(r.body, []byte(`"`+id+`"`)) {
		t.Errorf("by key: %s", r)
	}
	if r := w.get("/v1/payments?idempotency_key=" + newKey()); r.code != http.StatusOK || bytes.Contains(r.body, []byte("pay_")) {
		t.Errorf("by an unused key: %s", r)
	}
}
