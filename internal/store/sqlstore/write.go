package sqlstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// tries is how often a unit runs alone before a conflict is believed.
const tries = 6

// job is one unit on its way: the picture of the attempt that ran last, and its
// result.
type job struct {
	unit *store.Unit
	hash [32]byte
	err  error

	view     *store.View
	row      *orderRow // view.Order is its order
	before   []any     // the order as read; nil when created
	payments map[*payonce.Payment][]any
	charges  map[*payonce.Charge][]any

	newPayments, changedPayments []*payonce.Payment
	newCharges, changedCharges   []*payonce.Charge

	created bool
	writes  bool
	stored  []any // the order as written
	token   [16]byte
	audit   []store.AuditRow
}

// reset forgets an attempt: the next one sees a fresh picture only.
func (j *job) reset() { *j = job{unit: j.unit, hash: j.hash} }

// Write implements store.Writer. Units that name an order or a key twice within
// the batch are taken in a later transaction.
//
// A unit that makes its order is written even when the decision adds nothing
// else; any other unit that changes nothing leaves no trace.
func (s *Store) Write(ctx context.Context, units []*store.Unit) []error {
	results := make([]error, len(units))
	jobs := make([]*job, len(units))
	for i, u := range units {
		jobs[i] = &job{unit: u, hash: KeyHash(u.Order)}
	}
	for rest := jobs; len(rest) > 0; {
		var batch []*job
		batch, rest = split(rest)
		slices.SortFunc(batch, func(a, b *job) int { return bytes.Compare(a.hash[:], b.hash[:]) })
		s.batch(ctx, batch)
	}
	for i, j := range jobs {
		results[i] = j.err
	}
	return results
}

// split takes the first unit of each order and key.
func split(jobs []*job) (batch, rest []*job) {
	taken := make(map[[32]byte]bool, 2*len(jobs))
	told := make(map[store.NoticeID]bool)
	for _, j := range jobs {
		if n := j.unit.Notice; n != nil {
			if told[*n] {
				rest = append(rest, j)
				continue
			}
			told[*n] = true
		}
		if taken[j.hash] || j.unit.Key != nil && taken[*j.unit.Key] {
			rest = append(rest, j)
			continue
		}
		taken[j.hash] = true
		if j.unit.Key != nil {
			taken[*j.unit.Key] = true
		}
		batch = append(batch, j)
	}
	return batch, rest
}

// batch runs jobs together, and each alone when a statement raised: the one
// that cannot be written must not take the others with it.
func (s *Store) batch(ctx context.Context, jobs []*job) {
	if len(jobs) == 1 {
		s.alone(ctx, jobs[0])
		return
	}
	var err error
	for try := range 2 {
		if err = s.attempt(ctx, jobs); err == nil {
			return
		}
		if lost := (*lostCommit)(nil); errors.As(err, &lost) {
			for _, j := range jobs {
				s.settle(ctx, j, lost)
			}
			return
		}
		if class, _ := s.classify(err); class != ClassUnavailable && class != ClassReadOnly {
			s.o.Logger.Debug("batch taken apart", "units", len(jobs), "cause", err)
			for _, j := range jobs {
				s.alone(ctx, j)
			}
			return
		}
		if s.pause(ctx, try) != nil {
			break
		}
	}
	for _, j := range jobs {
		j.err = s.wrap(err)
	}
}

// alone runs one job until it is written, refused or out of tries.
func (s *Store) alone(ctx context.Context, j *job) {
	var err error
	again := 1 // how often a lost connection is tried again
	for try := range tries {
		if err = s.attempt(ctx, []*job{j}); err == nil {
			return
		}
		if lost := (*lostCommit)(nil); errors.As(err, &lost) {
			if committed, unknown := s.resolve(ctx, j, lost); committed || unknown != nil {
				j.err = unknown
				return
			}
			if again--; again < 0 {
				break
			}
		} else if class, _ := s.classify(err); class == ClassRefused {
			break
		} else if class == ClassUnavailable || class == ClassReadOnly {
			if again--; again < 0 {
				break
			}
		}
		if s.pause(ctx, try) != nil {
			break
		}
	}
	j.err = s.wrap(err)
}

// settle ends a job of a batch whose COMMIT was lost.
func (s *Store) settle(ctx context.Context, j *job, lost *lostCommit) {
	if !j.writes || j.err != nil {
		return // nothing of it was in the transaction; its answer stands
	}
	committed, unknown := s.resolve(ctx, j, lost)
	switch {
	case unknown != nil:
		j.err = unknown
	case !committed:
		s.alone(ctx, j)
	}
}

// pause waits a random while that grows with the tries, and says whether ctx
// has ended.
func (s *Store) pause(ctx context.Context, try int) error {
	var b [8]byte
	s.o.Runner.Random(b[:])
	longest := uint64(4*time.Millisecond) << try
	wait := time.Duration(binary.BigEndian.Uint64(b[:])%longest) + time.Millisecond
	done, stop := s.o.Runner.After(wait)
	defer stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
