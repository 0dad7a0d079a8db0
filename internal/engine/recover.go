package engine

import (
	"context"
	"errors"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/internal/store"
)

// errNotFree means that somebody else holds the payment now.
var errNotFree = errors.New("the payment is held by another owner")

// TakeOver makes due at once what an earlier incarnation of this node held. Call
// it only when nobody else can be that incarnation (the exclusive file lock of
// the node id is held).
func (e *Engine) TakeOver(ctx context.Context) (int, error) {
	total := 0
	for {
		held, err := e.Store.HeldBy(ctx, e.NodeID+"/", e.owner, 500)
		if err != nil || len(held) == 0 {
			return total, err
		}
		for _, d := range held {
			err := e.write(ctx, "claim", "worker", &store.Unit{Order: d.Order}, func(v *store.View) error {
				p := v.Payment(d.PaymentID)
				if p == nil || p.LeaseOwner == "" || p.LeaseOwner == e.owner {
					return errNothing
				}
				v.Claim(p, e.leaseFrom(v.Now), "restart")
				v.Release(p, v.Now)
				return nil
			})
			if err != nil && !errors.Is(err, errNothing) {
				return total, err
			}
			total++
		}
	}
}

// Step does what is due for one payment or order. Finding it was no claim: it
// looks again under the lock and does nothing when the work is no longer due.
func (e *Engine) Step(ctx context.Context, d store.Due) error {
	if d.PaymentID == "" {
		return e.stepOrder(ctx, d.Order)
	}
	h, err := e.claim(ctx, d.Order, d.PaymentID, "worker", func(v *store.View, p *payonce.Payment) bool {
		return !p.DueAt.IsZero() && !v.Now.Before(p.DueAt)
	}, false)
	if errors.Is(err, errNothing) || errors.Is(err, errNotFree) {
		return nil
	}
	if err != nil {
		return err
	}
	e.calls.add(1)
	defer e.calls.add(-1)
	return e.perform(ctx, h)
}

// claim takes a payment over when ready says so under the lock, and gets the
// right to the first call of its recovery.
func (e *Engine) claim(ctx context.Context, k payonce.OrderKey, id, actor string, ready func(*store.View, *payonce.Payment) bool, closing bool) (*held, error) {
	var out held
	var pending *store.View
	taken := e.Runner.Now()
	err := e.write(ctx, "claim", actor, &store.Unit{Order: k}, func(v *store.View) error {
		out = held{taken: taken, closing: closing, actor: actor}
		p := v.Payment(id)
		if p == nil {
			return store.ErrNotFound
		}
		if !ready(v, p) {
			return errNotFree
		}
		_, caps, err := e.of(p)
		if err != nil {
			// Nobody can ask for it now; look again later, never give it up.
			p.Asks++
			v.Release(p, e.due(v, p))
		} else {
			e.decideClaim(v, p, caps, &out)
		}
		pending = v
		out.payment, out.order = *p, *v.Order
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.answer = answerOf(pending, &out.payment)
	return &out, nil
}

// decideClaim chooses the first step of a payment that was taken over: what was
// provably never sent is taken up or ended, everything else is asked about.
func (e *Engine) decideClaim(v *store.View, p *payonce.Payment, caps channel.Capabilities, out *held) {
	if !p.Status.Live() {
		if p.Status == payonce.Succeeded || p.LastAsked || len(p.Permits) == 0 && !p.HandedOut {
			v.Release(p, time.Time{})
			return
		}
		v.Claim(p, e.leaseFrom(v.Now), "last-question")
		out.next = stepQuery
		return
	}
	v.Claim(p, e.leaseFrom(v.Now), "lease-over")
	// What was refused is not sent again; its object is asked about and closed.
	if p.NeverSent() && !p.Declined {
		if !out.closing && p.Wanted(v.Now) && e.right(v, p, caps, out) {
			return
		}
		if v.CancelUnsent(p, "never-sent") {
			return
		}
	}
	out.next = stepQuery
}

// bring takes a payment that nobody holds and asks the channel; with closing it
// also ends it there. It returns the payment as it then is, or errNotFree when a
// call of another owner is under way.
func (e *Engine) bring(ctx context.Context, p *payonce.Payment, closing bool) (*payonce.Payment, error) {
	h, err := e.claim(ctx, p.Key, p.ID, "request", func(v *store.View, q *payonce.Payment) bool {
		free := q.LeaseOwner == "" || !v.Now.Before(q.LeaseUntil)
		return free && q.Status.Live()
	}, closing)
	if err != nil {
		return nil, err
	}
	if err := e.perform(ctx, h); err != nil {
		return nil, err
	}
	return &h.payment, nil
}

// stepOrder closes an order that is past its end.
func (e *Engine) stepOrder(ctx context.Context, k payonce.OrderKey) error {
	err := e.write(ctx, "apply", "worker", &store.Unit{Order: k}, func(v *store.View) error {
		o := v.Order
		expired := !o.ExpiresAt.IsZero() && !v.Now.Before(o.ExpiresAt)
		if !expired || o.Status != payonce.OrderOpen && o.Status != payonce.OrderPartiallyPaid {
			return errNothing
		}
		closeOrder(v, "expired")
		return nil
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	if err == nil {
		e.kick()
	}
	return err
}

// closeOrder commits CLOSING and makes what is live due at once, so that a
// worker ends it even if this process dies now.
func closeOrder(v *store.View, cause string) {
	v.CloseOrder(cause)
	for _, p := range v.Payments {
		if p.Status.Live() && p.LeaseOwner == "" {
			p.DueAt = v.Now
		}
	}
}
