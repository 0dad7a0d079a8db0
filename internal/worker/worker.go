// Package worker finds work that is due and has the engine do it: payments whose
// next question has come, calls whose lease is over, orders past their end.
//
// Finding is not claiming: the engine looks again under the order lock, so two
// workers that find the same row, or a handler registered twice, do no harm.
// The package must not know a rule about money.
package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

// Stepper does one piece of due work; *engine.Engine is one.
type Stepper interface {
	Step(ctx context.Context, d store.Due) error
	StepNotice(ctx context.Context, n store.Notice) error
	Wake() <-chan struct{}
}

// Queue is where due work is found; a store is one.
type Queue interface {
	store.Queue
	DueNotices(ctx context.Context, limit int) ([]store.Notice, error)
}

// Config is what a worker is made of.
type Config struct {
	Engine Stepper
	Queue  Queue
	Runner run.Runner
	Logger *slog.Logger
	// Parallel bounds the steps under way in this process (256). A step holds no
	// database connection while it waits for a channel.
	Parallel int
	// Poll is the pause between two looks when nothing woke the worker (250 ms).
	Poll time.Duration
}

// Worker runs the loops of one process.
type Worker struct {
	Config
	slots chan struct{}

	mu   sync.Mutex
	busy map[any]bool
}

// restAfterError is how long work that failed is left alone by this process.
const restAfterError = 5 * time.Second

// New returns a worker.
func New(c Config) *Worker {
	if c.Parallel <= 0 {
		c.Parallel = 256
	}
	if c.Poll <= 0 {
		c.Poll = 250 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Worker{Config: c, slots: make(chan struct{}, c.Parallel), busy: map[any]bool{}}
}

// Run looks for work until ctx ends. Steps under way end with the runner.
func (w *Worker) Run(ctx context.Context) {
	failures := 0
	for {
		err := w.round(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			w.Logger.Warn("look for due work", "error", err)
		} else {
			failures = 0
		}
		tick, stop := w.Runner.After(w.Poll * time.Duration(1+min(failures, 20)))
		select {
		case <-ctx.Done():
			stop()
			return
		case <-w.Engine.Wake():
			stop()
		case <-tick:
		}
	}
}

// round starts everything that is due and not yet under way here.
func (w *Worker) round(ctx context.Context) error {
	payments, err := w.Queue.DuePayments(ctx, 2*w.Parallel)
	if err != nil {
		return err
	}
	orders, err := w.Queue.DueOrders(ctx, w.Parallel)
	if err != nil {
		return err
	}
	notices, err := w.Queue.DueNotices(ctx, w.Parallel)
	if err != nil {
		return err
	}
	for _, d := range append(payments, orders...) {
		w.start(d, func(ctx context.Context) error { return w.Engine.Step(ctx, d) })
	}
	for _, n := range notices {
		w.start(n.NoticeID, func(ctx context.Context) error { return w.Engine.StepNotice(ctx, n) })
	}
	return nil
}

// start runs one piece of work, unless it is under way in this process or no slot
// is free: the next round finds it again, and orders that end are not kept
// waiting by a channel that hangs.
func (w *Worker) start(what any, f func(context.Context) error) {
	if !w.take(what) {
		return
	}
	select {
	case w.slots <- struct{}{}:
	default:
		w.done(what)
		return
	}
	w.Runner.Go("step", func(ctx context.Context) {
		defer w.done(what)
		err := f(ctx)
		<-w.slots
		if err != nil && ctx.Err() == nil {
			w.Logger.Warn("step", "error", err)
			w.rest(ctx)
		}
	})
}

// rest keeps work that failed out of the next rounds for a while, so that a few
// rows that cannot be written do not hide the others.
func (w *Worker) rest(ctx context.Context) {
	over, stop := w.Runner.After(restAfterError)
	defer stop()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

func (w *Worker) take(d any) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[d] {
		return false
	}
	w.busy[d] = true
	return true
}

func (w *Worker) done(d any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, d)
}
