package prove

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/run"
)

// proc is one incarnation of a process of the service, and the runner of its
// engine.
type proc struct {
	s      *sched
	node   string
	number int
	dead   bool
	steady bool          // pauses without jitter
	skew   time.Duration // of its clock
	engine *engine.Engine
	busy   map[string]bool // work that a worker of it has under way
}

var (
	_ run.Runner = (*proc)(nil)
	_ run.Waiter = (*proc)(nil)
)

// Go implements run.Runner.
func (p *proc) Go(name string, f func(context.Context)) {
	parent := p.s.cur
	parent.children++
	p.s.spawn(p, fmt.Sprintf("%s/%s%d", parent.id, name, parent.children), func() { f(context.Background()) }, nil)
}

// Now implements run.Runner.
func (p *proc) Now() time.Time { return p.s.now.Add(p.skew) }

// After implements run.Runner.
func (p *proc) After(d time.Duration) (<-chan time.Time, func()) {
	t := &timer{proc: p, at: p.s.now.Add(d), ch: make(chan time.Time, 1)}
	p.s.timers = append(p.s.timers, t)
	return t.ch, func() {
		if i := slices.Index(p.s.timers, t); i >= 0 {
			p.s.timers = slices.Delete(p.s.timers, i, i+1)
		}
	}
}

// Wait implements run.Waiter.
func (p *proc) Wait(_ context.Context, ready <-chan struct{}, over <-chan time.Time) run.Woken {
	for {
		p.s.park(step{kind: "wait", what: p.s.cur.id, ready: ready, over: over})
		woken := run.Ended
		select {
		case <-ready:
			woken = run.Ready
		default:
			select {
			case <-over:
				woken = run.Over
			default:
				continue
			}
		}
		p.s.told(digestStart.num(int64(woken)).time(p.s.now))
		return woken
	}
}

// Random implements run.Runner: a stream of its own for every task, so that a task
// draws the same numbers whatever the others do.
func (p *proc) Random(b []byte) {
	t := p.s.cur
	if p.steady && len(b) == 4 {
		clear(b)
		return
	}
	t.draws++
	for i := 0; i < len(b); i += 8 {
		var block [8]byte
		binary.LittleEndian.PutUint64(block[:], mix(p.s.seed^uint64(t.hash.num(t.draws).num(int64(i)))))
		copy(b[i:], block[:])
	}
}
