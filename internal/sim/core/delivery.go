package core

import (
	"context"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/payonce/payonce/internal/sim/journal"
)

const (
	// couriers is how many notices are under way at once.
	couriers = 16
	// deliveryTimeout is how long the merchant may take to answer.
	deliveryTimeout = 10 * time.Second
)

// delivery is one try of one notice at one address. Copies and retries have
// no fault and no posted.
type delivery struct {
	id       string
	endpoint string
	fault    *Fault
	posted   *Posted
	retry    bool
}

// heldBack is a notice that waits for one of a later change to overtake it.
type heldBack struct {
	change int64
	d      delivery
}

// Start sends what Post made; the change that caused it must be durable.
func (w *World) Start(posted []*Posted) {
	for _, p := range posted {
		for _, d := range w.firstTries(p) {
			w.route(d)
		}
	}
}

func (w *World) firstTries(p *Posted) []delivery {
	var list []delivery
	w.View(func() {
		n := w.notices.table.Get(p.id)
		if n == nil {
			return
		}
		for endpoint := range maps.Keys(n.Targets) {
			list = append(list, delivery{id: p.id, endpoint: endpoint, fault: p.fault, posted: p})
		}
	})
	return list
}

// route sends a first try the way its fault wants.
func (w *World) route(d delivery) {
	switch {
	case d.fault.Is(Drop):
		w.lose(d)
	case d.fault.Is(Late), d.fault.Is(Delay):
		w.realTimers.add(w.RealNow().Add(d.fault.Pause()), func() { w.enqueue(d) })
	case d.fault.Is(Reorder):
		w.hold(d)
	default:
		w.enqueue(d)
		for range d.fault.Copies() {
			w.enqueue(delivery{id: d.id, endpoint: d.endpoint})
		}
	}
}

// lose takes a notice for gone: it is not sent unless somebody asks for it.
func (w *World) lose(d delivery) {
	w.note(func() {
		n := w.notices.table.Get(d.id)
		if n == nil {
			return
		}
		t := n.Targets[d.endpoint]
		t.Next = 0
		n.Targets[d.endpoint] = t
		n.Dropped = true
		w.notices.table.Put(d.id, n)
		w.tried(d)
	})
}

// hold keeps a notice until one of a later change has been delivered.
func (w *World) hold(d delivery) {
	var key string
	var change int64
	w.View(func() {
		if n := w.notices.table.Get(d.id); n != nil {
			key, change = numberKey(n.Channel, n.Number), n.Change
		}
	})
	w.notices.mu.Lock()
	w.notices.held[key] = append(w.notices.held[key], heldBack{change: change, d: d})
	w.notices.mu.Unlock()
	w.realTimers.add(w.RealNow().Add(reorderAtMost), func() { w.release(key, change+1) })
}

// release sends what was held of changes before this one.
func (w *World) release(key string, change int64) {
	w.notices.mu.Lock()
	var free []delivery
	var still []heldBack
	for _, h := range w.notices.held[key] {
		if h.change < change {
			free = append(free, h.d)
		} else {
			still = append(still, h)
		}
	}
	if len(still) == 0 {
		delete(w.notices.held, key)
	} else {
		w.notices.held[key] = still
	}
	w.notices.mu.Unlock()
	for _, d := range free {
		w.enqueue(d)
	}
}

func (w *World) enqueue(d delivery) {
	w.notices.mu.Lock()
	w.notices.queue = append(w.notices.queue, d)
	w.notices.mu.Unlock()
	w.notices.work.Signal()
}

// courier delivers until the world ends.
func (w *World) courier() {
	for {
		w.notices.mu.Lock()
		for len(w.notices.queue) == 0 && !w.notices.ended {
			w.notices.work.Wait()
		}
		if w.notices.ended {
			w.notices.mu.Unlock()
			return
		}
		d := w.notices.queue[0]
		w.notices.queue = w.notices.queue[1:]
		w.notices.mu.Unlock()
		w.deliver(d)
	}
}

// deliver makes one try and writes down what came of it.
func (w *World) deliver(d delivery) {
	var n Notice
	var t Target
	var ref journal.Ref
	found := false
	pos := w.View(func() {
		row := w.notices.table.Get(d.id)
		if row == nil {
			return
		}
		n, ref = *row, w.notices.bodies.Ref(d.id)
		t, found = row.Targets[d.endpoint]
		if d.retry && t.Next == 0 {
			found = false // settled meanwhile by a copy or a resend
		}
	})
	if !found || w.Wait(pos) != nil {
		w.note(func() { w.tried(d) })
		return
	}
	body, err := w.journal.Read(ref)
	sent, acknowledged := false, false
	if err == nil && !d.fault.Is(LoseRequest) {
		sent, acknowledged = w.try(d, n, t, body)
	}
	if d.fault.Is(LoseResponse) {
		acknowledged = false
	}
	if w.ctx.Err() != nil {
		return // the try was cut off by Close: it will be made again
	}
	w.record(d, sent, acknowledged)
	w.release(numberKey(n.Channel, n.Number), n.Change)
}

func (w *World) try(d delivery, n Notice, t Target, body []byte) (sent, acknowledged bool) {
	postman := w.notices.postmen[n.Channel]
	ctx, cancel := context.WithTimeout(w.ctx, deliveryTimeout)
	defer cancel()
	req, err := postman.Request(ctx, n, d.endpoint, t, body, d.fault)
	if err != nil {
		w.Log.Warn("notice cannot be sent", "event", n.Event, "error", err)
		return false, false
	}
	res, err := w.opts.Client.Do(req)
	if err != nil {
		w.Log.Debug("notice was not answered", "event", n.Event, "error", err)
		return true, false
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // a cut answer is judged as it is
	return true, postman.Acknowledged(res.StatusCode, answer)
}

// record counts the try and sets the next one.
func (w *World) record(d delivery, sent, acknowledged bool) {
	w.note(func() {
		defer w.tried(d)
		n := w.notices.table.Get(d.id)
		if n == nil {
			return
		}
		t, ok := n.Targets[d.endpoint]
		if !ok {
			return
		}
		if sent {
			n.Deliveries++
		}
		gaps := w.notices.postmen[n.Channel].Gaps()
		t.Acknowledged = t.Acknowledged || acknowledged
		// A copy that failed too finds the next try set already.
		switch now := w.Now(); {
		case t.Acknowledged:
			t.Next = 0
		case t.Next > now.Unix():
		case t.Tries < len(gaps):
			w.retryAt(d, &t, now.Add(gaps[t.Tries]))
		default:
			t.Next = 0
		}
		t.Tries++
		n.Targets[d.endpoint] = t
		n.settle()
		w.notices.table.Put(d.id, n)
	})
}

func (w *World) retryAt(d delivery, t *Target, next time.Time) {
	t.Next = next.Unix()
	w.At(next, func() { w.enqueue(delivery{id: d.id, endpoint: d.endpoint, retry: true}) })
}

// tried tells those who wait that one target of a posted notice was tried.
// Only under the lock.
func (w *World) tried(d delivery) {
	if d.posted == nil {
		return
	}
	d.posted.left--
	if d.posted.left == 0 {
		close(d.posted.done)
	}
}

// NoRedirects is a client for notices: a redirect is an answer, not a hint.
func NoRedirects() *http.Client {
	return &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: couriers, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}
