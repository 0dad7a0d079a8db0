package payonce_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/payonce/payonce"
)

// A wish is one asking for a Resend: the payment as it is, and what was answered.
type wish struct {
	a      *payonce.Aggregate
	p      *payonce.Payment
	asked  payonce.Fact
	fresh  bool
	window time.Duration
}

// lost is a wish that every condition allows: a prepared payment whose confirm may
// have been lost, asked about just now.
func lost() *wish {
	a, p := lostConfirm()
	a.Order.ExpiresAt = a.Now.Add(time.Hour)
	return &wish{a: a, p: p, asked: absence(p), fresh: true, window: testDedupe}
}

// variant changes one thing of a wish.
type variant struct {
	name string
	make func(*wish)
}

// forbidden: each of these alone takes the right away.
var forbidden = []variant{
	{"something was learned since", func(w *wish) { w.fresh = false }},
	{"asked under an old fence", func(w *wish) { w.asked.Fence-- }},
	{"the answer is no query's", func(w *wish) { w.asked.Source = "notice" }},
	{"the answer is another", func(w *wish) { w.asked.Kind = payonce.StateWaiting }},
	{"of another number", func(w *wish) { w.asked.Number = "N2" }},
	{"of another account", func(w *wish) { w.asked.Account = "other" }},
	{"of another object", func(w *wish) { w.asked.Object = "side" }},
	{"without evidence", func(w *wish) { w.asked.EvidenceID = "" }},
	{"superseded", func(w *wish) { w.p.Superseded = true }},
	{"given up", func(w *wish) { w.p.GivenUp = true }},
	{"declined", func(w *wish) { w.p.Declined = true }},
	{"took money", func(w *wish) { w.p.ChargeCount = 1 }},
	{"at dead_at", func(w *wish) { w.p.DeadAt = w.a.Now }},
	{"at the order's end", func(w *wish) { w.a.Order.ExpiresAt = w.a.Now }},
	{"the order is closing", func(w *wish) { w.a.Order.Status = payonce.OrderClosing }},
	{"nobody waits", func(w *wish) { w.p.CallerAt = w.a.Now.Add(-testMemory) }},
	{"beside the end of the window", func(w *wish) {
		w.p.Permits[0].GivenAt = w.a.Now.Add(testSafety - w.window)
		// It is the first send that counts, whatever became of it and of later ones.
		w.p.Permits = append(w.p.Permits[:1:1], payonce.Permit{No: 2, Fence: 2, GivenAt: w.a.Now})
	}},
	{"a call is under way", func(w *wish) { w.p.Status = payonce.Processing }},
}

// harmlessVariants: none of these takes the right away, to the last nanosecond.
var harmlessVariants = []variant{
	{"unconfirmed", func(w *wish) { w.asked.Kind = payonce.StateUnconfirmed }},
	{"names no object", func(w *wish) { w.asked.Object = "" }},
	{"names no number", func(w *wish) { w.asked.Number, w.asked.Account = "", "" }},
	{"old version in the answer", func(w *wish) { w.asked.Version = 0 }},
	{"just before dead_at", func(w *wish) { w.p.DeadAt = w.a.Now.Add(1) }},
	{"just before the order's end", func(w *wish) { w.a.Order.ExpiresAt = w.a.Now.Add(1) }},
	{"the caller is still remembered", func(w *wish) { w.p.CallerAt = w.a.Now.Add(1 - testMemory) }},
	{"just inside the window", func(w *wish) { w.p.Permits[0].GivenAt = w.a.Now.Add(testSafety - w.window + 1) }},
	{"the first send was refused", func(w *wish) { w.p.Permits[0].End = payonce.EndRefused }},
	{"another send is open", func(w *wish) {
		w.p.Permits = append(w.p.Permits[:1:1], payonce.Permit{No: 2, Fence: 2, GivenAt: w.a.Now})
	}},
	{"other shares are paid", func(w *wish) { w.a.Order.Status = payonce.OrderPartiallyPaid }},
	{"no end is known", func(w *wish) { w.p.DeadAt, w.a.Order.ExpiresAt = time.Time{}, time.Time{} }},
}

// ask asks for the right and checks that the answer is want and nothing else changed.
func (w *wish) ask(t *testing.T, want bool, names func() []string) {
	t.Helper()
	before := *w.p
	changes := len(w.a.Changes)
	if w.a.MayResend(w.p, w.asked, w.fresh, w.window) != want {
		t.Fatalf("MayResend is %t: %v", !want, names())
	}
	got, err := w.a.Resend(w.p, lease(), w.asked, w.fresh, w.window)
	if (err == nil) != want {
		t.Fatalf("Resend: %v: %v", err, names())
	}
	if want {
		isNext(t, &before, w.p, got)
	} else if !reflect.DeepEqual(before, *w.p) || len(w.a.Changes) != changes || got != (payonce.Permit{}) {
		t.Fatalf("a refused re-send changed %+v to %+v: %v", before, *w.p, names())
	}
}

// eachSubset makes a wish for each subset of the variants.
func eachSubset(t *testing.T, list []variant, want func(bits int) bool) {
	t.Helper()
	for bits := range 1 << len(list) {
		w := lost()
		for i, v := range list {
			if bits&(1<<i) != 0 {
				v.make(w)
			}
		}
		w.ask(t, want(bits), func() (names []string) {
			for i, v := range list {
				if bits&(1<<i) != 0 {
					names = append(names, v.name)
				}
			}
			return names
		})
	}
}

// TestResend_EveryConditionAloneForbids takes every subset of what forbids: only
// the empty one has the right. In short mode the subsets of up to three.
func TestResend_EveryConditionAloneForbids(t *testing.T) {
	if !testing.Short() && !raceEnabled {
		eachSubset(t, forbidden, func(bits int) bool { return bits == 0 })
		return
	}
	for i := range forbidden {
		for j := range forbidden {
			eachSubset(t, []variant{forbidden[i], forbidden[j], forbidden[(i+j+1)%len(forbidden)]}, func(bits int) bool { return bits == 0 })
		}
	}
}

// TestResend_NothingElseForbids takes every subset of what does not matter.
func TestResend_NothingElseForbids(t *testing.T) {
	eachSubset(t, harmlessVariants, func(int) bool { return true })
}

// TestResend_EveryAnswerStateAndOrder takes every kind and source of an answer in
// every state and order.
func TestResend_EveryAnswerStateAndOrder(t *testing.T) {
	given := 0
	for _, kind := range kinds {
		for _, source := range append(factSources, "operator", "capture", "") {
			for _, from := range states {
				for _, order := range orderStatuses {
					w := lost()
					w.asked.Kind, w.asked.Source, w.p.Status, w.a.Order.Status = kind, source, from, order
					answered := source == "query" && (kind == payonce.StateAbsent || kind == payonce.StateUnconfirmed)
					open := order == payonce.OrderOpen || order == payonce.OrderPartiallyPaid
					want := answered && open && from == payonce.Unknown
					if want {
						given++
					}
					w.ask(t, want, func() []string { return []string{kind.String(), source, string(from), string(order)} })
				}
			}
		}
	}
	if given != 2*2 {
		t.Errorf("%d rights were given", given)
	}
}

// TestResend_Window: each length of the window against each age of the first send;
// a channel without a window gets no repeat, nor does a payment without a send.
func TestResend_Window(t *testing.T) {
	for _, window := range []time.Duration{0, time.Minute, testSafety, testSafety + 1, 2 * time.Hour, testDedupe, 10 * 365 * testDedupe} {
		for _, age := range []time.Duration{0, 1, time.Minute, time.Hour - 1, time.Hour, time.Hour + 1, 23*time.Hour - 1, 23 * time.Hour, 48 * time.Hour} {
			for _, sends := range []int{0, 1, 2} {
				w := lost()
				w.window, w.p.Permits = window, nil
				for i := range sends {
					w.p.Permits = append(w.p.Permits, payonce.Permit{No: i + 1, Fence: 2, GivenAt: w.a.Now.Add(-age / time.Duration(i+1))})
				}
				w.ask(t, sends > 0 && age < window-testSafety, func() []string { return []string{window.String(), age.String()} })
			}
		}
	}
}

// TestNeverSent_EveryBook: every list of up to three permits with every thing that
// speaks against it; only where nothing does, the payment may end by that proof.
func TestNeverSent_EveryBook(t *testing.T) {
	ended := map[payonce.PaymentStatus]int{}
	eachList([]payonce.PermitEnd{payonce.EndOpen, payonce.EndAccepted, payonce.EndRefused, payonce.EndNotSent}, 3, func(book []payonce.PermitEnd) {
		for _, from := range states {
			for bits := range 1 << 11 {
				if bits&0b11 != 0 || bits&0b11000000 != 0 || bits&(1<<10) != 0 {
					continue // conditions of the order and of other rights
				}
				a, p := rightScene(from, payonce.OrderOpen, book, bits)
				if p.LiveSlot() != "" {
					a.Order.Reserved = p.Amount
				}
				want := unsent(p)
				if p.NeverSent() != want {
					t.Fatalf("NeverSent is %t: %+v", !want, p)
				}
				want = want && from.Live() && !p.Declined
				before := *p
				switch got := a.CancelUnsent(p, "why"); {
				case got != want:
					t.Fatalf("CancelUnsent is %t: %+v", got, before)
				case !got && (!reflect.DeepEqual(before, *p) || len(a.Proofs) != 0):
					t.Fatalf("what was not proven changed %+v to %+v", before, p)
				case got && (p.Status != payonce.Cancelled || len(a.Proofs) != 1 || a.Proofs[0].ID != p.EvidenceID || a.Order.Reserved != 0):
					t.Fatalf("%s by %q, proofs %+v, reserved %d", p.Status, p.EvidenceID, a.Proofs, a.Order.Reserved)
				case got:
					ended[from]++
					if bad := proofs(a); bad != "" {
						t.Fatal(bad)
					}
				}
			}
		}
	})
	if len(ended) != 3 || ended[payonce.Created] == 0 || ended[payonce.Processing] == 0 || ended[payonce.Unknown] == 0 {
		t.Errorf("ended: %v", ended)
	}
}

// eachList calls do with every list of up to n of the values.
func eachList[T any](values []T, n int, do func([]T)) {
	var grow func(list []T)
	grow = func(list []T) {
		do(list)
		if len(list) == n {
			return
		}
		for _, v := range values {
			grow(append(list[:len(list):len(list)], v))
		}
	}
	grow(nil)
}

// TestResend_ALifeOfLostCalls: each lost call is asked about under a new fence; the
// answer that gave one repeat gives no second one.
func TestResend_ALifeOfLostCalls(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := sent(a, 1)
	for n := 2; n <= 4; n++ {
		stale := absence(p)
		a.Claim(p, lease(), "lease-over")
		if a.MayResend(p, stale, true, testDedupe) {
			t.Fatal("an answer to the old owner gave a right")
		}
		asked := absence(p)
		got, err := a.Resend(p, lease(), asked, true, testDedupe)
		if err != nil || got.No != n {
			t.Fatalf("permit %d: %v", got.No, err)
		}
		if _, err := a.Resend(p, lease(), asked, true, testDedupe); err == nil {
			t.Fatal("one answer gave two rights")
		}
		f := said(p, payonce.StateUnknown, "begin")
		f.Permit = n
		a.Apply(p, f)
		if a.MayResend(p, asked, true, testDedupe) {
			t.Fatal("the answer before a call gave a right after it")
		}
	}
	whole(t, a)
}

// A call that was proven not sent stayed PROCESSING when something else had been
// learned meanwhile; nobody asked about it before its lease was over.
func TestFault_NotSentAfterNewsStayedUnderWay(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := sent(a, 1)
	f := said(p, payonce.StateNotSent, "begin")
	f.Permit = 1
	a.GiveUp(p)
	a.Apply(p, f)
	status(t, p, payonce.Unknown)
	if p.UnknownReason != "not-sent" || p.Permits[0].End != payonce.EndNotSent {
		t.Errorf("%q, %+v", p.UnknownReason, p.Permits)
	}
	if !a.CancelUnsent(p, "given-up") {
		t.Error("the books prove that nothing was sent")
	}
	whole(t, a)
}
