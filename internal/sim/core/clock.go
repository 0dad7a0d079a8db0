package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// listenerPatience is how long a clock listener is waited for.
	listenerPatience = 2 * time.Second
	listenerRetry    = 50 * time.Millisecond

	// maxOffset bounds the virtual clock to a century either way.
	maxOffset = 100 * 365 * 24 * 3600
)

// clock is real time plus an offset in seconds.
type clock struct {
	offset atomic.Int64
	moving sync.Mutex // one move at a time, so that listeners hear offsets in order
}

// Now is the virtual time.
func (w *World) Now() time.Time {
	return w.opts.Now().UTC().Add(time.Duration(w.clock.offset.Load()) * time.Second)
}

// RealNow is for time stamps inside signatures and for real delays.
func (w *World) RealNow() time.Time { return w.opts.Now().UTC() }

// Offset is how many seconds the virtual clock is ahead.
func (w *World) Offset() int64 { return w.clock.offset.Load() }

// Advance moves the virtual clock, tells the listeners and runs what has
// become due. It returns when all of that is done; a listener that does not
// answer 2xx is waited for at most two seconds.
func (w *World) Advance(ctx context.Context, seconds int64) error {
	w.clock.moving.Lock()
	defer w.clock.moving.Unlock()
	offset := w.clock.offset.Load() + seconds
	if seconds > maxOffset || seconds < -maxOffset || offset > maxOffset || offset < -maxOffset {
		return fmt.Errorf("%w: the clock may be at most a century off", ErrBad)
	}
	pos := w.Update(func() {
		w.clock.offset.Store(offset)
		w.meta.Put("offset", &metaRow{N: offset})
	})
	if err := w.Wait(pos); err != nil {
		return err
	}
	w.tellListeners(ctx, offset)
	w.timers.runDue()
	w.timers.wake()
	return nil
}

func (w *World) tellListeners(ctx context.Context, offset int64) {
	ctx, cancel := context.WithTimeout(ctx, listenerPatience)
	defer cancel()
	stop := context.AfterFunc(w.ctx, cancel)
	defer stop()
	var wg sync.WaitGroup
	for _, url := range w.opts.ClockListeners {
		wg.Go(func() {
			for {
				err := w.tell(ctx, url, offset)
				if err == nil {
					return
				}
				if !sleepCtx(ctx, listenerRetry) {
					w.Log.Warn("clock listener did not answer", "url", url, "error", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func (w *World) tell(ctx context.Context, url string, offset int64) error {
	body := fmt.Appendf(nil, `{"offset_s":%d}`, offset)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := w.opts.Client.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode/100 != 2 {
		return errors.New(res.Status)
	}
	return nil
}

func sleepCtx(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
