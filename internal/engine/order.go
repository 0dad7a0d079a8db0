package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/store"
)

// CreateOrder makes an order, or returns the one that is there with the same
// amount and currency; with others it refuses with order-mismatch.
func (e *Engine) CreateOrder(ctx context.Context, r OrderRequest) (*OrderResult, error) {
	if r.Policy == "" {
		r.Policy = payonce.PolicySingle
	}
	out := &OrderResult{}
	u := &store.Unit{Order: r.Order, Key: r.Key, Create: &payonce.Order{
		ID: e.newID(payonce.PrefixOrder, e.Runner.Now()), Key: r.Order, Amount: r.Amount, Currency: r.Currency,
		Subject: r.Subject, Policy: r.Policy, ExpiresAt: r.ExpiresAt, Metadata: r.Metadata}}
	err := e.write(context.WithoutCancel(ctx), "t1", "request", u, func(v *store.View) error {
		*out = OrderResult{}
		replayed, err := e.bindAction(v, &r.ActionRequest)
		if err != nil {
			return err
		}
		o := v.Order
		if o.Amount != r.Amount || o.Currency != r.Currency || o.Policy != r.Policy {
			return &Refusal{Err: payonce.Errorf(payonce.CodeOrderMismatch, "order %s has another amount, currency or policy", r.Order.OrderNo), Order: copyOf(o)}
		}
		if v.Created {
			v.Changes = append(v.Changes, payonce.Change{To: string(o.Status), Cause: "created"})
		}
		out.Created, out.Replayed = v.Created, replayed
		out.Order, out.Payments = copyOf(o), copies(v.Payments)
		if !v.Created && v.NewKey == nil {
			return errNothing
		}
		return nil
	})
	if err != nil && !errors.Is(err, errNothing) {
		return nil, err
	}
	return out, nil
}

// AmendOrder changes the amount of an unpaid open order, after everything live
// was closed at its channel.
func (e *Engine) AmendOrder(ctx context.Context, r ActionRequest, orderNo string, amount payonce.Amount, subject string) (*OrderResult, error) {
	ctx = context.WithoutCancel(ctx)
	key := payonce.OrderKey{Merchant: r.Scope.Merchant, Environment: r.Scope.Environment, OrderNo: orderNo}
	for round := 0; ; round++ {
		out, blocker := &OrderResult{}, (*payonce.Payment)(nil)
		err := e.write(ctx, "apply", "request", &store.Unit{Order: key, Key: r.Key}, func(v *store.View) error {
			*out, blocker = OrderResult{Proven: true}, nil
			replayed, err := e.bindAction(v, &r)
			if err != nil {
				return err
			}
			out.Replayed = replayed
			o := v.Order
			switch {
			case replayed:
				// The key was stored with its effect: it is done.
			case o.Status == payonce.OrderPaid || o.AmountPaid > 0:
				return &Refusal{Err: payonce.Errorf(payonce.CodeOrderAlreadyPaid, "order %s is paid, its amount is final", orderNo), Order: copyOf(o), Payment: v.Effective("")}
			case !o.Chargeable(v.Now):
				return &Refusal{Err: payonce.Errorf(payonce.CodeOrderClosed, "order %s is closed, its amount is final", orderNo), Order: copyOf(o)}
			case v.AnyLive():
				for _, p := range v.Payments {
					if p.Status == payonce.Created {
						v.CancelUnsent(p, "amended")
					}
				}
				if blocker = firstLive(v); blocker != nil {
					return errBlocked
				}
				fallthrough
			default:
				if err := v.Amend(amount, subject); err != nil {
					return err
				}
			}
			out.Order, out.Payments = copyOf(o), copies(v.Payments)
			return nil
		})
		if !errors.Is(err, errBlocked) {
			if err != nil {
				return nil, err
			}
			return out, nil
		}
		if err := e.clear(ctx, blocker, round); err != nil {
			return nil, err
		}
	}
}

func firstLive(v *store.View) *payonce.Payment {
	for _, p := range v.Payments {
		if p.Status.Live() {
			c := *p
			return &c
		}
	}
	return nil
}

// CloseOrder commits CLOSING, closes what is live at its channel, and returns
// the order however it ended; Proven is false while something may still take
// money. Workers go on with it then.
func (e *Engine) CloseOrder(ctx context.Context, r ActionRequest, orderNo string) (*OrderResult, error) {
	ctx = context.WithoutCancel(ctx)
	key := payonce.OrderKey{Merchant: r.Scope.Merchant, Environment: r.Scope.Environment, OrderNo: orderNo}
	var live []*payonce.Payment
	replayed := false
	err := e.write(ctx, "apply", "request", &store.Unit{Order: key, Key: r.Key}, func(v *store.View) error {
		live = nil
		var err error
		if replayed, err = e.bindAction(v, &r); err != nil {
			return err
		}
		closeOrder(v, "api")
		for _, p := range v.Payments {
			if p.Status.Live() {
				c := *p
				live = append(live, &c)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range live {
		if err := e.end(ctx, p); err != nil {
			return nil, err
		}
	}
	now, err := e.Store.Order(ctx, key)
	if err != nil {
		return nil, err
	}
	return &OrderResult{Order: now.Order, Payments: now.Payments, Proven: now.Order.Status != payonce.OrderClosing, Replayed: replayed}, nil
}

// end brings a payment to its end as far as that can be proven now: it waits for
// a call under way, then closes. What cannot be proven is left to a worker.
func (e *Engine) end(ctx context.Context, p *payonce.Payment) error {
	for round := 0; p.Status.Live(); round++ {
		err := e.clear(ctx, p, round)
		var ref *Refusal
		if errors.As(err, &ref) {
			return nil
		}
		if err != nil {
			return err
		}
		if p, err = e.Store.Payment(ctx, scopeOf(p.Key), p.ID); err != nil {
			return err
		}
	}
	return nil
}

// Sync asks the channel about a live payment now and returns what it then is.
func (e *Engine) Sync(ctx context.Context, r ActionRequest, paymentID string) (*payonce.Payment, error) {
	ctx = context.WithoutCancel(ctx)
	p, err := e.begunAction(ctx, &r, paymentID)
	if err != nil || !p.Status.Live() || !e.asked.may(paymentID, e.Runner.Now(), syncGap) {
		return p, err
	}
	if _, err := e.bring(ctx, p, false); err != nil && !errors.Is(err, errNotFree) && !errors.Is(err, errNothing) {
		return nil, err
	}
	return e.Store.Payment(ctx, r.Scope, paymentID)
}

// Cancel closes a live payment at its channel. proven is false while it may
// still take money; a payment that was faster is returned SUCCEEDED.
func (e *Engine) Cancel(ctx context.Context, r ActionRequest, paymentID string) (p *payonce.Payment, proven bool, err error) {
	ctx = context.WithoutCancel(ctx)
	p, err = e.Store.Payment(ctx, r.Scope, paymentID)
	if err != nil {
		return nil, false, err
	}
	// The wish is committed first: whoever holds the payment now ends it.
	err = e.write(ctx, "apply", "request", &store.Unit{Order: p.Key, Key: r.Key}, func(v *store.View) error {
		known, err := e.bindAction(v, &r)
		q := v.Payment(paymentID)
		if err != nil || q == nil || known || !q.Status.Live() && r.Key == nil {
			return cmp.Or(err, errNothing)
		}
		v.GiveUp(q)
		if q.Status.Live() && q.LeaseOwner == "" {
			q.DueAt = v.Now
		}
		return nil
	})
	if err != nil && !errors.Is(err, errNothing) {
		return nil, false, err
	}
	if p.Status.Live() {
		if err := e.end(ctx, p); err != nil {
			return nil, false, err
		}
		if p, err = e.Store.Payment(ctx, r.Scope, paymentID); err != nil {
			return nil, false, err
		}
	}
	return p, !p.Status.Live(), nil
}

// begunAction binds the action's key, if there is one, and returns the payment.
func (e *Engine) begunAction(ctx context.Context, r *ActionRequest, paymentID string) (*payonce.Payment, error) {
	p, err := e.Store.Payment(ctx, r.Scope, paymentID)
	if err != nil || r.Key == nil {
		return p, err
	}
	err = e.write(ctx, "apply", "request", &store.Unit{Order: p.Key, Key: r.Key}, func(v *store.View) error {
		known, err := e.bindAction(v, r)
		if err == nil && known {
			return errNothing
		}
		return err
	})
	if err != nil && !errors.Is(err, errNothing) {
		return nil, err
	}
	return p, nil
}

// bindAction keeps the key of a call that is idempotent by nature, so that the
// same key with another request is refused. It reports whether the key was known.
func (e *Engine) bindAction(v *store.View, r *ActionRequest) (bool, error) {
	if r.Key == nil {
		return false, nil
	}
	if v.Key != nil {
		if !matches(v.Key, r.Fingerprint, r.Same) || v.Key.Kind != r.Action {
			return false, idempotency.Reused()
		}
		return true, nil
	}
	v.NewKey = &store.KeyRecord{ID: *r.Key, Merchant: r.Scope.Merchant, Environment: r.Scope.Environment, Kind: r.Action,
		OrderID: v.Order.ID, FPVersion: r.Fingerprint.Version, FPSecret: r.Fingerprint.Secret, FP: r.Fingerprint.Sum, CreatedAt: v.Now}
	return false, nil
}

func copyOf(o *payonce.Order) *payonce.Order { c := *o; return &c }

func copies(ps []*payonce.Payment) []*payonce.Payment {
	out := make([]*payonce.Payment, len(ps))
	for i, p := range ps {
		c := *p
		out[i] = &c
	}
	return out
}
