package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/payonce/payonce/internal/store"
)

// resolve finds out how a lost COMMIT ended for one job, on another connection.
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
// The decision is not called here: pointers that it kept must show the attempt
// that was committed.
//
// The time is bounded, and the caller's context does not end it: the money may
// be on its way. unknown is ErrOutcomeUnknown with the cause.
func (s *Store) resolve(ctx context.Context, j *job, lost *lostCommit) (committed bool, unknown error) {
	s.o.Logger.Warn("reading back after a lost commit", "order_id", j.row.ID, "cause", lost.cause)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer cancel()
	for try := 0; ; try++ {
		found, err := s.readBack(bounded, j)
		if err == nil {
			return found, nil
		}
		if s.pause(bounded, min(try, 7)) != nil {
			return false, fmt.Errorf("%w: %w; reading back: %w", store.ErrOutcomeUnknown, lost, err)
		}
	}
}

// readBack waits for the end of the transaction that wrote j and looks for what
// it left.
func (s *Store) readBack(ctx context.Context, j *job) (found bool, err error) {
	if j.created {
		gone, err := s.probeInsert(ctx, j)
		if gone || err != nil {
			return false, err
		}
	}
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		var order []*orderRow
		query, args := s.in(s.q.orders, []any{j.hash[:]})
		err := each(ctx, tx, query, args, func() *orderRow { return new(orderRow) }, orderRows.dest, func(o *orderRow) { order = append(order, o) })
		if err != nil || len(order) == 0 {
			return err
		}
		found, err = s.leftTrace(ctx, tx, j, order[0])
		return err
	})
	return found, err
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

// leftTrace looks for a row that only j's attempt can have written: its audit
// entry, else its evidence, event or key. A unit that wrote none of these only
// moved leases and times; it is known by its token on the order while nobody
// wrote after it. If somebody did, it counts as not there: running it again is
// safe, since every right counts only with its fence.
func (s *Store) leftTrace(ctx context.Context, tx *sql.Tx, j *job, o *orderRow) (bool, error) {
	has := func(query string, args ...any) (bool, error) {
		var n int64
		err := tx.QueryRowContext(ctx, s.d.Rebind(query), args...).Scan(&n)
		return n > 0, err
	}
	v := j.view
	switch {
	case len(j.audit) > 0:
		var hash []byte
		err := tx.QueryRowContext(ctx, s.d.Rebind("SELECT hash FROM audit WHERE order_id = ? AND n = ?"), j.audit[0].OrderID, j.audit[0].N).Scan(&hash)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return bytes.Equal(hash, j.audit[0].Hash[:]), err
	case len(v.Evidence) > 0:
		return has("SELECT COUNT(*) FROM evidence WHERE payment_id = ? AND id = ?", v.Evidence[0].PaymentID, v.Evidence[0].ID)
	case len(v.Outbox) > 0:
		return has("SELECT COUNT(*) FROM events WHERE id = ?", v.Outbox[0].ID)
	case v.NewKey != nil:
		return has("SELECT COUNT(*) FROM idempotency_keys WHERE id = ? AND order_id = ? AND payment_id = ?", v.NewKey.ID[:], v.NewKey.OrderID, v.NewKey.PaymentID)
	}
	return o.Version == j.row.Version && o.writer == j.token, nil
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
