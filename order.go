package payonce

import "time"

// Environment separates test from live: objects, keys, accounts and scopes of
// one are invisible in the other.
type Environment string

// The two environments.
const (
	Test Environment = "test"
	Live Environment = "live"
)

// OrderKey names an order the way its shop does. The order row found under it
// is the lock of everything that happens to the order.
type OrderKey struct {
	Merchant    string
	Environment Environment
	OrderNo     string
}

// OrderStatus is the state of an order. Refunds never change it.
type OrderStatus string

// States of an order. CLOSING is committed before anything is closed at a
// channel; from then on no new payment starts. A CLOSED order is never
// reopened.
const (
	OrderOpen          OrderStatus = "OPEN"
	OrderPartiallyPaid OrderStatus = "PARTIALLY_PAID"
	OrderPaid          OrderStatus = "PAID"
	OrderClosing       OrderStatus = "CLOSING"
	OrderClosed        OrderStatus = "CLOSED"
)

// Policy says how an order may be paid.
type Policy string

// PolicySingle wants one full payment; PolicySplit takes shares, each with its
// own part name.
const (
	PolicySingle Policy = "single"
	PolicySplit  Policy = "split"
)

// Order is what a shop wants paid. Orders are never deleted.
type Order struct {
	ID  string
	Key OrderKey

	Status         OrderStatus
	Amount         Amount
	Currency       Currency
	Subject        string
	Policy         Policy
	AmountPaid     Amount // by effective charges
	AmountRefunded Amount
	AmountSurplus  Amount // captured by charges that do not count
	Reserved       Amount // of live payments that are not superseded
	ExpiresAt      time.Time
	Metadata       string // JSON object of strings, "" when none

	LastSequence int
	Version      int64 // rises with every transaction that takes the lock
	AuditLength  int64
	AuditHead    [32]byte

	CreatedAt, UpdatedAt time.Time
}

// Chargeable reports whether a permit may be given at all: a transaction that
// sees anything else must not send money calls.
func (o *Order) Chargeable(now time.Time) bool {
	if !o.ExpiresAt.IsZero() && !now.Before(o.ExpiresAt) {
		return false
	}
	return o.Status == OrderOpen || o.Status == OrderPartiallyPaid
}
