package stripesim

import (
	"net/http"
	"slices"
)

// apiError is Stripe's error object. Status and executed do not travel:
// executed errors are kept under the idempotency key.
type apiError struct {
	Type          string `json:"type"`
	Code          string `json:"code,omitempty"`
	DeclineCode   string `json:"decline_code,omitempty"`
	AdviceCode    string `json:"advice_code,omitempty"`
	Message       string `json:"message"`
	Param         string `json:"param,omitempty"`
	DocURL        string `json:"doc_url,omitempty"`
	RequestLogURL string `json:"request_log_url,omitempty"`
	Charge        string `json:"charge,omitempty"`
	PaymentIntent any    `json:"payment_intent,omitempty"`
	PaymentMethod any    `json:"payment_method,omitempty"`

	status   int
	executed bool
	header   http.Header
}

const (
	typeAPI         = "api_error"
	typeCard        = "card_error"
	typeIdempotency = "idempotency_error"
	typeInvalid     = "invalid_request_error"
)

// invalid is a parameter error: nothing was executed.
func invalid(code, param, message string) *apiError {
	return &apiError{Type: typeInvalid, Code: code, Param: param, Message: message, DocURL: docURL(code), status: http.StatusBadRequest}
}

// missing is the 404 of an object that does not exist.
func missing(what, id, param string) *apiError {
	e := invalid("resource_missing", param, "No such "+what+": '"+id+"'")
	e.status = http.StatusNotFound
	return e
}

// refused is an error of the object's state: execution had begun.
func refused(code, message string) *apiError {
	e := invalid(code, "", message)
	e.executed = true
	return e
}

func docURL(code string) string {
	if code == "" {
		return ""
	}
	return "https://stripe.com/docs/error-codes/" + code
}

// codeShape is how a code travels.
type codeShape struct {
	status   int
	kind     string
	executed bool // stored under the key and replayed
	retry    string
	reason   string // Stripe-Rate-Limited-Reason
}

// shapes are the codes that error:CODE can play, apart from the decline codes.
var shapes = map[string]codeShape{
	"rate_limit":                                 {status: 429, kind: typeInvalid, reason: "global-rate"},
	"lock_timeout":                               {status: 429, kind: typeInvalid, retry: "true"},
	"payment_intent_rate_limit_exceeded":         {status: 429, kind: typeInvalid, reason: "resource-specific"},
	"card_decline_rate_limit_exceeded":           {status: 402, kind: typeCard, executed: true},
	"idempotency_key_in_use":                     {status: 409, kind: typeInvalid, retry: "true"},
	"idempotency_error":                          {status: 400, kind: typeIdempotency},
	"api_error":                                  {status: 500, kind: typeAPI, executed: true},
	"external_dependency_failed":                 {status: 424, kind: typeAPI},
	"service_unavailable":                        {status: 503, kind: typeAPI, executed: true},
	"gateway_timeout":                            {status: 504, kind: typeAPI, executed: true},
	"api_key_expired":                            {status: 401, kind: typeInvalid},
	"unauthorized":                               {status: 401, kind: typeInvalid},
	"platform_api_key_expired":                   {status: 401, kind: typeInvalid},
	"account_invalid":                            {status: 403, kind: typeInvalid},
	"testmode_charges_only":                      {status: 403, kind: typeInvalid},
	"secret_key_required":                        {status: 403, kind: typeInvalid},
	"resource_missing":                           {status: 404, kind: typeInvalid},
	"livemode_mismatch":                          {status: 400, kind: typeInvalid},
	"parameter_missing":                          {status: 400, kind: typeInvalid},
	"parameter_invalid_empty":                    {status: 400, kind: typeInvalid},
	"parameter_invalid_integer":                  {status: 400, kind: typeInvalid},
	"parameter_unknown":                          {status: 400, kind: typeInvalid},
	"amount_too_small":                           {status: 400, kind: typeInvalid},
	"amount_too_large":                           {status: 400, kind: typeInvalid},
	"payment_method_unactivated":                 {status: 400, kind: typeInvalid, executed: true},
	"payment_method_provider_timeout":            {status: 400, kind: typeInvalid, executed: true},
	"payment_intent_unexpected_state":            {status: 400, kind: typeInvalid, executed: true},
	"payment_intent_incompatible_payment_method": {status: 400, kind: typeInvalid, executed: true},
	"payment_intent_authentication_failure":      {status: 402, kind: typeCard, executed: true},
	"payment_intent_payment_attempt_failed":      {status: 402, kind: typeCard, executed: true},
	"charge_already_captured":                    {status: 400, kind: typeInvalid, executed: true},
	"charge_already_refunded":                    {status: 400, kind: typeInvalid, executed: true},
	"charge_disputed":                            {status: 400, kind: typeInvalid, executed: true},
	"charge_expired_for_capture":                 {status: 400, kind: typeInvalid, executed: true},
	"refund_disputed_payment":                    {status: 400, kind: typeInvalid, executed: true},
	"payout_reconciliation_not_ready":            {status: 400, kind: typeInvalid},
	"card_declined":                              {status: 402, kind: typeCard, executed: true},
	"expired_card":                               {status: 402, kind: typeCard, executed: true},
	"incorrect_cvc":                              {status: 402, kind: typeCard, executed: true},
	"incorrect_number":                           {status: 402, kind: typeCard, executed: true},
	"incorrect_zip":                              {status: 402, kind: typeCard, executed: true},
	"processing_error":                           {status: 402, kind: typeCard, executed: true},
	"authentication_required":                    {status: 402, kind: typeCard, executed: true},
}

// declineCodes are the published ones; error:CODE with one of them is a
// card_declined with that decline_code.
var declineCodes = []string{
	"approve_with_id", "call_issuer", "card_not_supported", "card_velocity_exceeded", "currency_not_supported",
	"do_not_honor", "do_not_try_again", "duplicate_transaction", "fraudulent", "generic_decline", "incorrect_pin",
	"insufficient_funds", "invalid_account", "invalid_amount", "invalid_cvc", "invalid_expiry_month",
	"invalid_expiry_year", "invalid_number", "invalid_pin", "issuer_not_available", "lost_card", "merchant_blacklist",
	"new_account_information_available", "no_action_taken", "not_permitted", "offline_pin_required",
	"online_or_offline_pin_required", "pickup_card", "pin_try_exceeded", "reenter_transaction", "restricted_card",
	"revocation_of_all_authorizations", "revocation_of_authorization", "security_violation", "service_not_allowed",
	"stolen_card", "stop_payment_order", "testmode_decline", "transaction_not_allowed", "try_again_later",
	"withdrawal_count_limit_exceeded",
}

func knownCode(code string) bool {
	_, ok := shapes[code]
	return ok || slices.Contains(declineCodes, code)
}

// coded is the error of a code, as error:CODE wants it.
func coded(code string) *apiError {
	decline := ""
	shape, ok := shapes[code]
	switch {
	case !ok:
		code, decline = "card_declined", code
		shape = shapes[code]
	case code == "card_declined":
		decline = "generic_decline"
	case shape.kind == typeCard:
		decline = code
	}
	e := &apiError{Type: shape.kind, Code: code, DeclineCode: decline, Message: "The simulator was asked for " + code + ".",
		DocURL: docURL(code), status: shape.status, executed: shape.executed, header: http.Header{}}
	switch code {
	case "api_error", "unauthorized", "idempotency_error", "external_dependency_failed", "service_unavailable", "gateway_timeout":
		e.Code, e.DocURL = "", "" // kinds of answer, not codes of Stripe's
	}
	if shape.retry != "" {
		e.header.Set("Stripe-Should-Retry", shape.retry)
	}
	if shape.reason != "" {
		e.header.Set("Stripe-Rate-Limited-Reason", shape.reason)
	}
	return e
}

// internalError is a 500; its answer is kept under the key like any other.
func internalError() *apiError {
	return &apiError{Type: typeAPI, Message: "An unknown error occurred", status: http.StatusInternalServerError, executed: true}
}
