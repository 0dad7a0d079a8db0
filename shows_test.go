package payonce_test

import (
	"testing"
	"time"

	"github.com/payonce/payonce"
)

// TestAction_IsHandedOutOnlyWhereItMayBeShown: PENDING, not superseded, its end not
// decided, order open and in time; a second action only under the fence of the repeat that fetched it.
func TestAction_IsHandedOutOnlyWhereItMayBeShown(t *testing.T) {
	for _, from := range states {
		for _, order := range orderStatuses {
			for bits := range 64 {
				bit := func(i int) bool { return bits&(1<<i) != 0 }
				superseded, expired, had, repeat, old, givenUp := bit(0), bit(1), bit(2), bit(3), bit(4), bit(5)
				a := newOrder(payonce.PolicySplit, 200)
				p := newPayment(a, 1, "a", 100)
				p.Status, p.Superseded, p.GivenUp, p.Fence, p.Version = from, superseded, givenUp, 3, 1
				p.Permits = []payonce.Permit{{No: 1, Fence: 3}}
				a.Payments, a.Order.Status = append(a.Payments, p), order
				if expired {
					a.Order.ExpiresAt = a.Now.Add(-time.Second)
				}
				if had {
					p.Action, p.HandedOut = &payonce.Action{QRCode: "old"}, true
				}
				f := said(p, payonce.StateWaiting, "begin")
				f.Action = &payonce.Action{QRCode: "new"}
				if repeat {
					f.Permit = 1
				}
				if old {
					f.Fence--
				}
				a.Apply(p, f)
				shown := p.Action != nil && p.Action.QRCode == "new"
				want := from.Live() && (order == payonce.OrderOpen || order == payonce.OrderPartiallyPaid) && !superseded && !givenUp && !expired &&
					(!had || repeat && !old)
				if !had && p.HandedOut != shown {
					t.Fatalf("what nobody was given counts as handed out: %s in %s, %06b", from, order, bits)
				}
				if shown != want || shown && (!p.HandedOut || p.Status != payonce.Pending) {
					t.Fatalf("handed out: %t, must be %t; %s in %s, %06b", shown, want, from, order, bits)
				}
			}
		}
	}
}

// mayShow is whether the payer may see p's action now, judged by the tests.
func mayShow(o *payonce.Order, p *payonce.Payment, now time.Time) bool {
	before := func(end time.Time) bool { return end.IsZero() || now.Before(end) }
	open := o.Status == payonce.OrderOpen || o.Status == payonce.OrderPartiallyPaid
	return p.Action != nil && p.Status == payonce.Pending && !p.Superseded && !p.GivenUp && open &&
		before(o.ExpiresAt) && before(p.DeadAt) && before(p.Action.ExpiresAt)
}

// TestShows_EveryCombination: an action is shown only where each single condition
// holds, to the last nanosecond before each of its ends.
func TestShows_EveryCombination(t *testing.T) {
	ends := []time.Time{{}, t0.Add(1), t0, t0.Add(-time.Hour)}
	shown := 0
	for _, from := range states {
		for _, status := range orderStatuses {
			for bits := range 8 {
				for times := range 64 {
					a := newOrder(payonce.PolicySplit, 200)
					o, p := a.Order, newPayment(a, 1, "a", 100)
					o.Status, p.Status, p.Superseded, p.GivenUp = status, from, bits&1 != 0, bits&2 != 0
					o.ExpiresAt, p.DeadAt = ends[times&3], ends[times>>2&3]
					if bits&4 != 0 {
						p.Action = &payonce.Action{Type: "qr_code", QRCode: "qr", ExpiresAt: ends[times>>4]}
					}
					got := o.Shows(p, t0)
					if want := mayShow(o, p, t0); (got != nil) != want || want && got != p.Action {
						t.Fatalf("shown is %v, must be %t: %s in %s, %03b %06b", got, want, from, status, bits, times)
					}
					if (*payonce.Order)(nil).Shows(p, t0) != nil != mayShow(&payonce.Order{Status: payonce.OrderOpen}, p, t0) {
						t.Fatalf("an order that is not looked at decides: %s, %03b %06b", from, bits, times)
					}
					if got != nil {
						shown++
					}
				}
			}
		}
	}
	if shown != 2*2*2*2 { // OPEN and PARTIALLY_PAID; each end absent or later
		t.Errorf("%d actions were shown", shown)
	}
}

// TestGiveUp_EndsActionAndSends: the decision is written once, on live payments
// only, takes no fence, and from then on nothing is sent or shown.
func TestGiveUp_EndsActionAndSends(t *testing.T) {
	for _, from := range states {
		a := newOrder(payonce.PolicySingle, 100)
		p := newPayment(a, 1, "", 100)
		p.Status, p.Fence, p.Version, p.CallerAt = from, 3, 5, a.Now
		p.Action = &payonce.Action{Type: "qr_code", QRCode: "qr"}
		p.Permits = []payonce.Permit{{No: 1, Fence: 2, GivenAt: a.Now}}
		a.Payments = append(a.Payments, p)
		want := int64(5)
		if from.Live() {
			want = 6
		}
		for range 2 {
			a.GiveUp(p)
			if p.GivenUp != from.Live() || p.Version != want || p.Fence != 3 || p.Status != from {
				t.Fatalf("%s: given up %t, version %d, fence %d, %s", from, p.GivenUp, p.Version, p.Fence, p.Status)
			}
		}
		if a.MayCharge(p) || a.MayResend(p, absence(p), true, testDedupe) || a.Order.Shows(p, a.Now) != nil {
			t.Errorf("%s: sent or shown after its end was decided", from)
		}
	}
}

// The QR code of a begin whose payment was given up meanwhile was stored: absence
// could no longer prove that nobody had the only key.
func TestFault_ActionAfterTheEndWasDecidedIsNobodys(t *testing.T) {
	a := newOrder(payonce.PolicySingle, 100)
	p := sent(a, 1)
	f := said(p, payonce.StateWaiting, "begin")
	f.Permit, f.Action = 1, &payonce.Action{Type: "qr_code", QRCode: "qr"}
	a.GiveUp(p)
	a.Apply(p, f)
	status(t, p, payonce.Pending)
	if p.Action != nil || p.HandedOut {
		t.Fatalf("handed out: %+v", p.Action)
	}
	absent := absence(p)
	absent.OnlyByAction = true
	a.Apply(p, absent)
	status(t, p, payonce.Cancelled)
	whole(t, a)
}
