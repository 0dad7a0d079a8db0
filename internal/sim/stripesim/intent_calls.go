package stripesim

import "strings"

// echoed are parameters of an intent that change nothing here but its answer.
var echoed = []string{"description", "receipt_email", "customer", "setup_future_usage",
	"statement_descriptor", "statement_descriptor_suffix", "transfer_group"}

func (s *Stripe) createIntent(c *call) *result {
	p := c.params
	i, e := s.readIntent(c)
	if e != nil {
		return fail(e)
	}
	if i.ID = c.id; i.ID == "" {
		i.ID = s.w.ID("pi_")
	}
	i.Seq = s.w.Sequence()
	i.Secret = i.ID + "_secret_" + s.w.Seed.Text("stripe client secret", i.Seq, 24)
	s.addIntent(i)
	c.number = i.Number
	s.emitIntent(c, "payment_intent.created", i)
	if p.flag("confirm") {
		if e := s.attempt(c, i, p); e != nil {
			return fail(e)
		}
	}
	return s.intentAnswer(c, i)
}

// readIntent checks everything before anything is made.
func (s *Stripe) readIntent(c *call) (*intent, *apiError) {
	p := c.params
	for _, name := range []string{"amount", "currency"} {
		if p.get(name) == "" {
			return nil, invalid("parameter_missing", name, "Missing required param: "+name+".")
		}
	}
	amount, _, e := p.integer("amount")
	if e != nil {
		return nil, e
	}
	i := &intent{Amount: amount, Currency: strings.ToLower(p.get("currency")), Created: s.now(),
		Capture: "automatic_async", Confirmation: "automatic", Types: []string{"card"}, Status: requiresMethod}
	if e := checkAmount(i.Amount, i.Currency); e != nil {
		return nil, e
	}
	i.Automatic = p.get("automatic_payment_methods[enabled]") == "true"
	if types := p.list("payment_method_types"); len(types) > 0 {
		if len(types) != 1 || types[0] != "card" {
			return nil, invalid("payment_method_unactivated", "payment_method_types", "Only card is activated for this account.")
		}
		i.Automatic = false
	}
	if p.has("return_url") && !p.flag("confirm") {
		return nil, invalid("parameter_unknown", "return_url", "return_url may only be sent with confirm=true.")
	}
	if e := s.applyParams(i, p); e != nil {
		return nil, e
	}
	if p.flag("confirm") && i.Method == "" {
		return nil, invalid("parameter_missing", "payment_method", "A payment_method is needed to confirm.")
	}
	return i, nil
}

// applyParams sets what create, update and confirm have in common.
func (s *Stripe) applyParams(i *intent, p params) *apiError {
	for name, values := range map[string][]string{
		"capture_method":      {"automatic", "automatic_async", "manual"},
		"confirmation_method": {"automatic", "manual"},
		"setup_future_usage":  {"", "off_session", "on_session"},
		"confirm":             {"true", "false"},
		"off_session":         {"true", "false", "one_off", "recurring"},
	} {
		if e := p.oneOf(name, values...); e != nil {
			return e
		}
	}
	metadata, e := p.mergeMetadata(i.Metadata)
	if e != nil {
		return e
	}
	if id := p.get("payment_method"); id != "" {
		if _, e := findMethod(id); e != nil {
			return e
		}
		i.Proven = i.Proven && i.Method == id
		i.Method, i.LastError = id, nil
		if i.Status == requiresMethod {
			i.Status = requiresConfirmation
		}
	}
	i.Metadata = metadata
	if v := p.get("capture_method"); v != "" {
		i.Capture = v
	}
	if v := p.get("confirmation_method"); v != "" {
		i.Confirmation = v
	}
	if v := p.get("return_url"); v != "" {
		i.ReturnURL = v
	}
	for _, name := range echoed {
		if p.has(name) {
			if i.Texts == nil {
				i.Texts = map[string]string{}
			}
			i.Texts[name] = p.get(name)
		}
	}
	return nil
}

func (s *Stripe) getIntent(c *call) *result {
	i := s.intents.Get(c.id)
	if i == nil {
		return fail(missing("payment_intent", c.id, "intent"))
	}
	return s.intentAnswer(c, i)
}

func (s *Stripe) updateIntent(c *call) *result {
	old := s.intents.Get(c.id)
	if old == nil {
		return fail(missing("payment_intent", c.id, "intent"))
	}
	p := c.params
	amountOf, moved, e := p.integer("amount")
	if e != nil {
		return fail(e)
	}
	open := old.Status == requiresMethod || old.Status == requiresConfirmation || old.Status == requiresAction
	if old.Status == canceled || !open && (moved || p.has("currency") || p.has("payment_method")) {
		return fail(s.unexpectedState(old, "updated"))
	}
	next := *old
	if moved {
		next.Amount = amountOf
	}
	if v := p.get("currency"); v != "" {
		next.Currency = strings.ToLower(v)
	}
	if e := checkAmount(next.Amount, next.Currency); e != nil {
		return fail(e)
	}
	if e := s.applyParams(&next, p); e != nil {
		return fail(e)
	}
	if next.Status == requiresAction && (moved || p.has("payment_method")) {
		next.Status, next.ActionURL = requiresConfirmation, ""
	}
	*old = next
	s.renumber(old)
	s.intents.Put(old.ID, old)
	return s.intentAnswer(c, old)
}

// renumber keeps the index right when the metadata has changed.
func (s *Stripe) renumber(i *intent) {
	number := i.numberNow()
	if number == i.Number {
		return
	}
	left := s.byNumber[i.Number][:0]
	for _, id := range s.byNumber[i.Number] {
		if id != i.ID {
			left = append(left, id)
		}
	}
	s.byNumber[i.Number] = left
	i.Number = number
	s.byNumber[number] = append(s.byNumber[number], i.ID)
}

func (s *Stripe) confirmIntent(c *call) *result {
	i := s.intents.Get(c.id)
	if i == nil {
		return fail(missing("payment_intent", c.id, "intent"))
	}
	switch i.Status {
	case requiresMethod, requiresConfirmation, requiresAction:
	default:
		return fail(s.unexpectedState(i, "confirmed"))
	}
	next := *i
	if e := s.applyParams(&next, c.params); e != nil {
		return fail(e)
	}
	if next.Method == "" {
		return fail(s.unexpectedState(i, "confirmed without a payment method"))
	}
	*i = next
	if e := s.attempt(c, i, c.params); e != nil {
		return fail(e)
	}
	return s.intentAnswer(c, i)
}

func (s *Stripe) captureIntent(c *call) *result {
	i := s.intents.Get(c.id)
	if i == nil {
		return fail(missing("payment_intent", c.id, "intent"))
	}
	amount, given, e := c.params.integer("amount_to_capture")
	switch {
	case e != nil:
		return fail(e)
	case i.Status != requiresCapture:
		return fail(s.unexpectedState(i, "captured"))
	case given && (amount < 1 || amount > i.Capturable):
		return fail(invalid("amount_too_large", "amount_to_capture", "The amount must be between 1 and the amount that is capturable."))
	case !given:
		amount = i.Capturable
	}
	ch := s.charges.Get(i.Charge)
	ch.Taken, ch.Captured, ch.Balance = true, amount, s.w.ID("txn_")
	i.Status, i.Received, i.Capturable, i.PaidAt = succeeded, amount, 0, s.now()
	s.charges.Put(ch.ID, ch)
	s.intents.Put(i.ID, i)
	s.emitCharge(c, "charge.captured", ch)
	s.emitIntent(c, "payment_intent.succeeded", i)
	return s.intentAnswer(c, i)
}

func (s *Stripe) cancelCall(c *call) *result {
	i := s.intents.Get(c.id)
	if i == nil {
		return fail(missing("payment_intent", c.id, "intent"))
	}
	if e := c.params.oneOf("cancellation_reason", "duplicate", "fraudulent", "requested_by_customer", "abandoned"); e != nil {
		return fail(e)
	}
	switch i.Status {
	case requiresMethod, requiresConfirmation, requiresAction, requiresCapture:
	default:
		return fail(s.unexpectedState(i, "canceled"))
	}
	s.cancelIntent(c, i, c.params.get("cancellation_reason"))
	return s.intentAnswer(c, i)
}

func (s *Stripe) intentAnswer(c *call, i *intent) *result {
	return ok(s.renderIntent(i, c.expands("latest_charge")))
}

func (s *Stripe) listIntents(c *call) *result {
	return listOf(c, s.intentOrder, "/v1/payment_intents", func(id string) (any, int64, bool) {
		i := s.intents.Get(id)
		if customer := c.params.get("customer"); customer != "" && i.Texts["customer"] != customer {
			return nil, 0, false
		}
		return s.renderIntent(i, c.expands("data.latest_charge")), i.Created, true
	})
}
