package stripesim

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/payonce/payonce/internal/sim/core"
)

// Charges are the lines of the books, oldest first. Only inside View.
func (s *Stripe) Charges() []core.Charge {
	list := make([]core.Charge, 0, len(s.intentOrder))
	for _, id := range s.intentOrder {
		list = append(list, s.line(s.intents.Get(id)))
	}
	return list
}

// line is the books' view of one intent.
func (s *Stripe) line(i *intent) core.Charge {
	line := core.Charge{Channel: Channel, Number: i.Number, PaymentID: i.ID, Amount: i.Amount,
		Currency: strings.ToUpper(i.Currency), Refunds: []core.Refund{}}
	switch i.Status {
	case requiresMethod, requiresConfirmation:
		line.Status = core.StatusCreated
		if i.LastError != nil {
			line.Status = core.StatusDeclined
		}
	case requiresAction, processing:
		line.Status = core.StatusUnpaid
	case requiresCapture:
		line.Status = core.StatusAuthorized
	case canceled:
		line.Status = core.StatusClosed
	case succeeded:
		line.Status, line.Amount = core.StatusPaid, i.Received
		at := unix(i.PaidAt)
		line.PaidAt = &at
		s.refundsOf(i, &line)
	}
	return line
}

func (s *Stripe) refundsOf(i *intent, line *core.Charge) {
	for _, id := range s.byCharge[i.Charge] {
		r := s.refunds.Get(id)
		line.Refunds = append(line.Refunds, core.Refund{Number: r.number(), ID: r.ID, Amount: r.Amount, Status: r.Status})
		if r.Status != "failed" {
			line.Refunded += r.Amount
		}
	}
	switch {
	case line.Refunded == 0:
	case line.Refunded < line.Amount:
		line.Status = core.StatusPartiallyRefunded
	default:
		line.Status = core.StatusRefunded
	}
}

// choose finds the intent that a control call means: the newest of the number
// (or the id) that suits, else simply the newest.
func (s *Stripe) choose(number string, suits func(*intent) bool) (*intent, error) {
	ids := s.byNumber[number]
	if len(ids) == 0 && s.intents.Get(number) != nil {
		ids = []string{number}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: stripe has no %q", core.ErrUnknown, number)
	}
	for n := len(ids) - 1; n >= 0; n-- {
		if i := s.intents.Get(ids[n]); suits(i) {
			return i, nil
		}
	}
	return s.intents.Get(ids[len(ids)-1]), nil
}

// change runs a control call to its durable end and starts its notices.
func (s *Stripe) change(fn func(c *call) (*intent, error)) (core.Charge, error) {
	var line core.Charge
	var failed error
	c := &call{}
	pos := s.w.Update(func() {
		i, err := fn(c)
		if failed = err; err == nil {
			line = s.line(i)
		}
	})
	if err := s.w.Wait(pos); err != nil {
		return line, err
	}
	s.w.Start(c.posted)
	return line, failed
}

func payable(i *intent) bool { return i.Status == requiresAction || i.Status == processing }

// Pay plays the payer of a number.
func (s *Stripe) Pay(o core.PayOrder) (core.Charge, error) {
	return s.change(func(c *call) (*intent, error) {
		i, err := s.choose(o.Number, payable)
		if err != nil {
			return nil, err
		}
		return s.pay(c, i, o)
	})
}

func (s *Stripe) pay(c *call, i *intent, o core.PayOrder) (*intent, error) {
	if o.Outcome == "" {
		o.Outcome = "paid"
	}
	switch {
	case !payable(i) && !o.Force:
		return nil, fmt.Errorf("%w: the intent is %s", core.ErrNotPayable, i.Status)
	case o.Outcome == "abandoned", o.Outcome == "scanned":
		return i, nil // a card payer who leaves changes nothing
	case o.Outcome == "declined" && payable(i):
		s.decline(c, i, method{decline: "card_declined", declineCode: "generic_decline", message: plainDecline})
		return i, nil
	case o.Outcome == "declined":
		return nil, fmt.Errorf("%w: the intent is %s", core.ErrNotPayable, i.Status)
	}
	amount := o.Amount
	if amount == 0 {
		amount = i.Amount
	}
	if o.Force {
		return s.force(c, i, amount), nil
	}
	i.Proven = true
	m := methods[i.Method]
	switch {
	case i.Status == requiresAction && i.Confirmation == "manual":
		// The server has to confirm once more.
		i.Status, i.ActionURL = requiresConfirmation, ""
		s.intents.Put(i.ID, i)
	case m.decline != "":
		s.decline(c, i, m)
	default:
		s.collect(c, i, amount)
	}
	return i, nil
}

// force lets money arrive whatever the state is. An intent that has ended
// takes no more: the money then makes an object of its own under the number.
func (s *Stripe) force(c *call, i *intent, amount int64) *intent {
	switch i.Status {
	case succeeded, canceled, requiresCapture:
		i = s.twin(c, i, amount)
	}
	if i.Method == "" {
		i.Method = "pm_card_visa"
	}
	i.Capture = "automatic"
	s.collect(c, i, amount)
	return i
}

// twin is a second object of an intent's number.
func (s *Stripe) twin(c *call, i *intent, amount int64) *intent {
	t := &intent{ID: s.w.ID("pi_"), Amount: amount, Currency: i.Currency, Status: requiresConfirmation, Created: s.now(),
		Capture: "automatic", Confirmation: "automatic", Types: i.Types, Method: "pm_card_visa",
		Metadata: map[string]string{}}
	for k, v := range i.Metadata {
		t.Metadata[k] = v
	}
	t.Seq = s.w.Sequence()
	t.Secret = t.ID + "_secret_" + s.w.Seed.Text("stripe client secret", t.Seq, 24)
	s.addIntent(t)
	s.emitIntent(c, "payment_intent.created", t)
	return t
}

func paid(i *intent) bool { return i.Status == succeeded }

// Refund plays a refund made in the dashboard; amount 0 is what is left.
func (s *Stripe) Refund(number string, amount int64) (core.Charge, error) {
	return s.change(func(c *call) (*intent, error) {
		i, err := s.choose(number, paid)
		if err != nil {
			return nil, err
		}
		ch := s.charges.Get(i.Charge)
		if ch == nil {
			return nil, fmt.Errorf("%w: the intent is %s", core.ErrNotPayable, i.Status)
		}
		if amount == 0 {
			amount = ch.Captured - ch.Refunded
		}
		if _, e := s.makeRefund(c, ch, amount, "requested_by_customer", nil); e != nil {
			return nil, fmt.Errorf("%w: %s", core.ErrNotPayable, e.Message)
		}
		return i, nil
	})
}

// Dispute records that the payer's bank disputes the charge of a number.
func (s *Stripe) Dispute(number string) (core.Charge, error) {
	return s.change(func(c *call) (*intent, error) {
		i, err := s.choose(number, paid)
		if err != nil {
			return nil, err
		}
		ch := s.charges.Get(i.Charge)
		if ch == nil || !ch.Taken || ch.Disputed {
			return nil, fmt.Errorf("%w: there is no charge to dispute", core.ErrNotPayable)
		}
		s.dispute(c, ch)
		return i, nil
	})
}

// Charge books money that nobody here asked for: an intent without our
// number, paid at once.
func (s *Stripe) Charge(amount int64, currency, number string) (core.Charge, error) {
	currency = strings.ToLower(currency)
	if amount < 1 || !currencies[currency] {
		return core.Charge{}, fmt.Errorf("%w: amount or currency", core.ErrBad)
	}
	return s.change(func(c *call) (*intent, error) {
		like := &intent{Currency: currency, Types: []string{"card"}}
		if number != "" {
			like.Metadata = map[string]string{numberKey: number}
		}
		i := s.twin(c, like, amount)
		s.collect(c, i, amount)
		return i, nil
	})
}

// Page looks an intent up for the payer's page.
func (s *Stripe) Page(id string) (core.PageState, error) {
	var st core.PageState
	var err error
	pos := s.w.View(func() {
		i := s.intents.Get(id)
		if i == nil {
			err = core.ErrUnknown
			return
		}
		st = core.PageState{Amount: display(i.Amount, i.Currency), Open: payable(i),
			Paid: i.Status == succeeded || i.Status == requiresCapture, ReturnURL: returnURL(i)}
	})
	if e := s.w.Wait(pos); e != nil {
		return st, e
	}
	return st, err
}

// PayPage plays the button on the payer's page of one intent.
func (s *Stripe) PayPage(id, outcome string) error {
	_, err := s.change(func(c *call) (*intent, error) {
		i := s.intents.Get(id)
		if i == nil {
			return nil, core.ErrUnknown
		}
		return s.pay(c, i, core.PayOrder{Outcome: outcome})
	})
	return err
}

// returnURL is where the payer goes afterwards, with what Stripe adds.
func returnURL(i *intent) string {
	u, err := url.Parse(i.ReturnURL)
	if err != nil || i.ReturnURL == "" {
		return ""
	}
	status := "succeeded"
	switch i.Status {
	case requiresMethod:
		status = "failed"
	case requiresAction, processing:
		status = "pending"
	}
	q := u.Query()
	q.Set("payment_intent", i.ID)
	q.Set("payment_intent_client_secret", i.Secret)
	q.Set("redirect_status", status)
	u.RawQuery = q.Encode()
	return u.String()
}
