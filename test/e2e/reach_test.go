package e2e

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Bounds of the promise after a restart; the generous one fails the test on a
// machine that is busy with other things.
const (
	reachAnswer      = 2 * time.Second
	reachFinal       = 10 * time.Second
	generousAnswer   = 8 * time.Second
	generousFinal    = 25 * time.Second
	reachNodes       = 4
	reachKillsOfNode = 5
)

// Killed in the middle of a call to a slow channel, then started again: how soon
// is a repetition answered with the payment, and how soon is the end known?
func TestReach_AfterKillDuringTheCall(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var answers, finals []time.Duration
	t.Run("kills", func(t *testing.T) {
		for range reachNodes {
			t.Run("node", func(t *testing.T) {
				t.Parallel()
				w, n := sqliteNode(t, plainBin)
				for range reachKillsOfNode {
					a, f := reach(t, w, n)
					mu.Lock()
					answers, finals = append(answers, a), append(finals, f)
					mu.Unlock()
				}
			})
		}
	})
	if len(answers) == 0 {
		t.Fatal("nothing was measured")
	}
	slices.Sort(answers)
	slices.Sort(finals)
	p := func(d []time.Duration, q int) time.Duration {
		return d[min(len(d)-1, len(d)*q/100)].Round(time.Millisecond)
	}
	t.Logf("%d kills: first answer after ready p50 %v, p99 %v (goal %v); end known p50 %v, p99 %v (goal %v)", len(answers),
		p(answers, 50), p(answers, 99), reachAnswer, p(finals, 50), p(finals, 99), reachFinal)
	if a := p(answers, 99); a > generousAnswer {
		t.Errorf("the first answer took %v", a)
	}
	if f := p(finals, 99); f > generousFinal {
		t.Errorf("the end was known after %v", f)
	}
}

// reach kills the node in a call, starts it again, and measures from its ready
// answer on.
func reach(t *testing.T, w *world, n *node) (answer, final time.Duration) {
	if n.proc == nil {
		n.mustStart(t)
	}
	no, key := newOrder("reach"), newKey()
	w.slow(t, no, "confirm", 2*time.Second, 1)
	gone := make(chan resp, 1)
	go func() { gone <- w.pay(pay{order: no, key: key}) }()
	until(t, soon, "the call is under way", func() bool { return w.calls(t, "confirm", no) == 1 })
	n.proc.kill()
	<-gone
	n.mustStart(t)
	ready := time.Now()
	r := w.pay(pay{order: no, key: key})
	answer = time.Since(ready)
	notFailed(t, r)
	if p := r.payment(); r.err != nil || r.code >= 500 || p.ID == "" || p.Status == "CREATED" {
		t.Errorf("the first answer after the restart: %s", r)
	}
	r = w.retry(t, pay{order: no, key: key}, soon)
	final = time.Since(ready)
	if r.code != http.StatusCreated {
		t.Errorf("the end: %s", r)
	}
	w.paidOnce(t, no)
	return answer, final
}
