package payonce_test

import (
	"reflect"
	"testing"

	"github.com/payonce/payonce"
)

var orderStatuses = []payonce.OrderStatus{payonce.OrderOpen, payonce.OrderPartiallyPaid, payonce.OrderPaid, payonce.OrderClosing, payonce.OrderClosed}

// unsent is what the books have to say so that nothing of p can have had an
// effect, judged by the tests themselves.
func unsent(p *payonce.Payment) bool {
	for _, permit := range p.Permits {
		if permit.End != payonce.EndRefused && permit.End != payonce.EndNotSent {
			return false
		}
	}
	existsUnprepared := p.Seen && p.ObjectID == ""
	return !p.Accepted && !p.HandedOut && p.ChargeCount == 0 && !existsUnprepared && p.Status != payonce.Pending
}

// takes is whether the order still takes p, judged by the tests themselves.
func takes(a *payonce.Aggregate, p *payonce.Payment) bool {
	o := a.Order
	open := o.Status == payonce.OrderOpen || o.Status == payonce.OrderPartiallyPaid
	inTime := (o.ExpiresAt.IsZero() || a.Now.Before(o.ExpiresAt)) && (p.DeadAt.IsZero() || a.Now.Before(p.DeadAt))
	return open && inTime && !p.Superseded && !p.GivenUp && !p.Declined && p.ChargeCount == 0
}

// mayBegin is whether p may be prepared or sent without a question.
func mayBegin(a *payonce.Aggregate, p *payonce.Payment) bool {
	switch p.Status {
	case payonce.Created:
		return takes(a, p)
	case payonce.Processing, payonce.Unknown:
		return takes(a, p) && unsent(p)
	}
	return false
}

// TestPermit_EveryCombination: a permit, or the right to prepare, is given only
// where each single condition of the design holds.
func TestPermit_EveryCombination(t *testing.T) {
	given := map[payonce.PaymentStatus]int{}
	for _, from := range states {
		for _, order := range orderStatuses {
			for _, book := range books {
				for bits := range 1 << 11 {
					a, p := rightScene(from, order, book, bits)
					if permitted(t, a, p) {
						given[from]++
					}
				}
			}
		}
	}
	for _, from := range states {
		if may := from == payonce.Created || from == payonce.Processing || from == payonce.Unknown; may != (given[from] > 0) {
			t.Errorf("%d permits were given in %s", given[from], from)
		}
	}
}

// rightScene makes a payment in any state, with one bit for each condition.
func rightScene(from payonce.PaymentStatus, order payonce.OrderStatus, book []payonce.PermitEnd, bits int) (*payonce.Aggregate, *payonce.Payment) {
	bit := func(i int) bool { return bits&(1<<i) != 0 }
	a := newOrder(payonce.PolicySplit, 200)
	p := newPayment(a, 1, "a", 100)
	p.Status, p.Fence, p.Version = from, 1, 1
	p.Superseded, p.GivenUp, p.Declined, p.Accepted, p.HandedOut, p.Seen = bit(0), bit(1), bit(2), bit(3), bit(4), bit(5)
	a.Payments, a.Order.Status = append(a.Payments, p), order
	for i, end := range book {
		p.Permits = append(p.Permits, payonce.Permit{No: i + 1, Fence: 1, GivenAt: a.Now, End: end})
	}
	if bit(6) {
		a.Order.ExpiresAt = a.Now
	}
	if bit(7) {
		p.DeadAt = a.Now
	}
	if bit(8) {
		p.ChargeCount = 1
	}
	if bit(9) {
		p.ObjectID = "obj"
	}
	if bit(10) {
		p.Prepares = 1
	}
	return a, p
}

// permitted asks for both rights and compares them with the conditions.
func permitted(t *testing.T, a *payonce.Aggregate, p *payonce.Payment) bool {
	t.Helper()
	want, from := mayBegin(a, p), *p
	if a.MayCharge(p) != want {
		t.Fatalf("MayCharge is %t in %s: %+v", !want, a.Order.Status, from)
	}
	q, b := *p, *a
	if err := b.Prepare(&q, lease()); (err == nil) != (want && p.ObjectID == "") {
		t.Fatalf("prepare: %v in %s: %+v", err, a.Order.Status, from)
	}
	got, err := a.Permit(p, lease())
	if noObject := p.Prepares > 0 && p.ObjectID == ""; (err == nil) != (want && !noObject) {
		t.Fatalf("permit: %v in %s: %+v", err, a.Order.Status, from)
	}
	if err == nil {
		isNext(t, &from, p, got)
	} else if p.Fence != from.Fence || p.Version != from.Version || len(p.Permits) != len(from.Permits) || p.Status != from.Status || p.LeaseOwner != "" {
		t.Fatalf("a refused permit changed the payment: %+v", p)
	}
	return err == nil
}

// isNext: a permit is the next one, under a new fence, and its payment held.
func isNext(t interface {
	Helper()
	Fatalf(string, ...any)
}, from, p *payonce.Payment, got payonce.Permit) {
	t.Helper()
	if got.Fence <= from.Fence || got.Fence != p.Fence || got.No != len(from.Permits)+1 || len(p.Permits) != got.No || *p.LastPermit() != got ||
		got.End != payonce.EndOpen || p.Status != payonce.Processing || p.Version <= from.Version || p.SendKey < 1 || p.LeaseOwner != lease().Owner {
		t.Fatalf("not the next permit: %+v of %+v", got, p)
	}
}

// TestClose_EveryCombination: only a live number that was shown to exist is closed;
// then its end is decided and old rights are over.
func TestClose_EveryCombination(t *testing.T) {
	for _, from := range states {
		for bits := range 16 {
			for _, key := range []int{0, 1, 3} {
				bit := func(i int) bool { return bits&(1<<i) != 0 }
				a := newOrder(payonce.PolicySplit, 200)
				p := newPayment(a, 1, "a", 100)
				p.Status, p.Fence, p.Version, p.CloseKey = from, 4, 2, key
				p.Seen, p.GivenUp, p.Superseded = bit(0), bit(1), bit(2)
				if bit(3) {
					p.ObjectID = "obj"
				}
				want, before := from.Live() && (bit(0) || bit(3)), *p
				err := a.Close(p, lease())
				if (err == nil) != want {
					t.Fatalf("close: %v; %+v", err, before)
				}
				if err != nil {
					if !reflect.DeepEqual(*p, before) {
						t.Fatalf("a refused close changed %+v to %+v", before, p)
					}
					continue
				}
				if !p.GivenUp || p.Status != from || p.Fence <= before.Fence || p.Version <= before.Version || p.CloseKey != max(key, 1) || p.LeaseOwner == "" {
					t.Fatalf("not closed: %+v", p)
				}
				if a.MayCharge(p) || a.MayResend(p, absence(p), true, testDedupe) {
					t.Fatalf("sent again after a close: %+v", p)
				}
			}
		}
	}
}
