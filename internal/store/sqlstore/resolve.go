package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/payonce/payonce/internal/store"
)

// ending is how a transaction is known to have ended.
type ending int

const (
	rolledBack  ending = iota
	committed          // it left what only it can have written
	overwritten        // it has ended, and what it may have left was written over
)

// resolve finds out how a lost COMMIT ended, on another connection. The jobs are
// those that the transaction wrote: what is proven of one is true of all.
//
// "Not there" must never be said while the old transaction may still commit: its
// server may not have noticed that the client is gone, or may be waiting for a
// disk or a standby. That transaction holds the lock of every order that it
// wrote, so resolve takes the same lock and thereby waits for its end: the row
// lock of an order that existed; for a new order, which others cannot see yet,
// an insert of the same row, which waits on the unique keys. The insert is
// rolled back in any case. After the lock is ours the answer cannot change any
// more.
//
// A job that moved only leases and times is known by its token on the order while
// nobody wrote after it. If somebody did, another job has to tell; if none can,
// it counts as not there: running it again is safe, since every right counts
// only with its fence.
//
// The decisions are not called here: pointers that they kept must show the
// attempt that was committed.
//
// The time is bounded for all jobs together, and the caller's context does not
// end it: the money may be on its way. unknown is ErrOutcomeUnknown; its causes
// are told as text, since a timeout among them says nothing about the units.
func (s *Store) resolve(ctx context.Context, jobs []*job, lost *lostCommit) (written bool, unknown error) {
	s.o.Logger.Warn("reading back after a lost commit", "order_id", jobs[0].row.ID, "units", len(jobs), "cause", lost.cause)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer cancel()
	left := slices.Clone(jobs)
	for try := 0; len(left) > 0; {
		j := left[0]
		left = left[1:]
		end, err := s.readBack(bounded, j)
		switch {
		case err == nil && end != overwritten:
			return end == committed, nil
		case err == nil:
			continue
		}
		left = append(left, j) // its row may be held: another one says the same
		if s.pause(bounded, min(try, 7)) != nil {
			return false, fmt.Errorf("%w: %s; reading back: %s", store.ErrOutcomeUnknown, lost, err)
		}
		try++
	}
	return false, nil
}

// readBack waits for the end of the transaction that wrote j and looks for what
// it left.
func (s *Store) readBack(ctx context.Context, j *job) (end ending, err error) {
	if j.created {
		gone, err := s.probeInsert(ctx, j)
		if gone || err != nil {
			return rolledBack, err
		}
	}
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		var order []*orderRow
		query, args := s.in(s.q.orders, Hash, []any{j.hash[:]})
		err := each(ctx, tx, query, args, orderRows.dest, func(o *orderRow) { order = append(order, o) })
		if err != nil || len(order) == 0 {
			return err
		}
		end, err = s.leftTrace(ctx, tx, j, order[0])
		return err
	})
	return end, err
}

// probeInsert inserts the order that j made and rolls back. It reports gone when
// the insert was possible: then the transaction of j has ended without commit.
func (s *Store) probeInsert(ctx context.Context, j *job) (gone bool, err error) {
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		query, args := s.d.Insert(orderRows.table, [][]any{j.stored}, false)
		return exec(ctx, tx, query, args, 1)
	})
	if err == nil {
		return true, nil
	}
	if class, _ := s.classify(err); class == ClassDuplicate {
		return false, nil
	}
	return false, err
}

// leftTrace compares the order with the one that j's attempt wrote. Every unit
// that writes moves the version; where others have written after it, a row that
// only that attempt can have stored tells.
func (s *Store) leftTrace(ctx context.Context, tx *sql.Tx, j *job, o *orderRow) (ending, error) {
	switch {
	case o.ID != j.row.ID || o.Version < j.row.Version:
		return rolledBack, nil
	case o.Version == j.row.Version && o.writer == j.token:
		return committed, nil
	case o.Version == j.row.Version:
		return rolledBack, nil
	}
	for _, p := range written {
		if p.trace == nil {
			continue
		}
		rows := p.rows(j)
		if len(rows) == 0 {
			continue
		}
		f := &filter{}
		for _, c := range p.trace {
			f.and(p.table.Columns[c].Name+" = ?", rows[0][c])
		}
		var n int
		err := tx.QueryRowContext(ctx, s.d.Rebind("SELECT COUNT(*) FROM "+p.table.Name+" "+f.text), f.args...).Scan(&n)
		if n > 0 {
			return committed, err
		}
		return rolledBack, err
	}
	return overwritten, nil
}

// inTx runs f in a transaction that is always rolled back.
func (s *Store) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	return s.onConn(ctx, func(conn *sql.Conn) error {
		tx, err := conn.BeginTx(ctx, s.txOptions())
		if err != nil {
			return err
		}
		err = f(tx)
		if back := tx.Rollback(); back != nil && !errors.Is(back, sql.ErrTxDone) {
			discard(conn)
		}
		return err
	})
}
