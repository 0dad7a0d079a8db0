package payonce

import (
	"errors"
	"time"
)

// Aggregate is one order with its payments and charges as read under the order
// lock, and what a decision does to them. The store loads it, a decision
// changes it, the store writes it back: all in one transaction.
type Aggregate struct {
	Order    *Order
	Payments []*Payment // by sequence
	Charges  []*Charge
	Now      time.Time // the database's clock, one reading per transaction

	Changes []Change // for the audit trail, in order
	Proofs  []Proof  // evidence that our own books gave
	Events  []Event  // for the outbox, in order
	NewID   func(prefix string) string
}

// Change is one transition with its cause, written to the audit trail.
type Change struct {
	PaymentID  string `json:"payment_id,omitempty"` // "" for changes of the order alone
	From       string `json:"from,omitempty"`
	To         string `json:"to,omitempty"`
	Cause      string `json:"cause,omitempty"`
	EvidenceID string `json:"evidence_id,omitempty"`
}

// Proof is evidence that the books themselves give: that nothing of a payment was
// ever sent. It is stored like a channel's statement.
type Proof struct {
	ID        string
	PaymentID string
	Cause     string
}

// Event announces one change. There is at most one event per (Subject, Type,
// Change).
type Event struct {
	Type    string
	Subject string // payment or order id
	Change  int64
}

// Verdict says what a fact did.
type Verdict struct {
	Changed bool   // the row differs from before
	Alarm   string // a stable code when people must hear of it, "" otherwise
}

// Alarms that a fact can raise.
const (
	AlarmMismatch = "amount-mismatch"
	AlarmForeign  = "foreign-answer"
	AlarmSurplus  = "surplus-charge"
)

// Payment returns the payment with this id, or nil.
func (a *Aggregate) Payment(id string) *Payment {
	for _, p := range a.Payments {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Live returns the payment that holds the slot of the part, or nil.
func (a *Aggregate) Live(part string) *Payment {
	for _, p := range a.Payments {
		if p.Part == part && p.LiveSlot() != "" {
			return p
		}
	}
	return nil
}

// Effective returns the payment that pays the part, or nil.
func (a *Aggregate) Effective(part string) *Payment {
	for _, p := range a.Payments {
		if p.Effective && p.Part == part {
			return p
		}
	}
	return nil
}

// AnyLive reports whether any payment, superseded or not, may take money.
func (a *Aggregate) AnyLive() bool {
	for _, p := range a.Payments {
		if p.Status.Live() {
			return true
		}
	}
	return false
}

// Errors of the guards. They mean that a caller broke the rules, never that a
// payer did something.
var (
	ErrSlotTaken     = errors.New("another payment of this order is live or effective")
	ErrNotChargeable = errors.New("the order takes no new payment")
	ErrNoRight       = errors.New("this payment may not be sent")
	ErrNotFitting    = errors.New("the payment does not fit its order")
)

// AddPayment puts a new attempt into the order: next sequence, slot reserved.
// The payment comes with everything that never changes; status CREATED (a
// permit follows), or PENDING for a form or link that was signed without a
// call.
func (a *Aggregate) AddPayment(p *Payment) error {
	if a.Live(p.Part) != nil || a.Effective(p.Part) != nil {
		return ErrSlotTaken
	}
	if !a.Order.Chargeable(a.Now) {
		return ErrNotChargeable
	}
	if !a.fitsOrder(p) {
		return ErrNotFitting
	}
	a.Order.Reserved += p.Amount
	a.Order.LastSequence = max(a.Order.LastSequence, p.Sequence)
	p.CreatedAt, p.UpdatedAt, p.CallerAt = a.Now, a.Now, a.Now
	p.Version, p.Fence = 1, 1
	a.Payments = append(a.Payments, p)
	a.note(p, "", string(p.Status), "intent", "")
	if p.Status == Pending {
		p.HandedOut = true
		a.announce("payment.pending", p)
	}
	return nil
}

// fitsOrder: the amount is in what is neither paid nor reserved, in the order's
// currency, under a sequence of its own; shares have names, one payment has none.
func (a *Aggregate) fitsOrder(p *Payment) bool {
	o := a.Order
	if !p.Amount.Valid() || p.Amount > o.Amount-o.AmountPaid-o.Reserved || p.Currency != o.Currency {
		return false
	}
	if (p.Part != "") != (o.Policy == PolicySplit) || p.Status != Created && p.Status != Pending {
		return false
	}
	for _, q := range a.Payments {
		if q.Sequence == p.Sequence {
			return false
		}
	}
	return p.Sequence >= 1
}

// Lease names who may act on a payment and until when.
type Lease struct {
	Owner string
	Until time.Time
}

// Prepare gives the right to prepare the object of a payment. It moves no money
// and is no send; the payment is PROCESSING under a new fence.
func (a *Aggregate) Prepare(p *Payment, l Lease) error {
	if !a.MayCharge(p) || p.ObjectID != "" {
		return ErrNoRight
	}
	p.Prepares = max(p.Prepares, 1)
	p.Fence++
	a.lease(p, l)
	a.move(p, Processing, "prepare", "")
	return nil
}

// Permit gives the one-use right to send one money call. It refuses unless this
// transaction has seen, under the order lock, that the order takes payments and
// that this payment is not superseded, closed or past its end. What was prepared
// is sent only once its object is stored: an answer about any other does not count.
func (a *Aggregate) Permit(p *Payment, l Lease) (Permit, error) {
	if !a.MayCharge(p) || p.Prepares > 0 && p.ObjectID == "" {
		return Permit{}, ErrNoRight
	}
	return a.permit(p, l), nil
}

func (a *Aggregate) permit(p *Payment, l Lease) Permit {
	p.Fence++
	p.SendKey = max(p.SendKey, 1)
	permit := Permit{No: len(p.Permits) + 1, Fence: p.Fence, GivenAt: a.Now}
	p.Permits = append(p.Permits, permit)
	a.lease(p, l)
	a.move(p, Processing, "permit", "")
	return permit
}

// MayCharge reports whether this payment may be given the right to prepare or to
// send for the first time, or again after proof that earlier sends had no effect.
// A payment under which money was taken, even a wrong sum, is never sent again;
// nor is one of which a send may have had an effect: that takes a Resend.
func (a *Aggregate) MayCharge(p *Payment) bool {
	if !a.stillCharges(p) {
		return false
	}
	return p.Status == Created || (p.Status == Processing || p.Status == Unknown) && p.NeverSent()
}

// stillCharges reports whether the order takes this payment at all. What was
// declined or refused is not tried again by us: its object is closed.
func (a *Aggregate) stillCharges(p *Payment) bool {
	alive := p.DeadAt.IsZero() || a.Now.Before(p.DeadAt)
	return a.Order.Chargeable(a.Now) && alive && !p.Superseded && !p.GivenUp && !p.Declined && p.ChargeCount == 0
}

const (
	// CallerMemory is how long a caller counts as waiting for a payment.
	CallerMemory = 15 * time.Minute
	// dedupeSafety: never send again so close to the end of the dedupe window.
	dedupeSafety = time.Hour
)

// Wanted reports whether a caller waits for the payment, or waited recently.
func (p *Payment) Wanted(now time.Time) bool { return now.Sub(p.CallerAt) < CallerMemory }

// MayResend reports whether a send that may have been lost may be repeated, under
// the same number and with the same bytes. asked is the answer to a question
// under the present fence, and fresh says that nothing else was learned since the
// question: the channel has nothing for the number, or an object that nobody
// confirmed. window is how long the channel recognises a repeat of the first
// send; somebody must still want the payment. An answer that is no knowledge of
// this payment gives no right, nor does one where the books hold no send: then
// nobody knows since when the window is open.
func (a *Aggregate) MayResend(p *Payment, asked Fact, fresh bool, window time.Duration) bool {
	if asked.Kind != StateAbsent && asked.Kind != StateUnconfirmed || asked.Source != "query" || !fresh || asked.Fence != p.Fence {
		return false
	}
	if why, _ := a.unusable(p, asked); why != "" || p.sideObject(asked) {
		return false
	}
	if p.Status != Unknown || len(p.Permits) == 0 || !a.stillCharges(p) || !p.Wanted(a.Now) {
		return false
	}
	return a.Now.Before(p.Permits[0].GivenAt.Add(window - dedupeSafety))
}

// Resend gives the right to repeat a send. It refuses unless MayResend.
func (a *Aggregate) Resend(p *Payment, l Lease, asked Fact, fresh bool, window time.Duration) (Permit, error) {
	if !a.MayResend(p, asked, fresh, window) {
		return Permit{}, ErrNoRight
	}
	return a.permit(p, l), nil
}

// Claim takes a payment over: whoever held it before loses every right that
// counts only with its fence. A PROCESSING payment becomes UNKNOWN, since
// nobody can say how its call ended.
func (a *Aggregate) Claim(p *Payment, l Lease, cause string) {
	p.Fence++
	a.lease(p, l)
	if p.Status == Processing {
		p.UnknownReason = cause
		a.move(p, Unknown, cause, "")
	}
}

// GiveUp decides that the payment is to end: it is never sent again, and whoever
// holds it closes its object once that is known to exist. The decision outlives
// the request that made it.
func (a *Aggregate) GiveUp(p *Payment) {
	if p.Status.Live() && !p.GivenUp {
		p.GivenUp = true
		a.touch(p)
	}
}

// Close gives the right to close the payment's object at the channel. Only a
// number that an authenticated answer has shown to exist may be closed; after a
// close it is never sent again.
func (a *Aggregate) Close(p *Payment, l Lease) error {
	if !p.Status.Live() || (!p.Seen && p.ObjectID == "") {
		return ErrNoRight
	}
	p.GivenUp = true
	p.CloseKey = max(p.CloseKey, 1)
	p.Fence++
	a.lease(p, l)
	a.touch(p)
	return nil
}

// Release ends a lease; the payment is due again at the given time (zero:
// never).
func (a *Aggregate) Release(p *Payment, due time.Time) {
	p.LeaseOwner, p.LeaseUntil, p.DueAt = "", time.Time{}, due
}

func (a *Aggregate) lease(p *Payment, l Lease) {
	p.LeaseOwner, p.LeaseUntil = l.Owner, l.Until
	p.DueAt = l.Until
}

// StoreObject keeps the id of a prepared object where there is none yet. It
// reports whether this id is now the payment's; another id is a side object,
// which is cancelled and never confirmed.
func (a *Aggregate) StoreObject(p *Payment, object, paymentRef string) bool {
	if p.ObjectID == "" && object != "" {
		p.ObjectID = object
		if p.ChannelPaymentID == "" {
			p.ChannelPaymentID = paymentRef
		}
		p.Seen = true
		a.touch(p)
	}
	return object != "" && p.ObjectID == object
}

// Amend changes the amount of an open order that nothing pays and nothing is
// about to pay.
func (a *Aggregate) Amend(amount Amount, subject string) error {
	o := a.Order
	if o.Status != OrderOpen || o.AmountPaid > 0 || !o.Chargeable(a.Now) {
		return ErrNotChargeable
	}
	if a.AnyLive() {
		return ErrSlotTaken
	}
	if !amount.Valid() {
		return ErrNotFitting
	}
	o.Amount, o.UpdatedAt = amount, a.Now
	if subject != "" {
		o.Subject = subject
	}
	a.Changes = append(a.Changes, Change{From: string(o.Status), To: string(o.Status), Cause: "amended"})
	return nil
}

// CloseOrder starts closing: from this commit on no payment starts. Payments
// that were never sent end here; FinishClose ends the rest.
func (a *Aggregate) CloseOrder(cause string) {
	if a.Order.Status == OrderOpen || a.Order.Status == OrderPartiallyPaid {
		a.orderTo(OrderClosing, cause)
	}
	for _, p := range a.Payments {
		if p.Status == Created {
			a.CancelUnsent(p, "order-closing")
		}
	}
	a.FinishClose()
}

// FinishClose makes a CLOSING order CLOSED once nothing can take money.
func (a *Aggregate) FinishClose() {
	if a.Order.Status == OrderClosing && !a.AnyLive() {
		a.orderTo(OrderClosed, "closed")
		a.Events = append(a.Events, Event{Type: "order.closed", Subject: a.Order.ID})
	}
}

// CancelUnsent ends a payment of which nothing was ever sent; the proof becomes
// evidence. False: the books do not prove it, or a decline is on them, so that the
// object is closed first and the payment ends as FAILED.
func (a *Aggregate) CancelUnsent(p *Payment, cause string) bool {
	if !p.Status.Live() || p.Declined || !p.NeverSent() {
		return false
	}
	proof := Proof{ID: a.NewID(PrefixEvidence), PaymentID: p.ID, Cause: cause}
	a.Proofs = append(a.Proofs, proof)
	a.finish(p, Cancelled, cause, proof.ID)
	return true
}

func (a *Aggregate) orderTo(s OrderStatus, cause string) {
	a.Changes = append(a.Changes, Change{From: string(a.Order.Status), To: string(s), Cause: cause})
	a.Order.Status = s
	a.Order.UpdatedAt = a.Now
}

func (a *Aggregate) move(p *Payment, to PaymentStatus, cause, evidence string) {
	from := p.Status
	p.Status = to
	if to != Unknown {
		p.UnknownReason = ""
	}
	if from == to && to != Processing {
		return
	}
	if to == Pending || !to.Live() {
		p.Asks = 0 // progress; between CREATED, PROCESSING and UNKNOWN the pauses keep growing
	}
	a.note(p, string(from), string(to), cause, evidence)
	a.touch(p)
	switch {
	case from == to:
	case to == Pending:
		a.announce("payment.pending", p)
	case to == Unknown:
		a.announce("payment.unknown", p)
	}
}

// LastQuestion is how long after its end a payment that had been sent or handed
// out is asked about once more: a late success must not depend on its notice.
const LastQuestion = 24 * time.Hour

// finish moves a live payment to FAILED or CANCELLED and frees its slot.
func (a *Aggregate) finish(p *Payment, to PaymentStatus, cause, evidence string) {
	a.unreserve(p)
	p.EvidenceID = evidence
	p.Action = nil
	a.move(p, to, cause, evidence)
	due := time.Time{}
	if len(p.Permits) > 0 || p.HandedOut {
		due = a.Now.Add(LastQuestion)
	}
	a.Release(p, due)
	if to == Failed {
		a.announce("payment.failed", p)
	} else {
		a.announce("payment.cancelled", p)
	}
	a.FinishClose()
}

func (a *Aggregate) unreserve(p *Payment) {
	if p.LiveSlot() != "" {
		a.Order.Reserved -= p.Amount
	}
}

func (a *Aggregate) touch(p *Payment) {
	p.Version++
	p.UpdatedAt = a.Now
}

func (a *Aggregate) note(p *Payment, from, to, cause, evidence string) {
	a.Changes = append(a.Changes, Change{PaymentID: p.ID, From: from, To: to, Cause: cause, EvidenceID: evidence})
}

func (a *Aggregate) announce(kind string, p *Payment) {
	a.Events = append(a.Events, Event{Type: kind, Subject: p.ID, Change: p.Version})
}
