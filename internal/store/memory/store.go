package memory

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

// Options are what a store is made of.
type Options struct {
	// Runner makes random numbers, and tells the time where Now is nil.
	Runner run.Runner
	// Now is the database's clock; nil: the runner's.
	Now func() time.Time
	// Installation is the installation id; "": made at random.
	Installation string
}

// Store implements store.Store. It is safe for concurrent use.
type Store struct {
	o            Options
	installation string

	mu       sync.Mutex
	closed   bool
	orders   map[payonce.OrderKey]*books
	byID     map[string]*books // by order id
	payments map[string]*payonce.Payment
	numbers  map[name]string // payment ids
	objects  map[name]string
	charges  map[name]bool
	keys     map[[32]byte]*store.KeyRecord
	evidence map[string][]store.Evidence // by payment id, by id
	answers  map[answerID]*store.Answer
	events   []store.OutboxEvent
	once     map[eventID]bool
	eventIDs map[string]bool
	notices  map[store.NoticeID]*store.Notice
	apiKeys  []store.APIKey
}

var _ store.Store = (*Store)(nil)

// books are one order and what belongs to it. What is in them is never handed
// out: readers and decisions get copies.
type books struct {
	order    payonce.Order
	payments []*payonce.Payment // by sequence
	charges  []*payonce.Charge  // by id
	audit    []store.AuditRow
}

// name is a channel's name for something on one account.
type name struct{ account, name string }

type answerID struct {
	payment string
	status  payonce.PaymentStatus
}

type eventID struct {
	subject, kind string
	change        int64
}

// New returns an empty store.
func New(o Options) *Store {
	s := &Store{o: o, installation: o.Installation, orders: map[payonce.OrderKey]*books{}, byID: map[string]*books{},
		payments: map[string]*payonce.Payment{}, numbers: map[name]string{}, objects: map[name]string{}, charges: map[name]bool{},
		keys: map[[32]byte]*store.KeyRecord{}, evidence: map[string][]store.Evidence{}, answers: map[answerID]*store.Answer{},
		once: map[eventID]bool{}, eventIDs: map[string]bool{}, notices: map[store.NoticeID]*store.Notice{}}
	if s.o.Now == nil {
		s.o.Now = o.Runner.Now
	}
	if s.installation == "" {
		var random [16]byte
		o.Runner.Random(random[:])
		s.installation = hex.EncodeToString(random[:])
	}
	return s
}

// now is the clock in the databases' resolution.
func (s *Store) now() time.Time { return stamp(s.o.Now()) }

// enter takes the lock for one call.
func (s *Store) enter(ctx context.Context) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, errClosed)
	}
	return s.mu.Unlock, nil
}

var errClosed = errors.New("the store is closed")

// Close makes every later call ErrUnavailable.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
