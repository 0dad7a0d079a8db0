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

// step is what a committed transaction gave the right to do next.
type step int

const (
	stepNone step = iota
	stepPrepare
	stepBegin
	stepQuery
	stepClose
)

// intended is what the first transaction of a request decided.
type intended struct {
	order     payonce.Order
	payment   payonce.Payment // as committed
	answer    *store.Answer
	next      step
	permit    payonce.Permit
	replayed  bool
	converged bool
	async     bool
	blocker   *payonce.Payment // a live attempt that has to be closed first
	taken     time.Time        // local time before the transaction, for the lease
}

// errBlocked makes the transaction write nothing: a live attempt is in the way.
var errBlocked = errors.New("another attempt is live")

// intent is T1: one transaction that answers, in this order, what the key, the
// order and the live attempt say, and else stores a new attempt with its number,
// its bytes and the right to its first call.
func (e *Engine) intent(ctx context.Context, r *PayRequest, acct *Account, caps channel.Capabilities) (*intended, error) {
	var in intended
	u := &store.Unit{Order: r.Order, Key: &r.Key}
	if r.Amount != 0 && r.Part == "" {
		u.Create = &payonce.Order{ID: e.newID(payonce.PrefixOrder, e.Runner.Now()), Key: r.Order, Amount: r.Amount,
			Currency: r.Currency, Subject: r.Subject, Policy: payonce.PolicySingle}
	}
	if err := e.precheck(r, acct, caps); err != nil {
		return nil, err
	}
	taken := e.Runner.Now()
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	err := e.write(ctx, "t1", "request", u, func(v *store.View) error {
		in = intended{taken: taken}
		return e.decideIntent(v, r, acct, caps, &in)
	})
	if errors.Is(err, errBlocked) {
		return &in, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, payonce.Invalid("/amount", "order %s is not known yet: amount, currency and subject are required", r.Order.OrderNo)
	}
	if err != nil {
		return nil, err
	}
	return &in, nil
}

// precheck composes once with the values of the request alone, so that whatever
// the channel would not take is refused before the first transaction.
func (e *Engine) precheck(r *PayRequest, acct *Account, caps channel.Capabilities) error {
	if r.Amount != 0 && (r.Currency == "" || r.Subject == "") && r.Part == "" {
		return nil // compared with the stored order, which has them
	}
	if r.Amount == 0 {
		return nil
	}
	o := payonce.Order{Key: r.Order, Amount: r.Amount, Currency: r.Currency, Subject: r.Subject}
	if o.Subject == "" {
		o.Subject = "-"
	}
	_, err := acct.Adapter.Compose(e.composition(r, acct, &o, 1, r.Amount, e.Runner.Now().Add(caps.Life)))
	return err
}

func (e *Engine) composition(r *PayRequest, acct *Account, o *payonce.Order, seq int, amount payonce.Amount, deadAt time.Time) channel.Intent {
	return channel.Intent{
		Order: r.Order, Sequence: seq, Number: payonce.ChannelNumber(e.Installation, r.Order, seq), Method: r.Method,
		Amount: amount, Currency: o.Currency, Subject: o.Subject, Payer: r.Payer, ReturnURL: r.ReturnURL,
		NotifyURL: e.PublicURL + "/webhooks/" + acct.Channel + "/" + acct.ID, Capture: r.Capture, DeadAt: deadAt,
	}
}

func (e *Engine) decideIntent(v *store.View, r *PayRequest, acct *Account, caps channel.Capabilities, in *intended) error {
	keep := func(p *payonce.Payment) { in.order, in.payment, in.answer = *v.Order, *p, answerOf(v, p) }
	if v.Key != nil {
		return e.decideKnown(v, r, in, keep)
	}
	if v.Created && (r.Subject == "" || r.Currency == "") {
		return store.ErrNotFound // known orders only: there is not enough to make one
	}
	amount, err := share(v.Order, r)
	if err != nil {
		return err
	}
	if p := v.Effective(r.Part); p != nil || v.Order.Status == payonce.OrderPaid {
		return &Refusal{Err: payonce.Errorf(payonce.CodeOrderAlreadyPaid, "order %s is already paid", r.Order.OrderNo), Order: v.Order, Payment: p}
	}
	if !v.Order.Chargeable(v.Now) {
		return &Refusal{Err: payonce.Errorf(payonce.CodeOrderClosed, "order %s takes no more payments", r.Order.OrderNo), Order: v.Order}
	}
	if err := compare(v.Order, r); err != nil {
		return err
	}
	ins := inputs(r, acct.ID, amount)
	if p := v.Live(r.Part); p != nil {
		over := p.Inputs != ins || p.GivenUp || actionGone(p, caps, v.Now) || declinedOpen(p, caps)
		unusable := p.Status == payonce.Created && (over || !v.MayCharge(p))
		switch {
		case unusable && v.CancelUnsent(p, "switched"):
			// It was never sent: a new attempt takes its place at once.
		case over || unusable:
			c := *p
			in.blocker = &c
			return errBlocked
		default:
			return e.decideConverge(v, r, p, caps, in, keep)
		}
	}
	if v.Order.LastSequence >= maxAttempts {
		return payonce.Errorf(payonce.CodeRateLimited, "order %s has had %d attempts", r.Order.OrderNo, maxAttempts)
	}
	p, err := e.newPayment(v, r, acct, caps, amount, ins)
	if err != nil {
		return err
	}
	e.bind(v, r, p, false)
	switch {
	case p.Status == payonce.Pending:
	case r.Prefer.RespondAsync:
		p.DueAt, in.async = v.Now, true
		v.NewKey.AnswerUntil = time.Time{}
	default:
		e.first(v, p, caps, in)
	}
	keep(p)
	return nil
}

// first takes the right to the first call of an attempt that was never sent, or
// ends it where nothing may be sent any more.
func (e *Engine) first(v *store.View, p *payonce.Payment, caps channel.Capabilities, in *intended) {
	var h held
	if e.right(v, p, caps, &h) {
		in.next, in.permit = h.next, h.permit
		return
	}
	v.CancelUnsent(p, "order-not-open")
}

func (e *Engine) newPayment(v *store.View, r *PayRequest, acct *Account, caps channel.Capabilities, amount payonce.Amount, ins [32]byte) (*payonce.Payment, error) {
	if amount > v.Order.Amount-v.Order.AmountPaid-v.Order.Reserved {
		return nil, payonce.Invalid("/amount", "the share is more than what is left of order %s", v.Order.Key.OrderNo)
	}
	seq := v.Order.LastSequence + 1
	deadAt := v.Now.Add(caps.Life)
	if x := v.Order.ExpiresAt; !x.IsZero() && x.Before(deadAt) {
		deadAt = x
	}
	if deadAt.Sub(v.Now) < minLife {
		return nil, &Refusal{Err: payonce.Errorf(payonce.CodeOrderClosed, "order %s ends too soon to be paid", r.Order.OrderNo), Order: v.Order}
	}
	c := e.composition(r, acct, v.Order, seq, amount, deadAt)
	body, err := acct.Adapter.Compose(c)
	if err != nil {
		return nil, err
	}
	p := &payonce.Payment{
		ID: v.NewID(payonce.PrefixPayment), OrderID: v.Order.ID, Key: v.Order.Key, Sequence: seq, Part: r.Part,
		Status: payonce.Created, Amount: amount, Currency: v.Order.Currency, Channel: acct.Channel, Account: acct.ID,
		Method: r.Method, Number: c.Number, Request: body, Inputs: ins, ReturnURL: r.ReturnURL, DeadAt: deadAt,
	}
	if caps.SelfSigned {
		signer, ok := acct.Adapter.(channel.Signer)
		if !ok {
			return nil, fmt.Errorf("method %s of %s signs itself but cannot", r.Method, acct.Channel)
		}
		if p.Action, err = signer.Sign(*p); err != nil {
			return nil, err
		}
		p.Status = payonce.Pending
	}
	if err := v.AddPayment(p); err != nil {
		return nil, err
	}
	if p.Status == payonce.Pending {
		v.Release(p, v.Now.Add(pendingSteps[0]))
	}
	return p, nil
}

// decideKnown answers a key that is bound, where something has to be done.
func (e *Engine) decideKnown(v *store.View, r *PayRequest, in *intended, keep func(*payonce.Payment)) error {
	p := v.Payment(v.Key.PaymentID)
	if !matches(v.Key, r.Fingerprint, r.Same) || p == nil {
		return idempotency.Reused()
	}
	in.replayed, in.converged = true, v.Key.Converged
	_, caps, err := e.of(p)
	if err != nil {
		keep(p)
		return nil
	}
	switch {
	case p.Status == payonce.Created && r.Prefer.RespondAsync:
		p.CallerAt, p.DueAt, in.async = v.Now, v.Now, true
	case p.Status == payonce.Created:
		p.CallerAt = v.Now
		e.first(v, p, caps, in)
	case actionGone(p, caps, v.Now):
		c := *p
		in.blocker = &c
		return errBlocked
	}
	keep(p)
	return nil
}

// decideConverge binds the key to the live attempt with the same inputs: no call
// is made, unless nobody has made one yet.
func (e *Engine) decideConverge(v *store.View, r *PayRequest, p *payonce.Payment, caps channel.Capabilities, in *intended, keep func(*payonce.Payment)) error {
	e.bind(v, r, p, true)
	in.converged = true
	p.CallerAt = v.Now
	if p.Status == payonce.Created && p.LeaseOwner == "" && !r.Prefer.RespondAsync {
		e.first(v, p, caps, in)
	}
	keep(p)
	return nil
}

func (e *Engine) bind(v *store.View, r *PayRequest, p *payonce.Payment, converged bool) {
	v.NewKey = &store.KeyRecord{
		ID: r.Key, Merchant: r.Order.Merchant, Environment: r.Order.Environment, Kind: "payment", OrderID: v.Order.ID,
		PaymentID: p.ID, FPVersion: r.Fingerprint.Version, FPSecret: r.Fingerprint.Secret, FP: r.Fingerprint.Sum,
		Converged: converged, AnswerUntil: v.Now.Add(min(e.AnswerWithin, e.lease)), CreatedAt: v.Now,
	}
}

// share returns how much this payment is to take.
func share(o *payonce.Order, r *PayRequest) (payonce.Amount, error) {
	if o.Policy != payonce.PolicySplit {
		if r.Part != "" {
			return 0, payonce.Invalid("/part", "order %s is paid in one payment", o.Key.OrderNo)
		}
		return o.Amount, nil
	}
	switch {
	case r.Part == "":
		return 0, payonce.Invalid("/part", "order %s is paid in shares: part is required", o.Key.OrderNo)
	case r.Amount == 0:
		return 0, payonce.Invalid("/amount", "order %s is paid in shares: amount is required", o.Key.OrderNo)
	}
	return r.Amount, nil
}

// compare refuses a request that names another amount or currency than its
// order has.
func compare(o *payonce.Order, r *PayRequest) error {
	if r.Currency != "" && r.Currency != o.Currency || o.Policy != payonce.PolicySplit && r.Amount != 0 && r.Amount != o.Amount {
		return &Refusal{Err: payonce.Errorf(payonce.CodeOrderMismatch, "order %s has another amount or currency", o.Key.OrderNo), Order: o}
	}
	return nil
}
