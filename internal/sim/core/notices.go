package core

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/payonce/payonce/internal/sim/journal"
)

// maxNoticesPerNumber bounds the notices that are kept of one number; the
// oldest ones that nobody waits for go first.
const maxNoticesPerNumber = 200

// Notice is a message of a channel to the merchant, and what became of it.
type Notice struct {
	Seq          int64             `json:"seq"`
	Channel      string            `json:"channel"`
	Number       string            `json:"number"`
	Event        string            `json:"event_id"`
	Type         string            `json:"type"`
	Object       string            `json:"object"`  // id of the channel object
	Created      int64             `json:"created"` // virtual Unix seconds
	Change       int64             `json:"change"`  // notices of one change share it
	Deliveries   int               `json:"deliveries"`
	Acknowledged bool              `json:"acknowledged"`
	Dropped      bool              `json:"dropped,omitempty"`
	Targets      map[string]Target `json:"targets,omitempty"` // by endpoint id
}

// Target is one address of a notice.
type Target struct {
	URL          string `json:"url"`
	Tries        int    `json:"tries"`
	Acknowledged bool   `json:"acknowledged"`
	Next         int64  `json:"next,omitempty"` // virtual Unix seconds of the next try; 0: none
}

// Postman knows how one channel sends its notices.
type Postman interface {
	// Request makes the request of one delivery, signed now. The fault is
	// nil, BadSignature, Truncated, WrongAmount or ForeignAccount; others
	// are not the postman's concern.
	Request(ctx context.Context, n Notice, endpoint string, t Target, body []byte, f *Fault) (*http.Request, error)
	// Acknowledged reads the merchant's answer.
	Acknowledged(status int, body []byte) bool
	// Gaps are the pauses on the virtual clock between tries.
	Gaps() []time.Duration
}

// Posted is a notice on its way; done is closed when every target has been
// tried once.
type Posted struct {
	id    string
	fault *Fault
	left  int
	done  chan struct{}
}

type notices struct {
	table    *journal.Table[Notice]
	bodies   *journal.Blobs
	byNumber map[string][]string // channel, NUL, number → event ids, oldest first
	postmen  map[string]Postman

	mu    sync.Mutex
	work  *sync.Cond
	queue []delivery
	held  map[string][]heldBack // by channel and number: waiting to be overtaken
	ended bool
}

// RegisterPostman must be called before Open.
func (w *World) RegisterPostman(channel string, p Postman) {
	if w.notices.postmen == nil {
		w.notices.postmen = map[string]Postman{}
	}
	w.notices.postmen[channel] = p
}

func numberKey(channel, number string) string { return channel + "\x00" + number }

// Post stores a notice with its body, to be sent to its targets with the fault,
// which may be nil. Only inside Update; Start the result once it is durable.
func (w *World) Post(n Notice, body []byte, f *Fault) *Posted {
	n.Created = w.Now().Unix()
	for endpoint, t := range n.Targets {
		t.Next = n.Created
		n.Targets[endpoint] = t
	}
	w.notices.table.Put(n.Event, &n)
	w.notices.bodies.Put(n.Event, body)
	key := numberKey(n.Channel, n.Number)
	w.notices.byNumber[key] = append(w.notices.byNumber[key], n.Event)
	w.trimNotices(key)
	p := &Posted{id: n.Event, done: make(chan struct{}), left: len(n.Targets)}
	if len(n.Targets) == 0 {
		close(p.done)
		return p
	}
	p.fault = f
	return p
}

// trimNotices keeps the notices of a number bounded.
func (w *World) trimNotices(key string) {
	ids := w.notices.byNumber[key]
	for i := 0; len(ids) > maxNoticesPerNumber && i < len(ids); {
		if w.notices.table.Get(ids[i]).pending() {
			i++
			continue
		}
		w.notices.table.Delete(ids[i])
		w.notices.bodies.Delete(ids[i])
		ids = slices.Delete(ids, i, i+1)
	}
	w.notices.byNumber[key] = ids
}

func (n *Notice) pending() bool {
	for _, t := range n.Targets {
		if t.Next != 0 {
			return true
		}
	}
	return false
}

// settle sums up the targets: acknowledged means by all of them.
func (n *Notice) settle() {
	n.Acknowledged = len(n.Targets) > 0
	for _, t := range n.Targets {
		n.Acknowledged = n.Acknowledged && t.Acknowledged
	}
}

// Notices lists all notices in the order they were made. Only inside View.
func (w *World) Notices() []Notice {
	list := make([]Notice, 0, len(w.notices.table.Rows))
	for _, n := range w.notices.table.Rows {
		list = append(list, *n)
	}
	slices.SortFunc(list, func(a, b Notice) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

// NoticeOf returns a notice and where its body lies. Only inside View.
func (w *World) NoticeOf(event string) (*Notice, journal.Ref) {
	return w.notices.table.Get(event), w.notices.bodies.Ref(event)
}

// openNotices rebuilds the indexes, starts the couriers and sets the pending
// deliveries again.
func (w *World) openNotices() {
	n := &w.notices
	n.work = sync.NewCond(&n.mu)
	n.byNumber = map[string][]string{}
	n.held = map[string][]heldBack{}
	for _, notice := range w.Notices() {
		key := numberKey(notice.Channel, notice.Number)
		n.byNumber[key] = append(n.byNumber[key], notice.Event)
		for endpoint, t := range notice.Targets {
			if t.Next != 0 {
				w.At(time.Unix(t.Next, 0), func() { w.enqueue(delivery{id: notice.Event, endpoint: endpoint, retry: true}) })
			}
		}
	}
	for range couriers {
		w.wg.Go(w.courier)
	}
}

func (w *World) stopNotices() {
	w.notices.mu.Lock()
	defer w.notices.mu.Unlock()
	w.notices.ended = true
	w.notices.work.Broadcast()
}

// Resend sends all notices of a number again, also acknowledged ones, and
// returns how many; it waits until each has been tried, at most five seconds.
// One use of a fault covers all of them.
func (w *World) Resend(number string, targets func(channel string, n Notice) map[string]Target) (int, error) {
	var posted []*Posted
	known := false
	pos := w.Update(func() {
		for channel := range w.notices.postmen {
			var f *Fault
			if len(w.notices.byNumber[numberKey(channel, number)]) > 0 {
				f = w.TakeFault(channel, OpNotice, number)
			}
			for _, id := range w.notices.byNumber[numberKey(channel, number)] {
				known = true
				n := w.notices.table.Get(id)
				n.Dropped = false
				n.addTargets(targets(channel, *n), w.Now())
				n.settle()
				w.notices.table.Put(id, n)
				if len(n.Targets) == 0 {
					continue
				}
				posted = append(posted, &Posted{id: id, done: make(chan struct{}), left: len(n.Targets), fault: f})
			}
		}
	})
	if !known {
		return 0, ErrUnknown
	}
	if err := w.Wait(pos); err != nil {
		return 0, err
	}
	w.Start(posted)
	w.holdForNotices(Answer{Posted: posted}, &Fault{Name: BeforeResponse})
	return len(posted), nil
}

// addTargets makes today's endpoints the targets of a resend; those that are
// gone are forgotten.
func (n *Notice) addTargets(targets map[string]Target, now time.Time) {
	next := make(map[string]Target, len(targets))
	for id, t := range targets {
		t.Tries = n.Targets[id].Tries
		t.Acknowledged = n.Targets[id].Acknowledged
		t.Next = now.Unix()
		next[id] = t
	}
	n.Targets = next
}
