package run_test

import (
	"context"
	"testing"
	"time"

	"github.com/payonce/payonce/internal/run"
)

type chosen struct {
	*run.Live
	asked int
}

func (c *chosen) Wait(context.Context, <-chan struct{}, <-chan time.Time) run.Woken {
	c.asked++
	return run.Over
}

func TestWaitTellsWhatEndedIt(t *testing.T) {
	live := run.NewLive(nil)
	full, over := make(chan struct{}, 1), make(chan time.Time, 1)
	full <- struct{}{}
	if got := run.Wait(t.Context(), live, full, over); got != run.Ready || len(full) != 0 {
		t.Errorf("a value: %d, %d left", got, len(full))
	}
	over <- time.Time{}
	if got := run.Wait(t.Context(), live, nil, over); got != run.Over {
		t.Errorf("the time: %d", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := run.Wait(ctx, live, full, over); got != run.Ended {
		t.Errorf("the end: %d", got)
	}
	full <- struct{}{}
	c := &chosen{Live: live}
	if got := run.Wait(t.Context(), c, full, over); got != run.Over || c.asked != 1 || len(full) != 1 {
		t.Errorf("a runner that waits itself: %d", got)
	}
}
