package stripesim

import (
	"time"
)

// Statuses of an intent.
const (
	requiresMethod       = "requires_payment_method"
	requiresConfirmation = "requires_confirmation"
	requiresAction       = "requires_action"
	processing           = "processing"
	requiresCapture      = "requires_capture"
	canceled             = "canceled"
	succeeded            = "succeeded"
)

// captureWindow is how long an authorization lives, on the virtual clock.
const captureWindow = 7 * 24 * time.Hour

// intent is a PaymentIntent. Amounts are in the smallest unit, times are
// virtual Unix seconds.
type intent struct {
	Seq          int64             `json:"seq"`
	ID           string            `json:"id"`
	Number       string            `json:"number"` // what the books know it by
	Secret       string            `json:"secret"`
	Amount       int64             `json:"amount"`
	Received     int64             `json:"received,omitempty"`
	Capturable   int64             `json:"capturable,omitempty"`
	Currency     string            `json:"currency"`
	Status       string            `json:"status"`
	Created      int64             `json:"created"`
	PaidAt       int64             `json:"paid_at,omitempty"`
	CanceledAt   int64             `json:"canceled_at,omitempty"`
	CancelReason string            `json:"cancel_reason,omitempty"`
	Capture      string            `json:"capture"`      // automatic, automatic_async, manual
	Confirmation string            `json:"confirmation"` // automatic, manual
	Types        []string          `json:"types"`
	Automatic    bool              `json:"automatic,omitempty"` // automatic_payment_methods
	Method       string            `json:"method,omitempty"`
	Charge       string            `json:"charge,omitempty"` // latest_charge
	LastError    *apiError         `json:"last_error,omitempty"`
	ActionURL    string            `json:"action_url,omitempty"`
	ReturnURL    string            `json:"return_url,omitempty"`
	Proven       bool              `json:"proven,omitempty"` // the payer has authenticated
	CaptureUntil int64             `json:"capture_until,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	Texts        map[string]string `json:"texts,omitempty"` // parameters that are only echoed
}

// numberKey is the metadata that carries the merchant's number.
const numberKey = "payonce_number"

func (i *intent) numberNow() string {
	if n := i.Metadata[numberKey]; n != "" {
		return n
	}
	return i.ID
}

func (s *Stripe) addIntent(i *intent) {
	i.Number = i.numberNow()
	s.intents.Put(i.ID, i)
	s.intentOrder = append(s.intentOrder, i.ID)
	s.byNumber[i.Number] = append(s.byNumber[i.Number], i.ID)
}

// unexpectedState is the answer to an operation that the status forbids; the
// intent is inside.
func (s *Stripe) unexpectedState(i *intent, verb string) *apiError {
	e := refused("payment_intent_unexpected_state",
		"This PaymentIntent's status is "+i.Status+": it cannot be "+verb+".")
	e.PaymentIntent = s.renderIntent(i, false)
	return e
}

// attempt plays the confirm of an intent whose method is set: success,
// authorization, action, processing, or the error of a decline.
func (s *Stripe) attempt(c *call, i *intent, p params) *apiError {
	m := methods[i.Method]
	i.LastError, i.ActionURL = nil, ""
	needsAction := m.action && !i.Proven
	if needsAction && (p.flag("off_session") || p.flag("error_on_requires_action")) {
		return s.decline(c, i, method{decline: "authentication_required", declineCode: "authentication_required",
			message: "This payment needs the customer to authenticate."})
	}
	switch {
	case needsAction:
		i.Status = requiresAction
		i.ActionURL = c.base + "/_sim/pages/stripe/" + i.ID
		s.intents.Put(i.ID, i)
		s.emitIntent(c, "payment_intent.requires_action", i)
		return nil
	case m.processing:
		i.Status = processing
		s.intents.Put(i.ID, i)
		s.emitIntent(c, "payment_intent.processing", i)
		return nil
	case m.decline != "":
		return s.decline(c, i, m)
	}
	s.collect(c, i, i.Amount)
	return nil
}

// collect takes the money, or holds it when it is captured later.
func (s *Stripe) collect(c *call, i *intent, amount int64) {
	m := methods[i.Method]
	manual := i.Capture == "manual"
	ch := s.newCharge(i, amount)
	ch.Status, ch.Taken = succeeded, !manual
	i.Charge, i.LastError, i.ActionURL = ch.ID, nil, ""
	if manual {
		i.Status, i.Capturable = requiresCapture, amount
		i.CaptureUntil = s.w.Now().Add(captureWindow).Unix()
		ch.CaptureUntil = i.CaptureUntil
	} else {
		i.Status, i.Received, i.PaidAt = succeeded, amount, s.now()
		ch.Captured, ch.Balance = amount, s.w.ID("txn_")
	}
	s.charges.Put(ch.ID, ch)
	s.intents.Put(i.ID, i)
	s.emitCharge(c, "charge.succeeded", ch)
	if manual {
		s.emitIntent(c, "payment_intent.amount_capturable_updated", i)
		s.lapseAt(i)
		return
	}
	s.emitIntent(c, "payment_intent.succeeded", i)
	if m.dispute {
		s.dispute(c, ch)
	}
}

// decline books a failed charge and puts the intent back to the start.
func (s *Stripe) decline(c *call, i *intent, m method) *apiError {
	ch := s.newCharge(i, i.Amount)
	ch.Status = "failed"
	ch.FailureCode, ch.FailureMessage, ch.DeclineCode = m.decline, m.message, m.declineCode
	s.charges.Put(ch.ID, ch)
	e := &apiError{Type: typeCard, Code: m.decline, DeclineCode: m.declineCode, Message: m.message,
		DocURL: docURL(m.decline), Charge: ch.ID, PaymentMethod: cardMethod(i.Method, i.Created), status: 402, executed: true}
	i.Charge = ch.ID
	s.backToStart(i, e)
	s.emitCharge(c, "charge.failed", ch)
	s.emitIntent(c, "payment_intent.payment_failed", i)
	answer := *e
	answer.PaymentIntent = s.renderIntent(i, false)
	return &answer
}

// backToStart is where a failed attempt leaves an intent.
func (s *Stripe) backToStart(i *intent, e *apiError) {
	i.Status, i.Method, i.ActionURL, i.Proven = requiresMethod, "", "", false
	i.LastError = e
	s.intents.Put(i.ID, i)
}

// cancelIntent ends an intent without money; a hold is released.
func (s *Stripe) cancelIntent(c *call, i *intent, reason string) {
	if ch := s.charges.Get(i.Charge); ch != nil && i.Status == requiresCapture {
		ch.Released = true
		s.charges.Put(ch.ID, ch)
		if reason == "automatic" {
			s.emitCharge(c, "charge.expired", ch)
		}
	}
	i.Status, i.CanceledAt, i.CancelReason = canceled, s.now(), reason
	i.Capturable, i.ActionURL = 0, ""
	s.intents.Put(i.ID, i)
	s.emitIntent(c, "payment_intent.canceled", i)
}

// lapseAt cancels an authorization that nobody captures.
func (s *Stripe) lapseAt(i *intent) {
	id := i.ID
	s.w.At(unix(i.CaptureUntil), func() {
		s.spontaneous(func(c *call) {
			if i := s.intents.Get(id); i != nil && i.Status == requiresCapture && s.now() >= i.CaptureUntil {
				s.cancelIntent(c, i, "automatic")
			}
		})
	})
}

// spontaneous changes state without a request: timers and the dashboard.
func (s *Stripe) spontaneous(fn func(c *call)) {
	c := &call{}
	pos := s.w.Update(func() { fn(c) })
	if err := s.w.Wait(pos); err != nil {
		s.w.Log.Error("the books cannot be written", "error", err)
		return
	}
	s.w.Start(c.posted)
}
