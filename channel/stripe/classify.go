package stripe

import (
	"net/http"
	"strings"

	"github.com/payonce/payonce"
)

// step is one of the four requests. Its name is the source of its facts.
type step string

const (
	stepPrepare step = "prepare"
	stepBegin   step = "begin"
	stepQuery   step = "query"
	stepClose   step = "close"
)

// writes: the step's request can be refused or not sent. Of a query and a close
// both are only no knowledge about the payment.
func (s step) writes() bool { return s == stepPrepare || s == stepBegin }

// verdict is the class of an error answer.
type verdict struct {
	kind   payonce.FactKind
	reason string // of StateUnknown and StateNotSent
	spent  bool   // the answer is stored under the key and says nothing
	intent bool   // the intent inside the answer decides, where it is final
}

func unknown(reason string, spent bool) verdict {
	return verdict{kind: payonce.StateUnknown, reason: reason, spent: spent}
}

// codes is the class of every documented code whose class does not follow from
// the HTTP status. Codes that are in no table are unknown.
var codes = map[string]verdict{
	// Refused: the request was wrong and nothing was executed.
	"account_invalid":                            refusal,
	"amount_too_large":                           refusal,
	"amount_too_small":                           refusal,
	"livemode_mismatch":                          refusal,
	"parameter_invalid_empty":                    refusal,
	"parameter_invalid_integer":                  refusal,
	"parameter_invalid_string_blank":             refusal,
	"parameter_invalid_string_empty":             refusal,
	"parameter_missing":                          refusal,
	"parameter_unknown":                          refusal,
	"parameters_exclusive":                       refusal,
	"payment_method_unactivated":                 refusal,
	"resource_missing":                           refusal,
	"testmode_charges_only":                      refusal,
	"api_key_expired":                            refusal, // with 401: not sent
	"payment_intent_incompatible_payment_method": refusal,

	// Unknown by name.
	"idempotency_key_in_use":          unknown("key-in-use", false),
	"payment_intent_unexpected_state": {kind: payonce.StateUnknown, reason: "unexpected-state", spent: true, intent: true},
	"payment_method_provider_timeout": unknown("provider-timeout", true),
}

var refusal = verdict{kind: payonce.StateRefused}

// classify says what an error answer means for the step. It starts from what
// is least known; every way through that names nothing ends as unknown.
func classify(s step, status int, h http.Header, e *apiError) verdict {
	listed, known := codes[e.Code]
	switch {
	case status >= 500:
		return unknown("http-5xx", true)
	case e.Type == "idempotency_error":
		return unknown("key-mismatch", false)
	case status == http.StatusUnauthorized:
		return notSent(s, "unauthorized", "configuration")
	case status == http.StatusTooManyRequests:
		return limited(s, h, e)
	case e.Type == "api_error":
		return unknown("api-error", true)
	case status == http.StatusFailedDependency:
		return unknown("http-424", true)
	case known && listed.kind == payonce.StateUnknown:
		return listed
	case status == http.StatusConflict:
		return unknown("conflict", false)
	case status == http.StatusPaymentRequired && e.Type == "card_error":
		return cardError(s)
	case status == http.StatusBadRequest, status == http.StatusForbidden, status == http.StatusNotFound:
		return badRequest(s, status, e, known)
	}
	return unknown("unlisted", true)
}

// notSent: Stripe stops such a request before it executes anything and stores
// nothing under its key.
func notSent(s step, reason, asked string) verdict {
	if s.writes() {
		return verdict{kind: payonce.StateNotSent, reason: reason}
	}
	return unknown(asked, false)
}

func limited(s step, h http.Header, e *apiError) verdict {
	switch {
	case h.Get("Stripe-Rate-Limited-Reason") != "" || e.Code == "rate_limit":
		return notSent(s, "rate-limited", "rate-limited")
	case e.Code == "lock_timeout":
		return notSent(s, "lock-timeout", "lock-timeout")
	}
	return unknown("http-429", false)
}

// cardError: any decline, listed or new. A create confirms nothing, so there it
// is a refusal; a query or close cannot decline.
func cardError(s step) verdict {
	switch s {
	case stepBegin:
		return verdict{kind: payonce.StateDeclined, intent: true}
	case stepPrepare:
		return refusal
	}
	return unknown("unlisted", true)
}

func badRequest(s step, status int, e *apiError, known bool) verdict {
	// A parameter error of the older kind has no code but names its parameter.
	parameter := status == http.StatusBadRequest && e.Type == "invalid_request_error" && e.Code == "" && e.Param != ""
	switch {
	case !s.writes():
		return unknown("configuration", false)
	case s == stepBegin && e.Code == "resource_missing" && !strings.HasPrefix(e.Param, "payment_method"):
		// The intent itself is not there: another key or account. That is a fault
		// of the configuration and never a statement about money.
		return unknown("configuration", false)
	case known || parameter:
		return refusal
	case status == http.StatusBadRequest:
		return unknown("unlisted", true)
	}
	return unknown("configuration", true)
}

// messages are for payers. Codes that a payer must not be told apart (stolen,
// lost, fraud) have none of their own.
var messages = map[string]string{
	"authentication_required": "The card issuer asks for authentication.",
	"card_not_supported":      "The card does not support this kind of purchase.",
	"currency_not_supported":  "The card does not support this currency.",
	"expired_card":            "The card has expired.",
	"incorrect_cvc":           "The card's security code is wrong.",
	"incorrect_number":        "The card number is wrong.",
	"insufficient_funds":      "The card has insufficient funds.",
	"invalid_cvc":             "The card's security code is wrong.",
	"invalid_expiry_month":    "The card's expiry month is wrong.",
	"invalid_expiry_year":     "The card's expiry year is wrong.",
	"invalid_number":          "The card number is wrong.",
	"processing_error":        "The card could not be processed.",
}

// failure says why a try took no money, in our words.
func failure(code string, e *apiError) *payonce.Failure {
	f := &payonce.Failure{Code: code, Message: "The card was declined."}
	if code == "refused" {
		f.Message = "The payment request was refused."
	}
	if e == nil {
		return f
	}
	for _, c := range [...]string{e.DeclineCode, e.Code, e.Type} {
		if c != "" && f.ChannelCode == "" {
			f.ChannelCode = word(c)
		}
	}
	if e.Type == "card_error" {
		if m, ok := messages[f.ChannelCode]; ok {
			f.Message = m
		}
	}
	return f
}
