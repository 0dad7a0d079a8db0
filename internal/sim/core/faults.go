package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Names of faults. error takes ":CODE", duplicate takes ":N".
const (
	LoseRequest    = "lose_request"
	LoseResponse   = "lose_response"
	ResetMidBody   = "reset_mid_body"
	Delay          = "delay"
	HTTP500Before  = "http_500_before"
	HTTP500After   = "http_500_after"
	HTML502        = "html_502"
	BadSignature   = "bad_signature"
	Truncated      = "truncated"
	ErrorCode      = "error"
	Duplicate      = "duplicate"
	Drop           = "drop"
	Late           = "late"
	Reorder        = "reorder"
	WrongAmount    = "wrong_amount"
	ForeignAccount = "foreign_account"
	BeforeResponse = "before_response"
)

// callFaults happen to a call of the client, noticeFaults to a notice.
var (
	callFaults = []string{LoseRequest, LoseResponse, ResetMidBody, Delay, HTTP500Before, HTTP500After,
		HTML502, BadSignature, Truncated, ErrorCode, Duplicate, WrongAmount, ForeignAccount, BeforeResponse}
	noticeFaults = []string{LoseRequest, LoseResponse, Delay, BadSignature, Truncated,
		Duplicate, Drop, Late, Reorder, WrongAmount, ForeignAccount, BeforeResponse}
	// changing are the operations that repeat effects or cause notices.
	changing = []string{OpCreate, OpConfirm, OpCapture, OpClose, OpRefund}
)

const (
	defaultDelay  = time.Second
	defaultLate   = 2 * time.Second
	maxDelayMS    = 10 * 60 * 1000
	maxDuplicates = 100
	maxFaultsKept = 10_000
	reorderAtMost = 5 * time.Second // when no later notice comes
	noticeAtMost  = 5 * time.Second // before_response waits no longer
	forever       = -1
)

// Fault is one that was asked for.
type Fault struct {
	ID        string `json:"id"`
	Channel   string `json:"channel"`
	Operation string `json:"operation"`
	Fault     string `json:"fault"`
	Number    string `json:"number,omitempty"`
	Times     int    `json:"times"` // what is left; -1: for ever
	DelayMS   int64  `json:"delay_ms,omitempty"`
	Used      int    `json:"used"`

	// Name and Arg are Fault in two parts: "error", "card_declined".
	Name string `json:"-"`
	Arg  string `json:"-"`
}

// Is tells whether f, which may be nil, is the named fault.
func (f *Fault) Is(name string) bool { return f != nil && f.Name == name }

// Pause is the real time that a delay or late fault asks for.
func (f *Fault) Pause() time.Duration {
	if f.DelayMS > 0 {
		return time.Duration(f.DelayMS) * time.Millisecond
	}
	if f.Name == Late {
		return defaultLate
	}
	return defaultDelay
}

// Copies is the N of duplicate:N: how often the same is sent again.
func (f *Fault) Copies() int {
	if !f.Is(Duplicate) {
		return 0
	}
	n, _ := strconv.Atoi(f.Arg) // checked by Check
	return n
}

// faults are kept in memory only: they are part of a test's script, not of
// the channel's books.
type faults struct {
	mu     sync.Mutex
	list   []*Fault // oldest first
	serial int
}

// Check splits the name and tells whether the fault makes sense for the
// operation at any channel. Channels refuse what makes no sense at theirs.
func (f *Fault) Check() error {
	f.Name, f.Arg, _ = strings.Cut(f.Fault, ":")
	hasArg := strings.Contains(f.Fault, ":")
	known := slices.Contains(callFaults, f.Name) || slices.Contains(noticeFaults, f.Name)
	switch {
	case !slices.Contains(Operations, f.Operation):
		return fmt.Errorf("%w: unknown operation %q", ErrBad, f.Operation)
	case !known || hasArg != (f.Name == ErrorCode || f.Name == Duplicate):
		return fmt.Errorf("%w: unknown fault %q", ErrBad, f.Fault)
	case f.Times == 0 || f.Times < forever:
		return fmt.Errorf("%w: times is a positive number, or -1 for ever", ErrBad)
	case f.DelayMS < 0 || f.DelayMS > maxDelayMS:
		return fmt.Errorf("%w: delay_ms must be 0 to %d", ErrBad, maxDelayMS)
	}
	if f.Name == Duplicate {
		if n, err := strconv.Atoi(f.Arg); err != nil || n < 1 || n > maxDuplicates {
			return fmt.Errorf("%w: duplicate:N takes 1 to %d", ErrBad, maxDuplicates)
		}
	}
	sense := slices.Contains(callFaults, f.Name)
	if f.Operation == OpNotice {
		sense = slices.Contains(noticeFaults, f.Name)
	} else if f.Name == BeforeResponse || f.Name == Duplicate {
		sense = slices.Contains(changing, f.Operation)
	}
	if !sense {
		return f.Senseless()
	}
	return nil
}

// Senseless is the error for a fault that the operation cannot have.
func (f *Fault) Senseless() error {
	return fmt.Errorf("%w: fault %q makes no sense for operation %q of %s", ErrBad, f.Fault, f.Operation, f.Channel)
}

// AddFault takes a checked fault and returns its id.
func (w *World) AddFault(f Fault) (string, error) {
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	if len(w.faults.list) >= maxFaultsKept {
		return "", fmt.Errorf("%w: %d faults are waiting already", ErrBad, maxFaultsKept)
	}
	w.faults.serial++
	f.ID = "fault_" + strconv.Itoa(w.faults.serial)
	w.faults.list = append(w.faults.list, &f)
	return f.ID, nil
}

// Faults lists those that are not used up, oldest first.
func (w *World) Faults() []Fault {
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	list := make([]Fault, 0, len(w.faults.list))
	for _, f := range w.faults.list {
		list = append(list, *f)
	}
	return list
}

// DeleteFaults removes the fault with the id, or all for "", and returns how
// many there were.
func (w *World) DeleteFaults(id string) int {
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	before := len(w.faults.list)
	w.faults.list = slices.DeleteFunc(w.faults.list, func(f *Fault) bool { return id == "" || f.ID == id })
	return before - len(w.faults.list)
}

// TakeFault uses up one time of the oldest fault that matches, or returns
// nil. A fault with a number matches only that number.
func (w *World) TakeFault(channel, operation, number string) *Fault {
	return w.takeFault(channel, operation, number, false)
}

// TakeLasting is TakeFault for what is too unimportant to use up a fault with
// a count: it finds only those that last for ever.
func (w *World) TakeLasting(channel, operation, number string) *Fault {
	return w.takeFault(channel, operation, number, true)
}

func (w *World) takeFault(channel, operation, number string, lasting bool) *Fault {
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	for i, f := range w.faults.list {
		if f.Channel != channel || f.Operation != operation || f.Number != "" && f.Number != number ||
			lasting && f.Times != forever {
			continue
		}
		f.Used++
		if f.Times > 0 {
			f.Times--
		}
		taken := *f
		if f.Times == 0 {
			w.faults.list = slices.Delete(w.faults.list, i, i+1)
		}
		return &taken
	}
	return nil
}
