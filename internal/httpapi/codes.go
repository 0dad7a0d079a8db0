package httpapi

import (
	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
)

// codeInfo is what every problem of one code says.
type codeInfo struct {
	status     int
	title      string
	retry      string
	safeNewKey bool // a new key cannot make the operation happen twice
}

// codes is the closed set of codes of the service's own. Those of the
// idempotency layer are made by package idempotency. docs/errors.md explains
// both; a test compares.
//
// safe_new_key is false wherever the same key may have done something before:
// who lost the right to an answer does not lose what the first request did.
var codes = map[string]codeInfo{
	string(payonce.CodeInvalidRequest):       {400, "Request is invalid", idempotency.RetryNever, true},
	string(payonce.CodeUnauthorized):         {401, "API key is missing or not valid", idempotency.RetrySameKey, false},
	string(payonce.CodePaymentDeclined):      {402, "Payment was declined", idempotency.RetryNewKey, true},
	string(payonce.CodeRefundDeclined):       {402, "Refund was declined", idempotency.RetryNewKey, true},
	string(payonce.CodeForbidden):            {403, "API key may not do this", idempotency.RetryNever, false},
	string(payonce.CodeNotFound):             {404, "Not found", idempotency.RetryNever, true},
	string(payonce.CodeMethodNotAllowed):     {405, "Method is not allowed", idempotency.RetryNever, true},
	string(payonce.CodeOrderMismatch):        {409, "Order is known with other values", idempotency.RetryNever, true},
	string(payonce.CodeOrderAlreadyPaid):     {409, "Order is paid already", idempotency.RetryNever, false},
	string(payonce.CodeOrderClosed):          {409, "Order is closed", idempotency.RetryNever, true},
	string(payonce.CodeOutcomeUnknown):       {409, "Outcome of an earlier payment is not known yet", idempotency.RetrySameKey, false},
	string(payonce.CodePaymentCancelled):     {409, "Payment was cancelled", idempotency.RetryNever, true},
	string(payonce.CodePaymentNotRefundable): {409, "Payment cannot be refunded", idempotency.RetryNever, true},
	string(payonce.CodeTooLarge):             {413, "Request is too large", idempotency.RetryNever, true},
	string(payonce.CodeUnsupportedMedia):     {415, "Media type is not supported", idempotency.RetryNever, true},
	string(payonce.CodeRefundExceeds):        {422, "Refund exceeds the payment", idempotency.RetryNever, true},
	string(payonce.CodePaymentTokenInvalid):  {422, "Payment token is not valid", idempotency.RetryNever, false},
	string(payonce.CodeChannelNotConfigured): {422, "Channel is not configured", idempotency.RetryNever, true},
	string(payonce.CodeRateLimited):          {429, "Too many requests", idempotency.RetrySameKey, false},
	string(payonce.CodeInternal):             {500, "Fault of the service", idempotency.RetrySameKey, false},
	string(payonce.CodeChannelUnreachable):   {503, "Channel cannot be reached", idempotency.RetrySameKey, false},
	string(payonce.CodeStoreUnavailable):     {503, "Service is temporarily unavailable", idempotency.RetrySameKey, false},
}
