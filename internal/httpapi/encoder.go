package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
)

// DefaultDocsURL is where the codes are explained unless a setting says
// otherwise.
const DefaultDocsURL = "https://github.com/payonce/payonce/blob/main/docs/errors.md"

// Encoder writes answers and events. It is a pure function of its settings and
// of what it is shown, so the engine can store what it writes.
type Encoder struct {
	// DocsURL is the page of the codes; each is an anchor on it. "" means
	// DefaultDocsURL.
	DocsURL string
	// Checkout returns the address of an order's checkout page, the same each
	// time; nil means that there are no pages.
	Checkout func(payonce.OrderKey) string
}

var _ engine.Encoder = Encoder{}

func (e Encoder) docsURL() string {
	if e.DocsURL == "" {
		return DefaultDocsURL
	}
	return e.DocsURL
}

func (e Encoder) checkoutURL(o *payonce.Order) string {
	if e.Checkout == nil {
		return ""
	}
	return e.Checkout(o.Key)
}

// outcome is how POST /v1/payments answers for a payment in its present state,
// the first time and on every repetition. code is "" where the answer is the
// payment itself.
func outcome(p *payonce.Payment) (status int, code payonce.Code) {
	switch p.Status {
	case payonce.Pending, payonce.Succeeded:
		return http.StatusCreated, ""
	case payonce.Failed:
		return http.StatusPaymentRequired, payonce.CodePaymentDeclined
	case payonce.Cancelled:
		return http.StatusConflict, payonce.CodePaymentCancelled
	case payonce.Created:
		// Tried, and proven that nothing was sent.
		if len(p.Permits) > 0 || p.Prepares > 0 {
			return http.StatusServiceUnavailable, payonce.CodeChannelUnreachable
		}
	}
	return http.StatusAccepted, ""
}

// outcomeDetails are the sentences of outcomes that are problems.
var outcomeDetails = map[payonce.Code]string{
	payonce.CodePaymentDeclined:    "The payment was declined and took no money. A new attempt needs a new key.",
	payonce.CodePaymentCancelled:   "The payment was cancelled and took no money. Use a new key only when the payer decides to pay again.",
	payonce.CodeChannelUnreachable: "The channel could not be reached and nothing was sent to it. Send the same request with the same key again.",
}

// Answer implements engine.Encoder.
func (e Encoder) Answer(o *payonce.Order, p *payonce.Payment) (status int, contentType string, body []byte) {
	status, code := outcome(p)
	if code == "" {
		return status, mediaJSON, appendPayment(make([]byte, 0, paymentSize), o, p, view{})
	}
	q := e.paymentProblem(code, outcomeDetails[code], o, p, view{})
	body, _ = q.MarshalJSON() // never fails
	return status, mediaProblem, body
}

// paymentProblem is a problem that carries the whole payment.
func (e Encoder) paymentProblem(code payonce.Code, detail string, o *payonce.Order, p *payonce.Payment, v view) *idempotency.Problem {
	q := e.problem(code, detail)
	q.Location = paymentLocation(p)
	q.Extra = map[string]json.RawMessage{"payment": appendPayment(make([]byte, 0, paymentSize), o, p, v)}
	return q
}

// problem makes the problem of a code from the table.
func (e Encoder) problem(code payonce.Code, detail string) *idempotency.Problem {
	c, ok := codes[string(code)]
	if !ok {
		c, code = codes[string(payonce.CodeInternal)], payonce.CodeInternal
	}
	return &idempotency.Problem{
		Type: e.docsURL() + "#" + string(code), Title: c.title, Status: c.status, Detail: detail,
		Code: string(code), Retry: c.retry, SafeNewKey: c.safeNewKey,
	}
}

// EventData implements engine.Encoder. p is nil for events of the order alone.
func (e Encoder) EventData(o *payonce.Order, p *payonce.Payment) []byte {
	b := append(make([]byte, 0, 2*paymentSize), `{"order":`...)
	b = e.appendOrder(b, o, nil, false, view{})
	b = append(b, `,"payment":`...)
	if p == nil {
		b = append(b, "null"...)
	} else {
		b = appendPayment(b, o, p, view{})
	}
	return append(b, `,"refund":null,"case":null}`...)
}

// paymentSize is about how long a payment gets, in bytes.
const paymentSize = 1024

// pollAfter is how soon a client may ask again for what is not known yet.
const pollAfter = 2 * time.Second

func paymentLocation(p *payonce.Payment) string { return "/v1/payments/" + p.ID }
