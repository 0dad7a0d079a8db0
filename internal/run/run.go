// Package run holds everything that is not a function of its inputs: the clock,
// randomness, goroutines, timers and failpoints. Engine, store and worker get
// them from here and from nowhere else, so that a simulation can replace them
// and choose the next step. A test reads their sources for time.Now, go
// statements and random numbers.
//
// It must not know what the steps do.
package run

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"
)

// Runner starts and paces work.
type Runner interface {
	// Go runs f in its own goroutine. f ends soon after ctx, which ends with the
	// runner.
	Go(name string, f func(ctx context.Context))
	// Now is the process's clock, for pacing only: leases and due times come from
	// the database's.
	Now() time.Time
	// After returns a channel that gets one value after d, and a stop function.
	After(d time.Duration) (<-chan time.Time, func())
	// Random fills b.
	Random(b []byte)
}

// Clock is a clock that can be moved ahead of real time; the simulator's
// virtual time reaches the service through it. The zero value is real time.
type Clock struct{ offset atomic.Int64 }

// Offset returns how far the clock is ahead of real time.
func (c *Clock) Offset() time.Duration {
	if c == nil {
		return 0
	}
	return time.Duration(c.offset.Load())
}

// SetOffset moves the clock.
func (c *Clock) SetOffset(d time.Duration) { c.offset.Store(int64(d)) }

// Live is the Runner of a real process.
type Live struct {
	clock *Clock
	ctx   context.Context
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// NewLive returns a runner whose work ends with Stop. A nil clock is real time.
func NewLive(clock *Clock) *Live {
	ctx, stop := context.WithCancel(context.Background())
	return &Live{clock: clock, ctx: ctx, stop: stop}
}

// Go implements Runner.
func (l *Live) Go(_ string, f func(context.Context)) {
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		f(l.ctx)
	}()
}

// Now implements Runner.
func (l *Live) Now() time.Time { return time.Now().Add(l.clock.Offset()) }

// After implements Runner. Pacing is in real time: moving the virtual clock
// changes what is due, not how long a pause lasts.
func (l *Live) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Random implements Runner.
func (l *Live) Random(b []byte) { _, _ = rand.Read(b) } // never fails: crypto/rand aborts the process instead

// Stop ends the context of all work and waits until it has returned, or until
// ctx ends.
func (l *Live) Stop(ctx context.Context) error {
	l.stop()
	done := make(chan struct{})
	go func() { l.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
