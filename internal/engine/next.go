package engine

import (
	"cmp"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/internal/store"
)

// decideNext gives the owner of a payment its next right in the transaction that
// stored what the last call learned, or releases the lease and says when a
// worker looks again. It is called only under a fence that is still current;
// fresh tells that nothing else was learned since the question.
func (e *Engine) decideNext(v *store.View, p *payonce.Payment, caps channel.Capabilities, f payonce.Fact, fresh bool, out *held, did step) {
	switch {
	case !p.Status.Live():
		e.afterEnd(v, p, f, did)
		return
	case mayBegin(p, f, did, out.closing):
		if e.right(v, p, caps, out) {
			return
		}
		// The order does not take it any more; its object was never confirmed.
		out.side = p.ObjectID
		if v.CancelUnsent(p, "order-not-open") {
			return
		}
	case !out.closing && v.MayResend(p, f, fresh, caps.DedupeWindow):
		permit, err := v.Resend(p, e.leaseFrom(v.Now), f, fresh, caps.DedupeWindow)
		if err == nil {
			out.next, out.permit = stepBegin, permit
			return
		}
	case doubtful(f, did, out):
		// The channel answered, but not with what became of the number: a close that
		// came too late, a number that is taken. Asking at once tells, once.
		v.Claim(p, e.leaseFrom(v.Now), cmp.Or(f.Reason, "doubt"))
		out.next, out.doubted = stepQuery, true
		return
	case mustClose(v, p, f, did, out.closing):
		if v.Close(p, e.leaseFrom(v.Now)) == nil {
			out.next = stepClose
			return
		}
	}
	p.Asks++
	v.Release(p, e.due(v, p))
}

func doubtful(f payonce.Fact, did step, out *held) bool {
	return (did == stepBegin || did == stepClose) && f.Kind == payonce.StateUnknown && out.answered && !out.doubted
}

// right gives the right to the payment's next money call, or to prepare its
// object first. False: the order or the payment does not take one any more.
func (e *Engine) right(v *store.View, p *payonce.Payment, caps channel.Capabilities, out *held) bool {
	if caps.Prepared && p.ObjectID == "" {
		if v.Prepare(p, e.leaseFrom(v.Now)) != nil {
			return false
		}
		out.next = stepPrepare
		return true
	}
	permit, err := v.Permit(p, e.leaseFrom(v.Now))
	if err != nil {
		return false
	}
	out.next, out.permit = stepBegin, permit
	return true
}

// mayBegin: the prepared object is stored, and the order still takes it.
func mayBegin(p *payonce.Payment, f payonce.Fact, did step, closing bool) bool {
	return did == stepPrepare && f.Kind == payonce.StateUnconfirmed && f.Object != "" && f.Object == p.ObjectID &&
		p.Status == payonce.Processing && !closing
}

// mustClose: the object may still take money and nobody should let it.
func mustClose(v *store.View, p *payonce.Payment, f payonce.Fact, did step, closing bool) bool {
	if did == stepClose || !p.Seen && p.ObjectID == "" {
		return false
	}
	answered := f.Kind == payonce.StateWaiting || f.Kind == payonce.StateDeclined || f.Kind == payonce.StateUnconfirmed ||
		f.Kind == payonce.StateRefused
	if !answered {
		return false
	}
	switch {
	case closing, p.GivenUp, p.Superseded, !v.Order.Chargeable(v.Now), v.Now.After(p.DeadAt.Add(payonce.DeathMargin)):
		return true
	case f.Kind == payonce.StateDeclined || f.Kind == payonce.StateRefused:
		// Nobody holds the object: it ends here, so that the order is free.
		return !p.HandedOut
	case f.Kind == payonce.StateUnconfirmed && did == stepQuery:
		return true // it may not be sent again, so it is closed
	}
	return false
}

// afterEnd releases a payment that has ended. One that ended without money
// although something of it had been sent is due for one last question; it counts
// only when it was answered, and long enough after the end.
func (e *Engine) afterEnd(v *store.View, p *payonce.Payment, f payonce.Fact, did step) {
	asked := did == stepQuery && f.Kind != payonce.StateUnknown && v.Now.Sub(p.UpdatedAt) >= payonce.LastQuestion/2
	switch {
	case p.LeaseOwner == "":
		// It ended just now; the transition has planned the question.
	case p.Status == payonce.Succeeded, p.LastAsked, asked:
		p.LastAsked = p.LastAsked || asked
		v.Release(p, time.Time{})
	default:
		v.Release(p, v.Now.Add(payonce.LastQuestion+e.jitter(time.Minute)))
	}
}

// The ladder: how long until the next question. It never ends.
var (
	unknownSteps = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
	pendingSteps = []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute,
		2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
)

func (e *Engine) due(v *store.View, p *payonce.Payment) time.Time {
	steps := unknownSteps
	if p.Status == payonce.Pending {
		steps = pendingSteps
	}
	d := steps[min(max(p.Asks-1, 0), len(steps)-1)]
	at := v.Now.Add(d + e.jitter(d/4))
	end := p.DeadAt.Add(payonce.DeathMargin + 3*time.Second) // the channel's Date has whole seconds
	if v.Now.Before(end) && at.After(end) {
		at = end
	}
	return at
}

// jitter spreads work that became due together.
func (e *Engine) jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	var b [4]byte
	e.Runner.Random(b[:])
	n := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
	return time.Duration(uint64(n) * uint64(d) >> 32)
}
