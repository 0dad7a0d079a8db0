package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/store"
)

// Pay answers a payment request: by the payment that its key is bound to, by the
// live attempt that it converges on, or by a new attempt. It runs to its end
// whether or not the client is still there.
//
// It returns *Refusal, *payonce.Error or *idempotency.Problem, or an error of
// package store, in which case nothing is known to have been started.
func (e *Engine) Pay(ctx context.Context, r PayRequest) (*Result, error) {
	ctx = context.WithoutCancel(ctx)
	for round := 0; ; {
		known, step, err := e.replay(ctx, &r)
		if err != nil || known != nil && !step {
			return known, err
		}
		acct, caps, err := e.route(&r)
		if err != nil && known != nil {
			return known, nil // a known key is answered whatever became of its account
		}
		if err != nil {
			return nil, err
		}
		leave, twin := e.gate.enter(r.Key)
		if twin != nil {
			if err := e.await(twin); err != nil {
				return nil, err
			}
			continue // its record answers now, if it left one
		}
		in, err := func() (*intended, error) {
			defer leave()
			return e.intent(ctx, &r, acct, caps)
		}()
		if err != nil {
			return nil, err
		}
		switch {
		case in.next != stepNone:
			return e.execute(ctx, &r, in)
		case in.blocker == nil && in.replayed && !in.async && round < maxRounds:
			// A twin was faster; its record answers, and lets this request wait.
			round++
			continue
		case in.blocker == nil:
			return e.bound(ctx, &r, in)
		}
		// Another attempt is in the way: close it at the channel, then start again
		// at the first question. No record of this key exists yet.
		if err := e.clear(ctx, in.blocker, round); err != nil {
			return nil, err
		}
		round++
	}
}

// await waits for a twin's first transaction in this process.
func (e *Engine) await(twin <-chan struct{}) error {
	late, stop := e.Runner.After(claimTimeout)
	defer stop()
	select {
	case <-twin:
		return nil
	case <-late:
		return fmt.Errorf("%w: an equal request is being stored", store.ErrUnavailable)
	}
}

// route checks what the request wants against the channel before anything is
// stored.
func (e *Engine) route(r *PayRequest) (*Account, channel.Capabilities, error) {
	acct, err := e.account(r.Order, r.Channel, r.Account)
	if err != nil {
		return nil, channel.Capabilities{}, err
	}
	caps, ok := acct.Adapter.Methods()[r.Method]
	if !ok {
		return nil, channel.Capabilities{}, payonce.Invalid("/method", "%s has no method %q", r.Channel, r.Method)
	}
	return acct, caps, nil
}

// replay answers a known key without taking a lock; nil means that it is not
// known. step says that something has to be done before: the attempt was never
// sent, or its action is gone.
func (e *Engine) replay(ctx context.Context, r *PayRequest) (res *Result, step bool, err error) {
	rep, err := e.Store.Replay(ctx, r.Key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if !matches(&rep.Key, r.Fingerprint, r.Same) || rep.Payment == nil {
		return nil, false, idempotency.Reused()
	}
	p := rep.Payment
	res = &Result{Order: rep.Order, Payment: p, Stored: rep.Answer, Replayed: true, Converged: rep.Key.Converged}
	if _, caps, err := e.of(p); err == nil && needsStep(p, caps, rep.Now) {
		return res, true, nil
	}
	if owned(&rep.Key, p, rep.Now) {
		if r.Prefer.Wait <= 0 || e.hub.waiting() >= maxPreferWait {
			return nil, false, inProgress(rep.Order, p, rep.Key.CreatedAt, rep.Now)
		}
	}
	if p.Status.Live() {
		if err := e.prefer(ctx, r, res); err != nil {
			return nil, false, err
		}
		if p := res.Payment; p.Status == payonce.Processing && owned(&rep.Key, p, rep.Now) {
			return nil, false, inProgress(rep.Order, p, rep.Key.CreatedAt, rep.Now)
		}
		e.stillWanted(ctx, res.Payment, rep.Now)
	}
	return res, false, nil
}

func matches(k *store.KeyRecord, f idempotency.Fingerprint, same func(idempotency.Fingerprint) bool) bool {
	stored := idempotency.Fingerprint{Version: k.FPVersion, Secret: k.FPSecret, Sum: k.FP}
	return stored == f || same != nil && same(stored)
}

// owned reports whether the request that made the record is still expected to
// answer itself.
func owned(k *store.KeyRecord, p *payonce.Payment, now time.Time) bool {
	return p.Status == payonce.Processing && !k.Converged && now.Before(k.AnswerUntil) && now.Before(p.LeaseUntil)
}

func inProgress(o *payonce.Order, p *payonce.Payment, since, now time.Time) error {
	after := idempotency.RetryAfterInProgress(now.Sub(since))
	prob := idempotency.InProgress(p.ID, now.Sub(since))
	return &Refusal{Err: prob, Order: o, Payment: p, RetryAfter: after}
}

// prefer waits as long as the caller asked for a final state, then shows what is
// there.
func (e *Engine) prefer(ctx context.Context, r *PayRequest, res *Result) error {
	if r.Prefer.Wait <= 0 || !res.Payment.Status.Live() || e.hub.waiting() >= maxPreferWait {
		return nil
	}
	res.Waited = true
	p, err := e.waitUntil(ctx, scopeOf(r.Order), res.Payment.ID, r.Prefer.Wait, func(p *payonce.Payment) bool {
		return !p.Status.Live() || p.Status == payonce.Pending && p.Action != nil
	})
	if err != nil {
		return err
	}
	return e.refresh(ctx, r, res, p)
}

// refresh shows a payment that changed while its request waited, with its stored
// answer.
func (e *Engine) refresh(ctx context.Context, r *PayRequest, res *Result, p *payonce.Payment) error {
	res.Payment = p
	if rep, err := e.Store.Replay(ctx, r.Key); err == nil && rep.Payment != nil {
		res.Order, res.Payment, res.Stored = rep.Order, rep.Payment, rep.Answer
	} else if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

func scopeOf(k payonce.OrderKey) store.Scope {
	return store.Scope{Merchant: k.Merchant, Environment: k.Environment}
}

// stillWanted keeps the memory that a caller waits for an unknown payment, and
// has it asked about soon. It writes at most once a minute for a payment.
func (e *Engine) stillWanted(ctx context.Context, p *payonce.Payment, now time.Time) {
	if p.Status != payonce.Unknown || now.Sub(p.CallerAt) < time.Minute {
		return
	}
	err := e.write(ctx, "claim", "request", &store.Unit{Order: p.Key}, func(v *store.View) error {
		q := v.Payment(p.ID)
		if q == nil || q.Status != payonce.Unknown {
			return errNothing
		}
		q.CallerAt = v.Now
		if q.LeaseOwner == "" {
			q.DueAt = v.Now
		}
		return nil
	})
	if err == nil {
		e.kick()
	}
}

var errNothing = errors.New("nothing to do")

// needsStep reports whether answering a known key has to change something first:
// an attempt that was stored and never sent is taken up, one whose action is
// dead is renewed.
func needsStep(p *payonce.Payment, caps channel.Capabilities, now time.Time) bool {
	return p.Status == payonce.Created || actionGone(p, caps, now)
}

// actionGone reports whether a PENDING payment has nothing that its payer can
// use: it is renewed or closed instead of being shown.
func actionGone(p *payonce.Payment, caps channel.Capabilities, now time.Time) bool {
	if p.Status != payonce.Pending || p.Superseded {
		return false
	}
	if p.Action == nil {
		return caps.OnlyByAction
	}
	return !p.Action.ExpiresAt.IsZero() && !now.Before(p.Action.ExpiresAt)
}

// declinedOpen reports whether a try failed on an object that the payer can
// still use. A new attempt closes it first; a repeated request does not.
func declinedOpen(p *payonce.Payment, caps channel.Capabilities) bool {
	return p.Status == payonce.Pending && p.Declined && caps.ReusedAfterDecline
}

// clear closes the attempt that is in a new one's way. nil means: look again,
// it may have ended; a *Refusal says why it cannot be ended now.
func (e *Engine) clear(ctx context.Context, p *payonce.Payment, round int) error {
	if round >= maxRounds {
		return e.unproven(p)
	}
	if p.LeaseOwner != "" {
		// A call is under way; its end decides. Taking it over now would only add
		// an unknown.
		q, err := e.waitUntil(ctx, scopeOf(p.Key), p.ID, e.AnswerWithin, func(q *payonce.Payment) bool {
			return q.LeaseOwner == "" || !q.Status.Live()
		})
		if err != nil {
			return err
		}
		if q.LeaseOwner == "" || !q.Status.Live() {
			return nil
		}
		p = q
	}
	q, err := e.bring(ctx, p, true)
	switch {
	case errors.Is(err, errNotFree):
		return e.unproven(p)
	case err != nil:
		return err
	case q.Status.Live():
		return e.unproven(q)
	}
	return nil
}

// unproven says that the old attempt may still take money, and until when.
func (e *Engine) unproven(p *payonce.Payment) error {
	ref := &Refusal{Err: payonce.Errorf(payonce.CodeOutcomeUnknown,
		"an earlier payment of this order may still take money; it has to end before another starts"), Payment: p, RetryAfter: 5 * time.Second}
	switch {
	case p.Status == payonce.Processing:
		ref.Why = "a call to the channel is under way"
		ref.ProvableAt = p.LeaseUntil
	case !p.DeadAt.IsZero():
		ref.Why = "the channel has not confirmed that the earlier payment is closed; after its end the channel's own answer proves it"
		ref.ProvableAt = p.DeadAt.Add(payonce.DeathMargin)
	default:
		ref.Why = "the channel has not confirmed that the earlier payment is closed"
	}
	return ref
}
