// Package engine makes every decision about a payment. It is the only caller of
// the transitions in package payonce and of the calls that move money.
//
// A charge is: one transaction that stores the intent with its number, its bytes
// and a permit; the call, with no connection, lock or transaction held; one
// transaction that stores the evidence and what follows from it. The engine
// never acts inside a transaction and never sends without a committed permit.
//
// It must not know HTTP, SQL, or a channel's name.
package engine

import (
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/store"
)

// Account is one configured channel account.
type Account struct {
	ID          string
	Channel     string
	Merchant    string
	Environment payonce.Environment
	Paused      bool
	TrustedDate bool
	Adapter     channel.Adapter
}

// PayRequest asks for a payment. The HTTP layer has checked its form; values
// that depend on the order or the channel are checked here.
type PayRequest struct {
	Order       payonce.OrderKey
	Key         [32]byte // record id of the idempotency key
	Fingerprint idempotency.Fingerprint
	// Same reports whether a stored fingerprint is of this request, by the stored
	// version and secret; nil compares with Fingerprint.
	Same   func(idempotency.Fingerprint) bool
	Prefer idempotency.Preference

	Channel   string
	Method    string
	Account   string         // "" where the merchant has one for the channel
	Amount    payonce.Amount // 0: not given
	Currency  payonce.Currency
	Subject   string
	Payer     channel.Payer
	ReturnURL string
	Part      string
	Capture   string // "" means automatic
}

// Result answers a payment request by the payment's present state.
type Result struct {
	Order     *payonce.Order
	Payment   *payonce.Payment
	Stored    *store.Answer // final answer as stored, nil while live
	Replayed  bool          // the key was known before this request
	Converged bool          // the key was bound to an attempt that another key made
	Async     bool          // answered right after the intent, as the caller preferred
	Waited    bool          // the caller's wait was applied
}

// Refusal is an answer that is not the requested payment, with the payment that
// it is about. It wraps a *payonce.Error or an *idempotency.Problem.
type Refusal struct {
	Err        error
	Order      *payonce.Order
	Payment    *payonce.Payment // nil when it is about none
	RetryAfter time.Duration    // 0: not told
	// ProvableAt: until then the old payment cannot be proven dead, zero when no
	// time can be given. Why says what is waited for.
	ProvableAt time.Time
	Why        string
}

// Error returns the wrapped error's text.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the wrapped error.
func (r *Refusal) Unwrap() error { return r.Err }

// ActionRequest is a keyed or keyless call on an existing order or payment
// (amend, close, sync, cancel). Key nil: no key was sent.
type ActionRequest struct {
	Scope       store.Scope
	Action      string // amend, close, sync, cancel: kind of the key's record
	Key         *[32]byte
	Fingerprint idempotency.Fingerprint
	Same        func(idempotency.Fingerprint) bool // as in PayRequest
}

// OrderRequest creates an order.
type OrderRequest struct {
	ActionRequest
	Order     payonce.OrderKey
	Amount    payonce.Amount
	Currency  payonce.Currency
	Subject   string
	Policy    payonce.Policy // "" means single
	ExpiresAt time.Time
	Metadata  string // JSON object of strings, "" none
}

// OrderResult is an order as it now is.
type OrderResult struct {
	Order    *payonce.Order
	Payments []*payonce.Payment
	Created  bool // this request made it
	Proven   bool // close, cancel: the outcome is proven
	Replayed bool
}

// Encoder turns payments into the bytes of answers and events. The HTTP layer
// provides it; it is a pure function.
type Encoder interface {
	// Answer is the full answer of POST /v1/payments for a payment in a final
	// state.
	Answer(o *payonce.Order, p *payonce.Payment) (status int, contentType string, body []byte)
	// EventData is the data member of an event.
	EventData(o *payonce.Order, p *payonce.Payment) []byte
}
