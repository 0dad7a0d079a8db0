package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/run"
)

// CommitterOptions are the limits of a Committer.
type CommitterOptions struct {
	Lanes    int // batches that run at once; 0 is 1: fewer and fuller batches cost less
	MaxBatch int // units of one batch; 0 is 64
	MaxQueue int // units that wait in one lane; 0 is 2048
}

// Committer groups the units of concurrent callers into batches: it takes
// whatever has queued while the last commit ran, and never waits on purpose.
//
// All units of one order go through one lane in the order in which they came, so
// they do not race each other within a process. An order whose unit failed while
// others of its batch were written is set aside for a while, into a lane of its
// own kind that runs one unit at a time: a row that somebody holds, or a unit
// that the schema refuses, costs its neighbours once and not every time.
//
// It ends with its runner: the batches under way finish, everybody else gets
// ErrUnavailable.
type Committer struct {
	w     Writer
	lanes []*lane
	side  *lane
	aside aside
	limit CommitterOptions
}

var _ Writer = (*Committer)(nil)

// NewCommitter starts the lanes of a committer in front of w.
func NewCommitter(r run.Runner, w Writer, o CommitterOptions) *Committer {
	c := &Committer{w: w, limit: CommitterOptions{
		Lanes: orDefault(o.Lanes, 1), MaxBatch: orDefault(o.MaxBatch, 64), MaxQueue: orDefault(o.MaxQueue, 2048)}}
	start := func(limit int) *lane {
		l := &lane{wake: make(chan struct{}, 1), limit: limit}
		r.Go("committer", func(ctx context.Context) { c.serve(ctx, l) })
		return l
	}
	for range c.limit.Lanes {
		c.lanes = append(c.lanes, start(c.limit.MaxBatch))
	}
	c.side = start(1)
	return c
}

func orDefault(n, def int) int {
	if n > 0 {
		return n
	}
	return def
}

// lane is a queue with one server.
type lane struct {
	mu     sync.Mutex
	queue  []*waiting
	closed bool
	limit  int           // units of one batch
	wake   chan struct{} // holds one token when there may be work
}

// waiting is a unit and its caller.
type waiting struct {
	ctx     context.Context
	lane    *lane
	unit    *Unit
	started bool // under the lane's mu; a started unit always gets its result
	done    chan error
}

// Submit runs one unit in some batch and returns its result. When ctx ends
// before the batch has started, the unit is not run and ctx's error returned;
// afterwards Submit waits for the result, whatever happens to ctx.
func (c *Committer) Submit(ctx context.Context, u *Unit) error {
	w, err := c.enqueue(ctx, u)
	if err != nil {
		return err
	}
	return w.lane.wait(w)
}

// Write submits units and waits for all of them. They need not share a batch.
func (c *Committer) Write(ctx context.Context, units []*Unit) []error {
	results := make([]error, len(units))
	queued := make([]*waiting, len(units))
	for i, u := range units {
		queued[i], results[i] = c.enqueue(ctx, u)
	}
	for i, w := range queued {
		if w != nil {
			results[i] = w.lane.wait(w)
		}
	}
	return results
}

func (c *Committer) lane(k payonce.OrderKey) *lane {
	if c.aside.has(k) {
		return c.side
	}
	return c.lanes[laneOf(k, len(c.lanes))]
}

// laneOf is the same in every process and every run.
func laneOf(k payonce.OrderKey, lanes int) int {
	h := sha256.Sum256([]byte(k.Merchant + "\x00" + string(k.Environment) + "\x00" + k.OrderNo))
	return int(binary.BigEndian.Uint64(h[:]) % uint64(lanes))
}

func (c *Committer) enqueue(ctx context.Context, u *Unit) (*waiting, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	guarded := *u
	guarded.Decide = func(v *View) error { return decide(u, v) }
	l := c.lane(u.Order)
	w := &waiting{ctx: ctx, lane: l, unit: &guarded, done: make(chan error, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, fmt.Errorf("%w: shutting down", ErrUnavailable)
	case len(l.queue) >= c.limit.MaxQueue:
		return nil, fmt.Errorf("%w: %d writes are waiting", ErrUnavailable, len(l.queue))
	}
	l.queue = append(l.queue, w)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return w, nil
}

// decide keeps a panic of one unit from taking the lane and its batch along.
func decide(u *Unit, v *View) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decision panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return u.Decide(v)
}

func (l *lane) wait(w *waiting) error {
	select {
	case err := <-w.done:
		return err
	case <-w.ctx.Done():
	}
	l.mu.Lock()
	if !w.started {
		w.started = true
		l.queue = slices.DeleteFunc(l.queue, func(o *waiting) bool { return o == w })
		l.mu.Unlock()
		return w.ctx.Err()
	}
	l.mu.Unlock()
	return <-w.done
}

func (c *Committer) serve(ctx context.Context, l *lane) {
	defer l.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for ctx.Err() == nil {
			batch := l.take(l.limit)
			if len(batch) == 0 {
				break
			}
			// A batch that has started ends with its own result: the store bounds
			// its time, and a cut would only make outcomes unknown.
			c.write(context.WithoutCancel(ctx), batch)
		}
	}
}

// take starts the longest-waiting units of which no two share a name. What stays
// keeps its place: a later unit of the same order never overtakes.
func (l *lane) take(limit int) []*waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	var batch []*waiting
	rest := l.queue[:0:len(l.queue)]
	var taken Names
	for _, w := range l.queue {
		free := taken.Take(w.unit)
		switch {
		case w.ctx.Err() != nil:
			w.started = true
			w.done <- w.ctx.Err()
		case free && len(batch) < limit:
			w.started = true
			batch = append(batch, w)
		default:
			rest = append(rest, w)
		}
	}
	clear(l.queue[len(rest):])
	l.queue = rest
	return batch
}

// patience is how long after the last deadline of its callers a batch is still
// tried: a commit under way is worth more to them than a quick failure.
const patience = time.Second

// until bounds a batch whose callers all have deadlines: none of them hears its
// result much later than it wanted it. A batch with one caller that waits as long
// as it takes has the store's own limits.
func until(ctx context.Context, batch []*waiting) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, w := range batch {
		deadline, ok := w.ctx.Deadline()
		if !ok {
			return ctx, func() {}
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	return context.WithDeadline(ctx, last.Add(patience))
}

// write runs a batch and hands out the results. A store that panics has said
// nothing about what it wrote.
func (c *Committer) write(ctx context.Context, batch []*waiting) {
	units := make([]*Unit, len(batch))
	for i, w := range batch {
		units[i] = w.unit
	}
	var results []error
	defer func() {
		if r := recover(); r != nil || len(results) != len(batch) {
			results = slices.Repeat([]error{fmt.Errorf("%w: the store panicked: %v", ErrOutcomeUnknown, r)}, len(batch))
		}
		c.aside.learn(units, results)
		for i, w := range batch {
			w.done <- results[i]
		}
	}()
	ctx, cancel := until(ctx, batch)
	defer cancel()
	results = c.w.Write(ctx, units)
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, w := range l.queue {
		w.started = true
		w.done <- fmt.Errorf("%w: shutting down", ErrUnavailable)
	}
	l.queue = nil
}
