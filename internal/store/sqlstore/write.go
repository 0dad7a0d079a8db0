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
	payments set[payonce.Payment]
	charges  set[payonce.Charge]

	created bool
	writes  bool
	stored  []any // the order as written
	token   [16]byte
	audit   []store.AuditRow
}

// reset forgets an attempt: the next one sees a fresh picture only.
func (j *job) reset() {
	*j = job{unit: j.unit, hash: j.hash, payments: set[payonce.Payment]{rows: paymentRows}, charges: set[payonce.Charge]{rows: chargeRows}}
}

// Write implements store.Writer. Units that share a name with one before them in
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

// split takes the units that share no name with one before them.
func split(jobs []*job) (batch, rest []*job) {
	var taken store.Names
	for _, j := range jobs {
		if taken.Take(j.unit) {
			batch = append(batch, j)
		} else {
			rest = append(rest, j)
		}
	}
	return batch, rest
}

// batch runs jobs together, and each alone when a statement raised: the one
// that cannot be written must not take the others with it. What fails where and
// what happens then stands in a table in the package comment.
//
// All tries together have Timeout: units that were not written by then were not
// tried to the end, and are ErrUnavailable.
func (s *Store) batch(ctx context.Context, jobs []*job) {
	limited, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if len(jobs) == 1 {
		s.alone(limited, jobs[0], 0)
		return
	}
	var err error
	for try := range 2 {
		if err = s.attempt(limited, jobs); err == nil {
			return
		}
		if lost := (*lostCommit)(nil); errors.As(err, &lost) {
			s.settle(ctx, jobs, lost)
			return
		}
		if class, _ := s.classify(err); class != ClassUnavailable && class != ClassReadOnly {
			s.o.Logger.Debug("batch taken apart", "units", len(jobs), "cause", err)
			waits := 0
			if class == ClassHeld {
				waits = 1
			}
			for _, j := range jobs {
				s.alone(limited, j, waits)
			}
			return
		}
		if s.pause(limited, try) != nil {
			break
		}
	}
	for _, j := range jobs {
		j.err = s.wrap(err)
	}
}

// maxWaits is how often a unit may wait for a lock in vain, the wait of its batch
// included, before the row counts as held.
const maxWaits = 2

// alone runs one job until it is written, refused or out of tries. waits is how
// often it has waited for a lock in vain.
func (s *Store) alone(ctx context.Context, j *job, waits int) {
	var err error
	again := 1 // how often a lost connection is tried again
	for try := range tries {
		if err = s.attempt(ctx, []*job{j}); err == nil {
			return
		}
		if lost := (*lostCommit)(nil); errors.As(err, &lost) {
			written, unknown := s.resolve(ctx, []*job{j}, lost)
			if written || unknown != nil {
				j.err = unknown
				return
			}
			again--
		} else if class, _ := s.classify(err); class == ClassRefused {
			break
		} else if class == ClassUnavailable || class == ClassReadOnly {
			again--
		} else if class == ClassHeld {
			waits++
		}
		if again < 0 || waits >= maxWaits || s.pause(ctx, try) != nil {
			break
		}
	}
	j.err = s.wrap(err)
}

// settle ends the jobs of a batch whose COMMIT was lost. A job of which nothing
// was in the transaction keeps its answer.
func (s *Store) settle(ctx context.Context, jobs []*job, lost *lostCommit) {
	wrote := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return !j.writes || j.err != nil })
	written, unknown := s.resolve(ctx, wrote, lost)
	if written {
		return
	}
	limited, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	for _, j := range wrote {
		if j.err = unknown; unknown == nil {
			s.alone(limited, j, 0)
		}
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
