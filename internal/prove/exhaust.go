package prove

import (
	"slices"
	"time"
)

// Limit bounds an exhaustive search; zero members do not.
type Limit struct {
	States int
	// First ends the search at the first broken invariant.
	First bool
	// Stop is asked after every schedule.
	Stop func() bool
}

// Found is what an exhaustive search came to.
type Found struct {
	States    int // that differ
	Schedules int // played to their end, ladder and judgement included
	Cut       int // ended at a state that was known
	Deepest   int
	Whole     bool // nothing was left out
	Reached   map[string]bool
	Bad       []Report

	ends map[digest]bool // states in which nothing could happen any more
}

// Exhaust plays every schedule of a script. Two schedules that come to the same
// state have the same future, so each state is left in every direction once; a
// state is everything that a decision, a channel or a message can depend on, kept
// as a hash of 64 bits.
func Exhaust(s Script, limit Limit) Found {
	s.Plain = true
	found := Found{Reached: map[string]bool{}, Whole: true, ends: map[digest]bool{}}
	known := map[digest]bool{}
	open := [][]byte{nil}
	for len(open) > 0 {
		if limit.States > 0 && len(known) >= limit.States || limit.First && len(found.Bad) > 0 || limit.Stop != nil && limit.Stop() {
			found.Whole = false
			break
		}
		path := open[len(open)-1]
		open = open[:len(open)-1]
		depth := 0
		w, whole := play(s, 1, func(w *world, moves []move) int {
			depth++
			if depth <= len(path) {
				return int(path[depth-1])
			}
			if len(moves) == 1 {
				path = append(slices.Clip(path), 0)
				return 0
			}
			h := w.state()
			if known[h] {
				return -1
			}
			known[h] = true
			for i := len(moves) - 1; i > 0; i-- {
				open = append(open, append(slices.Clone(path), byte(i)))
			}
			path = append(slices.Clip(path), 0)
			return 0
		})
		found.Deepest = max(found.Deepest, depth)
		if depth >= s.Steps {
			found.Whole = false
		}
		if whole {
			found.Schedules++
			found.ends[w.ended] = true
		} else {
			found.Cut++
		}
		for k := range w.reached {
			found.Reached[k] = true
		}
		if len(w.violations) > 0 && len(found.Bad) < 20 {
			found.Bad = append(found.Bad, w.report())
		}
	}
	found.States = len(known)
	return found
}

// state is the digest of everything that the future depends on. Sets are added up,
// so that it does not matter in which order they were filled.
func (w *world) state() digest {
	h := digestStart.num(int64(w.stored())).time(w.now).num(int64(w.faults)).num(int64(w.crashes)).num(int64(w.late)).num(int64(w.times))
	var sum digest
	add := func(d digest) { sum += digest(mix(uint64(d))) }
	for _, t := range w.tasks {
		d := digestStart.text("task").num(int64(t.hash)).num(int64(t.seen)).text(t.next.kind).flag(t.runnable())
		if t.next.kind == "send" || t.next.kind == "answer" {
			d = d.time(t.next.since)
		}
		add(d)
	}
	for _, t := range w.timers {
		add(digestStart.text("timer").text(t.proc.node).time(t.at))
	}
	for _, p := range w.procs {
		add(digestStart.text("process").text(p.node).num(int64(p.number)))
	}
	for _, f := range w.flight {
		add(digestStart.text("flight").text(f.call.step).text(f.call.payment.Number).text(f.call.payment.ObjectID).num(int64(f.call.keyNo)).time(f.sent))
	}
	for _, n := range w.posts {
		add(digestStart.text("post").text(n.notice.EventID).flag(n.done).flag(n.doing).flag(n.again))
	}
	for _, c := range w.clients {
		add(digestStart.text("client").num(int64(c.index)).num(int64(c.left)).flag(c.asking))
	}
	for _, n := range w.shownList {
		add(digestStart.text("shown").text(n))
	}
	for _, t := range w.codes.trades {
		add(digestStart.text("trade").text(t.number).text(t.state).time(t.dead))
	}
	for _, o := range w.cards.objects {
		add(digestStart.text("object").text(o.id).text(o.state).flag(o.hot))
	}
	for key, ans := range w.cards.byKey {
		add(digestStart.text(key).num(int64(ans.Kind)))
	}
	for _, m := range w.money {
		add(digestStart.text("money").text(m.ref).flag(m.late))
	}
	return h.num(int64(sum))
}

// Within stops a search after a time, by the given clock.
func Within(now func() time.Time, d time.Duration) func() bool {
	end := now().Add(d)
	return func() bool { return now().After(end) }
}
