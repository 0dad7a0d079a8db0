package prove

import (
	"time"

	"github.com/payonce/payonce"
)

// Script is what happens in a schedule: who wants what, and how much may go wrong.
// In which order, and what goes wrong where, is chosen step by step.
type Script struct {
	Clients []Request
	Nodes   int  // processes of the service
	Split   bool // the order is paid in shares
	// Expires is the end of the order after its start; 0: none.
	Expires time.Duration
	// Faults are lost and delayed messages, refusals, failing writes and jumping
	// clocks; Crashes are deaths of processes; Late is money that a channel takes
	// after it has closed the object; Times is how often time passes.
	Faults, Crashes, Late, Times int
	// Steps bounds the schedule before the ladder takes over.
	Steps int
	// Mute: no notice ever arrives, not even at the end.
	Mute bool
	// Twice: acknowledged notices may come once more.
	Twice bool
	// TakeOver: a process that starts takes over what its node held.
	TakeOver bool
	// Plain leaves out what makes equal states differ without need: jitter, and the
	// many distances that time may pass.
	Plain bool

	lie lie // what a channel does that no channel may; tests of this package
}

// lie is a broken promise of a channel. A search that does not find it is worth
// nothing.
type lie int

const (
	honest      lie = iota
	closesNot       // says closed, and stays open
	forgetsPaid     // says dead of a number that it has charged
	takesTwice      // charges a number again, and tells nobody
	paysAnyone      // charges a code that nobody was shown
)

// Request is what one client wants, and how often it asks.
type Request struct {
	Kind   string // pay, close, cancel, sync, amend
	Method string // qr, page, card
	Part   string
	Amount payonce.Amount // 0: the whole order
	Tries  int            // 0 is 1; a pay is repeated under its key
	Async  bool
	Wait   time.Duration
}

// Violation is a broken invariant.
type Violation struct {
	Rule   string
	Detail string
	Step   int // of the schedule; after its last one: while the ladder climbed
}

// Report is what became of a schedule.
type Report struct {
	Violations []Violation
	Trace      []string // the steps, in words
	Hash       uint64   // of the steps and of the books after each of them
	Steps      int
	Reached    map[string]bool // situations that the schedule came through
}
