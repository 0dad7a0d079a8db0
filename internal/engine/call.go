package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

// held is a payment under a right of ours: the copy as committed, and what may
// be done next.
type held struct {
	payment  payonce.Payment
	order    payonce.Order
	answer   *store.Answer
	next     step
	permit   payonce.Permit
	taken    time.Time // local time before the transaction that gave the right
	closing  bool      // the caller wants it ended
	side     string    // another prepared object of this number, to be cancelled
	answered bool      // the last call brought an answer, whatever it says
	doubted  bool      // an answer without knowledge was asked about at once
	actor    string
}

// execute makes the call of a new right in its own goroutine, which a client's
// hang-up does not reach, and answers when it ends or after AnswerWithin.
func (e *Engine) execute(ctx context.Context, r *PayRequest, in *intended) (*Result, error) {
	h := &held{payment: in.payment, order: in.order, next: in.next, permit: in.permit, taken: in.taken, actor: "request"}
	var failed error // h and failed are the call's until done has its value
	done := make(chan struct{}, 1)
	e.calls.add(1)
	e.Runner.Go("call", func(ctx context.Context) {
		defer e.calls.add(-1)
		failed = e.perform(ctx, h)
		done <- struct{}{}
	})
	timer, stop := e.Runner.After(e.AnswerWithin)
	defer stop()
	res := &Result{Order: &in.order, Payment: &in.payment, Converged: in.converged}
	switch run.Wait(ctx, e.Runner, done, timer) {
	case run.Ready:
		if failed != nil {
			// A call may have been made: only the books know its outcome now.
			return nil, fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, failed)
		}
		res.Order, res.Payment, res.Stored = &h.order, &h.payment, h.answer
	default:
		p, err := e.Store.Payment(ctx, scopeOf(r.Order), in.payment.ID)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
		}
		res.Payment = p
	}
	if err := run.Fail("answer.before"); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
	}
	return res, e.prefer(ctx, r, res)
}

// bound answers a request that has nothing to call: it was replayed, converged,
// asked for asynchronous work, or holds an action that was signed without a call.
func (e *Engine) bound(ctx context.Context, r *PayRequest, in *intended) (*Result, error) {
	res := &Result{Order: &in.order, Payment: &in.payment, Stored: in.answer, Replayed: in.replayed, Converged: in.converged, Async: in.async}
	if in.async {
		e.kick()
		return res, nil
	}
	return res, e.prefer(ctx, r, res)
}

// perform uses the rights it holds, one after another, until none is left. Each
// call is outside any transaction; each answer is stored before the next right
// exists.
func (e *Engine) perform(ctx context.Context, h *held) error {
	for h.next != stepNone {
		acct, caps, err := e.of(&h.payment)
		if err != nil {
			return err
		}
		ans := e.send(ctx, acct.Adapter, h)
		if err := e.store(ctx, h, caps, ans); err != nil {
			return err
		}
		if h.side != "" {
			e.cancelSide(ctx, acct.Adapter, h)
		}
	}
	return nil
}

// cancelSide cancels a prepared object that is not the payment's. It was never
// confirmed and nobody holds it, so it can take no money; cancelling only keeps
// the channel's books tidy, and nothing depends on the answer.
func (e *Engine) cancelSide(ctx context.Context, a channel.Adapter, h *held) {
	ctx, cancel := context.WithTimeout(ctx, e.CallTimeout)
	defer cancel()
	side := h.payment
	side.ObjectID = h.side
	ans := a.Close(ctx, channel.Call{Payment: side, KeyNo: 1})
	e.Logger.Info("side object cancelled", "payment", side.ID, "object", side.ObjectID, "fact", ans.Kind.String())
}

var pointOf = map[step]string{stepPrepare: "prepare", stepBegin: "begin", stepQuery: "query", stepClose: "close"}

// send makes the one call that the right allows.
func (e *Engine) send(ctx context.Context, a channel.Adapter, h *held) channel.Answer {
	name := pointOf[h.next]
	if err := run.Fail(name + ".before-send"); err != nil {
		return channel.Answer{Fact: payonce.Fact{Kind: payonce.StateNotSent, Reason: "failpoint"}, Err: err}
	}
	// A right is used at once or not at all: its call must end before its lease,
	// after which another owner may hold a right of its own.
	if e.Runner.Now().Sub(h.taken) > useWithin {
		return channel.Answer{Fact: payonce.Fact{Kind: payonce.StateNotSent, Reason: "lease-too-old"}}
	}
	ctx, cancel := context.WithTimeout(ctx, e.CallTimeout)
	defer cancel()
	call := channel.Call{Payment: h.payment, KeyNo: max(h.payment.SendKey, 1)}
	var ans channel.Answer
	switch h.next {
	case stepPrepare:
		call.KeyNo = max(h.payment.Prepares, 1)
		p, ok := a.(channel.Preparer)
		if !ok {
			return channel.Answer{Fact: payonce.Fact{Kind: payonce.StateNotSent, Reason: "not-prepared"}}
		}
		ans = p.Prepare(ctx, call)
	case stepBegin:
		ans = a.Begin(ctx, call)
	case stepQuery:
		ans = a.Query(ctx, call)
	case stepClose:
		call.KeyNo = max(h.payment.CloseKey, 1)
		ans = a.Close(ctx, call)
	}
	if err := run.Fail(name + ".after-receive"); err != nil {
		return channel.Answer{Fact: payonce.Fact{Kind: payonce.StateUnknown, Reason: "failpoint"}, Err: err}
	}
	if ans.Err != nil {
		e.Logger.Warn("channel call", "step", name, "payment", h.payment.ID, "fact", ans.Kind.String(), "reason", ans.Reason, "error", ans.Err)
	}
	e.Observe("call."+name, h.payment.Channel, ans.Kind.String())
	return ans
}

// store writes what one call learned, and takes the right to the next one in the
// same transaction. It tries again while the database is away, since what the
// channel said is worth more than an early answer.
func (e *Engine) store(ctx context.Context, h *held, caps channel.Capabilities, ans channel.Answer) error {
	f := ans.Fact
	f.Source = pointOf[h.next]
	f.Account = e.accountOf(f, h)
	f.Fence, f.Version = h.payment.Fence, h.payment.Version
	f.SendWindow, f.OnlyByAction = useWithin+e.CallTimeout+networkMargin, caps.OnlyByAction
	if h.next == stepBegin {
		f.Permit = h.permit.No
	}
	point := map[step]string{stepPrepare: "object", stepBegin: "t2"}[h.next]
	if point == "" {
		point = "apply"
	}
	pause := 50 * time.Millisecond
	for {
		err := e.storeOnce(ctx, point, h, caps, ans, f)
		if errors.Is(err, store.ErrConflict) && f.Kind != payonce.StateUnknown {
			// The channel's payment is bound to another order. Nothing follows from it
			// here, but the evidence is kept and people hear of it.
			e.alarm(h.payment.Channel, h.payment.ID, AlarmConflict)
			f = payonce.Fact{Source: f.Source, Reason: AlarmConflict, Fence: f.Fence, Version: f.Version}
			continue
		}
		again := errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown)
		if !again || e.Runner.Now().Sub(h.taken) > e.lease {
			return err
		}
		e.Logger.Warn("store the channel's answer again", "payment", h.payment.ID, "error", err)
		tick, stop := e.Runner.After(pause)
		woken := run.Wait(ctx, e.Runner, nil, tick)
		stop()
		if woken == run.Ended {
			return err
		}
		pause = min(2*pause, 2*time.Second)
	}
}

func (e *Engine) accountOf(f payonce.Fact, h *held) string {
	if f.Account == "" {
		return h.payment.Account
	}
	return f.Account
}

func (e *Engine) storeOnce(ctx context.Context, point string, h *held, caps channel.Capabilities, ans channel.Answer, f payonce.Fact) error {
	var out held
	var verdict payonce.Verdict
	taken := e.Runner.Now()
	var pending *store.View
	err := e.write(context.WithoutCancel(ctx), point, h.actor, &store.Unit{Order: h.order.Key}, func(v *store.View) error {
		p := v.Payment(h.payment.ID)
		if p == nil {
			return store.ErrNotFound
		}
		out = held{taken: taken, closing: h.closing, actor: h.actor, doubted: h.doubted, answered: len(ans.Raw) > 0}
		ours, fresh := p.Fence == f.Fence, p.Version == f.Version
		fact := f
		fact.EvidenceID = v.NewID(payonce.PrefixEvidence)
		v.Evidence = append(v.Evidence, evidenceOf(p, &fact, ans.Raw, v.Now))
		if ans.KeySpent {
			spend(p, h.next)
		}
		if h.next == stepPrepare && fact.Object != "" {
			v.StoreObject(p, fact.Object, fact.Object)
		}
		if !h.closing && v.MayResend(p, fact, fresh, caps.DedupeWindow) {
			// Sending again gives the caller what it asked for; that nobody was given
			// the key proves the death only of what nobody wants any more.
			fact.OnlyByAction = false
		}
		verdict = v.Apply(p, fact)
		if ours {
			e.decideNext(v, p, caps, fact, fresh, &out, h.next)
		}
		if fact.Object != "" && fact.Object != p.ObjectID && p.ObjectID != "" {
			out.side = fact.Object
		}
		pending = v
		out.payment, out.order = *p, *v.Order
		return nil
	})
	if err != nil {
		return err
	}
	out.answer = answerOf(pending, &out.payment)
	*h = out
	if verdict.Alarm != "" {
		e.alarm(h.payment.Channel, h.payment.ID, verdict.Alarm)
	}
	e.Observe("payment", h.payment.Channel, string(h.payment.Status))
	return nil
}

// AlarmConflict: a success names a channel payment that another order holds.
const AlarmConflict = "charge-of-another-order"

func (e *Engine) alarm(channel, payment, code string) {
	e.Logger.Error("alarm", "code", code, "payment", payment)
	e.Observe("alarm", channel, code)
}

// spend moves on to the next idempotency key at the channel: it stored an answer
// without knowledge under the present one and would repeat it for ever.
func spend(p *payonce.Payment, s step) {
	switch s {
	case stepPrepare:
		p.Prepares++
	case stepBegin:
		p.SendKey++
	case stepClose:
		p.CloseKey++
	}
}

func evidenceOf(p *payonce.Payment, f *payonce.Fact, raw []byte, now time.Time) store.Evidence {
	detail := f.Reason
	if f.Failure != nil {
		detail = f.Failure.ChannelCode
	}
	if len(raw) > channel.MaxEvidence {
		raw = raw[:channel.MaxEvidence]
	}
	return store.Evidence{ID: f.EvidenceID, OrderID: p.OrderID, PaymentID: p.ID, Kind: f.Kind.String(), Source: f.Source,
		Number: p.Number, Permit: f.Permit, Fence: f.Fence, Detail: detail, Raw: raw, At: now}
}
