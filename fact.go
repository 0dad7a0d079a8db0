package payonce

import "time"

// FactKind says what a statement means for a payment. The zero value is
// StateUnknown: whatever is not classified is no knowledge.
type FactKind uint8

// Kinds of facts. Settled … Absent speak about the number (or the object that
// they name); Refused and NotSent speak about one request of ours alone.
const (
	StateUnknown     FactKind = iota // a call ended without knowledge
	StateSettled                     // money was taken
	StateDead                        // the channel states: it can never take money (again)
	StateDeclined                    // the last try failed, another may follow
	StateWaiting                     // accepted or authorized, waits for payer, channel or capture
	StateUnconfirmed                 // a prepared object exists and nothing was confirmed
	StateAbsent                      // the channel does not know the number
	StateRefused                     // the channel refused this request, it had no effect
	StateNotSent                     // proof that this request had no effect: no byte left, or stopped before execution
	StateNeverSent                   // our own books prove that no money call of this payment is without a harmless end
)

var factNames = [...]string{"unknown", "settled", "dead", "declined", "waiting", "unconfirmed", "absent", "refused", "not-sent", "never-sent"}

// String returns the name that the audit trail and the evidence use.
func (k FactKind) String() string {
	if int(k) < len(factNames) {
		return factNames[k]
	}
	return "unknown"
}

// Fact is one statement about a payment together with what is needed to judge
// it: who made it, about which object, and what the asker held when asking.
type Fact struct {
	Kind   FactKind
	Source string // prepare, begin, query, close, capture, notice, engine, operator
	Object string // the channel's object that it names, "" where there is one per number

	Number     string // "" only where the answer names the object instead
	Account    string
	PaymentRef string // channel payment id of a success
	Amount     Amount // settled: as captured
	Authorized Amount // waiting for capture: as authorized
	Currency   Currency
	At         time.Time // when the channel says that it happened; zero: not told

	Action  *Action
	Failure *Failure
	Reason  string // of StateUnknown, a stable code

	Permit  int   // number of the permit that this answer ends, 0 none
	Fence   int64 // that the asker held, 0 for notices
	Version int64 // of the payment, read before the question

	// ServerDate is the channel's own clock in this answer; it is set only when
	// it came over TLS verified for the channel's host, or from an account that
	// declares its date trusted.
	ServerDate time.Time
	// OnlyByAction: the object can be paid only by whoever holds its action.
	OnlyByAction bool
	// SendWindow: a send older than this cannot arrive any more.
	SendWindow time.Duration

	EvidenceID string
}

// DeathMargin is added to dead_at before the channel's own time is believed to
// lie past it, and before a payment that has not ended is closed.
const DeathMargin = 2 * time.Minute
