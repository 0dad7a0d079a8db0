package run

import (
	"context"
	"time"
)

// Woken says why a wait ended.
type Woken int

// Reasons. When several hold at once, any of them may be told.
const (
	Ready Woken = iota // the channel had a value
	Over               // the time is over
	Ended              // the context has ended
)

// Waiter is a Runner that waits itself, so that a simulation chooses when whoever
// waits goes on. It takes the value that it tells of out of its channel.
type Waiter interface {
	Wait(ctx context.Context, ready <-chan struct{}, over <-chan time.Time) Woken
}

// Wait blocks until ready has a value, the time of an After is over, or ctx ends.
// A nil channel never has a value; ready must be buffered.
func Wait(ctx context.Context, r Runner, ready <-chan struct{}, over <-chan time.Time) Woken {
	if w, ok := r.(Waiter); ok {
		return w.Wait(ctx, ready, over)
	}
	select {
	case <-ready:
		return Ready
	case <-over:
		return Over
	case <-ctx.Done():
		return Ended
	}
}
