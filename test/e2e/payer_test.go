package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// pending starts a payment that waits for its payer.
func (w *world) pending(t testing.TB, no string) payment {
	t.Helper()
	r := w.pay(pay{order: no, card: threeDS})
	p := r.payment()
	if r.code != http.StatusCreated || p.Status != "PENDING" || p.Action.Type != "redirect" || p.Action.URL == "" {
		t.Fatalf("not waiting for the payer: %s", r)
	}
	return p
}

// 3-D Secure: a redirect, the payer at the channel, then success by asking.
func TestD01_PayerAuthenticates(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D01")
	w.silent(t, no)
	p := w.pending(t, no)
	w.sim.pays(t, p.Number)
	if r := w.sync(p.ID); r.code != http.StatusOK || r.payment().Status != "SUCCEEDED" || r.payment().Action.Type != "none" {
		t.Errorf("sync: %s", r)
	}
	w.paidOnce(t, no)
}

// Without any notice and without anyone asking: the service asks by itself.
func TestD02_L08_PayerNeverComesBack(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D02")
	w.silent(t, no)
	p := w.pending(t, no)
	w.sim.pays(t, p.Number)
	w.until(t, p.ID, soon, "SUCCEEDED")
	w.paidOnce(t, no)
}

// The payer fails at 3-D Secure: the object could be used again, so the payment
// is PENDING with a failure, and a new attempt closes it first.
func TestD03_DeclineOfAnObjectThePayerHolds(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D03")
	w.silent(t, no)
	p := w.pending(t, no)
	if r := w.sim.payer(p.Number, "declined", false); r.code != http.StatusOK {
		t.Fatalf("decline: %s", r)
	}
	r := w.sync(p.ID)
	if got := r.payment(); got.Status != "PENDING" || got.Failure == nil {
		t.Errorf("after the decline: %s", r)
	}
	r = w.pay(pay{order: no})
	if r.code != http.StatusCreated || r.payment().Sequence != 2 {
		t.Errorf("new attempt: %s", r)
	}
	for _, c := range w.sim.books(t).of(p.Number) {
		if c.Status != "closed" {
			t.Errorf("the old object is %s", c.Status)
		}
	}
	w.paidOnce(t, no)
}

// The payer takes another card while the first waits for 3-D Secure: the old
// object is closed at the channel first, then a new number.
func TestA06_SwitchOfCard(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("A06s")
	old := w.pending(t, no)
	r := w.pay(pay{order: no, card: master})
	if r.code != http.StatusCreated || r.payment().Sequence != 2 || r.payment().Number == old.Number {
		t.Errorf("the other card: %s", r)
	}
	if got := w.payment(old.ID); got.Status != "CANCELLED" || got.Action.Type != "none" {
		t.Errorf("the old payment is %+v", got)
	}
	for _, c := range w.sim.books(t).of(old.Number) {
		if c.Status != "closed" {
			t.Errorf("the old object is %s", c.Status)
		}
	}
	w.paidOnce(t, no)
}

// "Already paid" wins: the payer has paid the old attempt, nobody knows it yet,
// and another card comes.
func TestA06_AlreadyPaidWins(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("A06p")
	w.silent(t, no)
	old := w.pending(t, no)
	w.sim.pays(t, old.Number)
	r := w.pay(pay{order: no, card: master})
	if r.code != http.StatusConflict || r.problem().Code != "order-already-paid" || r.payment().ID != old.ID {
		t.Errorf("the other card: %s", r)
	}
	if got := w.paidOnce(t, no); got.ID != old.ID {
		t.Errorf("paid by %s", got.ID)
	}
}

// While the old attempt cannot be proven dead, no other starts: the answer says
// so, with a time.
func TestA06_SwitchRefusedWhileUnproven(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("A06u")
	old := w.pending(t, no)
	stopClose := w.fault(t, no, "close", "http_500_before", always)
	stopQuery := w.fault(t, no, "query", "http_500_before", always)
	r := w.pay(pay{order: no, card: master})
	if r.code != http.StatusConflict || r.problem().Code != "payment-outcome-unknown" || r.payment().ID != old.ID || r.retryAfter() < 1 {
		t.Errorf("while unproven: %s", r)
	}
	if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
		t.Errorf("%d objects on the books, want 1", n)
	}
	stopClose()
	stopQuery()
	until(t, soon, "the other card is taken", func() bool { return w.pay(pay{order: no, card: master}).code == http.StatusCreated })
	w.paidOnce(t, no)
}

// C10: the payer pays in the old tab while a switch to a new attempt is made:
// whichever was first counts, and the other is closed at the channel.
func TestC10_OldTabAgainstNewTab(t *testing.T) {
	t.Parallel()
	w := steady(t)
	for range 5 {
		no := newOrder("C10")
		old := w.pending(t, no)
		no5xx(t, together(2, func(i int) resp {
			if i == 0 {
				return w.payer(old.Number)
			}
			return w.pay(pay{order: no, card: master})
		}))
		settles(t, &w.world, no)
		if o := w.order(no); o.Status != "PAID" {
			t.Errorf("the order is %s", o.Status)
		}
		w.paidOnce(t, no)
	}
}

// Cancel closes at the channel; a new key is a new decision.
func TestD04_Cancel(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("D04"), newKey()
	p := pay{order: no, key: key, card: threeDS}
	id := w.pay(p).payment().ID
	if r := w.cancel(id); r.code != http.StatusOK || r.payment().Status != "CANCELLED" {
		t.Fatalf("cancel: %s", r)
	}
	w.notCharged(t, no)
	r := w.pay(p)
	if r.code != http.StatusConflict || r.problem().Code != "payment-cancelled" || r.problem().Retry != "never" || r.problem().SafeNewKey == nil || !*r.problem().SafeNewKey {
		t.Errorf("the same key: %s", r)
	}
	if r := w.payer(w.number(no, 1)); r.code != http.StatusConflict {
		t.Errorf("the closed object can be paid: %s", r)
	}
	if r := w.pay(pay{order: no}); r.code != http.StatusCreated || r.payment().Sequence != 2 {
		t.Errorf("a new key: %s", r)
	}
	w.paidOnce(t, no)
}

// Cancelling what is paid changes nothing.
func TestD04_O06_CancelAfterSuccess(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("O06")
	id := w.pay(pay{order: no}).payment().ID
	if r := w.cancel(id); r.code != http.StatusOK || r.payment().Status != "SUCCEEDED" {
		t.Errorf("cancel: %s", r)
	}
	if r := w.closeOrder(no); r.code != http.StatusOK || r.order().Status != "PAID" {
		t.Errorf("close: %s", r)
	}
	w.paidOnce(t, no)
}

// An order is closed while its payment waits: closed at the channel, then
// CLOSED, and never opened again.
func TestD05_CloseWhilePending(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D05")
	p := w.pending(t, no)
	if r := w.closeOrder(no); r.code != http.StatusOK || r.order().Status != "CLOSED" {
		t.Fatalf("close: %s", r)
	}
	if got := w.payment(p.ID); got.Status != "CANCELLED" {
		t.Errorf("the payment is %s", got.Status)
	}
	w.notCharged(t, no)
	if r := w.pay(pay{order: no}); r.code != http.StatusConflict || r.problem().Code != "order-closed" {
		t.Errorf("a new payment: %s", r)
	}
	if r := w.payer(p.Number); r.code != http.StatusConflict {
		t.Errorf("the closed object can be paid: %s", r)
	}
}

// The payer is faster than the close: paid wins.
func TestD05_PaidWinsAgainstClose(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D05p")
	w.silent(t, no)
	p := w.pending(t, no)
	w.sim.pays(t, p.Number)
	if r := w.closeOrder(no); r.code != http.StatusOK || r.order().Status != "PAID" {
		t.Errorf("close: %s", r)
	}
	w.paidOnce(t, no)
}

// While closing is unproven the answer is 202, and a worker goes on.
func TestD05_CloseUnproven(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D05u")
	w.pending(t, no)
	stopClose := w.fault(t, no, "close", "http_500_before", always)
	r := w.closeOrder(no)
	if r.code != http.StatusAccepted || r.order().Status != "CLOSING" {
		t.Errorf("close: %s", r)
	}
	if r := w.pay(pay{order: no}); r.code != http.StatusConflict || r.problem().Code != "order-closed" {
		t.Errorf("a new payment while closing: %s", r)
	}
	stopClose()
	until(t, soon, "the order is closed", func() bool { return w.order(no).Status == "CLOSED" })
	w.notCharged(t, no)
}

// The amount changes before anything is live, and while something is.
func TestD06_A08_Amend(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D06")
	w.post("/v1/orders", map[string]any{"order_no": no, "amount": 1000, "currency": "USD", "subject": "s"})
	amend := func(n int64) resp { return w.post("/v1/orders/"+no+"/amend", map[string]any{"amount": n}) }
	if r := amend(1100); r.code != http.StatusOK || r.order().Amount != 1100 {
		t.Fatalf("nothing live: %s", r)
	}
	old := w.pay(pay{order: no, amount: 1100, card: threeDS}).payment()
	if r := amend(1200); r.code != http.StatusOK || r.order().Amount != 1200 {
		t.Fatalf("with a live payment: %s", r)
	}
	if got := w.payment(old.ID); got.Status != "CANCELLED" || got.Amount != 1100 {
		t.Errorf("the old payment is %+v", got)
	}
	w.notCharged(t, no)
	if r := w.pay(pay{order: no, amount: 1100}); r.code != http.StatusConflict || r.problem().Code != "order-mismatch" {
		t.Errorf("the old amount: %s", r)
	}
	if r := w.pay(pay{order: no, amount: 1200}); r.code != http.StatusCreated || r.payment().Sequence != 2 {
		t.Errorf("the new amount: %s", r)
	}
	if p := w.paidOnce(t, no); p.Amount != 1200 {
		t.Errorf("paid %d", p.Amount)
	}
	if r := amend(1300); r.code != http.StatusConflict || r.problem().Code != "order-already-paid" {
		t.Errorf("after payment: %s", r)
	}
}

// The amount cannot change while the old attempt may still take the old one.
func TestD06_AmendRefusedWhileUnproven(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D06u")
	w.pending(t, no)
	stopClose := w.fault(t, no, "close", "lose_request", always)
	r := w.post("/v1/orders/"+no+"/amend", map[string]any{"amount": 1200})
	if r.code != http.StatusConflict || r.problem().Code != "payment-outcome-unknown" {
		t.Errorf("while unproven: %s", r)
	}
	if o := w.order(no); o.Amount != 1000 {
		t.Errorf("the order has %d", o.Amount)
	}
	stopClose()
	until(t, soon, "the amount is changed", func() bool {
		return w.post("/v1/orders/"+no+"/amend", map[string]any{"amount": 1200}).code == http.StatusOK
	})
	w.notCharged(t, no)
}

// R16: the payer comes back before anyone told us: the checkout page of the
// order does not speak of failure, whatever the address says, and nothing it is
// told changes the payment.
func TestR16_X06_PayerComesBackFirst(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("R16")
	w.silent(t, no)
	p := w.pending(t, no)
	o := w.order(no)
	if o.CheckoutURL == nil {
		t.Fatal("the order has no checkout_url")
	}
	w.sim.pays(t, p.Number)
	page := &api{base: *o.CheckoutURL}
	asked := w.calls(t, "query", no)
	for _, query := range []string{"", "?payment_intent=" + p.Number + "&redirect_status=failed", "?redirect_status=succeeded"} {
		r := page.do(request{method: "GET", path: query, noAuth: true})
		if r.code != http.StatusOK {
			t.Fatalf("checkout page: %s", r)
		}
		if s := strings.ToLower(string(r.body)); strings.Contains(s, "failed") || strings.Contains(s, "失败") {
			t.Errorf("the page speaks of failure: %s", r)
		}
	}
	// The worker's own first question comes five seconds after the answer.
	if !poll(3*time.Second, func() bool { return w.calls(t, "query", no) > asked }) {
		t.Error("the way back made nobody ask the channel")
	}
	w.until(t, p.ID, soon, "SUCCEEDED")
	w.paidOnce(t, no)
}

// A forged way back changes nothing about a payment that is not paid.
func TestX06_ForgedReturn(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("X06")
	p := w.pending(t, no)
	page := &api{base: *w.order(no).CheckoutURL}
	page.do(request{method: "GET", path: "?redirect_status=succeeded&payment_intent=pi_x&status=PAID", noAuth: true})
	if got := w.payment(p.ID); got.Status != "PENDING" {
		t.Errorf("the payment is %s", got.Status)
	}
	if o := w.order(no); o.Status != "OPEN" {
		t.Errorf("the order is %s", o.Status)
	}
}
