package core

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// schedule runs functions at times of one clock. A clock that jumps needs
// wake (or runDue, which returns when everything due has run).
type schedule struct {
	now func() time.Time

	mu      sync.Mutex
	timers  timerHeap
	serial  uint64
	running sync.Mutex // runDue runs alone, so that its return means "all done"
	changed chan struct{}
}

type timer struct {
	at     time.Time
	serial uint64 // equal times run in the order they were added
	fn     func()
}

func newSchedule(now func() time.Time) *schedule {
	return &schedule{now: now, changed: make(chan struct{}, 1)}
}

func (s *schedule) add(at time.Time, fn func()) {
	s.mu.Lock()
	s.serial++
	heap.Push(&s.timers, timer{at: at, serial: s.serial, fn: fn})
	first := s.timers[0].serial == s.serial
	s.mu.Unlock()
	if first {
		s.wake()
	}
}

func (s *schedule) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// runDue runs all that is due, also what the run itself adds.
func (s *schedule) runDue() {
	s.running.Lock()
	defer s.running.Unlock()
	for {
		s.mu.Lock()
		if len(s.timers) == 0 || s.timers[0].at.After(s.now()) {
			s.mu.Unlock()
			return
		}
		t := heap.Pop(&s.timers).(timer)
		s.mu.Unlock()
		t.fn()
	}
}

// wait is how long nothing will be due; an hour when nothing is set.
func (s *schedule) wait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.timers) == 0 {
		return time.Hour
	}
	return min(max(s.timers[0].at.Sub(s.now()), time.Millisecond), time.Hour)
}

func (s *schedule) run(ctx context.Context) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.runDue()
		case <-s.changed:
		}
		t.Reset(s.wait())
	}
}

// timerHeap is for container/heap: the earliest first.
type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(a, b int) bool {
	if h[a].at.Equal(h[b].at) {
		return h[a].serial < h[b].serial
	}
	return h[a].at.Before(h[b].at)
}
func (h timerHeap) Swap(a, b int) { h[a], h[b] = h[b], h[a] }

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = timer{}
	*h = old[:len(old)-1]
	return last
}
