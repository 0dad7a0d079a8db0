package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// raceDev is the instance of the tests with hundreds of orders: the books that all
// others read stay short.
var raceDev = common(true)

// spread runs f for 0 … n-1, a few at a time.
func spread(n, atATime int, f func(i int)) {
	var wg sync.WaitGroup
	work := make(chan int)
	for range atATime {
		wg.Go(func() {
			for i := range work {
				f(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
}

// rival runs two things at the same instant, each after a small random delay. How
// long the second takes differs between machines; the first one's delay is spread
// over somewhat more than it took the last time, so that either can win.
type rival struct{ took atomic.Int64 }

func (r *rival) race(random *rand.Rand, first, second func()) {
	most := max(r.took.Load()*5/4, int64(4*time.Millisecond))
	var wg sync.WaitGroup
	wg.Go(func() { pace(time.Duration(random.Int64N(most))); first() })
	wg.Go(func() {
		pace(time.Duration(random.Int64N(int64(4 * time.Millisecond))))
		began := time.Now()
		second()
		r.took.Store(int64(time.Since(began)))
	})
	wg.Wait()
}

// Two hundred payers pay in the instant in which their payment is cancelled, their
// order closed, or another way chosen; some codes were scanned before, some not.
// On the books each order is exactly one of: closed and not charged, or charged
// with a success of ours that is effective or surplus.
func TestT01_C10_TwoHundredRaces(t *testing.T) {
	t.Parallel()
	w := useDev(t, raceDev)
	const races = 200
	nos, acts := make([]string, races), make([]string, races)
	before := make([]payment, races)
	var run rival
	spread(races, 8, func(i int) {
		nos[i], acts[i] = newOrder("T01"), []string{"cancel", "close", "switch"}[i%3]
		before[i] = w.code(t, nos[i])
		scanned := i%4 != 3
		if scanned {
			w.sim.scans(t, before[i].Number)
		}
		run.race(rand.New(rand.NewPCG(1, uint64(i))), func() { w.sim.does(alipay, before[i].Number, "paid", nil) }, func() {
			switch acts[i] {
			case "cancel":
				w.cancel(before[i].ID)
			case "close":
				w.closeOrder(nos[i])
			case "switch":
				notFailed(t, w.pay(cardCNY(nos[i], visa)))
			}
		})
	})
	ends, open := map[string]int{}, map[int]string{}
	for i := range races {
		open[i] = ""
	}
	poll(soon, func() bool {
		b := w.sim.books(t)
		for i := range open {
			open[i] = w.ending(t, b, nos[i], before[i], acts[i])
			if open[i][0] != '?' {
				ends[acts[i]+": "+open[i]]++
				delete(open, i)
			}
		}
		return len(open) == 0
	})
	for i, end := range open {
		t.Errorf("%s, %s: %s: %s", nos[i], acts[i], end, w.get("/v1/orders/"+nos[i]))
	}
	t.Logf("%v", ends)
	if len(ends) < 4 {
		t.Errorf("the races ended in too few ways: %v", ends)
	}
}

// ending compares an order's end with the books; what begins with ? is none.
func (w *world) ending(t testing.TB, b books, no string, first payment, act string) string {
	all := b.of(w.numbers(no)...)
	took, old := 0, "?"
	for _, c := range all {
		if c.took() {
			took++
		}
		if c.Number == first.Number {
			old = c.Status
		}
	}
	o := w.order(no)
	effective, succeeded := 0, 0
	for _, p := range o.Payments {
		if p.Effective {
			effective++
		}
		if p.Status == "SUCCEEDED" {
			succeeded++
		}
	}
	switch {
	case took > 1:
		t.Errorf("%s is charged %d times: %+v", no, took, all)
		return "charged twice"
	case took == 1 && succeeded == 1 && o.Status == "PAID" && effective == 1 && o.AmountPaid == 1000 && o.AmountSurplus == 0:
		return "charged, " + map[bool]string{true: "by the code", false: "by the card"}[old == "paid"]
	case took == 1 && succeeded == 1 && effective == 0 && o.AmountSurplus == 1000:
		return "charged, surplus of " + o.Status
	case took == 0 && old == "closed" && succeeded == 0 && w.payment(first.ID).Status == "CANCELLED" &&
		(act == "cancel" && o.Status == "OPEN" || act == "close" && o.Status == "CLOSED"):
		return "closed, not charged"
	}
	return fmt.Sprintf("? %d charges, the code is %s, %d successes, %d effective", took, old, succeeded, effective)
}

// Two hundred orders whose payers' success is told, asked for and answered at the
// same time: two hundred orders paid, two hundred charges.
func TestW02_C06_TwoHundredOrders(t *testing.T) {
	t.Parallel()
	w := useDev(t, raceDev)
	const orders = 200
	nos := make([]string, orders)
	var run rival
	spread(orders, 8, func(i int) {
		random := rand.New(rand.NewPCG(2, uint64(i)))
		nos[i] = newOrder("W02")
		number := w.number(nos[i], 1)
		if i%2 == 0 {
			delay := fault{Operation: "notice", Fault: "late", DelayMS: 1 + int64(random.IntN(30)), Times: 1, Number: number}
			if i%4 == 0 {
				delay = fault{Operation: "confirm", Fault: "before_response", Times: 1, Number: number}
			}
			w.sim.disturbs(t, "stripe", delay)
			notFailed(t, w.pay(cardCNY(nos[i], visa)))
			return
		}
		p := w.code(t, nos[i])
		run.race(random, func() { w.sim.paysAlipay(t, number) }, func() { w.sync(p.ID) })
	})
	spread(orders, 8, func(i int) {
		if !poll(soon, func() bool { return w.order(nos[i]).Status == "PAID" }) {
			t.Errorf("not paid: %s", w.get("/v1/orders/"+nos[i]))
		}
	})
	b := w.sim.books(t)
	for _, no := range nos {
		if took := b.taken(w.numbers(no)...); len(took) != 1 {
			t.Errorf("order %s: charges %+v", no, took)
		}
		if n := b.calls("confirm", w.numbers(no)...); n > 1 {
			t.Errorf("order %s: %d confirms", no, n)
		}
		if o := w.order(no); len(o.Payments) != 1 || o.AmountPaid != 1000 || o.AmountSurplus != 0 {
			t.Errorf("order %+v", o)
		}
	}
}

// Customer service cancels, a job asks, the payer pays and a repeated notice
// arrives, all in one instant and several times: one transition, the same for all.
func TestA08_EverybodyAtACode(t *testing.T) {
	t.Parallel()
	w := steady(t)
	for round := range 6 {
		no := newOrder("A08")
		p := w.scanned(t, no)
		rs := together(12, func(i int) resp {
			switch i % 6 {
			case 0:
				return w.cancel(p.ID)
			case 1:
				return w.sync(p.ID)
			case 2:
				return w.sim.does(alipay, p.Number, "paid", nil)
			case 3:
				return w.sim.do(request{method: "POST", path: "/_sim/notices/resend", body: map[string]string{"number": p.Number}, noAuth: true})
			case 4:
				return w.pay(qr(no))
			}
			return w.get("/v1/payments/" + p.ID)
		})
		for _, r := range rs {
			if r.err != nil || r.code >= 500 {
				t.Errorf("round %d: %s", round, r)
			}
			notFailed(t, r)
		}
		took := len(w.taken(t, no))
		until(t, soon, "the first attempt has ended as the books say", func() bool {
			want := map[int]string{0: "CANCELLED", 1: "SUCCEEDED"}[took]
			return w.payment(p.ID).Status == want
		})
		if took == 1 {
			w.isPaid(t, no)
			w.sim.resends(t, p.Number)
			w.acknowledged(t, p.Number)
		} else if r := w.sim.does(alipay, p.Number, "paid", nil); r.code != http.StatusConflict {
			t.Errorf("round %d: a cancelled payment can be paid: %s", round, r)
		}
	}
}
