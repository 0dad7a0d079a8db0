package sqlstore

import (
	"context"
	"slices"
	"sync"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

const (
	maxLookups = 2  // batches of look-ups that run at once
	maxKeys    = 64 // keys of one batch
)

// lookups groups the look-ups of concurrent callers: whoever comes while others
// are at the database waits for the next batch, and the first of those who wait
// asks for all of them. Nobody waits on purpose, and no goroutine is needed.
type lookups struct {
	mu      sync.Mutex
	waiting []*lookup
	running int
}

// lookup is one caller's question. found and err belong to whoever leads until
// turn tells that they are there.
type lookup struct {
	key   [32]byte
	found *store.Replay // nil: not known
	err   error
	turn  chan bool // true: lead the next batch; false: the answer is there
}

// Replay implements store.Reader. A new key, which is what most requests have,
// costs one look at the primary key; the rest is read of known keys only. The
// picture is one that was true after the call. Waiting for others is bounded like
// the read itself.
func (s *Store) Replay(ctx context.Context, key [32]byte) (*store.Replay, error) {
	l := &lookup{key: key, turn: make(chan bool, 1)}
	waiting, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	lead, err := s.lookups.enter(waiting, l)
	if err != nil {
		return nil, s.wrap(err)
	}
	if lead {
		s.lead(ctx, l)
	}
	if l.err == nil && l.found == nil {
		return nil, store.ErrNotFound
	}
	return l.found, l.err
}

// enter returns when the answer is there or the caller has to lead a batch.
func (q *lookups) enter(ctx context.Context, l *lookup) (lead bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	q.mu.Lock()
	if q.running < maxLookups {
		q.running++
		q.mu.Unlock()
		return true, nil
	}
	q.waiting = append(q.waiting, l)
	q.mu.Unlock()
	select {
	case lead = <-l.turn:
		return lead, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.waiting, l); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
		return false, ctx.Err()
	}
	select {
	case lead = <-l.turn:
		if lead {
			q.pass() // whoever leaves hands the lead on
			return false, ctx.Err()
		}
		return false, nil
	default:
		return false, ctx.Err() // its batch is under way; nobody reads the answer
	}
}

// take starts the batch of a leader.
func (q *lookups) take(l *lookup) []*lookup {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), maxKeys-1)
	batch := append([]*lookup{l}, q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
	return batch
}

// pass makes the one who waits longest the next leader. Under mu.
func (q *lookups) pass() {
	if len(q.waiting) == 0 {
		q.running--
		return
	}
	next := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	next.turn <- true
}

// lead asks for a batch and hands out the answers. Those who wait do not depend
// on the leader's patience: only the time of a read bounds it.
func (s *Store) lead(ctx context.Context, l *lookup) {
	batch := s.lookups.take(l)
	defer func() {
		s.lookups.mu.Lock()
		s.lookups.pass()
		s.lookups.mu.Unlock()
		for _, other := range batch[1:] {
			other.turn <- false
		}
	}()
	for _, l := range batch {
		l.err = store.ErrUnavailable // until it is known better
	}
	found, err := s.replays(context.WithoutCancel(ctx), batch)
	for _, l := range batch {
		l.err = err
		if r := found[l.key]; r != nil && err == nil {
			l.found = r.copy()
		}
	}
}

// replay is a row of the joined read.
type replay struct {
	key     store.KeyRecord
	now     int64
	order   orderRow
	payment payonce.Payment
	answer  store.Answer
}

// copy makes what one caller gets: callers with the same key share nothing that
// they may change.
func (r *replay) copy() *store.Replay {
	order := r.order.Order
	out := &store.Replay{Key: r.key, Order: &order, Now: fromMicros(r.now)}
	if r.payment.ID != "" {
		p := r.payment
		out.Payment = &p
	}
	if r.answer.PaymentID != "" {
		a := r.answer
		out.Answer = &a
	}
	return out
}

// replays reads what is known of a batch of keys.
func (s *Store) replays(ctx context.Context, batch []*lookup) (map[[32]byte]*replay, error) {
	ids := make([]any, len(batch))
	for i, l := range batch {
		ids[i] = l.key[:]
	}
	var known []any
	text, args := s.in(s.q.known, Hash, ids)
	look := reads(text, args, func(id *[32]byte) []any { return []any{fixedTo(id[:])} }, func(id *[32]byte) { known = append(known, id[:]) })
	found := make(map[[32]byte]*replay)
	err := s.within(ctx, func(ctx context.Context) error {
		if err := s.ask(ctx, look); err != nil || len(known) == 0 {
			return err
		}
		text, args := s.in(s.q.replay, Hash, known)
		return s.ask(ctx, reads(text, args, (*replay).dest, func(r *replay) {
			r.now += s.offset().Microseconds()
			found[r.key.ID] = r
		}))
	})
	return found, err
}

func (r *replay) dest() []any {
	dest := append([]any{&r.now}, keyRows.dest(&r.key)...)
	dest = append(dest, orderRows.dest(&r.order)...)
	dest = append(dest, paymentRows.dest(&r.payment)...)
	return append(dest, answerRows.dest(&r.answer)...)
}

// ask runs a statement that reads. What fails on a connection that is gone is
// tried again by the pool, on another one.
func (s *Store) ask(ctx context.Context, st Statement) error {
	if p, ok := s.d.(Pipeline); ok {
		conn, err := s.readers.Conn(ctx)
		if err != nil {
			return err
		}
		done, err := p.Query(ctx, conn, st)
		_ = conn.Close() // gives it back
		if done && (err == nil || ctx.Err() != nil) {
			return err
		}
	}
	return step(ctx, s.readers, &st)
}
