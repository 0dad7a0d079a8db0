package e2e

import (
	"net/http"
	"testing"
)

// acknowledged waits until the service has taken a number's notices.
func (w *world) acknowledged(t *testing.T, number string) []notice {
	t.Helper()
	var list []notice
	until(t, soon, "the notices of "+number+" are taken", func() bool {
		list = w.sim.books(t).told(number)
		for _, n := range list {
			if !n.Acknowledged {
				return false
			}
		}
		return len(list) > 0
	})
	return list
}

// The success notice arrives before the answer to the charge: one charge, one
// transition, and both callers are content.
func TestR02_O13_NoticeBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("R02")
	w.fault(t, no, "confirm", "before_response", 1)
	r := w.pay(pay{order: no})
	notFailed(t, r)
	if r.code != http.StatusCreated || r.payment().Status != "SUCCEEDED" {
		t.Errorf("answer: %s", r)
	}
	w.acknowledged(t, w.number(no, 1))
	w.paidOnce(t, no)
}

// The answer is lost and nobody can ask; only the notice comes. The key's final
// answer is the payment, not a frozen "processing".
func TestT27_OnlyTheNoticeArrives(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T27"), newKey()
	w.fault(t, no, "confirm", "lose_response", 1)
	w.fault(t, no, "query", "lose_request", always)
	r := w.pay(pay{order: no, key: key})
	notFailed(t, r)
	end := w.retry(t, pay{order: no, key: key}, soon)
	if end.code != http.StatusCreated || !end.replayed() || end.payment().Status != "SUCCEEDED" {
		t.Errorf("at last: %s", end)
	}
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
	w.paidOnce(t, no)
}

// Notices that come several times, late, out of order, or again on request: the
// payment changes once, and every delivery is acknowledged.
func TestW06_W13_F04_NoticesInEveryWay(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"duplicate:3", "reorder", "late", "lose_response", "lose_request"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, no := steady(t), newOrder("W06")
			p := w.pending(t, no)
			w.fault(t, no, "notice", name, 1)
			w.sim.pays(t, p.Number)
			before := w.until(t, p.ID, soon, "SUCCEEDED")
			w.paidOnce(t, no)
			if r := w.sim.do(request{method: "POST", path: "/_sim/notices/resend", body: map[string]string{"number": p.Number}, noAuth: true}); r.code != http.StatusOK {
				t.Fatalf("resend: %s", r)
			}
			w.acknowledged(t, p.Number)
			if after := w.payment(p.ID); after.UpdatedAt != before.UpdatedAt || after.Status != "SUCCEEDED" {
				t.Errorf("the payment changed: %+v, was %+v", after, before)
			}
			w.paidOnce(t, no)
		})
	}
}

// Nothing unsigned or wrongly signed changes anything, whatever it says and
// whatever headers come with it.
func TestX02_F04_ForgedNotices(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("X02")
	w.silent(t, no)
	p := w.pending(t, no)
	object := *p.ChannelPayment
	body := []byte(`{"id":"evt_forged","object":"event","type":"payment_intent.succeeded","livemode":false,"data":{"object":{"id":"` + object +
		`","object":"payment_intent","status":"succeeded","amount":1000,"amount_received":1000,"currency":"usd","metadata":{"payonce_number":"` + p.Number + `"}}}}`)
	for name, signature := range map[string]string{"none": "", "empty": "t=,v1=", "nonsense": "t=1,v1=00", "future": "t=99999999999,v1=aa", "plain": "secret"} {
		head := map[string]string{"Host": "localhost", "X-Forwarded-For": "127.0.0.1"}
		if signature != "" {
			head["Stripe-Signature"] = signature
		}
		r := w.do(request{method: "POST", path: "/webhooks/stripe", body: body, head: head, noAuth: true})
		if r.code != http.StatusBadRequest {
			t.Errorf("signature %s: %s", name, r)
		}
	}
	if r := w.do(request{method: "POST", path: "/webhooks/stripe/nobody", body: body, noAuth: true}); r.code < 400 || r.code >= 500 {
		t.Errorf("unknown account: %s", r)
	}
	if got := w.payment(p.ID); got.Status != "PENDING" {
		t.Errorf("the payment is %s", got.Status)
	}
}

// A genuine notice whose signature was damaged on its way is refused; the truth
// is found all the same.
func TestX02_DamagedSignature(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("X02d")
	w.fault(t, no, "notice", "bad_signature", always)
	p := w.pending(t, no)
	w.sim.pays(t, p.Number)
	w.until(t, p.ID, soon, "SUCCEEDED")
	w.paidOnce(t, no)
	for _, n := range w.sim.books(t).told(p.Number) {
		// The channel repeats it undamaged.
		if n.Acknowledged && n.Deliveries < 2 {
			t.Errorf("a damaged notice was taken: %+v", n)
		}
	}
}

// Money arrives for an order that is closed: recorded as surplus, the order
// stays closed, and the payer is not told that the order is paid.
func TestA07_T02_MoneyAfterClose(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("A07")
	p := w.pending(t, no)
	if r := w.closeOrder(no); r.code != http.StatusOK || r.order().Status != "CLOSED" {
		t.Fatalf("close: %s", r)
	}
	if r := w.sim.payer(p.Number, "paid", true); r.code != http.StatusOK {
		t.Fatalf("late money: %s", r)
	}
	var o order
	if !poll(soon, func() bool { o = w.order(no); return o.AmountSurplus == 1000 }) {
		t.Fatalf("the surplus is not recorded: %+v", o)
	}
	if o.Status != "CLOSED" || o.AmountPaid != 0 {
		t.Errorf("the order is %+v", o)
	}
	for _, p := range o.Payments {
		if p.Effective {
			t.Errorf("an effective payment of a closed order: %+v", p)
		}
	}
}

// Money arrives on another object of a closed attempt's number, while a new
// attempt waits: it is no answer about the old attempt's own object, so it is
// surplus, and the order is paid by the new attempt alone.
func TestA07_C10_MoneyOnAnotherObject(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("A07o")
	old := w.pending(t, no)
	fresh := w.pay(pay{order: no, card: "pm_card_threeDSecure2Required"}).payment()
	if fresh.Status != "PENDING" || fresh.Sequence != 2 {
		t.Fatalf("no second attempt: %+v", fresh)
	}
	if r := w.sim.payer(old.Number, "paid", true); r.code != http.StatusOK {
		t.Fatalf("late money: %s", r)
	}
	if !poll(soon, func() bool { return w.order(no).AmountSurplus == 1000 }) {
		t.Fatalf("the surplus is not recorded: %s", w.get("/v1/orders/"+no))
	}
	if o := w.order(no); o.Status != "OPEN" || o.AmountPaid != 0 {
		t.Errorf("the order is %+v", o)
	}
	w.sim.pays(t, fresh.Number)
	w.until(t, fresh.ID, soon, "SUCCEEDED")
	if o := w.order(no); o.Status != "PAID" || o.AmountPaid != 1000 || o.AmountSurplus != 1000 {
		t.Errorf("at last the order is %+v", o)
	}
}

// Both attempts are paid at the same instant: one pays the order, the other is
// surplus, and both notices are acknowledged.
func TestC06_A07_BothPaidAtOnce(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("C06b")
	old := w.pending(t, no)
	fresh := w.pay(pay{order: no, card: "pm_card_threeDSecure2Required"}).payment()
	for _, r := range together(2, func(i int) resp { return w.sim.payer([]string{old.Number, fresh.Number}[i], "paid", i == 0) }) {
		if r.code != http.StatusOK && r.code != http.StatusConflict {
			t.Fatalf("the payer: %s", r)
		}
	}
	took := len(w.taken(t, no))
	var o order
	if !poll(soon, func() bool { o = w.order(no); return o.Status == "PAID" && o.AmountSurplus == int64(took-1)*1000 }) {
		t.Fatalf("%d charges on the books, the order is %+v", took, o)
	}
	effective := 0
	for _, p := range o.Payments {
		if p.Effective {
			effective++
		}
	}
	if effective != 1 || o.AmountPaid != 1000 {
		t.Errorf("%d effective payments: %+v", effective, o)
	}
	w.acknowledged(t, old.Number)
	w.acknowledged(t, fresh.Number)
}
