// Package store is the contract of persistence.
//
// Everything that happens to an order goes through [Writer]: a [Unit] names an
// order, the store locks its row, reads what belongs to it, lets the unit decide
// on that picture, and writes what the decision changed, all in one transaction.
// Decisions are pure functions of what they are shown; they may be called again
// when a batch has to be taken apart. Nothing that a decision promised may leave
// the process before Write has returned nil for it.
//
// The package must not know what a decision means, what a channel is, or which
// database is behind it.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/payonce/payonce"
)

// Errors of the contract. Decide's own errors come back unchanged.
var (
	// ErrNotFound: there is no such row for this merchant and environment.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the database cannot be used now, and nothing was written.
	ErrUnavailable = errors.New("store unavailable")
	// ErrOutcomeUnknown: the answer to COMMIT was lost and reading back failed
	// too. The unit may or may not have been written.
	ErrOutcomeUnknown = errors.New("commit outcome unknown")
	// ErrConflict: a promise of the schema refused the write (a unique key or a
	// CHECK), also when tried alone on a fresh picture.
	ErrConflict = errors.New("refused by a constraint")
)

// Unit is one decision about one order.
type Unit struct {
	Order payonce.OrderKey
	// Create is the order to make when there is none; nil: an absent order is
	// ErrNotFound. Only ID, Key, Amount, Currency, Subject, Policy, ExpiresAt and
	// Metadata are read; it is OPEN with nothing paid.
	Create *payonce.Order
	// Key is the idempotency record to look up under the lock, nil for none.
	Key *[32]byte
	// Notice is the message of a channel to look up under the lock, nil for none.
	Notice *NoticeID
	// Actor and Salt go into the audit entries; a random salt per attempt lets
	// the store recognise its own commit when the answer was lost.
	Actor string
	Salt  [16]byte
	// Decide changes the view. An error writes nothing for this unit and leaves
	// the others of the batch alone.
	Decide func(*View) error
}

// Names are what no two units of a batch may share. The zero value is ready.
type Names struct {
	orders  map[payonce.OrderKey]bool
	keys    map[[32]byte]bool
	notices map[NoticeID]bool
}

// Take adds the names of u and reports whether all of them were free. Names of a
// unit that has to wait count too, so that later ones do not overtake it.
func (n *Names) Take(u *Unit) (free bool) {
	if n.orders == nil {
		*n = Names{map[payonce.OrderKey]bool{}, map[[32]byte]bool{}, map[NoticeID]bool{}}
	}
	free = !n.orders[u.Order]
	n.orders[u.Order] = true
	if u.Key != nil {
		free = free && !n.keys[*u.Key]
		n.keys[*u.Key] = true
	}
	if u.Notice != nil {
		free = free && !n.notices[*u.Notice]
		n.notices[*u.Notice] = true
	}
	return free
}

// View is the picture of one order under its lock, and what to write.
type View struct {
	payonce.Aggregate
	Created bool       // there was no such order; it is made by this unit
	Key     *KeyRecord // of Unit.Key as stored, nil when unknown
	Notice  *Notice    // of Unit.Notice as stored, nil when unknown

	// What the decision adds. Changed fields of Order, Payments and Charges, new
	// elements of Payments and Charges, and Changes are found by the store.
	NewKey    *KeyRecord
	NewNotice *Notice // of Unit.Notice: stored, or takes the place of a parked one
	Evidence  []Evidence
	Answers   []Answer
	Outbox    []OutboxEvent
}

// KeyRecord binds an idempotency key to what it started. Records of payments
// live as long as their order.
type KeyRecord struct {
	ID          [32]byte
	Merchant    string
	Environment payonce.Environment
	Kind        string // payment, order, or the name of an action
	OrderID     string
	PaymentID   string // "" for other kinds
	FPVersion   int
	FPSecret    string
	FP          [32]byte
	Converged   bool
	// AnswerUntil: the request that made the record answers until then.
	AnswerUntil time.Time
	CreatedAt   time.Time
}

// Evidence is a stored statement: what a channel answered, what a notice said,
// or the proof that nothing was sent. Evidence is appended, never changed.
type Evidence struct {
	ID        string
	OrderID   string
	PaymentID string
	Kind      string // of the fact
	Source    string
	Number    string
	Permit    int
	Fence     int64
	Detail    string // stable code or the channel's code
	Raw       []byte
	At        time.Time
}

// NoticeID identifies a message of a channel: at most one row for each.
type NoticeID struct {
	Account string
	EventID string
}

// States of a stored notice. A parked one names a number that is not known here
// (yet); it is looked at again.
const (
	NoticeApplied = "applied"
	NoticeParked  = "parked"
)

// Notice is a verified message of a channel as it was received.
type Notice struct {
	NoticeID
	Status     string
	Type       string // the channel's word
	Number     string
	Object     string
	PaymentID  string // "" while parked
	Headers    string // JSON
	Body       []byte
	ReceivedAt time.Time
	DueAt      time.Time // when a parked one is looked at again; zero: never
}

// Notices keeps messages that have no order to be written with.
type Notices interface {
	// Notice returns a stored notice, so that a duplicate is answered without a
	// lock.
	Notice(ctx context.Context, id NoticeID) (*Notice, error)
	// Park stores a notice of an unknown number; one that is stored stays as it is.
	Park(ctx context.Context, n Notice) error
	// DueNotices returns parked notices whose time has passed, oldest first.
	DueNotices(ctx context.Context, limit int) ([]Notice, error)
	// Postpone moves a parked notice to another time, zero for never.
	Postpone(ctx context.Context, id NoticeID, due time.Time) error
}

// Answer is the stored final answer of a payment in one state.
type Answer struct {
	PaymentID   string
	Status      payonce.PaymentStatus
	HTTPStatus  int
	ContentType string
	Body        []byte
}

// OutboxEvent is one event for the shop. (Subject, Type, Change) is unique.
type OutboxEvent struct {
	ID      string
	Order   payonce.OrderKey
	Type    string
	Subject string
	Change  int64
	Data    []byte // JSON of the event's data member
	At      time.Time
}

// Writer runs decisions.
type Writer interface {
	// Write runs the units in one transaction and returns one result for each. No
	// two units of a batch may name the same order, key or notice.
	//
	// The rows are locked in one order that is the same for all writers. A unit
	// is all or nothing. If a statement raises, the transaction is rolled back
	// and the units run again one by one; serialization failures and unique
	// conflicts are tried again on a fresh picture a few times, and an order that
	// somebody else holds is ErrUnavailable after a short wait. If the answer to
	// COMMIT is lost, what the transaction wrote is read back. nil means: it is
	// committed. The time is bounded, and the deadline of ctx ends it earlier,
	// though never a COMMIT under way.
	Write(ctx context.Context, units []*Unit) []error
}

// Due names a payment or order that a worker should look at.
type Due struct {
	Order     payonce.OrderKey
	PaymentID string // "" for an order past expires_at
}

// Queue finds work. Finding is not claiming: a claim is a Unit that looks again
// under the lock.
type Queue interface {
	// DuePayments returns payments whose due time has passed, oldest first.
	DuePayments(ctx context.Context, limit int) ([]Due, error)
	// HeldBy returns payments leased by owners that start with this prefix and
	// are not the given owner.
	HeldBy(ctx context.Context, prefix, except string, limit int) ([]Due, error)
	// DueOrders returns OPEN and PARTIALLY_PAID orders past expires_at. A CLOSING
	// order is finished by the end of its last payment, which is due by itself.
	DueOrders(ctx context.Context, limit int) ([]Due, error)
	// NextDue returns when the next payment becomes due, zero when none is.
	NextDue(ctx context.Context) (time.Time, error)
	// Now returns the database's clock.
	Now(ctx context.Context) (time.Time, error)
}

// Scope bounds every read to one merchant and environment.
type Scope struct {
	Merchant    string
	Environment payonce.Environment
}

// PaymentFilter selects payments, newest first. Empty members do not filter.
type PaymentFilter struct {
	OrderNo string
	Status  payonce.PaymentStatus
	Number  string
	Key     *[32]byte // of an idempotency record
	After   string    // id of the last payment of the page before
	Limit   int
}

// OrderFilter selects orders, newest first.
type OrderFilter struct {
	Status payonce.OrderStatus
	After  string // order id
	Limit  int
}

// OrderWithPayments is an order and its attempts by sequence.
type OrderWithPayments struct {
	Order    *payonce.Order
	Payments []*payonce.Payment
}

// Replay is all that answering a known key needs.
type Replay struct {
	Key     KeyRecord
	Order   *payonce.Order
	Payment *payonce.Payment // nil for kinds other than payment
	Answer  *Answer          // of the payment's present state, nil when none is stored
	Now     time.Time        // the database's clock
}

// Reader answers questions. It reads the primary, never a replica.
type Reader interface {
	Order(ctx context.Context, key payonce.OrderKey) (*OrderWithPayments, error)
	Orders(ctx context.Context, s Scope, f OrderFilter) ([]*OrderWithPayments, error)
	Payment(ctx context.Context, s Scope, id string) (*payonce.Payment, error)
	Payments(ctx context.Context, s Scope, f PaymentFilter) ([]*payonce.Payment, error)
	// Find returns a payment by the number that its account's channel sees, or,
	// without a number, by the channel's object.
	Find(ctx context.Context, account, number, object string) (*payonce.Payment, error)
	Replay(ctx context.Context, key [32]byte) (*Replay, error)
	// Versions returns the present version of each payment; absent ids are left
	// out. Watchers of other processes' changes use it.
	Versions(ctx context.Context, ids []string) (map[string]int64, error)
	Evidence(ctx context.Context, s Scope, paymentID string) ([]Evidence, error)
	Audit(ctx context.Context, orderID string) ([]AuditRow, error)
	APIKey(ctx context.Context, hash [32]byte) (*APIKey, error)
	// Ping fails when the database cannot be used for writing.
	Ping(ctx context.Context) error
}

// AuditRow is an audit entry with the salt that its hash covers.
type AuditRow struct {
	payonce.AuditEntry
	Salt [16]byte
}

// APIKey is a credential of a merchant. Only the hash of the secret is stored.
type APIKey struct {
	ID          string
	Hash        [32]byte
	Merchant    string
	Environment payonce.Environment
	Role        string // api, operator, read
	CreatedAt   time.Time
	RevokedAt   time.Time
}

// Admin is for commands, not for requests.
type Admin interface {
	AddAPIKey(ctx context.Context, k APIKey) error // adding the same hash again changes nothing
	APIKeys(ctx context.Context) ([]APIKey, error)
	RevokeAPIKey(ctx context.Context, id string) error
	// Installation returns the installation id, made by the first migration.
	Installation(ctx context.Context) (string, error)
}

// Store is a database of Payonce.
type Store interface {
	Writer
	Queue
	Reader
	Notices
	Admin
	Close() error
}
