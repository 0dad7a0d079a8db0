package payonce_test

import (
	"testing"
	"time"

	"github.com/payonce/payonce"
)

// Each test here is named after a fault that the code once had.

func status(t *testing.T, p *payonce.Payment, want payonce.PaymentStatus) {
	t.Helper()
	if p.Status != want {
		t.Fatalf("%s is %s, must be %s", p.ID, p.Status, want)
	}
}

func whole(t *testing.T, a *payonce.Aggregate) {
	t.Helper()
	if bad := broken(a); bad != "" {
		t.Fatal(bad)
	}
}

// A late success in a CLOSING order superseded a never-sent attempt; ending that
// closed the order before it was marked as paid.
func TestFault_LateSuccessWhileClosingReopenedAClosedOrder(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	old := sent(a, 1)
	apply(a, old, payonce.StateDead)
	next := sent(a, 2)
	a.CloseOrder("api")
	f := said(next, payonce.StateNotSent, "begin")
	f.Permit = 1
	a.Apply(next, f)
	status(t, next, payonce.Created)
	apply(a, old, payonce.StateSettled)
	status(t, next, payonce.Cancelled)
	if a.Order.Status != payonce.OrderPaid || !old.Effective {
		t.Fatalf("the order is %s", a.Order.Status)
	}
	whole(t, a)
}

// A query that the channel refused had permit 0 and the current fence, like a
// refused prepare.
func TestFault_RefusedQueryFailedAPreparedPayment(t *testing.T) {
	for _, source := range []string{"query", "close", "notice", ""} {
		a := newOrder(payonce.PolicySingle, 100)
		p := newPayment(a, 1, "", 100)
		must(a.AddPayment(p))
		must(a.Prepare(p, lease()))
		a.Claim(p, lease(), "lease-over")
		apply2(a, p, payonce.StateRefused, source)
		status(t, p, payonce.Unknown)
	}
}

func apply2(a *payonce.Aggregate, p *payonce.Payment, kind payonce.FactKind, source string) payonce.Verdict {
	return a.Apply(p, said(p, kind, source))
}

// After a mismatch, waiting made the payment PENDING; before it, UNKNOWN stayed.
func TestFault_WaitingAfterAMismatchHidIt(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := sent(a, 1)
	f := said(p, payonce.StateSettled, "notice")
	f.Amount = 90
	if v := a.Apply(p, f); v.Alarm != payonce.AlarmMismatch {
		t.Fatalf("alarm is %q", v.Alarm)
	}
	apply(a, p, payonce.StateWaiting)
	status(t, p, payonce.Unknown)
	whole(t, a)
}

// A payment under which a wrong sum was taken got another permit when a query
// said absent, and counted as never sent when its permits had harmless ends.
func TestFault_PaymentThatTookMoneyWasSentAgainOrCancelled(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := sent(a, 1)
	not := said(p, payonce.StateNotSent, "begin")
	not.Permit = 1
	a.Apply(p, not)
	f := said(p, payonce.StateSettled, "notice")
	f.Amount = 90
	a.Apply(p, f)
	status(t, p, payonce.Unknown)
	if _, err := a.Permit(p, lease()); err == nil {
		t.Error("a second call was permitted")
	}
	if a.CancelUnsent(p, "closed") {
		t.Error("a payment that took money counts as never sent")
	}
	absent := said(p, payonce.StateAbsent, "query")
	absent.OnlyByAction = true
	a.Apply(p, absent)
	status(t, p, payonce.Unknown)
	whole(t, a)
}

// A success without the channel's payment id, amount, account or number was
// booked; a second one was taken for the first and its money vanished.
func TestFault_IncompleteSuccessWasBooked(t *testing.T) {
	for name, spoil := range map[string]func(*payonce.Fact){
		"no payment id": func(f *payonce.Fact) { f.PaymentRef = "" },
		"no number":     func(f *payonce.Fact) { f.Number = "" },
		"no account":    func(f *payonce.Fact) { f.Account = "" },
		"no amount":     func(f *payonce.Fact) { f.Amount = 0 },
		"minus":         func(f *payonce.Fact) { f.Amount = -100 },
		"no currency":   func(f *payonce.Fact) { f.Currency = "" },
		"small letters": func(f *payonce.Fact) { f.Currency = "cny" },
		"two letters":   func(f *payonce.Fact) { f.Currency = "CN" },
		"no evidence":   func(f *payonce.Fact) { f.EvidenceID = "" },
		"other number":  func(f *payonce.Fact) { f.Number = "N2" },
		"other account": func(f *payonce.Fact) { f.Account = "other" },
	} {
		a := newOrder(payonce.PolicySingle, 100)
		p := sent(a, 1)
		f := said(p, payonce.StateSettled, "begin")
		spoil(&f)
		v := a.Apply(p, f)
		if p.Status != payonce.Unknown || len(a.Charges) != 0 {
			t.Errorf("%s: %s with %d charges", name, p.Status, len(a.Charges))
		}
		if v.Alarm == "" && name != "no evidence" {
			t.Errorf("%s: nobody hears of it", name)
		}
	}
}

// TestA10_ChannelPaymentStaysWithItsAttempt: one channel payment was reported
// under two numbers, and the second report changed nothing and told nobody.
func TestA10_ChannelPaymentStaysWithItsAttempt(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	old := sent(a, 1)
	apply(a, old, payonce.StateDead)
	p := sent(a, 2)
	apply(a, old, payonce.StateSettled)
	f := said(p, payonce.StateSettled, "query")
	f.PaymentRef = "ref-" + old.ID
	if v := a.Apply(p, f); v.Alarm != payonce.AlarmForeign || len(a.Charges) != 1 || p.Status.Live() != true {
		t.Fatalf("%q, %d charges, %s", v.Alarm, len(a.Charges), p.Status)
	}
	whole(t, a)
}

// Dead and refused in one order ended FAILED, in the other CANCELLED.
func TestFault_OrderOfDeadAndRefusedDecided(t *testing.T) {
	for _, deadFirst := range []bool{false, true} {
		a := newOrder(payonce.PolicySingle, 100)
		p := sent(a, 1)
		refused := said(p, payonce.StateRefused, "begin")
		refused.Permit = 1
		if deadFirst {
			apply(a, p, payonce.StateDead)
		}
		a.Apply(p, refused)
		apply(a, p, payonce.StateDead)
		status(t, p, payonce.Failed)
		whole(t, a)
	}
}

// A refused confirm whose answer was dated past dead_at ended a payment that an
// earlier confirm may have paid.
func TestFault_RefusedConfirmProvedDeath(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := newPayment(a, 1, "", 100)
	must(a.AddPayment(p))
	must(a.Prepare(p, lease()))
	a.StoreObject(p, "obj", "")
	permit(a, p)
	a.Claim(p, lease(), "lease-over")
	resend(a, p)
	a.Now = a.Now.Add(time.Hour)
	f := said(p, payonce.StateRefused, "begin")
	f.Permit, f.ServerDate = 2, p.DeadAt.Add(time.Hour)
	a.Apply(p, f)
	status(t, p, payonce.Unknown)
}

// What the channel said of an object ended a prepared payment that had none yet.
func TestFault_DeathOfAnObjectThatIsNotStoredCounted(t *testing.T) {
	for _, kind := range []payonce.FactKind{payonce.StateDead, payonce.StateWaiting, payonce.StateDeclined} {
		a := newOrder(payonce.PolicySingle, 100)
		p := newPayment(a, 1, "", 100)
		must(a.AddPayment(p))
		must(a.Prepare(p, lease()))
		a.Claim(p, lease(), "lease-over")
		f := said(p, kind, "notice")
		f.Object, f.Fence = "lost", 0
		a.Apply(p, f)
		status(t, p, payonce.Unknown)
		if !a.StoreObject(p, "obj", "") || a.StoreObject(p, "lost", "") || a.StoreObject(p, "", "") {
			t.Error("the stored object is not the first")
		}
	}
}

// The event of a mismatch that turned out to match had the number of an earlier
// surplus: the unique key refused the whole fact.
func TestFault_TwoSurplusEventsHadOneNumber(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := sent(a, 1)
	for _, s := range []struct {
		ref    string
		amount payonce.Amount
	}{{"a", 100}, {"b", 90}, {"c", 100}, {"b", 100}} {
		f := said(p, payonce.StateSettled, "notice")
		f.PaymentRef, f.Amount = s.ref, s.amount
		a.Apply(p, f)
		whole(t, a)
	}
	if a.Order.AmountSurplus != 200 || a.Order.AmountPaid != 100 {
		t.Errorf("surplus %d, paid %d", a.Order.AmountSurplus, a.Order.AmountPaid)
	}
}

// The largest of two captured amounts stays, in either order.
func TestFault_FirstOfTwoMismatchedAmountsStayed(t *testing.T) {
	for _, amounts := range [][]payonce.Amount{{90, 95}, {95, 90}} {
		a := newOrder(payonce.PolicySingle, 100)
		p := sent(a, 1)
		for _, amount := range amounts {
			f := said(p, payonce.StateSettled, "notice")
			f.Amount = amount
			a.Apply(p, f)
		}
		if len(a.Charges) != 1 || a.Charges[0].Amount != 95 {
			t.Errorf("%v: %+v", amounts, a.Charges[0])
		}
	}
}

// A second call was permitted while the first had no end.
func TestFault_PermitBesideACallUnderWay(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := sent(a, 1)
	if _, err := a.Permit(p, lease()); err == nil || len(p.Permits) != 1 {
		t.Error("two calls are under way under one number")
	}
	if err := a.Prepare(p, lease()); err == nil {
		t.Error("an object is prepared while a call is under way")
	}
}

// A call that was lost was permitted again although nobody had asked the channel.
func TestFault_LostCallWasSentAgainUnasked(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := sent(a, 1)
	a.Claim(p, lease(), "lease-over")
	if _, err := a.Permit(p, lease()); err == nil || len(p.Permits) != 1 {
		t.Error("a lost call was permitted again")
	}
	if err := a.Prepare(p, lease()); err == nil {
		t.Error("an object is prepared beside a lost call")
	}
	if resend(a, p); len(p.Permits) != 2 {
		t.Error("an answered question gave no right")
	}
}

// The answer about another number, account or object, or one without evidence,
// gave the right to send again.
func TestFault_ForeignAnswerGaveAResend(t *testing.T) {
	for name, spoil := range map[string]func(*payonce.Fact){
		"number":   func(f *payonce.Fact) { f.Number = "N2" },
		"account":  func(f *payonce.Fact) { f.Account = "other" },
		"object":   func(f *payonce.Fact) { f.Object = "side" },
		"evidence": func(f *payonce.Fact) { f.EvidenceID = "" },
	} {
		for _, kind := range []payonce.FactKind{payonce.StateAbsent, payonce.StateUnconfirmed} {
			a, p := lostConfirm()
			f := said(p, kind, "query")
			if !a.MayResend(p, f, true, testDedupe) {
				t.Fatal("the scene itself gives no right")
			}
			spoil(&f)
			if _, err := a.Resend(p, lease(), f, true, testDedupe); err == nil {
				t.Errorf("%s: a foreign answer %s gave a right", name, kind)
			}
		}
	}
}

// lostConfirm is a prepared payment whose confirm may have been lost.
func lostConfirm() (*payonce.Aggregate, *payonce.Payment) {
	a := newOrder(payonce.PolicySingle, 100)
	p := newPayment(a, 1, "", 100)
	must(a.AddPayment(p))
	must(a.Prepare(p, lease()))
	a.StoreObject(p, "obj", "")
	permit(a, p)
	a.Claim(p, lease(), "lease-over")
	return a, p
}

// A number that exists at the channel without a send on the books (a row that came
// back after a restore) was sent again, though nobody knew for how long the channel
// would recognise it.
func TestFault_ResendWithoutASendOnTheBooks(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := newPayment(a, 1, "", 100)
	must(a.AddPayment(p))
	p.Status, p.Seen = payonce.Unknown, true
	if _, err := a.Resend(p, lease(), absence(p), true, testDedupe); err == nil {
		t.Error("sent again within a window that nobody knows")
	}
}

// A refused confirm whose object was not closed yet was sent again after a restart,
// or its payment CANCELLED as never sent with the object left open.
func TestFault_RefusedConfirmWasSentAgain(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := newPayment(a, 1, "", 100)
	must(a.AddPayment(p))
	must(a.Prepare(p, lease()))
	a.StoreObject(p, "obj", "")
	permit(a, p)
	f := said(p, payonce.StateRefused, "begin")
	f.Permit, f.Failure = 1, &payonce.Failure{Code: "refused"}
	a.Apply(p, f)
	for _, claimed := range bools {
		if claimed {
			a.Claim(p, lease(), "restart")
		}
		if _, err := a.Permit(p, lease()); err == nil {
			t.Fatal("a refused confirm was permitted again")
		}
		if _, err := a.Resend(p, lease(), said(p, payonce.StateUnconfirmed, "query"), true, testDedupe); err == nil {
			t.Fatal("a refused confirm was sent again")
		}
		if a.CancelUnsent(p, "switched") {
			t.Fatal("its open object was forgotten")
		}
	}
	must(a.Close(p, lease()))
	apply2(a, p, payonce.StateDead, "close")
	status(t, p, payonce.Failed)
	whole(t, a)
}

// A payment whose object was being prepared could be sent without one; answers
// about its object would not have counted.
func TestFault_ConfirmWasPermittedWithoutAnObject(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := newPayment(a, 1, "", 100)
	must(a.AddPayment(p))
	must(a.Prepare(p, lease()))
	if _, err := a.Permit(p, lease()); err == nil {
		t.Fatal("a confirm of nothing was permitted")
	}
	a.StoreObject(p, "obj", "")
	permit(a, p)
}

// Only the owner of the current fence planned the last question.
func TestFault_PaymentEndedByANoticeWasNeverAskedAgain(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := sent(a, 1)
	f := said(p, payonce.StateDead, "notice")
	f.Fence = 0
	a.Apply(p, f)
	if want := a.Now.Add(24 * time.Hour); !p.DueAt.Equal(want) || p.LeaseOwner != "" {
		t.Errorf("due %v, must be %v", p.DueAt, want)
	}
	b := newOrder(payonce.PolicySingle, 100)
	q := newPayment(b, 1, "", 100)
	must(b.AddPayment(q))
	if !b.CancelUnsent(q, "switched") || !q.DueAt.IsZero() {
		t.Error("what was never sent is asked about")
	}
}

// AddPayment took what does not fit; only the database would have refused it.
func TestFault_PaymentThatDoesNotFitItsOrder(t *testing.T) {
	for name, v := range map[string]struct {
		policy payonce.Policy
		spoil  func(*payonce.Payment)
	}{
		"too much":      {payonce.PolicySingle, func(p *payonce.Payment) { p.Amount = 101 }},
		"nothing":       {payonce.PolicySingle, func(p *payonce.Payment) { p.Amount = 0 }},
		"currency":      {payonce.PolicySingle, func(p *payonce.Payment) { p.Currency = "USD" }},
		"part":          {payonce.PolicySingle, func(p *payonce.Payment) { p.Part = "a" }},
		"no part":       {payonce.PolicySplit, func(*payonce.Payment) {}},
		"sequence":      {payonce.PolicySingle, func(p *payonce.Payment) { p.Sequence = 0 }},
		"under way":     {payonce.PolicySingle, func(p *payonce.Payment) { p.Status = payonce.Processing }},
		"same sequence": {payonce.PolicySingle, func(p *payonce.Payment) { p.Sequence = 1 }},
	} {
		a := newOrder(v.policy, 100)
		if name == "same sequence" {
			apply(a, sent(a, 1), payonce.StateDead)
		}
		p := newPayment(a, 2, "", 100)
		v.spoil(p)
		if err := a.AddPayment(p); err != payonce.ErrNotFitting {
			t.Errorf("%s: %v", name, err)
		}
	}
}
