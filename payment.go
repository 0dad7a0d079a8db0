package payonce

import "time"

// PaymentStatus is the state of a payment attempt.
type PaymentStatus string

// States of a payment.
const (
	Created    PaymentStatus = "CREATED"    // stored, nothing sent
	Processing PaymentStatus = "PROCESSING" // a money call is permitted or under way
	Pending    PaymentStatus = "PENDING"    // accepted, waits for the payer, the channel or a capture
	Unknown    PaymentStatus = "UNKNOWN"    // a call ended without knowledge
	Succeeded  PaymentStatus = "SUCCEEDED"
	Failed     PaymentStatus = "FAILED"    // refused or declined
	Cancelled  PaymentStatus = "CANCELLED" // closed or expired at the channel, or never sent
)

// Live reports whether a payment in this state may still take money.
func (s PaymentStatus) Live() bool {
	return s == Created || s == Processing || s == Pending || s == Unknown
}

// Action is what the payer has to do next. Exactly the members of its type are
// set.
type Action struct {
	Type      string            `json:"type"` // qr_code, redirect, form, client_params
	QRCode    string            `json:"qr_code,omitempty"`
	URL       string            `json:"url,omitempty"`
	Method    string            `json:"method,omitempty"`
	Fields    map[string]string `json:"fields,omitempty"`
	Params    map[string]string `json:"params,omitempty"`
	ExpiresAt time.Time         `json:"expires_at,omitzero"`
}

// Failure says why a try did not take money.
type Failure struct {
	Code        string `json:"code"`         // one of ours: declined, refused, expired …
	ChannelCode string `json:"channel_code"` // the channel's own word, "" when none
	Message     string `json:"message"`      // for people; never secret
}

// PermitEnd is how the send of a permit ended.
type PermitEnd string

// Ends of a permit. An open end means: the call may still have an effect.
const (
	EndOpen     PermitEnd = ""
	EndAccepted PermitEnd = "accepted"
	EndRefused  PermitEnd = "refused"
	EndNotSent  PermitEnd = "not_sent"
)

// Permit is the one-use right to send one money call. It is committed with the
// intent, before the first byte leaves; a re-send is a new permit.
type Permit struct {
	No      int       `json:"no"` // 1, 2, … within the payment
	Fence   int64     `json:"fence"`
	GivenAt time.Time `json:"given_at"`
	End     PermitEnd `json:"end"`
}

// Payment is one attempt to charge one order on one channel account.
type Payment struct {
	ID       string
	OrderID  string
	Key      OrderKey // of its order
	Sequence int      // within its order
	Part     string   // "" for policy single

	Status     PaymentStatus
	Effective  bool // its success pays the order
	Superseded bool // lost its order to another success; holds no slot

	Amount           Amount
	AmountAuthorized Amount
	AmountRefunded   Amount
	Currency         Currency

	Channel   string
	Account   string
	Method    string
	Number    string // what the channel sees; never changes
	Request   []byte // the exact bytes that begin sends; never change
	Inputs    [32]byte
	ReturnURL string

	ObjectID         string // the channel's object that our calls name, "" until known
	ChannelPaymentID string // of the first charge, or of the object where that is the same
	Action           *Action
	Failure          *Failure
	UnknownReason    string
	DeadAt           time.Time // after it the object can take no money; sent with every begin

	// What is known of the number at the channel. These only ever become true.
	Accepted  bool // a send was accepted
	Seen      bool // an authenticated answer has shown that the number exists
	HandedOut bool // an action that the payer can use was committed
	Declined  bool // a try of the payer failed; the object may still be usable
	Dead      bool // the channel stated, or it is proven, that it can take no money
	GivenUp   bool // its end was decided: the number is never sent, and its action never shown, again

	Permits     []Permit
	Prepares    int   // number of the prepare step's idempotency key at the channel
	SendKey     int   // number of the money call's idempotency key at the channel
	CloseKey    int   // the same of the close
	Fence       int64 // rises with every claim, permit and close, never with a fact: old rights end
	Version     int64 // rises with every fact or state change: old questions end
	Revision    int64 // rises with every write of the row: guards the write itself
	LeaseOwner  string
	LeaseUntil  time.Time
	DueAt       time.Time // when a worker looks next; zero: never
	Asks        int       // steps up the ladder since the last change
	CallerAt    time.Time // when a caller last waited for it
	LastAsked   bool      // the one answered query after a final state was made
	ChargeCount int
	EvidenceID  string // of the final state

	CreatedAt, UpdatedAt time.Time
	SucceededAt          time.Time
}

// LiveSlot is the value that the database keeps unique while the payment holds
// its order (and part); "" when it holds none.
func (p *Payment) LiveSlot() string {
	if p.Status.Live() && !p.Superseded {
		return p.OrderID + ":" + p.Part
	}
	return ""
}

// EffectiveSlot is the value that the database keeps unique for the success
// that pays the order (or part).
func (p *Payment) EffectiveSlot() string {
	if p.Effective {
		return p.OrderID + ":" + p.Part
	}
	return ""
}

// LastPermit returns the permit given last, or nil.
func (p *Payment) LastPermit() *Permit {
	if len(p.Permits) == 0 {
		return nil
	}
	return &p.Permits[len(p.Permits)-1]
}

// NeverSent reports whether our own books prove that no money call of the
// payment can have had an effect: every permit ended without one, nothing was
// handed out, and nothing that the channel said speaks against it. A prepared
// object alone can take no money.
func (p *Payment) NeverSent() bool {
	known := p.Seen && p.ObjectID == ""
	return p.Status != Pending && p.sendsEnded() && !known
}

// sendsEnded reports whether every send of the payment ended without effect.
func (p *Payment) sendsEnded() bool {
	for i := range p.Permits {
		if e := p.Permits[i].End; e != EndRefused && e != EndNotSent {
			return false
		}
	}
	return !p.Accepted && !p.HandedOut && p.ChargeCount == 0
}

// Shows returns the action that the payer may be shown now, nil for none: the
// payment waits for them, its end is not decided, and its order takes it. A nil
// order is one that the caller does not look at.
func (o *Order) Shows(p *Payment, now time.Time) *Action {
	a := p.Action
	if a == nil || p.Status != Pending || p.Superseded || p.GivenUp || o != nil && !o.Chargeable(now) {
		return nil
	}
	if !a.ExpiresAt.IsZero() && !now.Before(a.ExpiresAt) || !p.DeadAt.IsZero() && !now.Before(p.DeadAt) {
		return nil
	}
	return a
}

// SendInFlight reports whether a send of ours can still arrive at the channel:
// a permit without a recorded end that was given less than window ago.
func (p *Payment) SendInFlight(now time.Time, window time.Duration) bool {
	for i := range p.Permits {
		if p.Permits[i].End == EndOpen && now.Sub(p.Permits[i].GivenAt) < window {
			return true
		}
	}
	return false
}

// Charge is one success at the channel, unique by (account, channel payment
// id). The first charge of a payment makes it SUCCEEDED; each further one is
// surplus with a row of its own.
type Charge struct {
	ID         string
	PaymentID  string
	OrderID    string
	Account    string
	PaymentRef string // the channel's payment id
	Amount     Amount // as captured on the channel's statement
	Currency   Currency
	Kind       ChargeKind
	EvidenceID string
	ChargedAt  time.Time
}

// ChargeKind says what a charge is for its order.
type ChargeKind string

// Kinds of charges.
const (
	ChargeEffective ChargeKind = "effective" // pays the order
	ChargeSurplus   ChargeKind = "surplus"   // took money that no one owes
	ChargeMismatch  ChargeKind = "mismatch"  // our number, another amount or currency: a case
)
