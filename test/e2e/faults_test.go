package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// faultCase is one misbehaviour of the channel at one operation.
type faultCase struct {
	operation, fault string
	times            int
	declines         bool // the fault is the channel's own decline
}

// cardFaults are all faults that the simulated Stripe can have at an operation.
func cardFaults(operation string) []faultCase {
	names := []string{"lose_request", "lose_response", "reset_mid_body", "delay", "http_500_before", "http_500_after", "html_502",
		"truncated", "foreign_account",
		"error:lock_timeout", "error:rate_limit", "error:idempotency_key_in_use", "error:api_error", "error:gateway_timeout", "error:unauthorized"}
	if operation != "query" {
		names = append(names, "duplicate:1", "duplicate:3", "before_response")
	}
	var list []faultCase
	for _, n := range names {
		list = append(list, faultCase{operation: operation, fault: n, times: 1})
	}
	if operation == "confirm" {
		list = append(list, faultCase{operation, "error:card_declined", 1, true})
	}
	for _, n := range []string{"lose_response", "lose_request", "http_500_after", "http_500_before", "html_502"} {
		list = append(list, faultCase{operation: operation, fault: n, times: 3})
	}
	return list
}

// Whatever the channel does to create and confirm, a payment is never FAILED
// unless the channel declined, and it ends as the books say.
func TestA03_R10_EveryFaultOfCreateAndConfirm(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"create", "confirm"} {
		for _, c := range cardFaults(operation) {
			t.Run(c.operation+"/"+c.fault+times(c.times), func(t *testing.T) {
				t.Parallel()
				w, no, key := steady(t), newOrder("fault"), newKey()
				w.fault(t, no, c.operation, c.fault, c.times)
				r := w.pay(pay{order: no, key: key})
				endsAsTheBooks(t, &w.world, no, key, r, c.declines)
			})
		}
	}
}

func times(n int) string {
	if n == 1 {
		return ""
	}
	return "x3"
}

// endsAsTheBooks follows a payment to its end and compares it with the books.
func endsAsTheBooks(t *testing.T, w *world, no, key string, r resp, declines bool) {
	t.Helper()
	if !declines {
		notFailed(t, r)
	}
	if r.err != nil || r.code >= 500 && r.problem().Retry != "same-key" {
		t.Fatalf("first answer: %s", r)
	}
	end := w.retry(t, pay{order: no, key: key, declines: declines}, soon)
	took := w.taken(t, no)
	switch status := end.payment().Status; {
	case status == "SUCCEEDED":
		w.paidOnce(t, no)
	case status == "FAILED" && declines:
		if len(took) != 0 {
			t.Errorf("FAILED, and the books say %+v", took)
		}
	default:
		t.Errorf("the payment ends %s, the books say %+v: %s", status, took, end)
	}
}

// The answer to a question is lost or wrong in every way: the question is asked
// again until the truth is known.
func TestA03_EveryFaultOfQuery(t *testing.T) {
	t.Parallel()
	for _, c := range cardFaults("query") {
		t.Run(c.fault+times(c.times), func(t *testing.T) {
			t.Parallel()
			w, no, key := steady(t), newOrder("fault"), newKey()
			w.silent(t, no)
			w.fault(t, no, "confirm", "lose_response", 1)
			w.fault(t, no, "query", c.fault, c.times)
			r := w.pay(pay{order: no, key: key})
			endsAsTheBooks(t, &w.world, no, key, r, false)
			if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
				t.Errorf("%d objects on the books, want 1", n)
			}
		})
	}
}

// Closing is disturbed in every way: a payment is CANCELLED only when its object
// is closed on the books, and the order is free only then.
func TestA06_EveryFaultOfClose(t *testing.T) {
	t.Parallel()
	for _, c := range cardFaults("close") {
		if c.fault == "error:card_declined" {
			continue
		}
		t.Run(c.fault+times(c.times), func(t *testing.T) {
			t.Parallel()
			w, no := steady(t), newOrder("fault")
			p := w.pay(pay{order: no, card: threeDS}).payment()
			if p.Status != "PENDING" {
				t.Fatalf("the payment is %q", p.Status)
			}
			w.fault(t, no, "close", c.fault, c.times)
			r := w.cancel(p.ID)
			notFailed(t, r)
			if r.code != http.StatusOK && r.code != http.StatusAccepted {
				t.Fatalf("cancel: %s", r)
			}
			if r.code == http.StatusOK && r.payment().Status != "CANCELLED" {
				t.Errorf("cancel says it is proven: %s", r)
			}
			ok := poll(soon, func() bool {
				r := w.cancel(p.ID)
				notFailed(t, r)
				return r.payment().Status == "CANCELLED"
			})
			if !ok {
				t.Fatalf("not CANCELLED within %v: %s", soon, w.get("/v1/payments/"+p.ID))
			}
			w.notCharged(t, no)
			if r := w.pay(pay{order: no}); r.code != http.StatusCreated || r.payment().Sequence != 2 {
				t.Errorf("a new attempt: %s", r)
			}
			w.paidOnce(t, no)
		})
	}
}

// An authenticated answer with another amount is a mismatch: the order is not
// paid by it, the payment is not FAILED by it, and nothing is charged again.
func TestA03_AnotherAmountInTheAnswer(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("amount")
	w.silent(t, no)
	w.fault(t, no, "confirm", "wrong_amount", 1)
	stop := w.fault(t, no, "query", "wrong_amount", always)
	r := w.pay(pay{order: no})
	notFailed(t, r)
	if r.payment().Status == "SUCCEEDED" {
		t.Errorf("answer: %s", r)
	}
	for range 3 {
		notFailed(t, w.sync(r.payment().ID))
		notFailed(t, w.pay(pay{order: no}))
	}
	if o := w.order(no); o.Status == "PAID" {
		t.Errorf("the order is paid by a wrong amount: %+v", o)
	}
	stop()
	if n := len(w.taken(t, no)); n != 1 {
		t.Errorf("%d charges on the books, want 1", n)
	}
}

// A gateway's HTML page instead of an answer: 202, a stable reason, no markup,
// and a question on the calendar.
func TestR10_HTMLInsteadOfAnAnswer(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("R10"), newKey()
	w.silent(t, no)
	w.fault(t, no, "confirm", "html_502", 1)
	stop := w.fault(t, no, "query", "html_502", always)
	r := w.pay(pay{order: no, key: key})
	p := r.payment()
	if r.code != http.StatusAccepted || p.Status != "UNKNOWN" && p.Status != "PROCESSING" {
		t.Errorf("answer: %s", r)
	}
	notFailed(t, r)
	p = w.until(t, p.ID, soon, "UNKNOWN")
	if p.UnknownReason == nil || *p.UnknownReason == "" || p.NextCheckAt == nil {
		t.Errorf("reason %v, next check %v", p.UnknownReason, p.NextCheckAt)
	}
	if s := strings.ToLower(w.get("/v1/payments/"+p.ID).String() + r.String()); strings.Contains(s, "<html") || strings.Contains(s, "bad gateway") {
		t.Errorf("the channel's page is shown: %s", s)
	}
	stop()
	w.retry(t, pay{order: no, key: key}, soon)
	w.paidOnce(t, no)
}

// A repeated POST below us (a proxy that lost the answer): one charge.
func TestR05_ProxyRepeatsThePost(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create", "confirm"} {
		w, no := steady(t), newOrder("R05")
		w.fault(t, no, op, "duplicate:2", 1)
		r := w.pay(pay{order: no})
		notFailed(t, r)
		w.until(t, r.payment().ID, soon, "SUCCEEDED")
		w.paidOnce(t, no)
		if n := w.calls(t, op, no); n < 3 {
			t.Errorf("%s arrived %d times, the fault did not happen", op, n)
		}
	}
}

// The channel says that the key is in use: the same key comes again, or a
// question, never another key.
func TestR06_ChannelKeyInUse(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create", "confirm"} {
		w, no, key := steady(t), newOrder("R06"), newKey()
		w.fault(t, no, op, "error:idempotency_key_in_use", 2)
		r := w.pay(pay{order: no, key: key})
		notFailed(t, r)
		w.retry(t, pay{order: no, key: key}, soon)
		w.paidOnce(t, no)
		if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
			t.Errorf("%s: %d objects on the books, want 1", op, n)
		}
	}
}

// Each step has a key of its own and every repetition sends the stored bytes:
// the channel refuses a key that comes on another path or with other bytes, so a
// story with lost answers at every step could not end well otherwise.
func TestI01_I02_KeysAndBytesOfTheSteps(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("I01"), newKey()
	w.silent(t, no)
	w.fault(t, no, "create", "lose_response", 1)
	w.fault(t, no, "confirm", "lose_response", 1)
	w.fault(t, no, "query", "lose_response", 1)
	r := w.pay(pay{order: no, key: key})
	notFailed(t, r)
	w.retry(t, pay{order: no, key: key}, soon)
	w.paidOnce(t, no)
	if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
		t.Errorf("%d objects on the books, want 1", n)
	}
}

// What the charge is found by is in the first body: the books know the number
// that the payment shows.
func TestI06_NumberIsInTheFirstBody(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("I06")
	w.fault(t, no, "create", "lose_response", 1)
	p := w.pay(pay{order: no}).payment()
	if p.Number != w.number(no, 1) {
		t.Errorf("the payment shows number %q, want %q", p.Number, w.number(no, 1))
	}
	if len(w.sim.books(t).of(p.Number)) != 1 {
		t.Error("the books do not know the number")
	}
	w.until(t, p.ID, soon, "SUCCEEDED")
	w.paidOnce(t, no)
}

// The channel charges, then closes without an answer; later the same key.
func TestT24_T25_G02_AnswerLostThenRetried(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lose_response", "http_500_after"} {
		w, no, key := steady(t), newOrder("T24"), newKey()
		w.silent(t, no)
		w.fault(t, no, "confirm", name, 1)
		stop := w.fault(t, no, "query", "http_500_before", always)
		a := w.pay(pay{order: no, key: key})
		notFailed(t, a)
		if a.code != http.StatusAccepted || a.payment().Status == "FAILED" {
			t.Errorf("%s: first answer: %s", name, a)
		}
		b := w.pay(pay{order: no, key: key})
		if b.payment().ID != a.payment().ID || b.code == http.StatusCreated {
			t.Errorf("%s: meanwhile: %s", name, b)
		}
		stop()
		c := w.retry(t, pay{order: no, key: key}, soon)
		if c.code != http.StatusCreated || c.payment().ID != a.payment().ID {
			t.Errorf("%s: at last: %s", name, c)
		}
		w.paidOnce(t, no)
	}
}

// Any exception of the channel leaves the attempt as it is; it does not become
// FAILED and then run again beside the charge that was made.
func TestG03_ExceptionsAreNotFailures(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("G03"), newKey()
	w.silent(t, no)
	w.fault(t, no, "confirm", "http_500_after", 1)
	w.fault(t, no, "query", "truncated", 2)
	for range 5 {
		r := w.pay(pay{order: no, key: key})
		notFailed(t, r)
		r = w.pay(pay{order: no})
		notFailed(t, r)
	}
	w.retry(t, pay{order: no, key: key}, soon)
	w.paidOnce(t, no)
	if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
		t.Errorf("%d objects on the books, want 1", n)
	}
}

// An unknown attempt is shown to every new key; no money call is made for it.
func TestR08_NewKeyOnAnUnknownAttempt(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("R08")
	w.silent(t, no)
	w.fault(t, no, "confirm", "lose_response", 1)
	stop := w.fault(t, no, "query", "lose_request", always)
	first := w.pay(pay{order: no}).payment()
	for range 5 {
		r := w.pay(pay{order: no})
		notFailed(t, r)
		if r.code != http.StatusOK && r.code != http.StatusAccepted && r.code != http.StatusConflict || r.payment().ID != first.ID {
			t.Errorf("a new key: %s", r)
		}
	}
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
	stop()
	w.until(t, first.ID, soon, "SUCCEEDED")
	w.paidOnce(t, no)
}

// A definite decline is replayed under its key; a new key is a new attempt. An
// unknown attempt keeps its key.
func TestT23_I08_DeclineThenNewAttempt(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("I08"), newKey()
	p := pay{order: no, key: key, card: declined}
	a, b := w.pay(p), w.pay(p)
	if a.code != http.StatusPaymentRequired || a.problem().Code != "payment-declined" || a.payment().Status != "FAILED" || a.payment().Failure == nil {
		t.Fatalf("decline: %s", a)
	}
	if a.problem().SafeNewKey == nil || !*a.problem().SafeNewKey {
		t.Errorf("safe_new_key: %s", a)
	}
	if b.code != a.code || !b.replayed() || string(b.body) != string(a.body) {
		t.Errorf("replayed decline: %s", b)
	}
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
	c := w.pay(pay{order: no})
	if c.code != http.StatusCreated || c.payment().Sequence != 2 || c.payment().Number != w.number(no, 2) {
		t.Errorf("new attempt: %s", c)
	}
	w.paidOnce(t, no)
	if d := w.pay(p); d.code != http.StatusPaymentRequired || !d.replayed() {
		t.Errorf("the first key afterwards: %s", d)
	}
}

// A slow channel: the answer comes in time, says that the payment is under way,
// and nobody has to ask again for it to end.
func TestT26_R12_SlowChannel(t *testing.T) {
	t.Parallel()
	w, n := sqliteNode(t, plainBin)
	n.mustStart(t)
	no := newOrder("T26")
	w.slow(t, no, "confirm", callTimeout+2*time.Second, 1)
	r := w.pay(pay{order: no})
	notFailed(t, r)
	if r.code != http.StatusAccepted || r.took > answerWithin+time.Second {
		t.Errorf("after %v: %s", r.took, r)
	}
	w.until(t, r.payment().ID, soon, "SUCCEEDED")
	w.paidOnce(t, no)
	if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
		t.Errorf("%d objects on the books, want 1", n)
	}
}
