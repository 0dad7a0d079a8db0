package prove

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// move is one thing that can happen next.
type move struct {
	kind, what string
	v          variant
	weight     int
	task       *task  // goes on, or
	do         func() // happens
}

// String is the step in words.
func (m move) String() string {
	s := m.kind + " " + m.what
	if m.v != normal {
		s += " (" + variantNames[m.v] + ")"
	}
	return s
}

// Weights of the moves when they are drawn: likely enough to be common, rare enough
// to leave room for the others.
const (
	weightStep  = 40
	weightFault = 1
	weightRare  = 2
	weightWorld = 20
)

// moves lists what can happen next, in an order that is the same every time.
func (w *world) moves() []move {
	out := make([]move, 0, 32)
	if w.script.Plain {
		// What only goes on by itself touches nothing that is shared: its order does not
		// matter, and it goes first.
		for _, t := range w.tasks {
			if (t.next.kind == "start" || t.next.kind == "wait") && t.runnable() {
				return append(out, move{kind: t.next.kind, what: t.next.what, weight: weightStep, task: t})
			}
		}
	}
	for _, t := range w.tasks {
		out = w.taskMoves(out, t)
	}
	for _, c := range w.clients {
		if c.left > 0 && !c.asking {
			p := w.procs[(c.index+c.left)%len(w.procs)]
			out = append(out, move{kind: "client asks", what: c.Kind + " " + c.Method, weight: weightWorld, do: func() { c.ask(p) }})
		}
	}
	out = w.networkMoves(out)
	out = w.payerMoves(out)
	out = w.workerMoves(out)
	out = w.troubleMoves(out)
	return w.timeMoves(out)
}

func (w *world) taskMoves(out []move, t *task) []move {
	if !t.runnable() {
		return out
	}
	out = append(out, move{kind: t.next.kind, what: t.next.what, weight: weightStep, task: t})
	for _, v := range t.next.variants {
		switch {
		case v.fault() && w.faults > 0:
			out = append(out, move{kind: t.next.kind, what: t.next.what, v: v, weight: weightFault, task: t})
		case !v.fault():
			out = append(out, move{kind: t.next.kind, what: t.next.what, v: v, weight: weightStep / 2, task: t})
		}
	}
	return out
}

func (w *world) networkMoves(out []move) []move {
	for i, f := range w.flight {
		out = append(out, move{kind: "late arrival", what: f.call.step, weight: weightWorld, do: func() {
			w.drop(i)
			f.call.effect(normal)
			w.reached["late arrival of "+f.call.step] = true
		}})
	}
	if w.script.Mute {
		return out
	}
	for i, n := range w.posts {
		if n.doing || n.done && (n.again || !w.script.Twice) {
			continue
		}
		p := w.procs[(i+len(w.trace))%len(w.procs)]
		if w.script.Plain {
			p = w.procs[0]
		}
		out = append(out, move{kind: "notice", what: n.notice.Type, weight: weightWorld / 2, do: func() { w.deliver(n, p) }})
	}
	return out
}

func (w *world) drop(i int) { w.flight = append(w.flight[:i:i], w.flight[i+1:]...) }

func (w *world) deliver(n *post, p *proc) {
	n.doing, n.again = true, n.done
	stored := false
	id := fmt.Sprintf("notice %s@%s.%d.%d", n.notice.EventID, p.node, p.number, w.turn(n.notice.EventID))
	w.spawn(p, id, func() {
		_, err := p.engine.Notice(context.Background(), n.account, n.notice, "{}", []byte("raw"))
		stored = err == nil
	}, func(bool) {
		n.doing, n.done = false, n.done || stored
	})
}

// turn counts how often a piece of work was started: tasks have names of their own,
// and the same ones whatever else happened.
func (w *world) turn(work string) int {
	w.turns[work]++
	return w.turns[work]
}

func (w *world) payerMoves(out []move) []move {
	for _, number := range w.shownList {
		p := w.shown[number]
		if p.Method == "card" {
			continue
		}
		t := w.codes.trades[number]
		w.codes.expire(t)
		alive := w.now.Before(p.DeadAt)
		switch {
		case alive && (t == nil && w.forms[number] || t != nil && t.state == "offered"):
			out = append(out, move{kind: "payer scans", what: number[:4], weight: weightWorld, do: func() { w.codes.scan(p) }})
		case alive && t != nil && t.state == "waiting":
			out = append(out, move{kind: "payer pays", what: number[:4], weight: weightWorld, do: func() { w.codes.pay(t, false) }})
		case t != nil && t.state == "closed" && w.mayBeLate(t.closed):
			out = append(out, move{kind: "late money", what: number[:4], weight: weightRare, do: func() { w.late--; w.codes.pay(t, true) }})
		}
	}
	for _, o := range w.cards.objects {
		switch {
		case o.state == "action" && w.shown[o.number] != nil:
			out = append(out, move{kind: "payer confirms", what: o.id, weight: weightWorld, do: func() { w.cards.pay(o, false) }},
				move{kind: "payer fails", what: o.id, weight: weightWorld / 2, do: func() { o.state = "declined" }})
		case o.state == "dead" && o.hot && w.mayBeLate(o.closed):
			out = append(out, move{kind: "late money", what: o.id, weight: weightRare, do: func() { w.late--; w.cards.pay(o, true) }})
		}
	}
	return out
}

// mayBeLate: a channel may take money after it closed an object. Where no notice
// tells of it, it comes before the last question; after that only a bill would find
// it.
func (w *world) mayBeLate(closed time.Time) bool {
	return w.late > 0 && (!w.script.Mute || w.now.Sub(closed) < payonce.LastQuestion/2)
}

// workerMoves let a worker of any process take up what is due. A process works on
// one piece once at a time.
func (w *world) workerMoves(out []move) []move {
	for _, d := range w.due() {
		for _, p := range w.procs {
			name := d.PaymentID + d.Order.OrderNo
			if !p.busy[name] {
				out = append(out, move{kind: "worker takes", what: p.node, weight: weightWorld / 2, do: func() { w.work(p, name, d) }})
			}
		}
	}
	return out
}

func (w *world) due() []store.Due {
	var out []store.Due
	o := w.order()
	for _, p := range o.Payments {
		if !p.DueAt.IsZero() && !w.now.Before(p.DueAt) {
			out = append(out, store.Due{Order: p.Key, PaymentID: p.ID})
		}
	}
	open := o.Order.Status == payonce.OrderOpen || o.Order.Status == payonce.OrderPartiallyPaid
	if x := o.Order.ExpiresAt; open && !x.IsZero() && !w.now.Before(x) {
		out = append(out, store.Due{Order: o.Order.Key})
	}
	return out
}

func (w *world) work(p *proc, name string, d store.Due) {
	p.busy[name] = true
	id := fmt.Sprintf("worker %s@%s.%d.%d", name, p.node, p.number, w.turn(name))
	w.spawn(p, id, func() { _ = p.engine.Step(context.Background(), d) }, func(bool) { delete(p.busy, name) })
}

// troubleMoves kill processes and move their clocks.
func (w *world) troubleMoves(out []move) []move {
	if w.crashes > 0 {
		for i, p := range w.procs {
			out = append(out, move{kind: "crash", what: p.node, weight: weightRare, do: func() { w.crashes--; w.crash(i) }})
		}
	}
	if w.faults > 0 && !w.script.Plain {
		for _, p := range w.procs {
			for _, d := range []time.Duration{time.Hour, -time.Hour} {
				out = append(out, move{kind: "clock jumps", what: p.node, weight: weightFault, do: func() { w.faults--; p.skew += d }})
			}
		}
	}
	return out
}

// crash ends a process and everything in it; what it had sent is in the network.
// Its next incarnation starts at once.
func (w *world) crash(i int) {
	p := w.procs[i]
	p.dead = true
	for {
		var t *task
		for _, u := range w.tasks {
			if u.proc == p {
				t = u
				break
			}
		}
		if t == nil {
			break
		}
		if t.next.kind == "send" {
			w.later(t.next.call)
		}
		w.reached["crash at "+t.next.kind] = true
		w.kill(t)
	}
	w.timers = slices.DeleteFunc(w.timers, func(t *timer) bool { return t.proc == p })
	q := w.start(p.node, p.number+1)
	q.skew = p.skew
	w.boot(q)
	w.procs[i] = q
	if w.script.TakeOver {
		w.spawn(q, fmt.Sprintf("takeover@%s.%d", q.node, q.number), func() { _, _ = q.engine.TakeOver(context.Background()) }, nil)
	}
}

func (w *world) timeMoves(out []move) []move {
	if w.times <= 0 {
		return out
	}
	pass := func(what string, weight int, to time.Time) {
		out = append(out, move{kind: "time passes", what: what, weight: weight, do: func() { w.times--; w.advance(to) }})
	}
	if next := w.nextInstant(); !next.IsZero() {
		pass("to the next instant", weightRare*2, next)
	}
	if w.script.Plain {
		pass("past every end", weightRare, w.now.Add(2*life+payonce.DeathMargin+time.Minute))
		return out
	}
	pass("a lease", weightRare, w.now.Add(callTimeout+16*time.Second))
	pass("a life", weightRare/2, w.now.Add(life+payonce.DeathMargin+time.Second))
	return out
}

// nextInstant is when something happens by itself, zero when nothing will.
func (w *world) nextInstant() time.Time {
	var next time.Time
	take := func(t time.Time) {
		if t.After(w.now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, t := range w.timers {
		take(t.at)
	}
	o := w.order()
	for _, p := range o.Payments {
		take(p.DueAt)
	}
	take(o.Order.ExpiresAt)
	for _, t := range w.tasks {
		if t.next.kind == "send" || t.next.kind == "answer" {
			take(t.next.since.Add(callTimeout))
		}
	}
	return next
}

// advance moves the clock. Calls end with their time limit on the way, and what was
// sent long ago is lost.
func (w *world) advance(to time.Time) {
	for {
		var t *task
		for _, u := range w.tasks {
			calling := u.next.kind == "send" || u.next.kind == "answer"
			if calling && !u.next.since.Add(callTimeout).After(to) {
				t = u
				break
			}
		}
		if t == nil {
			break
		}
		if end := t.next.since.Add(callTimeout); end.After(w.now) {
			w.pass(end)
		}
		if t.next.kind == "send" {
			w.run(t, delayed)
		} else {
			w.run(t, lostAnswer)
		}
	}
	if to.After(w.now) {
		w.pass(to)
	}
	for i := len(w.flight) - 1; i >= 0; i-- {
		f := w.flight[i]
		since := f.sent
		if permit := f.call.payment.LastPermit(); f.call.step == "begin" && permit != nil {
			since = permit.GivenAt
		}
		if w.now.Sub(since) >= sendWindow {
			w.drop(i)
		}
	}
}
