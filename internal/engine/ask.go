package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/payonce/payonce"
)

// Gaps between questions that clients cause. The ladder has its own pace.
const (
	syncGap  = time.Second     // POST …/sync
	pageGap  = 4 * time.Second // a payer's page
	askedMax = 10_000          // payments remembered
)

// asked remembers when clients last caused a question, so that a client cannot
// make this process ask, and write evidence, without bound.
type asked struct {
	mu sync.Mutex
	at map[string]time.Time
}

// may reports whether the gap since the last question is over, and notes this
// one.
func (a *asked) may(id string, now time.Time, gap time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.at[id]; ok && now.Sub(at) < gap && !now.Before(at) {
		return false
	}
	if a.at == nil || len(a.at) >= askedMax {
		a.at = map[string]time.Time{} // forgetting only lets one more question through
	}
	a.at[id] = now
	return true
}

// Ask has a live payment asked about in the background: its payer is looking. It
// returns at once and does nothing while somebody else holds the payment or it
// was asked a moment ago.
func (e *Engine) Ask(p *payonce.Payment) {
	waits := p.Status == payonce.Pending || p.Status == payonce.Unknown
	if !waits || p.LeaseOwner != "" || !e.asked.may(p.ID, e.Runner.Now(), pageGap) {
		return
	}
	held := *p
	e.calls.add(1)
	e.Runner.Go("ask", func(ctx context.Context) {
		defer e.calls.add(-1)
		if _, err := e.bring(ctx, &held, false); err != nil && !errors.Is(err, errNotFree) && !errors.Is(err, errNothing) {
			e.Logger.Warn("ask for a payer", "payment", held.ID, "error", err)
		}
	})
}
