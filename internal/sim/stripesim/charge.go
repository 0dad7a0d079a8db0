package stripesim

// charge is one attempt to take money for an intent.
type charge struct {
	Seq            int64  `json:"seq"`
	ID             string `json:"id"`
	Intent         string `json:"intent"`
	Amount         int64  `json:"amount"`
	Captured       int64  `json:"captured,omitempty"`
	Refunded       int64  `json:"refunded,omitempty"` // sum of refunds that have not failed
	Currency       string `json:"currency"`
	Status         string `json:"status"` // succeeded, failed
	Taken          bool   `json:"taken,omitempty"`
	Released       bool   `json:"released,omitempty"` // the hold has ended without money
	CaptureUntil   int64  `json:"capture_until,omitempty"`
	Method         string `json:"method"`
	Created        int64  `json:"created"`
	Balance        string `json:"balance,omitempty"`
	Disputed       bool   `json:"disputed,omitempty"`
	FailureCode    string `json:"failure_code,omitempty"`
	FailureMessage string `json:"failure_message,omitempty"`
	DeclineCode    string `json:"decline_code,omitempty"`
}

// newCharge makes a charge that is not stored yet.
func (s *Stripe) newCharge(i *intent, amount int64) *charge {
	ch := &charge{ID: s.w.ID("ch_"), Intent: i.ID, Amount: amount, Currency: i.Currency, Method: i.Method, Created: s.now()}
	ch.Seq = s.w.Sequence()
	s.chargeOrder = append(s.chargeOrder, ch.ID)
	return ch
}

func (s *Stripe) getCharge(c *call) *result {
	ch := s.charges.Get(c.id)
	if ch == nil {
		return fail(missing("charge", c.id, "id"))
	}
	return ok(s.renderCharge(ch))
}

func (s *Stripe) listCharges(c *call) *result {
	return listOf(c, s.chargeOrder, "/v1/charges", func(id string) (any, int64, bool) {
		ch := s.charges.Get(id)
		if pi := c.params.get("payment_intent"); pi != "" && pi != ch.Intent {
			return nil, 0, false
		}
		return s.renderCharge(ch), ch.Created, true
	})
}

// dispute records that the payer's bank takes the money back for now.
func (s *Stripe) dispute(c *call, ch *charge) {
	ch.Disputed = true
	s.charges.Put(ch.ID, ch)
	i := s.intents.Get(ch.Intent)
	s.emit(c, "charge.dispute.created", i.Number, ch.ID, map[string]any{
		"id": s.w.ID("dp_"), "object": "dispute", "amount": ch.Captured, "charge": ch.ID, "currency": ch.Currency,
		"created": s.now(), "livemode": false, "metadata": map[string]string{}, "payment_intent": ch.Intent,
		"reason": "general", "status": "needs_response", "is_charge_refundable": false,
		"balance_transactions": []any{}, "evidence_details": map[string]any{"due_by": s.now() + 7*24*3600, "has_evidence": false, "past_due": false, "submission_count": 0},
	})
}

// listBalance is the statement: one line per charge that was taken and per
// refund.
func (s *Stripe) listBalance(c *call) *result {
	type line struct {
		id, source, kind string
		amount, created  int64
		currency         string
	}
	var ids []string
	lines := map[string]line{}
	add := func(l line) {
		ids = append(ids, l.id)
		lines[l.id] = l
	}
	for _, id := range s.chargeOrder {
		if ch := s.charges.Get(id); ch.Balance != "" {
			add(line{ch.Balance, ch.ID, "charge", ch.Captured, s.intents.Get(ch.Intent).PaidAt, ch.Currency})
		}
	}
	for _, id := range s.refundOrder {
		r := s.refunds.Get(id)
		add(line{r.Balance, r.ID, "refund", -r.Amount, r.Created, r.Currency})
		if r.FailedBalance != "" {
			add(line{r.FailedBalance, r.ID, "refund_failure", r.Amount, r.FailedAt, r.Currency})
		}
	}
	return listOf(c, ids, "/v1/balance_transactions", func(id string) (any, int64, bool) {
		l := lines[id]
		p := c.params
		if p.get("source") != "" && p.get("source") != l.source || p.get("type") != "" && p.get("type") != l.kind {
			return nil, 0, false
		}
		return map[string]any{
			"id": l.id, "object": "balance_transaction", "amount": l.amount, "net": l.amount, "fee": 0,
			"fee_details": []any{}, "currency": l.currency, "created": l.created, "available_on": l.created,
			"type": l.kind, "reporting_category": l.kind, "source": l.source, "status": "available",
			"description": nil, "exchange_rate": nil,
		}, l.created, true
	})
}
