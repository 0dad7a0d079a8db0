package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// provable is the time from which the payment in the way can be proven dead.
func (r resp) provable(t testing.TB) time.Time {
	t.Helper()
	var v struct {
		At *time.Time `json:"provable_at"`
	}
	if err := json.Unmarshal(r.body, &v); err != nil || v.At == nil {
		t.Fatalf("no time: %s", r)
	}
	return *v.At
}

// A code that nobody has scanned cannot be closed at the channel. Another way to
// pay, another product and another amount are refused, with the time from which
// they can be had; the code is paid meanwhile.
func TestA06_N01_UnscannedCodeIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(*dev, string) resp{
		"card": func(w *dev, no string) resp { return w.pay(cardCNY(no, visa)) },
		"page": func(w *dev, no string) resp { return w.pay(page(no)) },
		"amount": func(w *dev, no string) resp {
			return w.post("/v1/orders/"+no+"/amend", map[string]any{"amount": 1200})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, no := steady(t), newOrder("A06")
			p := w.code(t, no)
			for range 2 {
				r := other(w, no)
				if r.code != http.StatusConflict || r.problem().Code != "payment-outcome-unknown" || r.payment().ID != p.ID || r.retryAfter() < 1 {
					t.Fatalf("refusal: %s, Retry-After %d", r, r.retryAfter())
				}
				dead := parseTime(t, *p.DeadAt)
				if at := r.provable(t); at.Before(dead) || at.After(dead.Add(5*time.Minute)) {
					t.Errorf("provable at %v, the code ends at %v", at, dead)
				}
			}
			if o := w.order(no); o.Status != "OPEN" || o.Amount != 1000 || len(o.Payments) != 1 {
				t.Errorf("the order is %+v", o)
			}
			if n := len(w.sim.books(t).of(w.numbers(no)...)); n != 1 {
				t.Errorf("%d objects on the books, want 1", n)
			}
			w.sim.paysAlipay(t, p.Number)
			w.isPaid(t, no)
		})
	}
}

// A trade that waits for its payer is closed at the channel before anything else
// can be paid; the new attempt has a number of its own.
func TestA06_N01_G07_ScannedTradeIsClosedFirst(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(string) pay{
		"card": func(no string) pay { return cardCNY(no, visa) }, "3-D Secure": func(no string) pay { return cardCNY(no, threeDS) }, "page": page,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, no := steady(t), newOrder("A06")
			old := w.scanned(t, no)
			r := w.pay(other(no))
			if r.code != http.StatusCreated || r.payment().Sequence != 2 || r.payment().Number == old.Number {
				t.Fatalf("the other way: %s", r)
			}
			if got := w.payment(old.ID); got.Status != "CANCELLED" {
				t.Errorf("the old payment is %s", got.Status)
			}
			if got := w.line(t, old.Number); got.Status != "closed" {
				t.Errorf("the old trade is %s on the books", got.Status)
			}
			if r := w.sim.does(alipay, old.Number, "paid", nil); r.code != http.StatusConflict {
				t.Errorf("the old trade can be paid: %s", r)
			}
			switch a := r.shown(); a.Type {
			case "form":
				a.open(t)
				w.sim.paysAlipay(t, r.payment().Number)
			case "redirect":
				w.sim.pays(t, r.payment().Number)
			}
			if p := w.isPaid(t, no); p.Sequence != 2 {
				t.Errorf("paid by %+v", p)
			}
		})
	}
}

// The payer was faster than the switch, the close or the change of the amount,
// and nobody has told us: paid wins.
func TestA06_PaidWins(t *testing.T) {
	t.Parallel()
	paid := func(r resp) bool {
		return r.code == http.StatusConflict && r.problem().Code == "order-already-paid" && r.problem().Payment != nil
	}
	for name, c := range map[string]struct {
		do func(*dev, payment) resp
		ok func(resp) bool
	}{
		"switch": {func(w *dev, p payment) resp { return w.pay(cardCNY(p.OrderNo, visa)) }, paid},
		"page":   {func(w *dev, p payment) resp { return w.pay(page(p.OrderNo)) }, paid},
		"amend": {func(w *dev, p payment) resp {
			return w.post("/v1/orders/"+p.OrderNo+"/amend", map[string]any{"amount": 1200})
		}, func(r resp) bool {
			return r.code == http.StatusConflict && r.problem().Code == "order-already-paid"
		}},
		"close":  {func(w *dev, p payment) resp { return w.closeOrder(p.OrderNo) }, func(r resp) bool { return r.code == http.StatusOK && r.order().Status == "PAID" }},
		"cancel": {func(w *dev, p payment) resp { return w.cancel(p.ID) }, func(r resp) bool { return r.code == http.StatusOK && r.payment().Status == "SUCCEEDED" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, no := steady(t), newOrder("A06p")
			w.mute(t, no)
			p := w.code(t, no)
			w.sim.paysAlipay(t, p.Number)
			if r := c.do(w, p); !c.ok(r) {
				t.Errorf("answer: %s", r)
			}
			w.isPaid(t, no)
			if n := w.calls(t, "confirm", no) + w.calls(t, "close", no); n != 0 && name != "close" && name != "cancel" {
				t.Errorf("%d further calls", n)
			}
		})
	}
}

// The close of a scanned trade goes wrong in every way: never two payable things,
// and in the end the switch succeeds.
func TestA06_EveryFaultOfTheClose(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lose_request", "lose_response", "reset_mid_body", "http_500_before", "http_500_after", "html_502", "truncated", "bad_signature",
		"foreign_account", "duplicate:2", "error:ACQ.SYSTEM_ERROR", "error:after:ACQ.SYSTEM_ERROR", "error:20000", "error:ACQ.TRADE_NOT_EXIST", "error:after:ACQ.TRADE_NOT_EXIST",
		"error:ACQ.TRADE_STATUS_ERROR", "error:isv.missing-signature"} {
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s x%d", name, n), func(t *testing.T) {
				t.Parallel()
				w, no := steady(t), newOrder("A06f")
				old := w.scanned(t, no)
				w.spoils(t, no, "close", name, n)
				ask := cardCNY(no, visa)
				ask.key = newKey()
				until(t, soon, "the switch succeeds", func() bool {
					r := w.pay(ask)
					notFailed(t, r)
					if r.code != http.StatusCreated && r.problem().Code != "payment-outcome-unknown" {
						t.Fatalf("switch: %s", r)
					}
					if r.code == http.StatusCreated && w.line(t, old.Number).Status != "closed" {
						t.Fatalf("switched before the old trade was closed: %+v", w.line(t, old.Number))
					}
					return r.code == http.StatusCreated
				})
				if p := w.isPaid(t, no); p.Sequence != 2 {
					t.Errorf("paid by %+v", p)
				}
			})
		}
	}
}

// The order is closed while a code that nobody scanned is out: CLOSING, no code
// is shown, nothing new begins, and who pays the code all the same has paid.
func TestD05_T01_ClosingPaidAfterAll(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D05q")
	p := w.code(t, no)
	if r := w.closeOrder(no); r.code != http.StatusAccepted || r.order().Status != "CLOSING" {
		t.Fatalf("close: %s", r)
	}
	for _, ask := range []pay{qr(no), cardCNY(no, visa)} {
		if r := w.pay(ask); r.code != http.StatusConflict || r.problem().Code != "order-closed" {
			t.Errorf("a new payment: %s", r)
		}
	}
	w.sim.paysAlipay(t, p.Number)
	w.isPaid(t, no)
	if r := w.closeOrder(no); r.code != http.StatusOK || r.order().Status != "PAID" {
		t.Errorf("close again: %s", r)
	}
}

// The same, and the payer only scans: the worker closes the trade at once, the
// order follows.
func TestD05_ClosingScannedAfterAll(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("D05s")
	p := w.code(t, no)
	if r := w.closeOrder(no); r.code != http.StatusAccepted || r.order().Status != "CLOSING" {
		t.Fatalf("close: %s", r)
	}
	w.sim.scans(t, p.Number)
	until(t, soon, "the order is closed", func() bool { return w.order(no).Status == "CLOSED" })
	if got := w.payment(p.ID); got.Status != "CANCELLED" {
		t.Errorf("the payment is %s", got.Status)
	}
	w.notCharged(t, no)
}

// A cancelled payment whose code nobody scanned ends as soon as it can be ended,
// and is paid when its payer was faster.
func TestD04_CancelledBeforeTheScan(t *testing.T) {
	t.Parallel()
	for _, outcome := range []string{"scanned", "paid"} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			w, no := steady(t), newOrder("D04q")
			p := w.code(t, no)
			if r := w.cancel(p.ID); r.code != http.StatusAccepted || r.payment().Status != "PENDING" || r.shown().Type != "none" {
				t.Fatalf("cancel: %s", r)
			}
			w.sim.acts(t, p.Number, outcome)
			if outcome == "paid" {
				w.isPaid(t, no)
				return
			}
			w.until(t, p.ID, soon, "CANCELLED")
			w.notCharged(t, no)
			w.stays(t, no, "OPEN")
		})
	}
}

// Money for an order that is closed: surplus, and its state does not change. The
// channel's notice or a question tells.
func TestA07_T02_LateMoneyOnAClosedOrder(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("told %v", told), func(t *testing.T) {
			t.Parallel()
			w, no := steady(t), newOrder("T02")
			unmute := func() {}
			if !told {
				unmute = w.mute(t, no)
			}
			p := w.scanned(t, no)
			if r := w.closeOrder(no); r.code != http.StatusOK || r.order().Status != "CLOSED" {
				t.Fatalf("close: %s", r)
			}
			w.sim.forces(t, p.Number)
			if !told {
				// It has ended: its last question comes a day later, or with a notice.
				w.stays(t, no, "CLOSED")
				unmute()
				w.sim.resends(t, p.Number)
			}
			w.surplusOnly(t, no, 1000)
			w.sim.resends(t, p.Number)
			w.acknowledged(t, p.Number)
			w.surplusOnly(t, no, 1000)
			if got := w.payment(p.ID); got.Status != "SUCCEEDED" || got.Effective {
				t.Errorf("the payment is %+v", got)
			}
			checkout := &api{base: *w.order(no).CheckoutURL}
			if r := checkout.get(""); r.code != http.StatusOK {
				t.Errorf("the page: %s", r)
			}
		})
	}
}

// An old code is paid although its attempt was closed, while a new attempt at
// another channel waits: the first money pays the order, the attempt that waits
// is closed at its channel.
func TestC10_OldTabPays(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("C10")
	old := w.scanned(t, no)
	fresh := w.pay(cardCNY(no, threeDS)).payment()
	if fresh.Status != "PENDING" || fresh.Sequence != 2 {
		t.Fatalf("no second attempt: %+v", fresh)
	}
	w.sim.forces(t, old.Number)
	w.isPaid(t, no)
	w.until(t, fresh.ID, soon, "CANCELLED")
	if r := w.payer(fresh.Number); r.code != http.StatusConflict {
		t.Errorf("the attempt that lost can be paid: %s", r)
	}
	if p := w.paidOnce(t, no); p.ID != old.ID {
		t.Errorf("paid by %s, want %s", p.ID, old.ID)
	}
}

// Attempts at two channels are paid at the same instant: the order is paid once,
// the other success is surplus, and both channels hear that we know.
func TestC01_A07_C06_TwoChannelsPaid(t *testing.T) {
	t.Parallel()
	for i := range 6 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w, no := steady(t), newOrder("C01")
			old := w.scanned(t, no)
			fresh := w.pay(cardCNY(no, threeDS)).payment()
			if fresh.Status != "PENDING" {
				t.Fatalf("no second attempt: %+v", fresh)
			}
			unmute := func() {}
			if i%3 == 2 { // the second success is told much later than the first
				unmute = w.mute(t, no)
			}
			together(2, func(k int) resp {
				if k == i%2 {
					return w.sim.does("stripe", fresh.Number, "paid", map[string]any{"force": true})
				}
				return w.sim.does(alipay, old.Number, "paid", map[string]any{"force": true})
			})
			if i%3 == 2 {
				w.until(t, fresh.ID, soon, "SUCCEEDED")
				w.stays(t, no, "PAID")
				unmute()
				w.sim.resends(t, old.Number)
			}
			w.paidAndSurplus(t, no)
			w.acknowledged(t, old.Number)
			w.acknowledged(t, fresh.Number)
			w.sim.resends(t, old.Number)
			w.sim.resends(t, fresh.Number)
			w.paidAndSurplus(t, no)
		})
	}
}

// The payer moves on and back ten times: at no time more than one open object of
// the order is on the channels' books.
func TestN04_ForthAndBack(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("N04")
	for i := range 10 {
		r := w.pay([]pay{qr(no), page(no)}[i%2])
		if r.code != http.StatusCreated || r.payment().Sequence != i+1 {
			t.Fatalf("step %d: %s", i, r)
		}
		if a := r.shown(); a.Type == "form" {
			a.open(t)
		}
		w.sim.scans(t, r.payment().Number)
		open := 0
		for _, c := range w.sim.books(t).Charges {
			for seq := 1; seq <= 10; seq++ {
				if c.Number == w.number(no, seq) && c.Status != "closed" {
					open++
				}
			}
		}
		if open != 1 {
			t.Fatalf("step %d: %d open objects", i, open)
		}
	}
}

// A changed amount closes the trade with the old one first.
func TestA08_D06_AmendWithALiveCode(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("A08")
	old := w.scanned(t, no)
	if r := w.post("/v1/orders/"+no+"/amend", map[string]any{"amount": 1300}); r.code != http.StatusOK || r.order().Amount != 1300 {
		t.Fatalf("amend: %s", r)
	}
	if got := w.line(t, old.Number); got.Status != "closed" {
		t.Errorf("the old trade is %s", got.Status)
	}
	if r := w.pay(qr(no)); r.code != http.StatusConflict || r.problem().Code != "order-mismatch" {
		t.Errorf("the old amount: %s", r)
	}
	fresh := qr(no)
	fresh.amount = 1300
	p := w.waits(t, fresh)
	w.sim.paysAlipay(t, p.Number)
	if got := w.isPaid(t, no); got.Amount != 1300 || got.Sequence != 2 {
		t.Errorf("paid by %+v", got)
	}
	// The old one's money comes all the same: it never pays an order of another amount.
	w.sim.forces(t, old.Number)
	until(t, soon, "the surplus is recorded", func() bool { return w.order(no).AmountSurplus == 1000 })
}
