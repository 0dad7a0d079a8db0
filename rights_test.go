package payonce_test

import (
	"testing"
	"time"

	"github.com/payonce/payonce"
)

// TestPermit_EveryCombination: a permit, or the right to prepare, is given only
// where each single condition of the design holds.
func TestPermit_EveryCombination(t *testing.T) {
	orders := []payonce.OrderStatus{payonce.OrderOpen, payonce.OrderPartiallyPaid, payonce.OrderPaid, payonce.OrderClosing, payonce.OrderClosed}
	given := 0
	for _, from := range states {
		for _, order := range orders {
			for bits := range 256 {
				bit := func(i int) bool { return bits&(1<<i) != 0 }
				expired, superseded, closeSent, dead, charged, object := bit(0), bit(1), bit(2), bit(3), bit(4), bit(5)
				sentBefore, open := bit(6), bit(7)
				a := newOrder(payonce.PolicySplit, 200)
				p := newPayment(a, 1, "a", 100)
				p.Status, p.Superseded, p.GivenUp, p.Fence, p.Version = from, superseded, closeSent, 1, 1
				a.Payments, a.Order.Status = append(a.Payments, p), order
				if expired {
					a.Order.ExpiresAt = a.Now
				}
				if dead {
					p.DeadAt = a.Now
				}
				if charged {
					p.ChargeCount = 1
				}
				if object {
					p.ObjectID = "obj"
				}
				if sentBefore {
					p.Permits = []payonce.Permit{{No: 1, End: payonce.EndNotSent}}
					if open {
						p.Permits[0].End = payonce.EndOpen
					}
				}
				underWay := from == payonce.Processing && sentBefore && open
				state := from == payonce.Created || from == payonce.Unknown || from == payonce.Processing
				want := (order == payonce.OrderOpen || order == payonce.OrderPartiallyPaid) && !expired && !superseded &&
					!closeSent && !dead && !charged && state && !underWay
				q, b := *p, *a
				if err := b.Prepare(&q, lease()); (err == nil) != (want && !object) {
					t.Fatalf("prepare: %v; %s in %s, %08b", err, from, order, bits)
				}
				fence, n := p.Fence, len(p.Permits)
				got, err := a.Permit(p, lease())
				if (err == nil) != want {
					t.Fatalf("permit: %v; %s in %s, %08b", err, from, order, bits)
				}
				if err == nil {
					given++
					if got.Fence <= fence || got.No != n+1 || p.Status != payonce.Processing || p.Fence != got.Fence {
						t.Fatalf("not the next permit: %+v", got)
					}
				} else if p.Fence != fence || len(p.Permits) != n || p.Status != from {
					t.Fatalf("a refused permit changed the payment: %+v", p)
				}
			}
		}
	}
	if given == 0 {
		t.Error("no permit was ever given")
	}
}

// TestAction_IsHandedOutOnlyWhereItMayBeShown: PENDING, not superseded, order open
// and in time; a second action only under the fence of the repeat that fetched it.
func TestAction_IsHandedOutOnlyWhereItMayBeShown(t *testing.T) {
	for _, from := range states {
		for _, order := range []payonce.OrderStatus{payonce.OrderOpen, payonce.OrderPartiallyPaid, payonce.OrderPaid, payonce.OrderClosing, payonce.OrderClosed} {
			for bits := range 32 {
				bit := func(i int) bool { return bits&(1<<i) != 0 }
				superseded, expired, had, repeat, old := bit(0), bit(1), bit(2), bit(3), bit(4)
				a := newOrder(payonce.PolicySplit, 200)
				p := newPayment(a, 1, "a", 100)
				p.Status, p.Superseded, p.Fence, p.Version = from, superseded, 3, 1
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
				want := from.Live() && (order == payonce.OrderOpen || order == payonce.OrderPartiallyPaid) && !superseded && !expired &&
					(!had || repeat && !old)
				if shown != want || shown && (!p.HandedOut || p.Status != payonce.Pending) {
					t.Fatalf("handed out: %t, must be %t; %s in %s, %05b", shown, want, from, order, bits)
				}
			}
		}
	}
}
