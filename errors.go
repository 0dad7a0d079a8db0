package payonce

import "fmt"

// Code is one of a closed set of error codes. HTTP status, title and advice for
// retrying are a table in the HTTP layer; docs/errors.md explains each.
type Code string

// Codes of the service. Those of the idempotency layer are in package
// idempotency.
const (
	CodeInvalidRequest       Code = "invalid-request"
	CodeUnauthorized         Code = "unauthorized"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not-found"
	CodeMethodNotAllowed     Code = "method-not-allowed"
	CodeUnsupportedMedia     Code = "unsupported-media-type"
	CodeTooLarge             Code = "too-large"
	CodeOrderMismatch        Code = "order-mismatch"
	CodeOrderAlreadyPaid     Code = "order-already-paid"
	CodeOrderClosed          Code = "order-closed"
	CodeOutcomeUnknown       Code = "payment-outcome-unknown"
	CodePaymentCancelled     Code = "payment-cancelled"
	CodePaymentNotRefundable Code = "payment-not-refundable"
	CodePaymentDeclined      Code = "payment-declined"
	CodeRefundDeclined       Code = "refund-declined"
	CodeRefundExceeds        Code = "refund-exceeds-payment"
	CodePaymentTokenInvalid  Code = "payment-token-invalid"
	CodeChannelNotConfigured Code = "channel-not-configured"
	CodeRateLimited          Code = "rate-limited"
	CodeChannelUnreachable   Code = "channel-unreachable"
	CodeStoreUnavailable     Code = "store-unavailable"
	CodeInternal             Code = "internal"
)

// Field names one wrong member of a request by JSON pointer.
type Field struct {
	Pointer string
	Message string
}

// Error is what callers are told: a code of the closed set, a sentence that is
// safe to show, and the cause for the log.
type Error struct {
	Code   Code
	Detail string
	Fields []Field
	Err    error // never shown
}

// Error returns code, detail and cause.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error with a public sentence.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Invalid makes an invalid-request error about one member.
func Invalid(pointer, format string, args ...any) *Error {
	msg := fmt.Sprintf(format, args...)
	return &Error{Code: CodeInvalidRequest, Detail: msg, Fields: []Field{{Pointer: pointer, Message: msg}}}
}
