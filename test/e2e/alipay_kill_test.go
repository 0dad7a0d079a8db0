package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// pointsOf are the failpoints of the named steps.
func pointsOf(t *testing.T, steps ...string) []string {
	t.Helper()
	var list []string
	for _, p := range pointList(t) {
		if name, _, _ := strings.Cut(p, "."); slices.Contains(steps, name) {
			list = append(list, p)
		}
	}
	if len(list) < len(steps) {
		t.Fatalf("failpoints of %v: %v", steps, list)
	}
	return list
}

// dying starts the node so that it dies at a failpoint, makes it go there, waits
// for its death, and starts it as it should be.
func dying(t *testing.T, n *node, point string, act func()) {
	t.Helper()
	if n.proc != nil && n.proc.alive() {
		n.proc.kill()
	}
	if err := n.start("PAYONCE_FAILPOINT=" + point + ":kill"); err != nil {
		t.Fatal(err)
	}
	act()
	n.proc.dies(t, 20*time.Second)
	n.mustStart(t)
}

// atEach runs a story at each failpoint of the steps, each on a node of its own.
func atEach(t *testing.T, steps []string, story func(t *testing.T, w *world, n *node, no, point string)) {
	t.Parallel()
	for _, point := range pointsOf(t, steps...) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, n := bothNode(t, faultBin, theSim(t))
			story(t, w, n, newOrder("killq"), point)
		})
	}
}

// Killed while a code is fetched: the same key gets it (one object at the
// channel), and it is paid once.
func TestT30_F03_CodeKilled(t *testing.T) {
	atEach(t, []string{"t1", "begin", "t2", "commit", "answer"}, func(t *testing.T, w *world, n *node, no, point string) {
		ask := qr(no)
		ask.key = newKey()
		dying(t, n, point, func() { notFailed(t, w.pay(ask)) })
		r := w.retry(t, ask, soon)
		if r.code != http.StatusCreated || r.payment().Status != "PENDING" || r.shown().QRCode == "" || r.payment().Sequence != 1 {
			t.Fatalf("after the restart: %s", r)
		}
		if all := w.sim.books(t).of(w.numbers(no)...); len(all) != 1 {
			t.Errorf("objects on the books: %+v", all)
		}
		w.sim.paysAlipay(t, r.payment().Number)
		w.isPaid(t, no)
	})
}

// Killed while the code is fetched, and the payer has paid it before we know that
// it exists.
func TestT30_A04_CodeKilledAndPaid(t *testing.T) {
	atEach(t, []string{"begin", "t2"}, func(t *testing.T, w *world, n *node, no, point string) {
		ask := qr(no)
		ask.key = newKey()
		w.sim.disturbs(t, alipay, fault{Operation: "create", Fault: "before_response", Times: 1, Number: w.number(no, 1)})
		dying(t, n, point, func() { notFailed(t, w.pay(ask)) })
		r := w.retry(t, ask, soon)
		notFailed(t, r)
		w.isPaid(t, no)
	})
}

// Killed while a notice or a question tells that the code was paid: nothing is
// lost, whoever tells it again.
func TestT30_L05_NoticeKilled(t *testing.T) {
	atEach(t, []string{"apply", "commit"}, func(t *testing.T, w *world, n *node, no, point string) {
		n.mustStart(t)
		p := w.code(t, no)
		dying(t, n, point, func() { w.sim.paysAlipay(t, p.Number) })
		w.isPaid(t, no)
		w.sim.resends(t, p.Number)
		w.acknowledged(t, p.Number)
		w.paidOnce(t, no)
	})
}

// Killed on the way from a scanned code to a card: the code's trade is closed at
// the channel before the card is charged, and one of the two is, once.
func TestT30_A06_SwitchKilled(t *testing.T) {
	steps := []string{"claim", "query", "close", "apply", "t1", "prepare", "object", "begin", "t2", "commit", "answer"}
	atEach(t, steps, func(t *testing.T, w *world, n *node, no, point string) {
		n.mustStart(t)
		old := w.scanned(t, no)
		ask := cardCNY(no, visa)
		ask.key = newKey()
		dying(t, n, point, func() { notFailed(t, w.pay(ask)) })
		r := w.retryUnproven(t, ask)
		if r.code != http.StatusCreated || r.payment().Sequence != 2 {
			t.Errorf("the end: %s", r)
		}
		if c := w.line(t, old.Number); c.Status != "closed" {
			t.Errorf("the old trade is %+v", c)
		}
		w.isPaid(t, no)
		if got := w.payment(old.ID); got.Status != "CANCELLED" {
			t.Errorf("the old payment is %s", got.Status)
		}
	})
}

// retryUnproven is retry for a switch, which is refused while the old attempt may
// still take money.
func (w *world) retryUnproven(t testing.TB, p pay) resp {
	t.Helper()
	var r resp
	until(t, soon, "the switch ends", func() bool {
		r = w.pay(p)
		notFailed(t, r)
		return r.code == http.StatusCreated
	})
	return r
}

// Killed on the way of a switch, and the payer pays the old trade while the
// service is dead: if it still could be paid, the order is paid by it and the card
// is not charged. Never both, never neither.
func TestT30_A06_SwitchKilledAndPaid(t *testing.T) {
	atEach(t, []string{"claim", "query", "close"}, func(t *testing.T, w *world, n *node, no, point string) {
		n.mustStart(t)
		w.mute(t, no)
		old := w.scanned(t, no)
		ask := cardCNY(no, visa)
		ask.key = newKey()
		paid := false
		dying(t, n, point, func() {
			notFailed(t, w.pay(ask))
			<-n.proc.ended
			paid = w.sim.does(alipay, old.Number, "paid", nil).code == http.StatusOK
		})
		var r resp
		until(t, soon, "the switch ends", func() bool {
			r = w.pay(ask)
			notFailed(t, r)
			return r.code == http.StatusCreated || r.problem().Code == "order-already-paid"
		})
		if paid != (r.problem().Code == "order-already-paid") {
			t.Errorf("the old trade was paid: %v, the answer: %s", paid, r)
		}
		w.isPaid(t, no)
	})
}

// Killed while an order is closed: CLOSED in the end and closed at the channel, or
// PAID by the payer who was faster; a payment that is charged is never CANCELLED
// without a record of the money.
func TestT30_T01_OrderCloseKilled(t *testing.T) {
	atEach(t, []string{"claim", "query", "close", "apply", "commit"}, func(t *testing.T, w *world, n *node, no, point string) {
		n.mustStart(t)
		closed, raced := no, newOrder("killr")
		p, q := w.scanned(t, closed), w.scanned(t, raced)
		dying(t, n, point, func() { w.closeOrder(closed) })
		until(t, soon, "the order is closed", func() bool { return w.closeOrder(closed).order().Status == "CLOSED" })
		if got := w.payment(p.ID); got.Status != "CANCELLED" {
			t.Errorf("the payment is %s", got.Status)
		}
		w.notCharged(t, closed)
		w.mute(t, raced)
		paid := false
		dying(t, n, point, func() {
			w.closeOrder(raced)
			<-n.proc.ended
			paid = w.sim.does(alipay, q.Number, "paid", nil).code == http.StatusOK
		})
		if paid {
			w.isPaid(t, raced)
			return
		}
		until(t, soon, "the order is closed", func() bool { return w.closeOrder(raced).order().Status == "CLOSED" })
		w.notCharged(t, raced)
	})
}
