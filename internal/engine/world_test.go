package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlite"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// fakeChannel is a channel with books of its own: prepared objects, confirm,
// query, cancel. Faults are taken off a list per step, one per call.
type fakeChannel struct {
	mu      sync.Mutex
	objects map[string]*object
	byKey   map[string]string // idempotency key of create → object
	faults  map[string][]fault
	calls   map[string]int
	entered chan string // step names as calls arrive, when set
	hold    chan struct{}
}

type object struct {
	id, number string
	amount     payonce.Amount
	currency   payonce.Currency
	state      string // new, action, declined, paid, dead
	charges    int
	bodies     [][]byte
}

// fault says what happens to one call: whether it has its effect, and what the
// caller learns instead of the answer.
type fault struct {
	effect bool
	answer *channel.Answer // nil: unknown
	state  string          // what the confirm does instead of paying
}

func newFake() *fakeChannel {
	return &fakeChannel{objects: map[string]*object{}, byKey: map[string]string{}, faults: map[string][]fault{}, calls: map[string]int{}}
}

func (c *fakeChannel) Account() string { return "acct1" }

func (c *fakeChannel) Methods() map[string]channel.Capabilities {
	return map[string]channel.Capabilities{"card": {Prepared: true, ReusedAfterDecline: true, DedupeWindow: 24 * time.Hour, Life: 30 * time.Minute}}
}

func (c *fakeChannel) Compose(i channel.Intent) ([]byte, error) {
	if i.Payer.PaymentMethod == "" {
		return nil, payonce.Invalid("/payer/payment_method", "is required")
	}
	return json.Marshal(map[string]any{"number": i.Number, "amount": i.Amount, "currency": i.Currency, "method": i.Payer.PaymentMethod})
}

func (c *fakeChannel) ReadNotice(http.Header, []byte) (channel.Notice, error) {
	return channel.Notice{}, errors.New("no notices here")
}

func (c *fakeChannel) fail(step string, f ...fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[step] = append(c.faults[step], f...)
}

// enter counts a call, tells the test, waits while held, and takes a fault.
func (c *fakeChannel) enter(step string) (fault, bool) {
	c.mu.Lock()
	c.calls[step]++
	entered, hold := c.entered, c.hold
	var f fault
	ok := len(c.faults[step]) > 0
	if ok {
		f, c.faults[step] = c.faults[step][0], c.faults[step][1:]
	}
	c.mu.Unlock()
	if entered != nil {
		entered <- step
	}
	if hold != nil && step == "begin" {
		<-hold
	}
	c.mu.Lock()
	return f, ok
}

func lost(reason string) channel.Answer {
	return channel.Answer{Fact: payonce.Fact{Kind: payonce.StateUnknown, Reason: reason}, Err: errors.New(reason)}
}

func (f fault) result(normal channel.Answer) channel.Answer {
	if f.answer != nil {
		return *f.answer
	}
	return lost("connection-lost")
}

func (c *fakeChannel) Prepare(_ context.Context, call channel.Call) channel.Answer {
	f, faulty := c.enter("prepare")
	defer c.mu.Unlock()
	p := &call.Payment
	key := fmt.Sprintf("%s-create-%d", p.Number, call.KeyNo)
	var ans channel.Answer
	if !faulty || f.effect {
		id := c.byKey[key]
		if id == "" {
			id = fmt.Sprintf("obj_%d", len(c.objects)+1)
			c.byKey[key] = id
			c.objects[id] = &object{id: id, number: p.Number, amount: p.Amount, currency: p.Currency, state: "new"}
		}
		o := c.objects[id]
		o.bodies = append(o.bodies, p.Request)
		ans = c.answer(o)
	}
	if faulty {
		return f.result(ans)
	}
	return ans
}

func (c *fakeChannel) Begin(_ context.Context, call channel.Call) channel.Answer {
	f, faulty := c.enter("begin")
	defer c.mu.Unlock()
	o := c.objects[call.Payment.ObjectID]
	if o == nil {
		return lost("no-object")
	}
	o.bodies = append(o.bodies, call.Payment.Request)
	var ans channel.Answer
	if !faulty || f.effect {
		if o.state == "new" || o.state == "declined" {
			o.state = "paid"
			if f.state != "" {
				o.state = f.state
			}
			if o.state == "paid" {
				o.charges++
			}
		}
		ans = c.answer(o)
	}
	if faulty && f.state == "" {
		return f.result(ans)
	}
	return ans
}

func (c *fakeChannel) Query(_ context.Context, call channel.Call) channel.Answer {
	f, faulty := c.enter("query")
	defer c.mu.Unlock()
	if faulty {
		return f.result(channel.Answer{})
	}
	if o := c.objects[call.Payment.ObjectID]; o != nil {
		return c.answer(o)
	}
	return lost("no-object")
}

func (c *fakeChannel) Close(_ context.Context, call channel.Call) channel.Answer {
	f, faulty := c.enter("close")
	defer c.mu.Unlock()
	o := c.objects[call.Payment.ObjectID]
	if o == nil {
		return lost("no-object")
	}
	if (!faulty || f.effect) && o.state != "paid" {
		o.state = "dead"
	}
	if faulty {
		return f.result(channel.Answer{})
	}
	return c.answer(o)
}

func (c *fakeChannel) answer(o *object) channel.Answer {
	f := payonce.Fact{Object: o.id, Number: o.number, Amount: o.amount, Currency: o.currency}
	switch o.state {
	case "new":
		f.Kind = payonce.StateUnconfirmed
	case "action":
		f.Kind, f.Action = payonce.StateWaiting, &payonce.Action{Type: "redirect", URL: "https://bank.example/3ds"}
	case "declined":
		f.Kind, f.Failure = payonce.StateDeclined, &payonce.Failure{Code: "declined", ChannelCode: "generic_decline"}
	case "paid":
		f.Kind, f.PaymentRef = payonce.StateSettled, o.id
	case "dead":
		f.Kind = payonce.StateDead
	}
	return channel.Answer{Fact: f, Raw: []byte(o.state)}
}

// charges is what the channel's books say about all orders together.
func (c *fakeChannel) charges() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, o := range c.objects {
		n += o.charges
	}
	return n
}

func (c *fakeChannel) count(step string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[step]
}

func (c *fakeChannel) setAll(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.objects {
		if o.state == from {
			o.state = to
			if to == "paid" {
				o.charges++
			}
		}
	}
}

// encoder renders just enough for the engine's tests.
type encoder struct{}

func (encoder) Answer(_ *payonce.Order, p *payonce.Payment) (int, string, []byte) {
	return 201, "application/json", fmt.Appendf(nil, `{"id":%q,"status":%q}`, p.ID, p.Status)
}

func (encoder) EventData(o *payonce.Order, p *payonce.Payment) []byte {
	return fmt.Appendf(nil, `{"order":%q}`, o.Key.OrderNo)
}

// world is one engine on a fresh SQLite database with a fake channel.
type world struct {
	t       *testing.T
	engine  *engine.Engine
	store   store.Store
	channel *fakeChannel
	clock   *run.Clock
	runner  *run.Live
	payers  *payerChannel // nil: none
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, channel: newFake(), clock: &run.Clock{}}
	w.runner = run.NewLive(w.clock)
	t.Cleanup(func() { _ = w.runner.Stop(context.Background()) })
	w.store = openStore(t, w.clock, w.runner)
	w.engine = w.newEngine("n1", "i1")
	return w
}

func openStore(t *testing.T, clock *run.Clock, runner run.Runner) store.Store {
	t.Helper()
	ctx := context.Background()
	s, err := sqlite.Open(ctx, "sqlite://"+t.TempDir()+"/payonce.db", sqlstore.Options{Clock: clock, Runner: runner})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(ctx, sqlstore.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) newEngine(node, incarnation string) *engine.Engine {
	w.t.Helper()
	accounts := []engine.Account{{ID: "acct1", Channel: "stripe", Merchant: "m1", Environment: payonce.Test, Adapter: w.channel}}
	if w.payers != nil {
		accounts = append(accounts, engine.Account{ID: "ali1", Channel: "alipay", Merchant: "m1", Environment: payonce.Test, Adapter: w.payers})
	}
	e, err := engine.New(engine.Config{Store: w.store, Runner: w.runner, Installation: "0123456789abcdef0123456789abcdef",
		NodeID: node, Incarnation: incarnation, PublicURL: "http://127.0.0.1", Encoder: encoder{}, AnswerWithin: 5 * time.Second,
		CallTimeout: 20 * time.Second,
		Accounts:    accounts})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) key(order string) payonce.OrderKey {
	return payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: order}
}

func (w *world) request(order, key string) engine.PayRequest {
	return engine.PayRequest{Order: w.key(order), Key: sha256.Sum256([]byte(key)),
		Fingerprint: idempotency.Fingerprint{Version: 1, Secret: "s1", Sum: sha256.Sum256([]byte(order))},
		Channel:     "stripe", Method: "card", Amount: 1000, Currency: "USD", Subject: "tea",
		Payer: channel.Payer{PaymentMethod: "pm_card_visa"}}
}

func (w *world) pay(order, key string) *engine.Result {
	w.t.Helper()
	res, err := w.engine.Pay(context.Background(), w.request(order, key))
	if err != nil {
		w.t.Fatalf("pay %s: %v", order, err)
	}
	return res
}

// settle does all due work, moving the clock to when the next piece is due,
// until nothing is left within the given span.
func (w *world) settle(span time.Duration) {
	w.t.Helper()
	ctx := context.Background()
	limit := w.clock.Offset() + span
	for range 1000 {
		due, err := w.store.DuePayments(ctx, 100)
		if err != nil {
			w.t.Fatal(err)
		}
		orders, err := w.store.DueOrders(ctx, 100)
		if err != nil {
			w.t.Fatal(err)
		}
		if due = append(due, orders...); len(due) > 0 {
			for _, d := range due {
				if err := w.engine.Step(ctx, d); err != nil {
					w.t.Fatalf("step: %v", err)
				}
			}
			continue
		}
		next, err := w.store.NextDue(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		now, err := w.store.Now(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		ahead := w.clock.Offset() + next.Sub(now) + time.Millisecond
		if next.IsZero() || ahead > limit {
			if w.clock.Offset() == limit {
				return
			}
			ahead = limit // once more: an order may end on the way
		}
		w.clock.SetOffset(ahead)
	}
	w.t.Fatal("work never ends")
}

func (w *world) payment(order string, seq int) *payonce.Payment {
	w.t.Helper()
	o := w.order(order)
	for _, p := range o.Payments {
		if p.Sequence == seq {
			return p
		}
	}
	w.t.Fatalf("order %s has no payment %d", order, seq)
	return nil
}

func (w *world) order(order string) *store.OrderWithPayments {
	w.t.Helper()
	o, err := w.store.Order(context.Background(), w.key(order))
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) want(p *payonce.Payment, s payonce.PaymentStatus) {
	w.t.Helper()
	if p.Status != s {
		w.t.Fatalf("payment %d is %s (%s), want %s", p.Sequence, p.Status, p.UnknownReason, s)
	}
}

// paidOnce is the promise: one charge on the channel's books, one effective
// payment, the order paid.
func (w *world) paidOnce(order string) {
	w.t.Helper()
	if n := w.channel.charges(); n != 1 {
		w.t.Fatalf("the channel's books show %d charges, want 1", n)
	}
	o := w.order(order)
	if o.Order.Status != payonce.OrderPaid || o.Order.AmountPaid != o.Order.Amount || o.Order.Reserved != 0 {
		w.t.Fatalf("order is %s, paid %d, reserved %d", o.Order.Status, o.Order.AmountPaid, o.Order.Reserved)
	}
	effective := 0
	for _, p := range o.Payments {
		if p.Effective {
			effective++
		}
	}
	if effective != 1 {
		w.t.Fatalf("%d effective payments, want 1", effective)
	}
}

func (w *world) sameBytes() {
	w.t.Helper()
	w.channel.mu.Lock()
	defer w.channel.mu.Unlock()
	for _, o := range w.channel.objects {
		for _, b := range o.bodies[1:] {
			if !bytes.Equal(b, o.bodies[0]) {
				w.t.Fatal("bytes differ between sends of one payment")
			}
		}
	}
}

func (c *fakeChannel) ReplyNotice(channel.NoticeOutcome) channel.NoticeReply {
	return channel.NoticeReply{Status: 200}
}
