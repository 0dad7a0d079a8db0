package prove

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// variant says how a step goes: as it should, or with a fault.
type variant int

const (
	normal      variant = iota
	lostRequest         // it never arrives
	lostAnswer          // it has its effect, and nobody hears of it
	delayed             // the caller gives up; it arrives later, or never
	notSent             // proof that no byte left
	refused             // the channel refuses this request
	spent               // the channel stores an answer without knowledge under the key
	unavailable         // the database writes nothing and says so
	declines            // a card is declined; no fault
	challenge           // a card wants its holder to act; no fault
)

var variantNames = [...]string{"", "request lost", "answer lost", "delayed", "not sent", "refused", "key spent", "unavailable", "declined", "challenged"}

func (v variant) fault() bool { return v != normal && v != declines && v != challenge }

// step is what a task does when it goes on.
type step struct {
	kind     string
	what     string
	variants []variant // beside normal
	since    time.Time
	call     *call           // of a request that is about to leave
	ready    <-chan struct{} // of a wait
	over     <-chan time.Time
}

// task is one thread of work of a process. At most one runs at a time; all others
// stand before their next step.
type task struct {
	id       string
	hash     digest // of its id
	seen     digest // of everything that it was told
	proc     *proc
	work     func()
	end      func(killed bool)
	resume   chan variant
	next     step
	started  bool
	killed   bool
	children int
	draws    int64
}

// sched hands the turn from task to task.
type sched struct {
	now    time.Time
	seed   uint64
	tasks  []*task
	cur    *task
	root   *task // stands for whoever sets the world up
	back   chan struct{}
	timers []*timer
	onFail func(rule, detail string)
}

// timer is an After of a task.
type timer struct {
	proc *proc
	at   time.Time
	ch   chan time.Time
}

func newSched(seed uint64, onFail func(rule, detail string)) *sched {
	s := &sched{now: time.Unix(1_800_000_000, 0).UTC(), seed: seed, back: make(chan struct{}), onFail: onFail}
	s.root = &task{id: "root", hash: digestStart.text("root")}
	s.cur = s.root
	return s
}

// spawn makes a task that stands before its first step.
func (s *sched) spawn(p *proc, id string, work func(), end func(killed bool)) *task {
	t := &task{id: id, hash: digestStart.text(id), seen: digestStart, proc: p, work: work, end: end, resume: make(chan variant),
		next: step{kind: "start", what: id, since: s.now}}
	s.tasks = append(s.tasks, t)
	return t
}

// runnable reports whether a task could go on now.
func (t *task) runnable() bool {
	if t.next.kind != "wait" {
		return true
	}
	return len(t.next.ready) > 0 || len(t.next.over) > 0
}

// run gives a task the turn until it stands before its next step or has ended.
func (s *sched) run(t *task, v variant) {
	s.cur = t
	t.seen = t.seen.num(int64(v))
	if t.started {
		t.resume <- v
	} else {
		t.started = true
		go s.live(t)
	}
	<-s.back
	s.cur = s.root
}

func (s *sched) live(t *task) {
	defer func() {
		if r := recover(); r != nil {
			s.onFail("no-panic", fmt.Sprintf("%s: %v", t.id, r))
		}
		s.forget(t)
		if t.end != nil {
			t.end(t.killed)
		}
		s.back <- struct{}{}
	}()
	t.work()
}

func (s *sched) forget(t *task) {
	if i := slices.Index(s.tasks, t); i >= 0 {
		s.tasks = slices.Delete(s.tasks, i, i+1)
	}
}

// park stands the running task before its next step, and returns how that step
// goes. A killed task never comes back: only its deferred functions run.
func (s *sched) park(n step) variant {
	t := s.cur
	if t == s.root {
		return normal // the world is being set up
	}
	n.since = s.now
	t.next = n
	s.back <- struct{}{}
	v := <-t.resume
	if t.killed {
		runtime.Goexit()
	}
	return v
}

// kill ends a task where it stands.
func (s *sched) kill(t *task) {
	t.killed = true
	if !t.started {
		s.forget(t)
		if t.end != nil {
			t.end(true)
		}
		return
	}
	s.cur = t
	t.resume <- normal
	<-s.back
	s.cur = s.root
}

// pass moves the clock and fires the timers that are over.
func (s *sched) pass(to time.Time) {
	s.now = to
	s.timers = slices.DeleteFunc(s.timers, func(t *timer) bool {
		if t.at.After(to) {
			return false
		}
		t.ch <- to
		return true
	})
}

// told adds what the running task was told to what it knows.
func (s *sched) told(d digest) { s.cur.seen = s.cur.seen.num(int64(d)) }
