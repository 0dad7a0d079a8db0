package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

// wish is what a payer's click means: pay this order, of which so many attempts
// had ended when the page was shown. Clicks with the same wish are the same
// request, however many tabs and devices send it; the way to pay is not part of
// it, so a second device that chose another card is shown the first one's
// payment instead of starting its own.
type wish struct {
	ended   int
	replace string // id of a declined payment that the payer wants to start anew, or ""
	choice  Choice
}

var errStale = errors.New("the page is older than the order")

// readWish reads a page's form against the present state. A click on a page
// that is older than an attempt's end is not a wish for the next attempt.
func (p *pages) readWish(r *http.Request, v *view) (wish, error) {
	var w wish
	if err := r.ParseForm(); err != nil {
		return w, payonce.Invalid("", "the form cannot be read")
	}
	w.ended, w.replace = v.Ended, r.PostForm.Get("replace")
	shown := r.PostForm.Get("ended")
	if w.replace != "" && v.endedMeanwhile(w.replace) && shown == strconv.Itoa(v.Ended-1) {
		shown, w.replace = "", "" // what the payer wanted to end has ended: nothing else has changed
	}
	if w.replace != v.Replace() && (w.replace != "" || v.MayPay()) {
		return w, errStale
	}
	if shown != "" {
		n, err := strconv.Atoi(shown)
		if err != nil || n > v.Ended {
			return w, payonce.Invalid("", "the form is not one of ours")
		}
		if n < v.Ended {
			return w, errStale
		}
	}
	choices := p.choices(v.Order)
	if len(choices) == 0 {
		return w, payonce.Errorf(payonce.CodeChannelNotConfigured, "no way to pay")
	}
	want := r.PostForm.Get("choice")
	for _, c := range choices {
		if c.id() == want {
			w.choice = c
			return w, nil
		}
	}
	if want != "" {
		return w, payonce.Invalid("", "there is no such way to pay")
	}
	w.choice = choices[0]
	return w, nil
}

// pay hands a wish to the engine under its key.
func (p *pages) pay(ctx context.Context, k payonce.OrderKey, w wish, key, returnURL string) (*engine.Result, error) {
	scope := idempotency.Scope{Environment: string(k.Environment), Tenant: k.Merchant}
	req := idempotency.Request{Method: http.MethodPost, EscapedPath: "/checkout", Extra: []string{k.OrderNo, strconv.Itoa(w.ended), w.replace}}
	fp, err := p.Fingerprints.Sum(scope, req)
	if err != nil {
		return nil, err
	}
	pr := engine.PayRequest{
		Order: k, Key: scope.Record(idempotency.Key(key)), Fingerprint: fp,
		Same: func(stored idempotency.Fingerprint) bool {
			ok, err := p.Fingerprints.Match(stored, scope, req)
			return err == nil && ok
		},
		Channel: w.choice.Channel, Method: w.choice.Method, Account: w.choice.Account, ReturnURL: returnURL,
	}
	pr.Payer.PaymentMethod = w.choice.PaymentMethod
	return p.Engine.Pay(ctx, pr)
}

// notice is the text for a payment that was not started, "" where the state of
// the order says all.
func notice(err error) string {
	var pe *payonce.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errStale):
		return "stale"
	case errors.As(err, &pe):
		switch pe.Code {
		case payonce.CodeOrderAlreadyPaid, payonce.CodeOrderClosed, payonce.CodePaymentDeclined, payonce.CodePaymentCancelled:
			return ""
		case payonce.CodeOutcomeUnknown:
			return "earlier-live"
		case payonce.CodeStoreUnavailable, payonce.CodeInternal, payonce.CodeChannelUnreachable, payonce.CodeRateLimited:
			return "busy"
		}
		return "cannot-pay"
	}
	if _, ok := errors.AsType[*idempotency.Problem](err); ok {
		return "" // a twin is under way: the state says so
	}
	return "busy"
}

// unexpected reports whether a pay error belongs in the log: refusals are
// answers, the rest is trouble.
func unexpected(err error) bool {
	if err == nil || errors.Is(err, errStale) {
		return false
	}
	if _, ok := errors.AsType[*payonce.Error](err); ok {
		return false
	}
	_, ok := errors.AsType[*idempotency.Problem](err)
	return !ok
}

// find reads an order; nil without an error means that there is none.
func (p *pages) find(ctx context.Context, k payonce.OrderKey) (*store.OrderWithPayments, error) {
	o, err := p.Reader.Order(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return o, err
}
