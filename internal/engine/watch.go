package engine

import (
	"context"
	"sync"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

// hub tells waiting requests that a payment changed. Changes of this process
// are told at once; one loop asks the database for those of other processes,
// for all waiters together, so that a waiting client holds no connection.
type hub struct {
	runner run.Runner
	reader store.Reader

	mu    sync.Mutex
	subs  map[string]map[chan struct{}]struct{}
	seen  map[string]int64
	busy  bool
	total int
}

const foreignPoll = 300 * time.Millisecond

func newHub(r run.Runner, reader store.Reader) *hub {
	return &hub{runner: r, reader: reader, subs: map[string]map[chan struct{}]struct{}{}, seen: map[string]int64{}}
}

func (h *hub) subscribe(id string, version int64) (chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs[id] == nil {
		h.subs[id] = map[chan struct{}]struct{}{}
		h.seen[id] = version
	}
	h.subs[id][ch] = struct{}{}
	h.total++
	if !h.busy {
		h.busy = true
		h.runner.Go("watch", h.poll)
	}
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.total--
		delete(h.subs[id], ch)
		if len(h.subs[id]) == 0 {
			delete(h.subs, id)
			delete(h.seen, id)
		}
	}
}

func (h *hub) notify(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.subs[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (h *hub) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}

// poll runs while anyone waits.
func (h *hub) poll(ctx context.Context) {
	for {
		tick, stop := h.runner.After(foreignPoll)
		woken := run.Wait(ctx, h.runner, nil, tick)
		stop()
		if woken == run.Ended {
			return
		}
		ids := h.ids()
		if ids == nil {
			return
		}
		for len(ids) > 0 {
			n := min(len(ids), 500)
			now, err := h.reader.Versions(ctx, ids[:n])
			if err != nil {
				break // asked again with the next tick
			}
			h.compare(now)
			ids = ids[n:]
		}
	}
}

func (h *hub) ids() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subs) == 0 {
		h.busy = false
		return nil
	}
	ids := make([]string, 0, len(h.subs))
	for id := range h.subs {
		ids = append(ids, id)
	}
	return ids
}

func (h *hub) compare(now map[string]int64) {
	var changed []string
	h.mu.Lock()
	for id, v := range now {
		if _, ok := h.subs[id]; ok && h.seen[id] != v {
			h.seen[id] = v
			changed = append(changed, id)
		}
	}
	h.mu.Unlock()
	for _, id := range changed {
		h.notify(id)
	}
}

// Wait returns the payment once its version differs from the given one or it is
// final, or after d as it then is. d zero only reads.
func (e *Engine) Wait(ctx context.Context, s store.Scope, id string, version int64, d time.Duration) (*payonce.Payment, error) {
	return e.waitUntil(ctx, s, id, d, func(p *payonce.Payment) bool {
		return p.Version != version || !p.Status.Live()
	})
}

func (e *Engine) waitUntil(ctx context.Context, s store.Scope, id string, d time.Duration, done func(*payonce.Payment) bool) (*payonce.Payment, error) {
	p, err := e.Store.Payment(ctx, s, id)
	if err != nil || d <= 0 || done(p) {
		return p, err
	}
	ch, cancel := e.hub.subscribe(id, p.Version)
	defer cancel()
	end, stop := e.Runner.After(d)
	defer stop()
	for {
		// Read after subscribing: a change between the two is not missed.
		if p, err = e.Store.Payment(ctx, s, id); err != nil || done(p) {
			return p, err
		}
		switch run.Wait(ctx, e.Runner, ch, end) {
		case run.Over:
			return e.Store.Payment(ctx, s, id)
		case run.Ended:
			return p, ctx.Err()
		}
	}
}

// inFlight counts calls so that shutdown can wait for them.
type inFlight struct {
	mu   sync.Mutex
	n    int
	zero chan struct{}
}

func (f *inFlight) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n += n
	if f.n == 0 && f.zero != nil {
		close(f.zero)
		f.zero = nil
	}
}

func (f *inFlight) wait(ctx context.Context) error {
	f.mu.Lock()
	if f.n == 0 {
		f.mu.Unlock()
		return nil
	}
	if f.zero == nil {
		f.zero = make(chan struct{})
	}
	zero := f.zero
	f.mu.Unlock()
	select {
	case <-zero:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
