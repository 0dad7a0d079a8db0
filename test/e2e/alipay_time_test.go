package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestVirtualTimeOfCodes holds the stories of the payer-driven channel that take
// minutes to months. They share the instance whose clock may be moved.
func TestVirtualTimeOfCodes(t *testing.T) {
	t.Parallel()
	w := virtual(t)
	for _, s := range []struct {
		name  string
		story func(*testing.T, *dev)
	}{
		{"L09_TimeToTruthByQueryAlone", timeToTruth},
		{"A06_UnscannedCodeEnds", unscannedEnds},
		{"D07_OrderExpiresWithALiveCode", expiresWithCode},
		{"D05_ClosingEndsWithTheCode", closingEnds},
		{"T06_NotBeforeItsEnd", orderOutlivesCode},
		{"C08_NotShownAfterItsEnd", notShownLater},
		{"N02_SameKeyAfterTheEnd", sameKeyAfterEnd},
		{"T02_ExpiredAndPaid", expiredAndPaid},
		{"R09_NobodyAnswersForDays", silentForDays},
		{"A07_LastQuestion", lastQuestion},
		{"L09_NoticesOfALongNight", longNight},
	} {
		t.Run(s.name, func(t *testing.T) { s.story(t, w) })
	}
}

// pastCode is when a code that was just made is certainly dead by the channel's
// own time, margin included.
const pastCode = 18 * time.Minute

// All notices are lost. Every paid order becomes PAID by asking alone; how long it
// takes is measured in minutes of virtual time.
func timeToTruth(t *testing.T, w *dev) {
	const orders, step, most = 60, 30 * time.Second, 15 * time.Minute
	random := rand.New(rand.NewPCG(9, 9))
	type buyer struct {
		no, id  string
		pays    int // in which step
		paid    time.Time
		settled time.Time
	}
	buyers := make([]*buyer, orders)
	for i := range buyers {
		no := newOrder("L09")
		w.mute(t, no)
		buyers[i] = &buyer{no: no, id: w.code(t, no).ID, pays: random.IntN(int(14 * time.Minute / step))}
	}
	open := slices.Clone(buyers)
	for n := 0; len(open) > 0; n++ {
		now := w.sim.now(t)
		for _, b := range open {
			if b.pays == n {
				w.sim.paysAlipay(t, w.number(b.no, 1))
				b.paid = now
			}
		}
		w.sim.advance(t, step)
		pace(350 * time.Millisecond) // the worker looks four times a second
		now = w.sim.now(t)
		open = slices.DeleteFunc(open, func(b *buyer) bool {
			if !b.paid.IsZero() && w.payment(b.id).Status == "SUCCEEDED" {
				b.settled = now
			}
			return !b.settled.IsZero()
		})
		if n > int((14*time.Minute+most)/step) {
			t.Fatalf("%d paid orders are not known as paid", len(open))
		}
	}
	var took []time.Duration
	for _, b := range buyers {
		took = append(took, b.settled.Sub(b.paid))
		w.paidOnce(t, b.no)
	}
	slices.Sort(took)
	at := func(q int) float64 { return took[min(len(took)-1, len(took)*q/100)].Minutes() }
	t.Logf("%d paid orders without any notice: truth after p50 %.1f, p99 %.1f virtual minutes (looked at every %v)", orders, at(50), at(99), step)
	if at(99) > most.Minutes() {
		t.Errorf("p99 is %.1f minutes", at(99))
	}
}

// The refused switch works once the code's end, and a margin, lie behind the
// channel's own time.
func unscannedEnds(t *testing.T, w *dev) {
	no := newOrder("A06")
	p := w.code(t, no)
	at := w.pay(cardCNY(no, visa)).provable(t)
	w.sim.advance(t, parseTime(t, *p.DeadAt).Sub(w.sim.now(t))+5*time.Second)
	// Dead by our reckoning, and not yet proven.
	if r := w.pay(cardCNY(no, visa)); r.code != http.StatusConflict || r.problem().Code != "payment-outcome-unknown" {
		t.Errorf("just after its end: %s", r)
	}
	w.sim.advance(t, at.Sub(w.sim.now(t))+5*time.Second)
	until(t, soon, "the switch works", func() bool { return w.pay(cardCNY(no, visa)).code == http.StatusCreated })
	if got := w.payment(p.ID); got.Status != "CANCELLED" {
		t.Errorf("the old payment is %s", got.Status)
	}
	if got := w.line(t, p.Number); got.Status != "closed" {
		t.Errorf("the old code is %s on the books", got.Status)
	}
	w.isPaid(t, no)
}

func expiresWithCode(t *testing.T, w *dev) {
	for _, scanned := range []bool{true, false} {
		no := newOrder("D07")
		end := w.sim.now(t).Add(8 * time.Minute).UTC().Format(time.RFC3339)
		if r := w.post("/v1/orders", map[string]any{"order_no": no, "amount": 1000, "currency": "CNY", "subject": "s", "expires_at": end}); r.code != http.StatusCreated {
			t.Fatalf("order: %s", r)
		}
		p := w.code(t, no)
		if scanned {
			w.sim.scans(t, p.Number)
		}
		w.sim.advance(t, 8*time.Minute+10*time.Second)
		until(t, soon, "the order takes no more", func() bool { s := w.order(no).Status; return s == "CLOSING" || s == "CLOSED" })
		if r := w.pay(qr(no)); r.code != http.StatusConflict || r.problem().Code != "order-closed" {
			t.Errorf("a new payment: %s", r)
		}
		w.sim.advance(t, 10*time.Minute)
		until(t, soon, "the order is closed", func() bool { return w.order(no).Status == "CLOSED" })
		if got := w.payment(p.ID); got.Status != "CANCELLED" {
			t.Errorf("the payment is %s", got.Status)
		}
		w.notCharged(t, no)
	}
}

func closingEnds(t *testing.T, w *dev) {
	no := newOrder("D05")
	p := w.code(t, no)
	if r := w.closeOrder(no); r.code != http.StatusAccepted || r.order().Status != "CLOSING" {
		t.Fatalf("close: %s", r)
	}
	w.sim.advance(t, 10*time.Minute)
	w.stays(t, no, "CLOSING")
	w.sim.advance(t, 8*time.Minute)
	until(t, soon, "the order is closed", func() bool { return w.order(no).Status == "CLOSED" })
	if got := w.payment(p.ID); got.Status != "CANCELLED" {
		t.Errorf("the payment is %s", got.Status)
	}
	w.notCharged(t, no)
	w.sim.forces(t, p.Number)
	w.surplusOnly(t, no, 1000)
}

// An order of sixty days: its code ends after a quarter of an hour, the order
// does not, and a new code can be had.
func orderOutlivesCode(t *testing.T, w *dev) {
	no := newOrder("T06")
	end := w.sim.now(t).Add(60 * day).UTC().Format(time.RFC3339)
	if r := w.post("/v1/orders", map[string]any{"order_no": no, "amount": 1000, "currency": "CNY", "subject": "s", "expires_at": end}); r.code != http.StatusCreated {
		t.Fatalf("order: %s", r)
	}
	p := w.scanned(t, no)
	w.sim.advance(t, 13*time.Minute)
	asked(t, w, no, 0)
	if got := w.payment(p.ID); got.Status != "PENDING" || w.calls(t, "close", no) != 0 {
		t.Errorf("closed before its end: %+v", got)
	}
	w.sim.advance(t, 5*time.Minute)
	w.until(t, p.ID, soon, "CANCELLED")
	w.stays(t, no, "OPEN")
	fresh := w.code(t, no)
	if fresh.Sequence != 2 || fresh.Number == p.Number {
		t.Errorf("the new code: %+v", fresh)
	}
	w.sim.paysAlipay(t, fresh.Number)
	w.isPaid(t, no)
}

// From the very second of its end a code is not shown, whether or not anybody has
// asked the channel since.
func notShownLater(t *testing.T, w *dev) {
	no := newOrder("C08")
	w.sim.disturbs(t, alipay, fault{Operation: "query", Fault: "lose_request", Times: always, Number: w.number(no, 1)})
	r := w.pay(qr(no))
	code := r.shown()
	w.sim.advance(t, code.ExpiresAt.Sub(w.sim.now(t))+time.Second)
	for what, r := range map[string]resp{"payment": w.get("/v1/payments/" + r.payment().ID), "order": w.get("/v1/orders/" + no), "other key": w.pay(qr(no))} {
		if r.err != nil || slices.Contains([]string{code.QRCode}, r.shown().QRCode) {
			t.Errorf("%s: %s", what, r)
		}
	}
	if got := w.payment(r.payment().ID); got.Status != "PENDING" && got.Status != "UNKNOWN" {
		t.Errorf("without an answer the payment is %s", got.Status)
	}
}

// A key whose code has ended asks again: it never gets another attempt's code,
// and a new key gets a new one.
func sameKeyAfterEnd(t *testing.T, w *dev) {
	no := newOrder("N02")
	ask := qr(no)
	ask.key = newKey()
	first := w.pay(ask)
	w.sim.advance(t, pastCode)
	r := w.retry(t, ask, soon)
	if r.code != http.StatusConflict || r.problem().Code != "payment-cancelled" || r.payment().ID != first.payment().ID {
		t.Errorf("the same key: %s", r)
	}
	fresh := w.code(t, no)
	if fresh.Sequence != 2 {
		t.Errorf("a new key: %+v", fresh)
	}
	w.sim.paysAlipay(t, fresh.Number)
	w.isPaid(t, no)
}

// The order has expired and its trade ended; money comes all the same.
func expiredAndPaid(t *testing.T, w *dev) {
	no := newOrder("T02")
	end := w.sim.now(t).Add(5 * time.Minute).UTC().Format(time.RFC3339)
	if r := w.post("/v1/orders", map[string]any{"order_no": no, "amount": 1000, "currency": "CNY", "subject": "s", "expires_at": end}); r.code != http.StatusCreated {
		t.Fatalf("order: %s", r)
	}
	p := w.scanned(t, no)
	w.sim.advance(t, 10*time.Minute)
	until(t, soon, "the order is closed", func() bool { return w.order(no).Status == "CLOSED" })
	w.sim.forces(t, p.Number)
	w.surplusOnly(t, no, 1000)
}

// The code was paid, the notices are lost, and the channel answers no question for
// days: not FAILED, not CANCELLED, no second attempt. Then it answers.
func silentForDays(t *testing.T, w *dev) {
	no := newOrder("R09")
	w.mute(t, no)
	p := w.code(t, no)
	stop := w.sim.disturbs(t, alipay, fault{Operation: "query", Fault: "http_500_before", Times: always, Number: p.Number})
	w.sim.paysAlipay(t, p.Number)
	for range 3 {
		n := w.calls(t, "query", no)
		w.sim.advance(t, day)
		asked(t, w, no, n)
		if got := w.payment(p.ID); got.Status != "PENDING" && got.Status != "UNKNOWN" {
			t.Fatalf("the payment is %s", got.Status)
		}
	}
	if r := w.pay(cardCNY(no, visa)); r.code != http.StatusConflict || r.problem().Code != "payment-outcome-unknown" {
		t.Errorf("another attempt: %s", r)
	}
	stop()
	w.sync(p.ID)
	w.isPaid(t, no)
}

// A closed trade is paid after all and nobody tells: the question that comes a day
// after its end finds the money, and it pays the open order.
func lastQuestion(t *testing.T, w *dev) {
	no := newOrder("A07")
	w.mute(t, no)
	p := w.scanned(t, no)
	if r := w.cancel(p.ID); r.code != http.StatusOK || r.payment().Status != "CANCELLED" {
		t.Fatalf("cancel: %s", r)
	}
	w.sim.forces(t, p.Number)
	w.stays(t, no, "OPEN")
	w.sim.advance(t, 25*time.Hour)
	w.isPaid(t, no)
}

// The service takes no notice for a night. The channel repeats it for a day, and
// every delivery that arrives is taken once.
func longNight(t *testing.T, w *dev) {
	no := newOrder("L10")
	p := w.code(t, no)
	w.sim.disturbs(t, alipay, fault{Operation: "notice", Fault: "lose_response", Times: 1, Number: p.Number})
	w.sim.paysAlipay(t, p.Number)
	before := w.isPaid(t, no)
	for i, gap := range []time.Duration{5 * time.Minute, 10 * time.Minute, 3 * time.Hour, 20 * time.Hour} {
		w.sim.advance(t, gap)
		if got := w.payment(p.ID); got.UpdatedAt != before.UpdatedAt {
			t.Errorf("repetition %d changed the payment", i)
		}
	}
	told := w.acknowledged(t, p.Number)
	if len(told) != 1 || told[0].Deliveries != 2 {
		t.Errorf("an acknowledged notice went on: %s", fmt.Sprint(told))
	}
	w.paidOnce(t, no)
}
