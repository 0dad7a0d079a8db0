package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/payonce/payonce/internal/run"
)

// lostCommit: COMMIT was sent, or may have been, and no answer says how it
// ended.
type lostCommit struct{ cause error }

// Error names the cause.
func (l *lostCommit) Error() string { return "answer to COMMIT lost: " + l.cause.Error() }

// Unwrap returns the cause.
func (l *lostCommit) Unwrap() error { return l.cause }

// commitGrace is how long a COMMIT may go on after the caller's time is over: a
// little patience is cheaper than reading back.
const commitGrace = 2 * time.Second

// attempt runs jobs in one transaction. An error means that nothing was
// written, except a lostCommit. The context ends the attempt at any moment
// before COMMIT and never during it. The attempt as a whole, COMMIT included, is
// over after Timeout, or soon after the context's deadline where that is nearer.
func (s *Store) attempt(ctx context.Context, jobs []*job) error {
	for _, j := range jobs {
		j.reset()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		bounded, cancel = context.WithDeadline(bounded, deadline.Add(commitGrace))
		defer cancel()
	}
	stop := context.AfterFunc(ctx, cancel)
	defer stop()

	err := s.onConn(bounded, func(conn *sql.Conn) error { return s.commit(ctx, bounded, conn, stop, jobs) })
	if ended, lost := ctx.Err(), (*lostCommit)(nil); err != nil && ended != nil && !errors.As(err, &lost) {
		return fmt.Errorf("%w: %w", ended, err) // drivers call a context that ended a bad connection
	}
	return err
}

// notBegun: the transaction did not begin. No unit had a part in that, whatever
// the database says.
type notBegun struct{ error }

// Unwrap returns the cause.
func (n notBegun) Unwrap() error { return n.error }

// commit runs the transaction of jobs on a connection. stop says that ctx may
// not end it any more, and false when it has.
func (s *Store) commit(ctx, bounded context.Context, conn *sql.Conn, stop func() bool, jobs []*job) error {
	return s.session(bounded, conn, func(tx Session) error {
		err := s.transact(bounded, tx, jobs)
		if err == nil && !writes(jobs) {
			tx.Rollback()
			return nil // what was read under the locks stands
		}
		if err == nil {
			err = run.Fail("commit.before")
		}
		if err == nil && !stop() {
			err = ctx.Err()
		}
		if err != nil {
			tx.Rollback()
			return err
		}
		if err = tx.Commit(bounded); err == nil {
			err = run.Fail("commit.after")
		} else if s.refusedCommit(err) {
			return err
		}
		if err != nil {
			tx.Abandon()
			return &lostCommit{err}
		}
		return nil
	})
}

func (s *Store) txOptions() *sql.TxOptions {
	return &sql.TxOptions{Isolation: s.d.Isolation(), ReadOnly: s.o.ReadOnly}
}

// refusedCommit reports whether the database itself said that the transaction
// was rolled back. Everything else leaves COMMIT unknown.
func (s *Store) refusedCommit(err error) bool {
	class, _ := s.classify(err)
	return class == ClassRetry || class == ClassHeld || class == ClassDuplicate || class == ClassRefused
}

// onConn runs f on one connection. A server that takes no writes is left: after
// a failover the pool must find the new one.
func (s *Store) onConn(ctx context.Context, f func(*sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // gives it back; it was closed already when discarded
	err = f(conn)
	if err != nil {
		if class, _ := s.classify(err); class == ClassReadOnly {
			discard(conn)
		}
	}
	return err
}

// discard closes a connection whose state is not known.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

func writes(jobs []*job) bool {
	for _, j := range jobs {
		if j.err == nil && j.writes {
			return true
		}
	}
	return false
}

// transact does everything between BEGIN and COMMIT.
func (s *Store) transact(ctx context.Context, tx Session, jobs []*job) error {
	if err := s.load(ctx, tx, jobs); err != nil {
		return err
	}
	for _, j := range jobs {
		if j.err == nil {
			j.err = decide(j)
		}
		if j.err == nil {
			if err := s.compare(j); err != nil {
				j.err = s.wrap(err)
			}
		}
	}
	return s.save(ctx, tx, jobs)
}

// decide calls the decision; a panic is that unit's error.
func decide(j *job) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decision panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return j.unit.Decide(j.view)
}
