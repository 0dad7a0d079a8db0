package core

import "time"

// Statuses of a charge on the books.
const (
	StatusCreated           = "created" // made, nobody has tried to pay
	StatusUnpaid            = "unpaid"  // waits for the payer or the bank
	StatusAuthorized        = "authorized"
	StatusPaid              = "paid"
	StatusPartiallyRefunded = "partially_refunded"
	StatusRefunded          = "refunded"
	StatusClosed            = "closed"
	StatusDeclined          = "declined"
)

// Charge is one line of the books: one object of a channel. Amounts are in
// minor units.
type Charge struct {
	Channel   string     `json:"channel"`
	Number    string     `json:"number"`
	PaymentID string     `json:"payment_id"`
	Amount    int64      `json:"amount"`
	Currency  string     `json:"currency"` // upper case
	Status    string     `json:"status"`
	PaidAt    *time.Time `json:"paid_at"`
	Refunded  int64      `json:"refunded"`
	Refunds   []Refund   `json:"refunds"`
}

// Refund is one refund of a charge. Status: pending, succeeded, failed.
type Refund struct {
	Number string `json:"refund_number"`
	ID     string `json:"refund_id"`
	Amount int64  `json:"amount"`
	Status string `json:"status"`
}

// PayOrder asks a channel to play the payer.
type PayOrder struct {
	Number  string
	Outcome string // paid, declined, abandoned, scanned
	Amount  int64  // 0: what is due
	Force   bool   // money arrives whatever the state is
}

// Outcomes are what a payer can do.
var Outcomes = []string{"paid", "declined", "abandoned", "scanned"}

// PageState is what the payer's page shows of a channel object.
type PageState struct {
	Amount    string
	Open      bool
	Unopened  bool // the channel has no payment yet: the payer may log in first
	Paid      bool
	ReturnURL string // with the answer in its query; "" when there is none
}
