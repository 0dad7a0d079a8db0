package payonce_test

import (
	"testing"

	"github.com/payonce/payonce"
)

// shares makes a split order of 250 with a CANCELLED attempt of 100 on part "a"
// and live attempts of 100 on part "b" and of 150 on part "c".
func shares(t *testing.T) (*payonce.Aggregate, []*payonce.Payment) {
	t.Helper()
	a := newOrder(payonce.PolicySplit, 250)
	add := func(seq int, part string, amount payonce.Amount) *payonce.Payment {
		p := newPayment(a, seq, part, amount)
		must(a.AddPayment(p))
		permit(a, p)
		return p
	}
	old := add(1, "a", 100)
	apply(a, old, payonce.StateDead)
	return a, []*payonce.Payment{old, add(2, "b", 100), add(3, "c", 150)}
}

// TestSplit_LateSuccessSupersedesTheNewest: live payments do not count against a
// late success; of other parts the newest gives way, until the sums fit.
func TestSplit_LateSuccessSupersedesTheNewest(t *testing.T) {
	a, p := shares(t)
	apply(a, p[0], payonce.StateSettled)
	if !p[0].Effective || p[1].Superseded || !p[2].Superseded || a.Order.Status != payonce.OrderPartiallyPaid {
		t.Fatalf("effective %t, superseded %t %t, %s", p[0].Effective, p[1].Superseded, p[2].Superseded, a.Order.Status)
	}
	whole(t, a)
	if _, err := a.Permit(p[2], lease()); err == nil {
		t.Error("a superseded payment got a permit")
	}
	// What still fits pays, superseded or not; the order is PAID with its last cent.
	apply(a, p[2], payonce.StateSettled)
	if !p[2].Effective || a.Order.Status != payonce.OrderPaid || !p[1].Superseded {
		t.Fatalf("effective %t, %s, superseded %t", p[2].Effective, a.Order.Status, p[1].Superseded)
	}
	whole(t, a)
}

// TestSplit_SuccessBeyondTheAmountIsSurplus: the limit is judged by what is paid.
func TestSplit_SuccessBeyondTheAmountIsSurplus(t *testing.T) {
	a, p := shares(t)
	apply(a, p[1], payonce.StateSettled)
	apply(a, p[2], payonce.StateSettled)
	apply(a, p[0], payonce.StateSettled)
	if p[0].Effective || p[0].Status != payonce.Succeeded || a.Order.AmountSurplus != 100 || a.Order.AmountPaid != 250 {
		t.Fatalf("effective %t, paid %d, surplus %d", p[0].Effective, a.Order.AmountPaid, a.Order.AmountSurplus)
	}
	whole(t, a)
}
