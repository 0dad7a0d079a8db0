package prove

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
)

// client is one caller of the service with one wish.
type client struct {
	Request
	w      *world
	index  int
	left   int
	asking bool
	got    string // what it was told last
}

func (c *client) keyID() [32]byte { return sha256.Sum256(fmt.Append(nil, "key", c.index)) }

// ask starts a request in a process. It ends with it: a client whose process dies
// hears nothing and asks again.
func (c *client) ask(p *proc) {
	c.left--
	c.asking = true
	id := fmt.Sprintf("client%d.%d@%s.%d", c.index, c.left, p.node, p.number)
	c.w.spawn(p, id, func() { c.request(p) }, func(killed bool) {
		c.asking = false
		if killed {
			c.got = "nothing"
		}
	})
}

func (c *client) request(p *proc) {
	ctx := context.Background()
	key := c.keyID()
	action := engine.ActionRequest{Scope: scope, Action: c.Kind, Key: &key, Fingerprint: c.fingerprint()}
	var err error
	switch c.Kind {
	case "pay":
		err = c.pay(ctx, p, key)
	case "close":
		var res *engine.OrderResult
		res, err = p.engine.CloseOrder(ctx, action, c.w.orders[0].OrderNo)
		if err == nil {
			c.told(string(res.Order.Status))
		}
	case "amend":
		_, err = p.engine.AmendOrder(ctx, action, c.w.orders[0].OrderNo, total+500, "")
	case "cancel", "sync":
		o := c.w.order()
		if len(o.Payments) == 0 {
			return
		}
		id := o.Payments[len(o.Payments)-1].ID
		if c.Kind == "sync" {
			_, err = p.engine.Sync(ctx, action, id)
			break
		}
		q, proven, failed := p.engine.Cancel(ctx, action, id)
		if err = failed; err == nil && proven == q.Status.Live() {
			c.w.fail("answer-is-true", "cancel says proven %v of a payment that is %s", proven, q.Status)
		}
	}
	if err != nil {
		c.told(codeOf(err))
	}
}

func (c *client) fingerprint() idempotency.Fingerprint {
	return idempotency.Fingerprint{Version: 1, Secret: "s", Sum: sha256.Sum256(fmt.Append(nil, c.index))}
}

func (c *client) told(what string) {
	c.got = what
	c.w.reached["told "+what] = true
}

// pay asks for a payment, and believes no success that the channel's books do not
// show.
func (c *client) pay(ctx context.Context, p *proc, key [32]byte) error {
	r := engine.PayRequest{Order: c.w.orders[0], Key: key, Fingerprint: c.fingerprint(), Channel: "codes", Method: c.Method,
		Amount: total, Currency: currency, Subject: "tea", Part: c.Part, Prefer: idempotency.Preference{RespondAsync: c.Async, Wait: c.Wait}}
	if c.Amount > 0 {
		r.Amount = c.Amount
	}
	if c.Method == "card" {
		r.Channel = "cards"
		r.Payer.PaymentMethod = "pm"
	}
	res, err := p.engine.Pay(ctx, r)
	if err != nil {
		return err
	}
	c.told(string(res.Payment.Status))
	if res.Payment.Status == payonce.Succeeded && !c.w.charged(res.Payment.Number, true) {
		c.w.fail("answer-is-true", "a client was told that %s succeeded, and nothing was charged", res.Payment.Number)
	}
	if res.Stored != nil && string(res.Stored.Body) != res.Payment.ID+" "+string(res.Payment.Status) {
		c.w.fail("answer-is-true", "the stored answer is %q and the payment %s", res.Stored.Body, res.Payment.Status)
	}
	return nil
}

func codeOf(err error) string {
	var pe *payonce.Error
	var ip *idempotency.Problem
	switch {
	case errors.As(err, &pe):
		return string(pe.Code)
	case errors.As(err, &ip):
		return ip.Code
	}
	return "error"
}

// charged reports whether the channels' books show a charge of the number.
func (w *world) charged(number string, late bool) bool {
	for _, t := range w.money {
		if t.number == number && (late || !t.late) {
			return true
		}
	}
	return false
}
