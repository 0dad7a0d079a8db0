package payonce_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/payonce/payonce"
)

// TestAmend_EveryCombination: the amount changes only while the order is OPEN and
// in time, nothing is paid and nothing may take money, superseded or not.
func TestAmend_EveryCombination(t *testing.T) {
	amended := 0
	for _, status := range orderStatuses {
		for _, end := range []time.Time{{}, t0.Add(1), t0, t0.Add(-time.Hour)} {
			for _, attempt := range append(states, "") {
				for bits := range 8 {
					superseded, paid, subject := bits&1 != 0, bits&2 != 0, ""
					if bits&4 != 0 {
						subject = "new"
					}
					for _, amount := range []payonce.Amount{-1, 0, 1, 100, 250, payonce.MaxAmount, payonce.MaxAmount + 1} {
						a := newOrder(payonce.PolicySplit, 100)
						o := a.Order
						o.Status, o.ExpiresAt, o.Subject = status, end, "old"
						if attempt != "" {
							p := newPayment(a, 1, "a", 60)
							p.Status, p.Superseded = attempt, superseded
							a.Payments = append(a.Payments, p)
						}
						if paid {
							o.AmountPaid = 60
						}
						inTime := end.IsZero() || t0.Before(end)
						var want error
						switch {
						case status != payonce.OrderOpen || paid || !inTime:
							want = payonce.ErrNotChargeable
						case attempt.Live():
							want = payonce.ErrSlotTaken
						case amount < 1 || amount > payonce.MaxAmount:
							want = payonce.ErrNotFitting
						}
						if amend(t, a, amount, subject, want) {
							amended++
						}
					}
				}
			}
		}
	}
	if amended == 0 {
		t.Error("no order was ever amended")
	}
}

// amend compares what Amend answers and changes with what it must.
func amend(t *testing.T, a *payonce.Aggregate, amount payonce.Amount, subject string, want error) bool {
	t.Helper()
	before, changes := *a.Order, len(a.Changes)
	if err := a.Amend(amount, subject); err != want {
		t.Fatalf("amend to %d: %v, must be %v: %+v", amount, err, want, before)
	}
	after := before
	if want == nil {
		after.Amount, after.UpdatedAt = amount, a.Now
		if subject != "" {
			after.Subject = subject
		}
		changes++
	}
	if !reflect.DeepEqual(*a.Order, after) || len(a.Changes) != changes || len(a.Events) != 0 {
		t.Fatalf("amend changed %+v to %+v, %d changes", before, *a.Order, len(a.Changes))
	}
	if want == nil {
		if c := a.Changes[changes-1]; c.PaymentID != "" || c.Cause != "amended" || c.From != c.To {
			t.Fatalf("the audit trail says %+v", c)
		}
	}
	return want == nil
}

// TestR07_LateSuccessAfterAmendIsSurplus: the success of an attempt that was made
// for another amount does not pay the amended order, which can still be paid.
func TestR07_LateSuccessAfterAmendIsSurplus(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	old := sent(a, 1)
	apply(a, old, payonce.StateDead)
	must(a.Amend(120, ""))
	next := sent(a, 2)
	if v := apply2(a, old, payonce.StateSettled, "notice"); v.Alarm != payonce.AlarmSurplus || old.Effective || next.Superseded {
		t.Fatalf("%q, effective %t, superseded %t", v.Alarm, old.Effective, next.Superseded)
	}
	whole(t, a)
	apply(a, next, payonce.StateSettled)
	if !next.Effective || a.Order.Status != payonce.OrderPaid || a.Order.AmountSurplus != 100 || a.Order.AmountPaid != 120 {
		t.Fatalf("%s, paid %d, surplus %d", a.Order.Status, a.Order.AmountPaid, a.Order.AmountSurplus)
	}
	whole(t, a)
}
