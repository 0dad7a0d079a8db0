package prove

import (
	"context"
	"fmt"
	"time"

	"github.com/payonce/payonce/internal/store"
)

// chooser picks one of the moves; a negative answer ends the schedule.
type chooser func(w *world, moves []move) int

// play plays a schedule: the chosen steps, then the ladder, then the judgement.
func play(s Script, seed uint64, choose chooser) (w *world, whole bool) {
	w = newWorld(s, seed)
	for range s.Steps {
		moves := w.moves()
		if len(moves) == 0 {
			w.ended = w.state()
			break
		}
		i := choose(w, moves)
		if i < 0 {
			w.abandon()
			return w, false
		}
		w.step(moves[i])
		if len(w.violations) > 0 {
			w.abandon()
			return w, true
		}
	}
	w.settle()
	w.judge()
	w.abandon()
	return w, true
}

// step makes one move.
func (w *world) step(m move) {
	w.trace = append(w.trace, move{kind: m.kind, what: m.what, v: m.v})
	w.history = w.history.text(m.kind).text(m.what).num(int64(m.v))
	if m.v.fault() {
		w.faults--
		w.reached[m.kind+" "+variantNames[m.v]] = true
	}
	if m.task != nil {
		w.last = m.task
		w.run(m.task, m.v)
	} else {
		w.reached[m.kind] = true
		m.do()
	}
	w.history = w.history.num(int64(w.stored()))
}

// abandon ends all tasks that are left, so that no goroutine outlives its schedule.
func (w *world) abandon() {
	for len(w.tasks) > 0 {
		w.kill(w.tasks[0])
	}
}

const (
	patience = 30 * time.Hour // of the ladder: past every end and the last question
	maxMoves = 20_000
)

// settle lets the ladder climb: no faults any more, every message arrives, workers
// work, time passes, until nothing moves.
func (w *world) settle() {
	w.trace = append(w.trace, move{kind: "the ladder climbs"})
	end := w.now.Add(patience)
	for range maxMoves {
		if w.goOn() {
			continue
		}
		next := w.nextInstant()
		if next.IsZero() || next.After(end) {
			return
		}
		if soon := w.now.Add(time.Second); next.Before(soon) {
			next = soon
		}
		w.advance(next)
	}
	w.fail("I21-ladder-ends", "there is still work after %d steps", maxMoves)
}

// goOn does everything that can be done at this moment. False: there was nothing.
func (w *world) goOn() bool {
	moved := false
	for _, t := range append([]*task(nil), w.tasks...) {
		if t.runnable() && !t.killed {
			w.climb(move{kind: t.next.kind, what: t.next.what, task: t})
			moved = true
		}
	}
	for len(w.flight) > 0 {
		f := w.flight[0]
		w.drop(0)
		w.climb(move{kind: "late arrival", what: f.call.step, do: func() { f.call.effect(normal) }})
		moved = true
	}
	for _, n := range w.posts {
		if !w.script.Mute && !n.done && !n.doing {
			w.climb(move{kind: "notice", what: n.notice.Type, do: func() { w.deliver(n, w.procs[0]) }})
			moved = true
		}
	}
	for _, d := range w.due() {
		p, name := w.procs[len(w.procs)-1], d.PaymentID+d.Order.OrderNo
		if !p.busy[name] {
			w.climb(move{kind: "worker takes", what: p.node, do: func() { w.work(p, name, d) }})
			moved = true
		}
	}
	return w.parked() || moved
}

func (w *world) climb(m move) {
	w.trace = append(w.trace, move{kind: m.kind, what: m.what})
	if m.task != nil {
		w.run(m.task, normal)
	} else {
		m.do()
	}
}

// parked looks again at notices of unknown numbers.
func (w *world) parked() bool {
	due, _ := w.books.DueNotices(context.Background(), 10)
	moved := false
	for _, n := range due {
		if p := w.procs[0]; !p.busy[n.EventID] {
			moved = true
			w.again(p, n)
		}
	}
	return moved
}

func (w *world) again(p *proc, n store.Notice) {
	p.busy[n.EventID] = true
	w.spawn(p, fmt.Sprintf("parked %s %d", n.EventID, w.turn(n.EventID)), func() { _ = p.engine.StepNotice(context.Background(), n) },
		func(bool) { delete(p.busy, n.EventID) })
}

// report is what became of the schedule.
func (w *world) report() Report {
	r := Report{Violations: w.violations, Hash: uint64(w.history), Steps: len(w.trace), Reached: w.reached}
	if len(w.violations) > 0 {
		for _, m := range w.trace {
			r.Trace = append(r.Trace, m.String())
		}
	}
	return r
}
