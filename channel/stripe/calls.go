package stripe

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

const expandCharge = "?expand%5B%5D=latest_charge"

// Prepare creates the intent, unconfirmed, under <number>-create-<n>.
func (a *Adapter) Prepare(ctx context.Context, c channel.Call) channel.Answer {
	body, _, err := steps(c.Payment.Request)
	if err != nil {
		return a.unsent(stepPrepare, &c.Payment, "request-damaged", err)
	}
	key := c.Payment.Number + "-create-" + strconv.Itoa(max(c.KeyNo, 1))
	return a.read(stepPrepare, &c.Payment, a.send(ctx, http.MethodPost, "/v1/payment_intents", key, body))
}

// Begin confirms the stored intent under <number>-confirm, and under
// <number>-confirm-<n> from the second key on.
func (a *Adapter) Begin(ctx context.Context, c channel.Call) channel.Answer {
	_, body, err := steps(c.Payment.Request)
	if err != nil {
		return a.unsent(stepBegin, &c.Payment, "request-damaged", err)
	}
	if !validID("pi_", c.Payment.ObjectID) {
		return a.unsent(stepBegin, &c.Payment, "no-object", errNoObject)
	}
	key := numbered(c.Payment.Number+"-confirm", c.KeyNo)
	path := "/v1/payment_intents/" + c.Payment.ObjectID + "/confirm"
	return a.read(stepBegin, &c.Payment, a.send(ctx, http.MethodPost, path, key, body))
}

// Query retrieves the stored intent. Stripe cannot look for our number without
// delay, so without an object there is nothing to ask.
func (a *Adapter) Query(ctx context.Context, c channel.Call) channel.Answer {
	if !validID("pi_", c.Payment.ObjectID) {
		return a.unsent(stepQuery, &c.Payment, "no-object", errNoObject)
	}
	path := "/v1/payment_intents/" + c.Payment.ObjectID + expandCharge
	return a.read(stepQuery, &c.Payment, a.send(ctx, http.MethodGet, path, "", ""))
}

// Close cancels the intent that the payment names. Its key names the object
// too: side objects of the same number are closed as well, and one key on two
// paths is refused.
func (a *Adapter) Close(ctx context.Context, c channel.Call) channel.Answer {
	id := c.Payment.ObjectID
	if !validID("pi_", id) {
		return a.unsent(stepClose, &c.Payment, "no-object", errNoObject)
	}
	key := numbered(c.Payment.Number+"-cancel-"+id, c.KeyNo)
	path := "/v1/payment_intents/" + id + "/cancel"
	ans := a.read(stepClose, &c.Payment, a.send(ctx, http.MethodPost, path, key, "cancellation_reason=abandoned"))
	switch ans.Kind {
	case payonce.StateDead, payonce.StateSettled, payonce.StateUnknown:
	default:
		// Stripe said yes and shows an intent that is not closed.
		ans.Kind, ans.Reason, ans.Action, ans.KeySpent = payonce.StateUnknown, "not-closed", nil, true
		ans.Err = errors.New("stripe: cancel was answered with an intent that is not canceled")
	}
	return ans
}

var errNoObject = errors.New("stripe: the payment names no intent")

func numbered(key string, n int) string {
	if n <= 1 {
		return key
	}
	return key + "-" + strconv.Itoa(n)
}

// fact is what a request knows of itself before any answer.
func (a *Adapter) fact(s step, p *payonce.Payment) payonce.Fact {
	f := payonce.Fact{Source: string(s), Account: a.cfg.Account, Number: p.Number}
	if s != stepPrepare {
		f.Object = p.ObjectID
	}
	return f
}

// unsent answers a call that was not made.
func (a *Adapter) unsent(s step, p *payonce.Payment, reason string, err error) channel.Answer {
	ans := channel.Answer{Fact: a.fact(s, p), Err: err}
	ans.Reason = reason
	if s.writes() {
		ans.Kind = payonce.StateNotSent
	}
	return ans
}

// read classifies one exchange.
func (a *Adapter) read(s step, p *payonce.Payment, ex *exchange) channel.Answer {
	ans := channel.Answer{Fact: a.fact(s, p), Raw: a.redact.evidence(ex.body)}
	if why := ex.reason(); why != "" {
		ans.Reason, ans.Err = why, a.cause(ex)
		if !ex.connected.Load() && s.writes() {
			ans.Kind = payonce.StateNotSent
		}
		return ans
	}
	a.date(&ans.Fact, ex)
	switch {
	case ex.status == http.StatusOK:
		a.readIntent(&ans, p, ex)
		// A confirm that left the intent unconfirmed is stored under its key: the
		// same key would bring this answer again, not a confirm.
		ans.KeySpent = s == stepBegin && ans.Kind == payonce.StateUnconfirmed
	case ex.status < 300:
		ans.Reason, ans.Err = "unexpected-status", a.statusError(ex)
	case ex.status < 400:
		ans.Reason, ans.Err = "redirect", a.statusError(ex)
	default:
		a.readError(&ans, s, p, ex)
	}
	return ans
}

// date takes the channel's clock where it is the channel's own.
func (a *Adapter) date(f *payonce.Fact, ex *exchange) {
	if !a.cfg.TrustedDate && !(a.ownDate && ex.verified) {
		return
	}
	if t, err := http.ParseTime(ex.header.Get("Date")); err == nil {
		f.ServerDate = t.UTC()
	}
}

func (a *Adapter) readIntent(ans *channel.Answer, p *payonce.Payment, ex *exchange) {
	in := new(intent)
	if err := decode(ex.body, in); err != nil || !in.valid() {
		ans.Reason, ans.Err = "undecodable", errors.New("stripe: HTTP 200 without a readable intent")
		return
	}
	a.state(&ans.Fact, in)
	if ans.Action != nil {
		ans.Action.ExpiresAt = p.DeadAt
	}
	if ans.Kind == payonce.StateUnknown {
		ans.Err = errors.New("stripe: intent with " + ans.Reason + " " + word(in.Status))
	}
}

func (a *Adapter) readError(ans *channel.Answer, s step, p *payonce.Payment, ex *exchange) {
	e := decodeError(ex.body)
	if e == nil {
		ans.Reason, ans.Err = "undecodable", a.statusError(ex)
		if ex.status >= 500 {
			ans.Reason = "http-5xx"
		}
		return
	}
	v := classify(s, ex.status, ex.header, e)
	ans.Kind, ans.Reason, ans.KeySpent = v.kind, v.reason, v.spent && s != stepQuery
	if v.intent && e.PaymentIntent.valid() {
		a.inside(ans, e.PaymentIntent)
	}
	switch ans.Kind {
	case payonce.StateDeclined:
		ans.Failure = failure("declined", e)
	case payonce.StateRefused:
		ans.Failure = failure("refused", e)
	case payonce.StateUnknown, payonce.StateNotSent:
		ans.Err = a.statusError(ex)
	}
}

// inside lets the intent in an error speak, where it says more than the error:
// money that was taken, or an intent that is closed. Beside a decline it must
// not contradict.
func (a *Adapter) inside(ans *channel.Answer, in *intent) {
	f := payonce.Fact{Source: ans.Source, Account: a.cfg.Account, ServerDate: ans.ServerDate}
	a.state(&f, in)
	switch {
	case f.Kind == payonce.StateSettled:
		ans.Fact, ans.KeySpent = f, false
	case ans.Kind == payonce.StateDeclined:
		ans.Object, ans.Number, ans.Account = f.Object, f.Number, f.Account
		if f.Kind != payonce.StateDeclined && f.Kind != payonce.StateUnconfirmed && f.Kind != payonce.StateDead {
			ans.Kind, ans.Reason, ans.KeySpent = payonce.StateUnknown, "contradiction", true
		}
	case f.Kind == payonce.StateDead:
		ans.Fact, ans.KeySpent = f, false
	default:
		ans.Object, ans.Number, ans.Account = f.Object, f.Number, f.Account
	}
}
