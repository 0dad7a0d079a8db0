package e2e

import (
	"net/http"
	"testing"
	"time"
)

// TestVirtualTime holds the stories that take days. They share one instance and
// its clock, so they run one after another. Deliveries of days are not waited
// for: the simulator's clock is moved, and the service follows.
//
// A copied database (J08) is refused from the version on that keeps a mark.
func TestVirtualTime(t *testing.T) {
	t.Parallel()
	w := virtual(t)
	for name, story := range map[string]func(*testing.T, *dev){
		"R09_SevenDaysWithoutAnswer_Charged":    sevenDaysCharged,
		"R09_SevenDaysWithoutAnswer_NotCharged": sevenDaysNotCharged,
		"I05_KeysPruned_Charged":                keysPrunedCharged,
		"I05_KeysPruned_NotCharged":             keysPrunedNotCharged,
		"G08_T53_DayTwoAndAfterRetention":       afterRetention,
		"G10_J04_J06_CallOutlivesItsLease":      callOutlivesLease,
		"D07_OrderExpiresWhilePending":          orderExpires,
		"D07_OrderExpiresWithoutPayment":        orderExpiresUnpaid,
		"D07_T06_NotBeforeItsEnd":               notBeforeItsEnd,
		"D08_AbandonedAuthentication":           abandoned,
		"R09_UnsentIsCancelledWithoutCaller":    unsentIsCancelled,
	} {
		t.Run(name, func(t *testing.T) { story(t, w) })
	}
}

const day = 24 * time.Hour

// liveUnknown checks after each move of the clock that the payment is still
// unknown: age is no evidence.
func liveUnknown(t *testing.T, w *dev, id string) {
	t.Helper()
	for range 4 {
		r := w.get("/v1/payments/" + id)
		notFailed(t, r)
		if s := r.payment().Status; s != "UNKNOWN" && s != "PROCESSING" {
			t.Fatalf("the payment is %s", s)
		}
		pace(100 * time.Millisecond)
	}
}

// asked waits until the channel has been asked once more about an order.
func asked(t *testing.T, w *dev, no string, before int) {
	t.Helper()
	until(t, soon, "the channel is asked again", func() bool { return w.calls(t, "query", no) > before })
}

func sevenDaysCharged(t *testing.T, w *dev) {
	no, key := newOrder("R09"), newKey()
	w.silent(t, no)
	w.fault(t, no, "confirm", "lose_response", 1)
	stop := w.fault(t, no, "query", "http_500_before", always)
	r := w.pay(pay{order: no, key: key})
	notFailed(t, r)
	id := r.payment().ID
	for range 7 {
		n := w.calls(t, "query", no)
		w.sim.advance(t, day)
		asked(t, w, no, n)
		liveUnknown(t, w, id)
	}
	if r := w.pay(pay{order: no, card: master}); r.code != http.StatusConflict || r.problem().Code != "payment-outcome-unknown" || r.payment().ID != id {
		t.Errorf("a new attempt after seven days: %s", r)
	}
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
	stop()
	w.sync(id)
	w.until(t, id, soon, "SUCCEEDED")
	w.paidOnce(t, no)
}

func sevenDaysNotCharged(t *testing.T, w *dev) {
	no := newOrder("R09n")
	w.fault(t, no, "confirm", "lose_request", 1)
	stopQuery := w.fault(t, no, "query", "lose_request", always)
	stopClose := w.fault(t, no, "close", "lose_request", always)
	id := w.pay(pay{order: no}).payment().ID
	for range 7 {
		n := w.calls(t, "query", no)
		w.sim.advance(t, day)
		asked(t, w, no, n)
		liveUnknown(t, w, id)
	}
	if r := w.pay(pay{order: no, card: master}); r.code != http.StatusConflict || r.problem().Code != "payment-outcome-unknown" {
		t.Errorf("a new attempt after seven days: %s", r)
	}
	stopQuery()
	stopClose()
	w.sync(id)
	until(t, soon, "the old attempt is ended at the channel and a new one is taken", func() bool {
		w.sync(id)
		return w.pay(pay{order: no, card: master}).code == http.StatusCreated
	})
	if p := w.payment(id); p.Status != "CANCELLED" {
		t.Errorf("the old attempt is %s", p.Status)
	}
	w.paidOnce(t, no)
}

// A job that sleeps for 48 hours, after which the channel's keys are gone: it
// asks first and does not send again.
func keysPrunedCharged(t *testing.T, w *dev) { keysPruned(t, w, "lose_response") }

func keysPrunedNotCharged(t *testing.T, w *dev) { keysPruned(t, w, "lose_request") }

func keysPruned(t *testing.T, w *dev, lost string) {
	no, key := newOrder("I05"), newKey()
	w.silent(t, no)
	w.fault(t, no, "confirm", lost, 1)
	stop := w.fault(t, no, "query", "http_500_before", always)
	id := w.pay(pay{order: no, key: key}).payment().ID
	w.sim.advance(t, 2*day)
	n := w.calls(t, "query", no)
	stop()
	r := w.pay(pay{order: no, key: key})
	notFailed(t, r)
	asked(t, w, no, n)
	if lost == "lose_response" {
		w.until(t, id, soon, "SUCCEEDED")
		w.paidOnce(t, no)
	} else {
		w.until(t, id, soon, "CANCELLED")
		w.notCharged(t, no)
	}
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1: it was sent again after the channel forgot its key", n)
	}
}

// An old key finds its payment for as long as there is an order: on day two, and
// after the retention of its stored answer. The row that is past its time
// neither blocks nor lets a twin through.
func afterRetention(t *testing.T, w *dev) {
	no, key := newOrder("G08"), newKey()
	a := w.pay(pay{order: no, key: key})
	if a.code != http.StatusCreated {
		t.Fatalf("first: %s", a)
	}
	for _, d := range []time.Duration{2 * day, 31 * day} {
		w.sim.advance(t, d)
		for _, r := range together(20, func(int) resp { return w.pay(pay{order: no, key: key}) }) {
			if r.code != http.StatusCreated || !r.replayed() || r.payment().ID != a.payment().ID {
				t.Errorf("%v later: %s", d, r)
			}
		}
		if r := w.pay(pay{order: no}); r.code != http.StatusConflict || r.problem().Code != "order-already-paid" {
			t.Errorf("a new key %v later: %s", d, r)
		}
	}
	fresh, twin := newOrder("G08"), newKey()
	no5xx(t, together(20, func(int) resp { return w.pay(pay{order: fresh, key: twin}) }))
	w.retry(t, pay{order: fresh, key: twin}, soon)
	for _, o := range []string{no, fresh} {
		w.paidOnce(t, o)
		if n := w.calls(t, "confirm", o); n != 1 {
			t.Errorf("%d confirms, want 1", n)
		}
	}
}

// The call takes longer than its lease. A worker takes the payment over and asks
// first; the late answer is not lost, and nothing is sent twice with effect.
func callOutlivesLease(t *testing.T, w *dev) {
	no, key := newOrder("G10"), newKey()
	w.silent(t, no)
	w.slow(t, no, "confirm", 4*time.Second, 1)
	first := make(chan resp, 1)
	go func() { first <- w.pay(pay{order: no, key: key}) }()
	until(t, soon, "the call is under way", func() bool { return w.calls(t, "confirm", no) == 1 })
	w.sim.advance(t, 10*time.Minute)
	asked(t, w, no, 0)
	r := <-first
	notFailed(t, r)
	if r.err != nil || r.code >= 500 {
		t.Errorf("the first caller: %s", r)
	}
	w.retry(t, pay{order: no, key: key}, soon)
	w.paidOnce(t, no)
	if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
		t.Errorf("%d objects on the books, want 1", n)
	}
}

// orderUntil makes an order that ends after d of virtual time.
func orderUntil(t *testing.T, w *dev, no string, d time.Duration) {
	t.Helper()
	end := w.sim.now(t).Add(d).UTC().Format(time.RFC3339)
	r := w.post("/v1/orders", map[string]any{"order_no": no, "amount": 1000, "currency": "USD", "subject": "s", "expires_at": end})
	if r.code != http.StatusCreated {
		t.Fatalf("order: %s", r)
	}
}

func orderExpires(t *testing.T, w *dev) {
	no := newOrder("D07")
	orderUntil(t, w, no, 10*time.Minute)
	p := w.pending(t, no)
	w.sim.advance(t, 11*time.Minute)
	until(t, soon, "the order is closed", func() bool { return w.order(no).Status == "CLOSED" })
	w.notCharged(t, no)
	if got := w.payment(p.ID); got.Status != "CANCELLED" {
		t.Errorf("the payment is %s", got.Status)
	}
	if r := w.payer(p.Number); r.code != http.StatusConflict {
		t.Errorf("the closed object can be paid: %s", r)
	}
	if r := w.pay(pay{order: no}); r.code != http.StatusConflict || r.problem().Code != "order-closed" {
		t.Errorf("a new payment: %s", r)
	}
}

func orderExpiresUnpaid(t *testing.T, w *dev) {
	no := newOrder("D07u")
	orderUntil(t, w, no, time.Minute)
	w.sim.advance(t, 2*time.Minute)
	if r := w.pay(pay{order: no}); r.code != http.StatusConflict || r.problem().Code != "order-closed" {
		t.Errorf("a payment of an expired order: %s", r)
	}
	until(t, soon, "the order is closed", func() bool { return w.order(no).Status == "CLOSED" })
}

func notBeforeItsEnd(t *testing.T, w *dev) {
	no := newOrder("D07n")
	orderUntil(t, w, no, 60*day)
	p := w.pending(t, no)
	w.sim.advance(t, 10*time.Minute)
	asked(t, w, no, 0)
	if got := w.payment(p.ID); got.Status != "PENDING" || w.order(no).Status != "OPEN" {
		t.Errorf("closed before its time: %s, order %s", got.Status, w.order(no).Status)
	}
	w.sim.pays(t, p.Number)
	w.sync(p.ID)
	w.paidOnce(t, no)
}

// The payer leaves the 3-D Secure page for good: past its end the payment is
// closed at the channel, and only then the order is free.
func abandoned(t *testing.T, w *dev) {
	no := newOrder("D08")
	p := w.pending(t, no)
	w.sim.advance(t, 40*time.Minute)
	w.until(t, p.ID, soon, "CANCELLED")
	w.notCharged(t, no)
	if r := w.pay(pay{order: no}); r.code != http.StatusCreated || r.payment().Sequence != 2 {
		t.Errorf("a new attempt: %s", r)
	}
	w.paidOnce(t, no)
}

// What was stored and provably never sent ends CANCELLED when nobody wants it
// any more.
func unsentIsCancelled(t *testing.T, w *dev) {
	no := newOrder("R09u")
	stop := w.fault(t, no, "create", "error:rate_limit", always)
	r := w.pay(pay{order: no})
	notFailed(t, r)
	id := r.payment().ID
	if r.code != http.StatusServiceUnavailable || r.problem().Code != "channel-unreachable" || r.problem().Retry != "same-key" || id == "" {
		t.Errorf("the channel refuses everybody: %s", r)
	}
	w.sim.advance(t, time.Hour)
	w.until(t, id, soon, "CANCELLED")
	stop()
	w.notCharged(t, no)
	if r := w.pay(pay{order: no}); r.code != http.StatusCreated {
		t.Errorf("a new attempt: %s", r)
	}
	w.paidOnce(t, no)
}
