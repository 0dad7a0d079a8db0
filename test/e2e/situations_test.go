package e2e

import (
	"net/http"
	"testing"
	"time"
)

// The payer clicks many times, reloads, comes from another tab and device: one
// live attempt, shown to every request.
func TestA01_ManyClicksOneAttempt(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("A01")
	first := w.pay(pay{order: no, card: threeDS})
	if first.code != http.StatusCreated || first.payment().Status != "PENDING" {
		t.Fatalf("first: %s", first)
	}
	id := first.payment().ID
	for _, r := range together(12, func(int) resp { return w.pay(pay{order: no, card: threeDS}) }) {
		if r.code != http.StatusOK || r.payment().ID != id || r.replayed() || r.payment().Action.URL != first.payment().Action.URL {
			t.Errorf("another click: %s", r)
		}
	}
	if b := w.sim.books(t); len(b.of(w.numbers(no)...)) != 1 || b.calls("create", w.numbers(no)...) != 1 {
		t.Errorf("objects on the books: %+v", b.of(w.numbers(no)...))
	}
	w.sim.pays(t, first.payment().Number)
	w.sync(id)
	w.until(t, id, soon, "SUCCEEDED")
	w.paidOnce(t, no)
}

// A client that gave up repeats its request: the same attempt, the same answer,
// marked as repeated.
func TestA02_RepeatedAfterTheClientsTimeout(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("A02"), newKey()
	w.slow(t, no, "confirm", 2*time.Second, 1)
	p := pay{order: no, key: key, within: 700 * time.Millisecond}
	if r := w.pay(p); r.err == nil {
		t.Fatalf("the channel is not slow: %s", r)
	}
	p.within = 0
	r := w.pay(p)
	if r.code != http.StatusConflict || r.problem().Code != "idempotency-in-progress" || r.retryAfter() < 1 || r.retryAfter() > 10 {
		t.Errorf("meanwhile: %s, Retry-After %d", r, r.retryAfter())
	}
	if sn := r.problem().SafeNewKey; sn == nil || *sn {
		t.Errorf("safe_new_key while in progress: %s", r)
	}
	r = w.retry(t, p, soon)
	if r.code != http.StatusCreated || !r.replayed() {
		t.Errorf("at last: %s, marked %v", r, r.replayed())
	}
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
	w.paidOnce(t, no)
}

// The channel charged and its answer never came: not FAILED at any moment, the
// channel is asked, and the charge is found without being made again.
func TestA03_AnswerNeverCame(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("A03")
	w.silent(t, no)
	w.fault(t, no, "confirm", "lose_response", 1)
	r := w.pay(pay{order: no})
	notFailed(t, r)
	if r.code != http.StatusAccepted {
		t.Errorf("answer: %s", r)
	}
	w.until(t, r.payment().ID, soon, "SUCCEEDED")
	w.paidOnce(t, no)
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
	if n := w.calls(t, "query", no); n < 1 {
		t.Error("the channel was not asked")
	}
}

// The service dies under `payonce dev` between charged and saved; it is started
// again and asks first.
func TestA04_KilledBetweenChargedAndSaved(t *testing.T) {
	t.Parallel()
	d := ownDev(t, faultBin, "PAYONCE_FAILPOINT=t2.before:kill")
	no, key := newOrder("A04"), newKey()
	if r := d.pay(pay{order: no, key: key}); r.err == nil {
		t.Errorf("the service did not die: %s", r)
	}
	if n := len(d.taken(t, no)); n != 1 {
		t.Errorf("%d charges when it died, want 1", n)
	}
	r := d.retry(t, pay{order: no, key: key}, soon)
	if r.code != http.StatusCreated {
		t.Errorf("the same key: %s", r)
	}
	d.paidOnce(t, no)
	if n := d.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
}

// An order that is paid takes no other payment, whoever asks: old links, old
// tabs, other cards.
func TestC08_PaidOrderTakesNoMore(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("C08")
	p := w.pay(pay{order: no}).payment()
	for _, card := range []string{visa, master, threeDS} {
		r := w.pay(pay{order: no, card: card})
		if r.code != http.StatusConflict || r.problem().Code != "order-already-paid" || r.payment().ID != p.ID {
			t.Errorf("%s: %s", card, r)
		}
	}
	r := w.payer(p.Number)
	if r.code != http.StatusConflict {
		t.Errorf("the channel's page takes it again: %s", r)
	}
	if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
		t.Errorf("%d objects on the books, want 1", n)
	}
	w.paidOnce(t, no)
}

func (w *world) payer(number string) resp { return w.sim.payer(number, "paid", false) }

// Other amount, other currency: the order is not paid by them.
func TestA06_OtherAmountIsRefused(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("A06")
	if r := w.post("/v1/orders", map[string]any{"order_no": no, "amount": 1000, "currency": "USD", "subject": "s"}); r.code != http.StatusCreated {
		t.Fatalf("order: %s", r)
	}
	for _, p := range []pay{{order: no, amount: 1001}, {order: no, currency: "EUR"}} {
		if r := w.pay(p); r.code != http.StatusConflict || r.problem().Code != "order-mismatch" {
			t.Errorf("%+v: %s", p, r)
		}
	}
	if r := w.pay(pay{order: no}); r.code != http.StatusCreated {
		t.Errorf("the right amount: %s", r)
	}
	w.paidOnce(t, no)
}

// Asynchronous: answered at once, done by a worker.
func TestB10_RespondAsync(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("B10")
	w.slow(t, no, "create", 500*time.Millisecond, 1)
	r := w.pay(pay{order: no, prefer: "respond-async"})
	if r.code != http.StatusAccepted || r.took > 400*time.Millisecond {
		t.Errorf("after %v: %s", r.took, r)
	}
	w.until(t, r.payment().ID, soon, "SUCCEEDED")
	w.paidOnce(t, no)
}

// A long poll answers when the payment changes.
func TestB11_LongPoll(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("B11")
	p := w.pay(pay{order: no, card: threeDS}).payment()
	answer := make(chan resp, 1)
	go func() { answer <- w.get("/v1/payments/" + p.ID + "?wait=20") }()
	if r := w.get("/v1/payments/" + p.ID + "?wait=1"); r.code != http.StatusOK || r.took < 900*time.Millisecond || r.payment().Status != "PENDING" {
		t.Errorf("nothing changed for %v: %s", r.took, r)
	}
	w.sim.pays(t, p.Number)
	w.sync(p.ID)
	r := <-answer
	if r.code != http.StatusOK || r.payment().Status != "SUCCEEDED" || r.took > 15*time.Second {
		t.Errorf("after %v: %s", r.took, r)
	}
	w.paidOnce(t, no)
}
