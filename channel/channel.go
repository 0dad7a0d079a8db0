// Package channel is the contract of a payment channel: what an adapter for
// Alipay, WeChat Pay, Stripe or 2C2P does for the service, and how it says what
// it learned.
//
// # The contract
//
// An adapter composes requests, sends each exactly once, verifies the answer
// and classifies it. It decides nothing: which request may be sent, and what an
// answer means for a payment, is the engine's.
//
//   - One call, at most one request. An adapter and everything below it never
//     retries, never follows redirects, and never invents an idempotency key.
//   - Bytes are composed once, before anything is stored, and sent as stored.
//     The same payment always sends the same bytes under the same number.
//   - Every answer is classified. What the adapter does not know for certain is
//     [payonce.StateUnknown], the zero value: a time-out, a reset, a 5xx, a body
//     that cannot be read or verified, a code that is not in the table.
//   - NotSent needs proof that the request had no effect: no connection was
//     made, or the channel documents that it stops such a request before
//     executing it (authentication, rate limit).
//   - Refused means: the channel executed nothing for this request and says so.
//     Declined means: a try was made and took no money.
//   - Answers about another number, account, amount or currency are reported as
//     they are; the engine compares them. An adapter never repairs an answer.
//   - The context carries the deadline. Calls return soon after it ends.
//
// Package channeltest proves an adapter against this page. This package must
// not know the engine, the store, or any adapter.
package channel

import (
	"context"
	"net/http"
	"time"

	"github.com/payonce/payonce"
)

// Intent is what a new payment wants, before its bytes exist.
type Intent struct {
	Order     payonce.OrderKey
	Sequence  int
	Number    string // derived; becomes the channel's number
	Method    string
	Amount    payonce.Amount
	Currency  payonce.Currency
	Subject   string
	Payer     Payer
	ReturnURL string
	NotifyURL string
	Capture   string // "automatic" or "manual"
	DeadAt    time.Time
}

// Payer carries the inputs of a method.
type Payer struct {
	PaymentMethod string `json:"payment_method,omitempty"`
	OpenID        string `json:"openid,omitempty"`
	ClientIP      string `json:"client_ip,omitempty"`
	BuyerID       string `json:"buyer_id,omitempty"`
}

// Capabilities is what the engine must know of a method, as data.
type Capabilities struct {
	// Prepared: an object is made first by Prepare, which moves no money; Begin
	// then acts on that object (Stripe: create, then confirm).
	Prepared bool
	// SelfSigned: Compose alone makes the action; there is no Begin call.
	SelfSigned bool
	// OnlyByAction: the object can be paid only by whoever holds its action.
	OnlyByAction bool
	// RepeatBegin: begin may be repeated with the same bytes to get the action
	// again.
	RepeatBegin bool
	// ReusedAfterDecline: the payer can try again on the same object.
	ReusedAfterDecline bool
	// DedupeWindow: for this long after the first send the channel recognises a
	// repeat of the same number or key. Zero: never re-send.
	DedupeWindow time.Duration
	// Life of a payable object; sent to the channel as an absolute expiry where
	// it takes one, kept by closing where it does not.
	Life time.Duration
	// Min and Max are in minor units; Currencies nil means any ISO currency.
	Min, Max   payonce.Amount
	Currencies []payonce.Currency
}

// Call is one request about one payment.
type Call struct {
	Payment payonce.Payment // as committed; the adapter reads, never changes
	// KeyNo makes the step's idempotency key where the channel has keys: the
	// same number repeats the same key, the next number is a new key.
	KeyNo int
}

// Answer is what one request learned: a fact and its raw evidence.
type Answer struct {
	payonce.Fact
	// KeySpent: the channel stored this answer under the request's idempotency
	// key although it carries no knowledge (a stored 5xx). A repeat needs the
	// next KeyNo.
	KeySpent bool
	// Raw is the channel's answer as received, at most MaxEvidence bytes, without
	// secrets of ours. It is stored as evidence.
	Raw []byte
	// Err is the cause for the log of an answer without knowledge.
	Err error
}

// MaxEvidence bounds the raw evidence of one answer.
const MaxEvidence = 64 << 10

// Notice is one verified message of the channel.
type Notice struct {
	EventID string // the channel's id of the event, unique within the account
	Type    string // the channel's word
	Number  string // "" when it names only an object
	Fact    payonce.Fact
}

// Adapter is one account of one channel. Methods are safe for concurrent use.
type Adapter interface {
	// Account returns the id of the account that this adapter serves.
	Account() string

	// Methods returns the capabilities of each method.
	Methods() map[string]Capabilities

	// Compose makes the exact bytes that Prepare or Begin will send, without
	// I/O. Errors are *payonce.Error with invalid-request: the intent has a value
	// that this channel does not take.
	Compose(Intent) ([]byte, error)

	// Begin sends the money call. The engine holds a permit that is committed.
	Begin(context.Context, Call) Answer

	// Query asks what became of the number or object. It changes nothing.
	Query(context.Context, Call) Answer

	// Close makes the object unable to take money. Dead: it is closed now or was
	// before. Settled: the money was faster.
	Close(context.Context, Call) Answer

	// ReadNotice verifies a message on its raw bytes and reads it. An error means
	// that it is not a genuine message for this account.
	ReadNotice(h http.Header, body []byte) (Notice, error)

	// ReplyNotice returns the answer to a notice, to the letter.
	ReplyNotice(NoticeOutcome) NoticeReply
}

// Preparer is an adapter whose methods have Capabilities.Prepared.
type Preparer interface {
	// Prepare makes the object that Begin acts on. It moves no money and may be
	// repeated; KeyNo is part of its key. Answers: Unconfirmed with Object set,
	// Refused, NotSent, or Unknown.
	Prepare(context.Context, Call) Answer
}

// Signer is an adapter whose methods have Capabilities.SelfSigned: the form or
// link that the payer follows is made from the stored bytes alone, without a
// call. The transaction that stores the payment hands it out.
type Signer interface {
	// Sign makes the action of a payment from its stored request. It is pure: the
	// same payment gives the same action, with an absolute expiry no later than
	// the payment's DeadAt.
	Sign(payonce.Payment) (*payonce.Action, error)
}

// NoticeOutcome is what became of an inbound notice.
type NoticeOutcome int

// Outcomes of a notice. Only a stored one is acknowledged; a refused one is not
// genuine; one that is not stored should come again.
const (
	NoticeStored NoticeOutcome = iota
	NoticeRefused
	NoticeNotStored
)

// NoticeReply is the exact answer that a channel expects to its notice.
type NoticeReply struct {
	Status      int
	ContentType string // "" when there is no body
	Body        []byte
}
