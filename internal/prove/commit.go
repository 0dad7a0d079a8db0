package prove

import (
	"context"
	"slices"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// committed looks at one transaction: what was before, what is now.
func (w *world) committed(before, after *store.OrderWithPayments) {
	old := map[string]*payonce.Payment{}
	closed := false
	if before != nil {
		closed = before.Order.Status == payonce.OrderClosed
		for _, p := range before.Payments {
			old[p.ID] = p
		}
	}
	if closed && after.Order.Status != payonce.OrderClosed {
		w.fail("order-never-reopened", "a closed order became %s", after.Order.Status)
	}
	w.sums(after)
	for _, p := range after.Payments {
		if q := old[p.ID]; q != nil {
			w.changed(after.Order, q, p)
		} else {
			w.added(after, p)
		}
		if w.shown[p.Number] == nil && after.Order.Shows(p, w.now) != nil {
			w.shown[p.Number] = p
			w.shownList = append(w.shownList, p.Number)
		}
	}
}

// sums: what the order says is what its payments say (I01, I02).
func (w *world) sums(o *store.OrderWithPayments) {
	var paid, reserved payonce.Amount
	effective := map[string]int{}
	for _, p := range o.Payments {
		if p.Effective {
			paid += p.Amount
			effective[p.Part]++
		}
		if p.Status.Live() && !p.Superseded {
			reserved += p.Amount
		}
		if effective[p.Part] > 1 {
			w.fail("I01-one-effective", "part %q has two effective payments", p.Part)
		}
	}
	if paid != o.Order.AmountPaid || reserved != o.Order.Reserved || paid > o.Order.Amount {
		w.fail("I01-sums", "paid %d, the payments say %d; reserved %d, the payments say %d; of %d", o.Order.AmountPaid, paid, o.Order.Reserved, reserved, o.Order.Amount)
	}
}

// changed: a permit is given only while the order takes the payment; an end has
// evidence and nothing on the channel's books against it; a success stays.
func (w *world) changed(o *payonce.Order, before, p *payonce.Payment) {
	if before.Status == payonce.Succeeded && p.Status != payonce.Succeeded {
		w.fail("I07-success-stays", "%s went from SUCCEEDED to %s", p.Number, p.Status)
	}
	if len(p.Permits) > len(before.Permits) {
		open := o.Status == payonce.OrderOpen || o.Status == payonce.OrderPartiallyPaid
		past := !o.ExpiresAt.IsZero() && !w.now.Before(o.ExpiresAt) || !w.now.Before(p.DeadAt)
		if !open || past || p.Superseded || before.GivenUp || before.CloseKey > 0 || before.ChargeCount > 0 || before.Effective {
			w.fail("permit-only-while-allowed", "permit %d of %s: order %s, superseded %v, given up %v, closes %d, charges %d, past its end %v",
				len(p.Permits), p.Number, o.Status, p.Superseded, before.GivenUp, before.CloseKey, before.ChargeCount, past)
		}
		if len(p.Permits) > 1 {
			w.reached["sent again"] = true
		}
	}
	if before.Status == p.Status {
		return
	}
	w.reached[string(before.Status)+" to "+string(p.Status)] = true
	if p.Status == payonce.Failed || p.Status == payonce.Cancelled {
		if w.charged(p.Number, false) {
			w.fail("I05-no-end-while-charged", "%s became %s, and its channel has taken the money", p.Number, p.Status)
		}
		w.harmless(p)
	}
}

// harmless: an end that rests on sends without effect has none that may have had
// one.
func (w *world) harmless(p *payonce.Payment) {
	evidence, err := w.books.Evidence(context.Background(), scope, p.ID)
	i := slices.IndexFunc(evidence, func(e store.Evidence) bool { return e.ID == p.EvidenceID })
	if err != nil || i < 0 {
		w.fail("I05-evidence", "%s became %s without evidence of its own", p.Number, p.Status)
		return
	}
	if kind := evidence[i].Kind; kind != "refused" && kind != "never-sent" {
		return
	}
	for _, m := range p.Permits {
		if m.End != payonce.EndRefused && m.End != payonce.EndNotSent {
			w.fail("I05-every-send-harmless", "%s became %s on %q, and permit %d ended %q", p.Number, p.Status, evidence[i].Kind, m.No, m.End)
		}
	}
}

// added: an attempt starts only when every older one of its part is closed at its
// channel (I13).
func (w *world) added(o *store.OrderWithPayments, p *payonce.Payment) {
	if p.Method == "page" {
		w.forms[p.Number] = true
	}
	for _, q := range o.Payments {
		if q == p || q.Part != p.Part {
			continue
		}
		w.reached["switched"] = true
		open := w.codes.payable(q.Number, q.DeadAt)
		for _, x := range w.cards.objects {
			open = open || x.number == q.Number && x.state == "action"
		}
		if open || q.Status.Live() && !q.Superseded {
			w.fail("I13-closed-before-switched", "%s starts while %s (%s) can still be paid", p.Number, q.Number, q.Status)
		}
	}
}
