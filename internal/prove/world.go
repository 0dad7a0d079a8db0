package prove

import (
	"context"
	"fmt"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/memory"
)

// Times of the service in a schedule.
const (
	answerWithin = 5 * time.Second
	callTimeout  = 20 * time.Second
	sendWindow   = 90 * time.Second // after its permit a request has arrived or is lost
	total        = payonce.Amount(1000)
)

// world is one schedule under way.
type world struct {
	*sched
	script  Script
	books   *memory.Store
	db      *db
	procs   []*proc
	codes   *codes
	cards   *cards
	money   []taken
	posts   []*post
	flight  []*packet
	clients []*client
	orders  []payonce.OrderKey

	shown     map[string]*payonce.Payment // by number: the payer was offered it
	shownList []string
	forms     map[string]bool
	used      map[permitID]bool
	calls     map[string]int
	reached   map[string]bool
	turns     map[string]int

	faults, crashes, late, times int
	last                         *task
	amended                      bool // the order may have got another amount

	commits, storedAt int
	storedIs          digest
	picture           *store.OrderWithPayments
	pictureAt         int

	trace      []move
	history    digest
	ended      digest // the state in which nothing could happen any more
	violations []Violation
}

var scope = store.Scope{Merchant: "m1", Environment: payonce.Test}

func newWorld(s Script, seed uint64) *world {
	w := &world{script: s, shown: map[string]*payonce.Payment{}, forms: map[string]bool{}, used: map[permitID]bool{}, calls: map[string]int{},
		reached: map[string]bool{}, turns: map[string]int{}, faults: s.Faults, crashes: s.Crashes, late: s.Late, times: s.Times, storedAt: -1, history: digestStart}
	w.sched = newSched(seed, func(rule, detail string) { w.fail(rule, "%s", detail) })
	w.codes = &codes{w: w, trades: map[string]*trade{}}
	w.cards = &cards{w: w, byKey: map[string]channel.Answer{}}
	first := w.start("n0", 0)
	w.books = memory.New(memory.Options{Runner: first, Now: func() time.Time { return w.now }, Installation: "0123456789abcdef0123456789abcdef"})
	w.db = &db{Store: w.books, w: w}
	w.procs = nil
	for i := range max(s.Nodes, 1) {
		p := w.start(fmt.Sprint("n", i+1), 1)
		w.boot(p)
		w.procs = append(w.procs, p)
	}
	key := payonce.OrderKey{Merchant: scope.Merchant, Environment: scope.Environment, OrderNo: "A1"}
	w.orders = []payonce.OrderKey{key}
	r := engine.OrderRequest{ActionRequest: engine.ActionRequest{Scope: scope, Action: "order"}, Order: key, Amount: total, Currency: currency, Subject: "tea"}
	if s.Split {
		r.Policy = payonce.PolicySplit
	}
	if s.Expires > 0 {
		r.ExpiresAt = w.now.Add(s.Expires)
	}
	if _, err := w.procs[0].engine.CreateOrder(context.Background(), r); err != nil {
		panic(err) // the world is set up without faults
	}
	for i, c := range s.Clients {
		w.amended = w.amended || c.Kind == "amend"
		w.clients = append(w.clients, &client{w: w, Request: c, index: i, left: max(c.Tries, 1)})
	}
	return w
}

func (w *world) start(node string, number int) *proc {
	return &proc{s: w.sched, node: node, number: number, steady: w.script.Plain, busy: map[string]bool{}}
}

// boot gives a process its engine.
func (w *world) boot(p *proc) {
	accounts := []engine.Account{
		{ID: cardsAccount, Channel: "cards", Merchant: scope.Merchant, Environment: scope.Environment, Adapter: w.cards, TrustedDate: true},
		{ID: codesAccount, Channel: "codes", Merchant: scope.Merchant, Environment: scope.Environment, Adapter: w.codes, TrustedDate: true},
	}
	e, err := engine.New(engine.Config{Store: w.db, Runner: p, Installation: "0123456789abcdef0123456789abcdef", NodeID: p.node,
		Incarnation: fmt.Sprint(p.number), PublicURL: "http://127.0.0.1", Encoder: encoder{}, AnswerWithin: answerWithin,
		CallTimeout: callTimeout, Accounts: accounts})
	if err != nil {
		panic(err) // the configuration is ours
	}
	p.engine = e
}

func (w *world) payment(id string) *payonce.Payment {
	p, err := w.books.Payment(context.Background(), scope, id)
	if err != nil {
		return nil
	}
	return p
}

// order is the order as it is stored, to be read only.
func (w *world) order() *store.OrderWithPayments {
	if w.picture == nil || w.pictureAt != w.commits {
		o, err := w.books.Order(context.Background(), w.orders[0])
		if err != nil {
			panic(err) // it was made with the world
		}
		w.picture, w.pictureAt = o, w.commits
	}
	return w.picture
}

func (n *post) id() store.NoticeID {
	return store.NoticeID{Account: n.account, EventID: n.notice.EventID}
}

// encoder renders just enough to tell answers apart.
type encoder struct{}

// Answer implements engine.Encoder.
func (encoder) Answer(_ *payonce.Order, p *payonce.Payment) (int, string, []byte) {
	return 201, "application/json", []byte(p.ID + " " + string(p.Status))
}

// EventData implements engine.Encoder.
func (encoder) EventData(o *payonce.Order, _ *payonce.Payment) []byte { return []byte(o.Key.OrderNo) }
