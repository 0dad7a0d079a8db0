package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A code is scanned and paid, and the channel's notice tells: other keys and
// devices were shown the same code, one number went to the channel, and the code
// is gone when the order is paid.
func TestA01_N02_N04_CodeOnEveryDevice(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("N02"), newKey()
	first := w.pay(pay{order: no, key: key, currency: "CNY", extra: qr(no).extra})
	id, code := first.payment().ID, first.shown().QRCode
	if first.code != http.StatusCreated || first.payment().Status != "PENDING" || code == "" {
		t.Fatalf("first: %s", first)
	}
	for _, r := range together(10, func(int) resp { return w.pay(qr(no)) }) {
		if r.code != http.StatusOK || r.payment().ID != id || r.shown().QRCode != code || r.replayed() {
			t.Errorf("another device: %s", r)
		}
	}
	again := qr(no)
	again.key = key
	if r := w.pay(again); r.code != http.StatusCreated || !bytes.Equal(r.body, first.body) || !r.replayed() {
		t.Errorf("the same key: %s", r)
	}
	if b := w.sim.books(t); b.calls("create", w.numbers(no)...) != 1 || len(b.of(w.numbers(no)...)) != 1 {
		t.Errorf("on the books: %+v", b.of(w.numbers(no)...))
	}
	checkout := &api{base: *w.order(no).CheckoutURL}
	seen := func() bool { return bytes.Contains(checkout.get("").body, []byte(`class="qr"`)) }
	if !seen() {
		t.Error("the checkout page shows no code")
	}
	w.sim.paysAlipay(t, w.number(no, 1))
	w.isPaid(t, no)
	told := w.acknowledged(t, w.number(no, 1))
	if len(told) != 1 || told[0].Deliveries != 1 {
		t.Errorf("the notice was answered so that it came again: %+v", told)
	}
	r := w.pay(again)
	if r.code != http.StatusCreated || !r.replayed() || r.payment().Status != "SUCCEEDED" || r.shown().Type != "none" {
		t.Errorf("the same key afterwards: %s", r)
	}
	if r := w.pay(qr(no)); r.code != http.StatusConflict || r.problem().Code != "order-already-paid" || bytes.Contains(r.body, []byte(code)) {
		t.Errorf("another key afterwards: %s", r)
	}
	if seen() {
		t.Error("the checkout page of a paid order shows a code")
	}
}

// open sends a form as the payer's browser does, and returns where it leads.
func (s shown) open(t testing.TB) string {
	t.Helper()
	form := url.Values{}
	for k, v := range s.Fields {
		form.Set(k, v)
	}
	browser := &api{base: s.URL}
	r := browser.do(request{method: s.Method, body: []byte(form.Encode()), noAuth: true, head: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
	if r.code/100 != 3 || r.head.Get("Location") == "" {
		t.Fatalf("the form leads nowhere: %s", r)
	}
	return r.head.Get("Location")
}

// A form costs no call of ours. It can be opened in several tabs and leads to one
// trade; the way back proves nothing, the notice does.
func TestL08_O06_PageIsPaid(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("L08")
	r := w.pay(page(no).with("return_url", w.base+"/back"))
	p, a := r.payment(), r.shown()
	if r.code != http.StatusCreated || p.Status != "PENDING" || a.Type != "form" || a.Method != "POST" || a.Fields["sign"] == "" {
		t.Fatalf("form: %s", r)
	}
	if n := w.calls(t, "create", no); n != 0 {
		t.Errorf("%d calls before anybody opened the form", n)
	}
	b := w.pay(page(no).with("return_url", w.base+"/elsewhere"))
	if b.code != http.StatusOK || b.payment().ID != p.ID || b.shown().Fields["sign"] != a.Fields["sign"] {
		t.Errorf("a second tab: %s", b)
	}
	to := a.open(t)
	if again := b.shown().open(t); again != to {
		t.Errorf("two tabs lead to %s and %s", to, again)
	}
	if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
		t.Errorf("%d objects on the books, want 1", n)
	}
	checkout := &api{base: *w.order(no).CheckoutURL}
	back := checkout.get("?out_trade_no=" + p.Number + "&trade_no=1&total_amount=10.00&method=alipay.trade.page.pay.return&trade_status=TRADE_SUCCESS")
	if back.code != http.StatusOK || w.order(no).Status != "OPEN" {
		t.Errorf("the way back: %s, order %s", back, w.order(no).Status)
	}
	cashier, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	button := w.sim.do(request{method: "POST", path: cashier.Path, body: []byte("outcome=paid"), noAuth: true, head: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
	if button.code/100 != 3 || !strings.HasPrefix(button.head.Get("Location"), w.base+"/back") {
		t.Errorf("the payer's button leads to %q: %s", button.head.Get("Location"), button)
	}
	w.isPaid(t, no)
	w.acknowledged(t, p.Number)
}

// Nobody tells and nobody asks: the service asks by itself. Codes and forms.
func TestL09_L08_PaidByQueryAlone(t *testing.T) {
	t.Parallel()
	w := steady(t)
	for name, p := range map[string]func(string) pay{"qr": qr, "page": page} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			no := newOrder("L09")
			w.mute(t, no)
			r := w.pay(p(no))
			if r.shown().Type == "form" {
				r.shown().open(t)
			}
			w.sim.paysAlipay(t, w.number(no, 1))
			w.isPaid(t, no)
			if w.calls(t, "query", no) < 1 {
				t.Error("the channel was not asked")
			}
		})
	}
}

// What the service was asked to take is what the channel took, to the fen, with a
// voucher that makes what the payer paid less than the total.
func TestA04_A05_YuanAndFen(t *testing.T) {
	t.Parallel()
	w := steady(t)
	for i, amount := range []int64{1, 2, 9, 10, 99, 100, 101, 1990, 58, 1001, 99999, 100000, 123456789, 9999999999, 10000000000} {
		no := newOrder("A04")
		p := qr(no)
		if i%2 == 1 {
			p = page(no)
		}
		p.amount = amount
		r := w.pay(p)
		if r.code != http.StatusCreated {
			t.Errorf("%d: %s", amount, r)
			continue
		}
		if a := r.shown(); a.Type == "form" {
			a.open(t)
		}
		w.sim.paysAlipay(t, w.number(no, 1))
		if got := w.isPaid(t, no); got.Amount != amount {
			t.Errorf("%d fen became %d", amount, got.Amount)
		}
	}
	for _, p := range []pay{{amount: 10000000001, currency: "CNY"}, {amount: 1000, currency: "USD"}} {
		p.order, p.extra = newOrder("A04"), qr("").extra
		if r := w.pay(p); r.code != http.StatusBadRequest || r.problem().Code != "invalid-request" {
			t.Errorf("%d %s: %s", p.amount, p.currency, r)
		}
		if r := w.get("/v1/orders/" + p.order); r.code != http.StatusNotFound {
			t.Errorf("an order was stored: %s", r)
		}
	}
}

// The end of a code is said as an absolute time, on which a countdown can rest
// whatever the payer's clock says: a quarter of an hour, or the order's own end.
func TestZ08_EndOfACode(t *testing.T) {
	t.Parallel()
	w := steady(t)
	no := newOrder("Z08")
	r := w.pay(qr(no))
	a := r.shown()
	left := func(a shown) time.Duration {
		if a.ExpiresAt == nil {
			t.Fatalf("no end: %+v", a)
		}
		return a.ExpiresAt.Sub(w.sim.now(t))
	}
	if d := left(a); d < 14*time.Minute || d > 15*time.Minute+2*time.Second {
		t.Errorf("the code ends in %v", d)
	}
	if r.payment().DeadAt == nil || !a.ExpiresAt.Equal(parseTime(t, *r.payment().DeadAt)) {
		t.Errorf("the code ends at %v, the payment: %s", a.ExpiresAt, r)
	}
	short := newOrder("Z08")
	end := w.sim.now(t).Add(5 * time.Minute).UTC().Format(time.RFC3339)
	if r := w.post("/v1/orders", map[string]any{"order_no": short, "amount": 1000, "currency": "CNY", "subject": "s", "expires_at": end}); r.code != http.StatusCreated {
		t.Fatalf("order: %s", r)
	}
	if a := w.pay(qr(short)).shown(); a.ExpiresAt == nil || a.ExpiresAt.UTC().Format(time.RFC3339) != end {
		t.Errorf("the code of an order that ends at %s ends at %v", end, a.ExpiresAt)
	}
}

func parseTime(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A code is shown while it may be paid and not a moment longer, on every way on
// which it can be seen.
func TestC08_CodeShownOnlyWhileItMayBePaid(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(*testing.T, *dev, payment){
		"cancelled":            func(_ *testing.T, w *dev, p payment) { w.cancel(p.ID) },
		"cancelled, unscanned": func(_ *testing.T, w *dev, p payment) { w.cancel(p.ID) },
		"closing, unscanned":   func(_ *testing.T, w *dev, p payment) { w.closeOrder(p.OrderNo) },
		"closed":               func(_ *testing.T, w *dev, p payment) { w.closeOrder(p.OrderNo) },
		"replaced":             func(_ *testing.T, w *dev, p payment) { w.pay(cardCNY(p.OrderNo, threeDS)) },
		"amended": func(_ *testing.T, w *dev, p payment) {
			w.post("/v1/orders/"+p.OrderNo+"/amend", map[string]any{"amount": 1200})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, no, key := steady(t), newOrder("C08"), newKey()
			ask := qr(no)
			ask.key = key
			first := w.pay(ask)
			code := first.shown().QRCode
			if code == "" {
				t.Fatalf("no code: %s", first)
			}
			if !strings.Contains(name, "unscanned") {
				w.sim.scans(t, w.number(no, 1))
			}
			over(t, w, first.payment())
			checkout := &api{base: *w.order(no).CheckoutURL}
			for what, r := range map[string]resp{
				"payment": w.get("/v1/payments/" + first.payment().ID), "order": w.get("/v1/orders/" + no), "list": w.get("/v1/payments?order_no=" + no),
				"same key": w.pay(ask), "checkout": checkout.get(""), "sync": w.sync(first.payment().ID),
			} {
				if r.err != nil || bytes.Contains(r.body, []byte(code)) || what == "checkout" && bytes.Contains(r.body, []byte(`class="qr"`)) {
					t.Errorf("%s shows the code: %s", what, r)
				}
				if what == "same key" && strings.Contains(name, "cancelled") && strings.Contains(string(r.body), "qr_code") {
					t.Errorf("the same key: %s", r)
				}
			}
		})
	}
}

// A subject in any writing reaches the channel's strict parser, or is refused by
// us before anything is stored.
func TestS12_SubjectsOfAllKinds(t *testing.T) {
	t.Parallel()
	w := steady(t)
	for _, subject := range []string{"支付测试 订单", "🍵👨‍👩‍👧‍👦 tea", `"quoted" 'text' \ back`, "a+b%2B&c=d/e", "<script>&amp;", "ʼ′“”…", "  blanks  ", "𠮷野家",
		strings.Repeat("长", 127), "total_amount=0.01&out_trade_no=1"} {
		for method, p := range map[string]pay{"qr": qr(newOrder("S12")), "page": page(newOrder("S12"))} {
			r := w.pay(p.with("subject", subject))
			if r.code != http.StatusCreated {
				t.Errorf("%s %q: %s", method, subject, r)
				continue
			}
			if a := r.shown(); a.Type == "form" {
				a.open(t)
			}
			w.sim.paysAlipay(t, r.payment().Number)
			w.isPaid(t, p.order)
		}
	}
	for _, subject := range []string{"line\nbreak", "nul\x00", "\x1b[0m", "", strings.Repeat("长", 128), "\u0085"} {
		no := newOrder("S12")
		if r := w.pay(qr(no).with("subject", subject)); r.code != http.StatusBadRequest || r.problem().Code != "invalid-request" {
			t.Errorf("%q: %s", subject, r)
		}
		if r := w.get("/v1/orders/" + no); r.code != http.StatusNotFound {
			t.Errorf("%q: an order was stored: %s", subject, r)
		}
	}
}

// Whatever the channel does to the request for a code, the payment is not FAILED,
// nobody is given a second number, and the same key ends with a code or with the
// truth.
func TestA03_R10_G09_EveryFaultOfTheCode(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lose_request", "lose_response", "reset_mid_body", "http_500_before", "http_500_after", "html_502", "truncated", "bad_signature",
		"foreign_account", "delay", "duplicate:3", "before_response", "error:20000", "error:10003", "error:ACQ.SYSTEM_ERROR", "error:after:ACQ.SYSTEM_ERROR",
		"error:after:20000", "error:isv.missing-signature", "error:ACQ.CONTEXT_INCONSISTENT", "error:ACQ.TRADE_HAS_SUCCESS"} {
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s x%d", name, n), func(t *testing.T) {
				t.Parallel()
				w, no := steady(t), newOrder("A03")
				w.spoils(t, no, "create", name, n)
				ask := qr(no)
				ask.key = newKey()
				notFailed(t, w.pay(ask))
				r := w.retry(t, ask, soon)
				if r.payment().Status == "PENDING" {
					w.sim.paysAlipay(t, w.number(no, 1))
				}
				w.isPaid(t, no)
				if n := w.order(no).Payments[0].Sequence; n != 1 || len(w.order(no).Payments) != 1 {
					t.Errorf("payments: %+v", w.order(no).Payments)
				}
			})
		}
	}
}

// The channel refuses the request for a code with a definite word, and it is the
// first one: FAILED, and a new key may try again with a new number.
func TestC05_RefusedCode(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("C05")
	w.spoils(t, no, "create", "error:ACQ.TOTAL_FEE_EXCEED", 1)
	ask := qr(no)
	ask.key, ask.declines = newKey(), true
	r := w.pay(ask)
	if r.code != http.StatusPaymentRequired || r.problem().Code != "payment-declined" || r.payment().Status != "FAILED" {
		t.Fatalf("refused: %s", r)
	}
	if r := w.pay(ask); r.code != http.StatusPaymentRequired || !r.replayed() {
		t.Errorf("the same key: %s", r)
	}
	p := w.code(t, no)
	if p.Sequence != 2 {
		t.Errorf("sequence %d", p.Sequence)
	}
	w.sim.paysAlipay(t, p.Number)
	w.isPaid(t, no)
}

// The answer with the code is lost, and the channel refuses to give the code a
// second time. That refusal is no failure, and no key gets another number meanwhile.
// Since nobody was given the code, the payment can be ended at once, by a cancel
// or by another way to pay, and who had seen the code on its way has paid.
func TestG09_CodeIsNotGivenTwice(t *testing.T) {
	t.Parallel()
	m := relayedNode(t)
	for _, end := range []string{"cancel", "card", "paid"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			no := newOrder("G09")
			m.spoils(t, no, "create", "lose_response", 1)
			first := m.pay(qr(no))
			notFailed(t, first)
			number := m.number(no, 1)
			until(t, soon, "the channel was asked for the code again", func() bool { return m.calls(t, "create", no) > 1 })
			r := m.pay(qr(no))
			notFailed(t, r)
			if p := r.payment(); p.ID != first.payment().ID || p.Status == "PENDING" || r.shown().Type != "none" {
				t.Errorf("another key: %s", r)
			}
			switch end {
			case "paid":
				m.sim.paysAlipay(t, number)
			case "card":
				if r := m.retryUnproven(t, cardCNY(no, visa)); r.payment().Sequence != 2 {
					t.Errorf("by card: %s", r)
				}
			case "cancel":
				until(t, soon, "the payment is cancelled", func() bool { return m.cancel(first.payment().ID).payment().Status == "CANCELLED" })
				p := m.code(t, no)
				if p.Sequence != 2 {
					t.Errorf("the new code: %+v", p)
				}
				m.sim.paysAlipay(t, p.Number)
			}
			m.isPaid(t, no)
		})
	}
}
