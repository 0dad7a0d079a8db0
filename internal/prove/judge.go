package prove

import (
	"context"
	"slices"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// judge compares the channels' books with ours after the ladder has had its time.
func (w *world) judge() {
	o := w.order()
	charges := w.books.Charges(w.orders[0])
	w.judgeMoney(o, charges)
	w.judgeParts(o)
	w.judgeStates(o)
	w.judgeEvents(o)
}

// judgeMoney: every charge of a channel is ours, once, and nothing else is (I08,
// I12, I14).
func (w *world) judgeMoney(o *store.OrderWithPayments, charges []payonce.Charge) {
	var effective, surplus, took payonce.Amount
	for _, t := range w.money {
		took += t.amount
		same := func(c payonce.Charge) bool { return c.Account == t.account && c.PaymentRef == t.ref }
		i := slices.IndexFunc(charges, same)
		if i < 0 {
			w.fail("I14-no-charge-unrecorded", "%s took %d under %s (late %v), and no row says so", t.account, t.amount, t.number, t.late)
			continue
		}
		p := w.payment(charges[i].PaymentID)
		if p == nil || p.Number != t.number || charges[i].Amount != t.amount {
			w.fail("I06-charge-of-its-payment", "%s of %s is stored as a charge of %v over %d", t.ref, t.number, p, charges[i].Amount)
		} else if p.Status != payonce.Succeeded {
			w.fail("I08-charged-is-succeeded", "%s was charged and is %s", t.number, p.Status)
		}
	}
	for _, c := range charges {
		switch c.Kind {
		case payonce.ChargeEffective:
			effective += c.Amount
		case payonce.ChargeSurplus:
			surplus += c.Amount
		}
	}
	if len(charges) > len(w.money) || effective+surplus != took && len(charges) == len(w.money) {
		w.fail("I14-no-charge-invented", "%d charges are stored and %d were made", len(charges), len(w.money))
	}
	if effective != o.Order.AmountPaid || surplus != o.Order.AmountSurplus {
		w.fail("I12-late-money-counts", "effective %d, paid %d; surplus %d, the order says %d", effective, o.Order.AmountPaid, surplus, o.Order.AmountSurplus)
	}
	if o.Order.Status == payonce.OrderPaid && len(charges) == 0 {
		w.fail("I06-paid-by-money", "the order is paid and nothing was charged")
	}
}

// judgeParts: without a channel that takes money late, a part is charged once, and
// a charge that came in time pays.
func (w *world) judgeParts(o *store.OrderWithPayments) {
	inTime, late := map[string]int{}, map[string]int{}
	effective := map[string]bool{}
	for _, p := range o.Payments {
		for _, t := range w.money {
			switch {
			case t.number != p.Number:
			case t.late:
				late[p.Part]++
			default:
				inTime[p.Part]++
			}
		}
		effective[p.Part] = effective[p.Part] || p.Effective
	}
	for part, n := range inTime {
		if n > 1 {
			w.fail("I13-one-charge-in-time", "part %q was charged %d times, and no channel was late", part, n)
		}
		if n > 0 && late[part] == 0 && !effective[part] && !w.amended {
			w.fail("I12-in-time-pays", "part %q was charged in time and is not paid; the order is %s", part, o.Order.Status)
		}
	}
	for part, n := range late {
		if n > 0 && !effective[part] && o.Order.Status != payonce.OrderClosed && !w.amended {
			w.fail("I12-late-money-pays", "part %q was charged late, nothing else paid it, and the order is %s", part, o.Order.Status)
		}
	}
}

// judgeStates: nothing is left in the air, and every end has its evidence (I05, I06,
// I21).
func (w *world) judgeStates(o *store.OrderWithPayments) {
	for _, p := range o.Payments {
		if p.Status.Live() {
			w.fail("I21-nothing-left", "%s is still %s (%s), due %v, lease %q", p.Number, p.Status, p.UnknownReason, p.DueAt.Sub(w.now), p.LeaseOwner)
			continue
		}
		evidence, err := w.books.Evidence(context.Background(), scope, p.ID)
		i := slices.IndexFunc(evidence, func(e store.Evidence) bool { return e.ID == p.EvidenceID })
		if err != nil || i < 0 || evidence[i].Number != p.Number {
			w.fail("I05-evidence", "%s is %s without evidence of its own", p.Number, p.Status)
		} else if p.Status == payonce.Succeeded && evidence[i].Kind != "settled" {
			w.fail("I06-evidence-of-success", "%s succeeded by %q", p.Number, evidence[i].Kind)
		}
	}
	if s := o.Order.Status; s == payonce.OrderClosing || o.Order.Reserved != 0 {
		w.fail("I21-order-ends", "the order is %s, reserved %d", s, o.Order.Reserved)
	}
	if x := o.Order.ExpiresAt; !x.IsZero() && w.now.After(x) && o.Order.Status == payonce.OrderOpen {
		w.fail("I21-order-expires", "the order is past its end and OPEN")
	}
}

// judgeEvents: what happened was announced, once (I15, I16). The store itself
// refuses an event twice.
func (w *world) judgeEvents(o *store.OrderWithPayments) {
	seen := map[string]int{}
	for _, e := range w.books.Events() {
		seen[e.Type+" "+e.Subject]++
	}
	for _, p := range o.Payments {
		done := seen["payment.succeeded "+p.ID] + seen["payment.surplus "+p.ID]
		want := map[payonce.PaymentStatus]bool{
			payonce.Succeeded: done == p.ChargeCount && done > 0,
			payonce.Failed:    seen["payment.failed "+p.ID] > 0,
			payonce.Cancelled: seen["payment.cancelled "+p.ID] == 1,
		}
		if ok, final := want[p.Status]; final && !ok {
			w.fail("I15-announced", "%s is %s and the outbox has %v", p.Number, p.Status, seen)
		}
	}
	paid, closed := seen["order.paid "+o.Order.ID], seen["order.closed "+o.Order.ID]
	if paid > 1 || closed > 1 || (paid == 1) != (o.Order.Status == payonce.OrderPaid) || (closed == 1) != (o.Order.Status == payonce.OrderClosed) {
		w.fail("I16-order-once", "the order is %s, paid %d and closed %d times announced", o.Order.Status, paid, closed)
	}
	audit, err := w.books.Audit(context.Background(), o.Order.ID)
	var head [32]byte
	for i := range audit {
		if !payonce.VerifyAudit(head, audit[i].Salt, &audit[i].AuditEntry) {
			w.fail("audit-chain", "entry %d does not verify", audit[i].N)
		}
		head = audit[i].Hash
	}
	if err != nil || head != o.Order.AuditHead {
		w.fail("audit-chain", "the head is not the last entry: %v", err)
	}
}
