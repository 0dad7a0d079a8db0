package stripesim

import (
	"strings"
	"time"
)

// refundSettles is when a pending refund succeeds and a failing one fails, on
// the virtual clock.
const refundSettles = time.Minute

// refund gives money of a charge back.
type refund struct {
	Seq           int64             `json:"seq"`
	ID            string            `json:"id"`
	Charge        string            `json:"charge"`
	Intent        string            `json:"intent"`
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`
	Status        string            `json:"status"` // pending, succeeded, failed
	Reason        string            `json:"reason,omitempty"`
	Created       int64             `json:"created"`
	Next          string            `json:"next,omitempty"` // the status that time brings
	NextAt        int64             `json:"next_at,omitempty"`
	Balance       string            `json:"balance"`
	FailedBalance string            `json:"failed_balance,omitempty"`
	FailedAt      int64             `json:"failed_at,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
}

// refundNumberKey is the metadata that carries the merchant's refund number.
const refundNumberKey = "payonce_refund_number"

func (r *refund) number() string {
	if n := r.Metadata[refundNumberKey]; n != "" {
		return n
	}
	return r.ID
}

// refundTarget finds the charge that a refund call names.
func (s *Stripe) refundTarget(p params) (*charge, *apiError) {
	if id := p.get("charge"); id != "" {
		ch := s.charges.Get(id)
		if ch == nil {
			return nil, missing("charge", id, "charge")
		}
		if pi := p.get("payment_intent"); pi != "" && pi != ch.Intent {
			return nil, invalid("parameter_invalid", "payment_intent", "The charge belongs to another payment_intent.")
		}
		return ch, nil
	}
	id := p.get("payment_intent")
	if id == "" {
		return nil, invalid("parameter_missing", "payment_intent", "One of charge and payment_intent is required.")
	}
	i := s.intents.Get(id)
	if i == nil {
		return nil, missing("payment_intent", id, "payment_intent")
	}
	ch := s.charges.Get(i.Charge)
	if ch == nil || !ch.Taken {
		e := refused("", "This PaymentIntent does not have a successful charge to refund.")
		e.Param = "payment_intent"
		return nil, e
	}
	return ch, nil
}

func (s *Stripe) createRefund(c *call) *result {
	ch, e := s.refundTarget(c.params)
	if e != nil {
		return fail(e)
	}
	amount, given, e := c.params.integer("amount")
	if e != nil {
		return fail(e)
	}
	if e := c.params.oneOf("reason", "duplicate", "fraudulent", "requested_by_customer"); e != nil {
		return fail(e)
	}
	metadata, e := c.params.mergeMetadata(nil)
	if e != nil {
		return fail(e)
	}
	if given && amount < 1 {
		return fail(invalid("parameter_invalid_integer", "amount", "This value must be greater than or equal to 1."))
	}
	if !given {
		amount = ch.Captured - ch.Refunded
	}
	r, e := s.makeRefund(c, ch, amount, c.params.get("reason"), metadata)
	if e != nil {
		return fail(e)
	}
	return ok(s.renderRefund(r))
}

// makeRefund checks the sum and books the refund.
func (s *Stripe) makeRefund(c *call, ch *charge, amount int64, reason string, metadata map[string]string) (*refund, *apiError) {
	switch left := ch.Captured - ch.Refunded; {
	case ch.Status != succeeded || !ch.Taken:
		return nil, refused("", "Charge "+ch.ID+" has not been captured.")
	case ch.Disputed:
		return nil, refused("charge_disputed", "Charge "+ch.ID+" is disputed.")
	case left == 0:
		return nil, refused("charge_already_refunded", "Charge "+ch.ID+" has already been refunded.")
	case amount > left:
		e := refused("", "The refund is greater than what is left of charge "+ch.ID+".")
		e.Param = "amount"
		return nil, e
	}
	r := &refund{ID: s.w.ID("re_"), Charge: ch.ID, Intent: ch.Intent, Amount: amount, Currency: ch.Currency,
		Status: succeeded, Reason: reason, Created: s.now(), Metadata: metadata}
	r.Seq = s.w.Sequence()
	r.Balance = s.w.ID("txn_")
	switch methods[ch.Method].refund {
	case refundPends:
		r.Status, r.Next = "pending", succeeded
	case refundFails:
		r.Next = "failed"
	}
	if r.Next != "" {
		r.NextAt = s.w.Now().Add(refundSettles).Unix()
		s.settleRefundAt(r)
	}
	ch.Refunded += amount
	s.charges.Put(ch.ID, ch)
	s.refunds.Put(r.ID, r)
	s.refundOrder = append(s.refundOrder, r.ID)
	s.byCharge[ch.ID] = append(s.byCharge[ch.ID], r.ID)
	s.emitRefund(c, "refund.created", r)
	s.emitCharge(c, "charge.refunded", ch)
	return r, nil
}

// settleRefundAt lets time finish a refund that is not at its end.
func (s *Stripe) settleRefundAt(r *refund) {
	if r.Next == "" {
		return
	}
	id := r.ID
	s.w.At(unix(r.NextAt), func() {
		s.spontaneous(func(c *call) { s.settleRefund(c, s.refunds.Get(id)) })
	})
}

func (s *Stripe) settleRefund(c *call, r *refund) {
	if r.Next == "" || s.now() < r.NextAt {
		return
	}
	r.Status, r.Next, r.NextAt = r.Next, "", 0
	if r.Status == "failed" {
		r.FailedBalance, r.FailedAt = s.w.ID("txn_"), s.now()
		ch := s.charges.Get(r.Charge)
		ch.Refunded -= r.Amount
		s.charges.Put(ch.ID, ch)
	}
	s.refunds.Put(r.ID, r)
	s.emitRefund(c, "refund.updated", r)
	if r.Status == "failed" {
		s.emitRefund(c, "refund.failed", r)
	}
}

func (s *Stripe) getRefund(c *call) *result {
	r := s.refunds.Get(c.id)
	if r == nil {
		return fail(missing("refund", c.id, "id"))
	}
	return ok(s.renderRefund(r))
}

func (s *Stripe) listRefunds(c *call) *result {
	order := s.refundOrder
	if ch := c.params.get("charge"); ch != "" {
		order = s.byCharge[ch]
	} else if i := s.intents.Get(c.params.get("payment_intent")); i != nil {
		order = s.byCharge[i.Charge]
	}
	return listOf(c, order, "/v1/refunds", func(id string) (any, int64, bool) {
		r := s.refunds.Get(id)
		if pi := c.params.get("payment_intent"); pi != "" && pi != r.Intent {
			return nil, 0, false
		}
		return s.renderRefund(r), r.Created, true
	})
}

func (s *Stripe) refundNumber(id string) string {
	if r := s.refunds.Get(id); r != nil {
		return s.numberOf(r.Intent)
	}
	return id
}

// numberOf is the books' number of an intent or charge id.
func (s *Stripe) numberOf(id string) string {
	if strings.HasPrefix(id, "ch_") {
		if ch := s.charges.Get(id); ch != nil {
			id = ch.Intent
		}
	}
	if i := s.intents.Get(id); i != nil {
		return i.Number
	}
	return id
}
