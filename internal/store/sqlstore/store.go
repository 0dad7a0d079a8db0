package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

// Options are the settings of a database that every engine understands.
type Options struct {
	// Runner paces retries and makes random numbers; nil: a live one.
	Runner run.Runner
	// Clock is added to the database's clock wherever it is read or compared. It
	// is set by simulations only.
	Clock *run.Clock
	// MaxConns limits the connections of the pool; 0 is 16. SQLite always writes
	// on one connection and reads on the others.
	MaxConns int
	// Timeout bounds all tries of a batch before COMMIT, one transaction with its
	// COMMIT, the reading back after a lost COMMIT, and every read; 0 is 15
	// seconds.
	Timeout time.Duration
	// LockWait is how long a statement waits for a lock that somebody else holds;
	// 0 is 2 seconds. It is far below Timeout, so that a row that is held takes
	// its batch apart instead of ending it. MySQL counts in whole seconds.
	LockWait time.Duration
	// ReadOnly refuses every write, for commands that only look.
	ReadOnly bool
	// Logger hears of retries and lost commits; nil: nobody.
	Logger *slog.Logger
}

// WithDefaults fills in what was left out.
func (o Options) WithDefaults() Options {
	if o.Runner == nil {
		o.Runner = run.NewLive(o.Clock)
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 16
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.LockWait <= 0 {
		o.LockWait = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Store implements store.Store over database/sql.
type Store struct {
	d       Dialect
	db      *sql.DB // writes; reads too where one pool serves both
	readers *sql.DB
	o       Options
	q       queries
	lookups lookups
}

var _ store.Store = (*Store)(nil)

// New makes a store on open pools. readers may be the same pool as db; Close
// closes both.
func New(d Dialect, db, readers *sql.DB, o Options) *Store {
	o = o.WithDefaults()
	return &Store{d: d, db: db, readers: readers, o: o, q: newQueries(d)}
}

// ConnLifetime is how old a connection gets.
const ConnLifetime = 3 * time.Minute

// Pool sets the limits that every engine wants: idle connections are kept, and
// none lives long enough to miss a failover for ever.
func Pool(db *sql.DB, conns int) {
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxLifetime(ConnLifetime)
}

// DB is the pool that writes: migrations and suites use it.
func (s *Store) DB() *sql.DB { return s.db }

// Dialect returns the engine's dialect.
func (s *Store) Dialect() Dialect { return s.d }

// Close closes the pools.
func (s *Store) Close() error {
	err := s.db.Close()
	if s.readers != s.db {
		err = errors.Join(err, s.readers.Close())
	}
	return err
}

// newID makes identifiers for a transaction that read the clock at now.
func (s *Store) newID(now time.Time) func(prefix string) string {
	return func(prefix string) string {
		var random [10]byte
		s.o.Runner.Random(random[:])
		return payonce.NewID(prefix, now, random)
	}
}

// within runs everything that is no Unit within Timeout, whatever the caller's
// context allows: on a connection that leads nowhere the driver alone would wait
// for minutes.
func (s *Store) within(ctx context.Context, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if err := f(bounded); err != nil {
		return s.wrap(err)
	}
	return nil
}

// row reads a single row.
func (s *Store) row(ctx context.Context, text string, args []any, dest ...any) error {
	return s.within(ctx, func(ctx context.Context) error { return s.readers.QueryRowContext(ctx, text, args...).Scan(dest...) })
}

// all reads all rows of a query into new values.
func all[T any](ctx context.Context, s *Store, text string, args []any, dest func(*T) []any, use func(*T)) error {
	return s.within(ctx, func(ctx context.Context) error {
		return each(ctx, s.readers, text, args, dest, use)
	})
}

// offset is how far the service's clock is ahead of the database's.
func (s *Store) offset() time.Duration { return s.o.Clock.Offset() }

// wrap turns an error of the database into one of the contract, with its cause.
func (s *Store) wrap(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	class, hint := s.classify(err)
	kind := store.ErrUnavailable
	if class == ClassDuplicate || class == ClassRefused {
		kind = store.ErrConflict
	}
	if hint != "" {
		return fmt.Errorf("%w: %w (%s)", kind, err, hint)
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// ErrStale: a guarded statement met another version than the one that was read.
var ErrStale = errors.New("row changed since it was read")

// refusal is an error of ours about what a unit wants to write.
type refusal struct{ error }

func (s *Store) classify(err error) (Class, string) {
	switch {
	case errors.Is(err, ErrStale):
		return ClassRetry, ""
	case errors.As(err, &refusal{}):
		return ClassRefused, ""
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ClassUnavailable, ""
	}
	class, hint := s.d.Classify(err)
	if errors.As(err, &notBegun{}) && class != ClassReadOnly {
		return ClassUnavailable, hint
	}
	return class, hint
}
