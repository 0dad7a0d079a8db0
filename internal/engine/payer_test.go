package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

// payerChannel is paid by the payer: a code is invisible at the channel until it
// is scanned, a form is signed without a call.
type payerChannel struct {
	mu     sync.Mutex
	trades map[string]*trade
	faults map[string][]fault
	calls  map[string]int
	now    func() time.Time
}

type trade struct {
	state  string // offered, waiting, paid, closed
	dead   time.Time
	amount payonce.Amount
	ref    string
}

func (c *payerChannel) Account() string { return "ali1" }

func (c *payerChannel) Methods() map[string]channel.Capabilities {
	return map[string]channel.Capabilities{
		"qr":   {OnlyByAction: true, DedupeWindow: 24 * time.Hour, Life: 15 * time.Minute},
		"page": {SelfSigned: true, Life: 15 * time.Minute},
	}
}

func (c *payerChannel) Compose(i channel.Intent) ([]byte, error) {
	return fmt.Appendf(nil, "%s %d %s", i.Number, i.Amount, i.DeadAt.Format(time.RFC3339)), nil
}

func (c *payerChannel) Sign(p payonce.Payment) (*payonce.Action, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trades[p.Number] = &trade{state: "offered", dead: p.DeadAt, amount: p.Amount, ref: "t-" + p.Number}
	return &payonce.Action{Type: "form", URL: "https://pay.example", Method: "POST", ExpiresAt: p.DeadAt}, nil
}

func (c *payerChannel) ReadNotice(http.Header, []byte) (channel.Notice, error) {
	return channel.Notice{}, errors.New("not used")
}

func (c *payerChannel) ReplyNotice(channel.NoticeOutcome) channel.NoticeReply {
	return channel.NoticeReply{Status: 200}
}

func (c *payerChannel) take(step string) (fault, bool) {
	c.calls[step]++
	if len(c.faults[step]) == 0 {
		return fault{}, false
	}
	f := c.faults[step][0]
	c.faults[step] = c.faults[step][1:]
	return f, true
}

func (c *payerChannel) Begin(_ context.Context, call channel.Call) channel.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, faulty := c.take("begin")
	p := &call.Payment
	if (!faulty || f.effect) && c.trades[p.Number] == nil {
		c.trades[p.Number] = &trade{state: "offered", dead: p.DeadAt, amount: p.Amount, ref: "t-" + p.Number}
	}
	if faulty {
		return f.result(channel.Answer{})
	}
	return c.reply(p, payonce.Fact{Kind: payonce.StateWaiting, Action: &payonce.Action{Type: "qr_code", QRCode: "qr:" + p.Number, ExpiresAt: p.DeadAt}})
}

func (c *payerChannel) reply(p *payonce.Payment, f payonce.Fact) channel.Answer {
	f.Number, f.ServerDate = p.Number, c.now()
	return channel.Answer{Fact: f, Raw: []byte(f.Kind.String())}
}

func (c *payerChannel) Query(_ context.Context, call channel.Call) channel.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, faulty := c.take("query"); faulty {
		return f.result(channel.Answer{})
	}
	return c.look(&call.Payment)
}

func (c *payerChannel) look(p *payonce.Payment) channel.Answer {
	t := c.trades[p.Number]
	if t != nil && t.state == "waiting" && !c.now().Before(t.dead) {
		t.state = "closed"
	}
	switch {
	case t == nil || t.state == "offered":
		return c.reply(p, payonce.Fact{Kind: payonce.StateAbsent})
	case t.state == "waiting":
		return c.reply(p, payonce.Fact{Kind: payonce.StateWaiting})
	case t.state == "paid":
		return c.reply(p, payonce.Fact{Kind: payonce.StateSettled, PaymentRef: t.ref, Amount: t.amount, Currency: "CNY"})
	}
	return c.reply(p, payonce.Fact{Kind: payonce.StateDead})
}

func (c *payerChannel) Close(_ context.Context, call channel.Call) channel.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take("close")
	if t := c.trades[call.Payment.Number]; t != nil && t.state == "waiting" {
		t.state = "closed"
		return c.reply(&call.Payment, payonce.Fact{Kind: payonce.StateDead})
	}
	return c.reply(&call.Payment, payonce.Fact{Reason: "status-error"})
}

// act is the payer: scan, pay, or pay although the channel closed it.
func (c *payerChannel) act(number, state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trades[number].state = state
}

func newPayerWorld(t *testing.T) (*world, *payerChannel) {
	t.Helper()
	w := newWorld(t)
	c := &payerChannel{trades: map[string]*trade{}, faults: map[string][]fault{}, calls: map[string]int{}}
	c.now = func() time.Time {
		now, err := w.store.Now(context.Background())
		if err != nil {
			t.Error(err)
		}
		return now
	}
	w.payers = c
	w.engine = w.newEngine("n1", "i1")
	return w, c
}

func (w *world) scan(order, key, method string) engine.PayRequest {
	r := w.request(order, key)
	r.Channel, r.Method, r.Currency, r.Payer = "alipay", method, "CNY", channel.Payer{}
	return r
}

func (w *world) payQR(order, key string) *payonce.Payment {
	w.t.Helper()
	res, err := w.engine.Pay(context.Background(), w.scan(order, key, "qr"))
	if err != nil {
		w.t.Fatal(err)
	}
	return res.Payment
}

func (w *world) notice(event, number string, f payonce.Fact) engine.NoticeResult {
	w.t.Helper()
	f.Number = number
	res, err := w.engine.Notice(context.Background(), "ali1", channel.Notice{EventID: event, Type: "trade", Number: number, Fact: f}, "{}", []byte("raw"))
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func settledFact(number string) payonce.Fact {
	return payonce.Fact{Kind: payonce.StateSettled, PaymentRef: "t-" + number, Amount: 1000, Currency: "CNY"}
}

func TestC08_CodeConvergesAndIsPaidByNotice(t *testing.T) {
	w, c := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	w.want(a, payonce.Pending)
	if a.Action == nil || a.Action.QRCode == "" {
		t.Fatal("no code")
	}
	b := w.payQR("A1", "k2")
	if b.ID != a.ID || c.calls["begin"] != 1 {
		t.Fatal("the second key did not converge")
	}
	c.act(a.Number, "paid")
	if r := w.notice("e1", a.Number, settledFact(a.Number)); r != engine.NoticeApplied {
		t.Fatal(r)
	}
	for range 3 {
		if r := w.notice("e1", a.Number, settledFact(a.Number)); r != engine.NoticeDuplicate {
			t.Fatal(r)
		}
	}
	w.want(w.payment("A1", 1), payonce.Succeeded)
	if w.order("A1").Order.Status != payonce.OrderPaid {
		t.Fatal("not paid")
	}
}

func TestG05_EarlierNoticesDoNotSwallowTheSuccess(t *testing.T) {
	w, _ := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	w.notice("e1", a.Number, payonce.Fact{Kind: payonce.StateWaiting})
	w.notice("e2", a.Number, payonce.Fact{Kind: payonce.StateDead})
	w.want(w.payment("A1", 1), payonce.Cancelled)
	w.notice("e3", a.Number, settledFact(a.Number))
	w.want(w.payment("A1", 1), payonce.Succeeded)
	w.notice("e4", a.Number, payonce.Fact{Kind: payonce.StateDead})
	w.want(w.payment("A1", 1), payonce.Succeeded)
}

func TestL01_NoticeBeforeItsPaymentIsParkedAndAsked(t *testing.T) {
	w, c := newPayerWorld(t)
	number := payonce.ChannelNumber("0123456789abcdef0123456789abcdef", w.key("A1"), 1)
	if r := w.notice("e1", number, settledFact(number)); r != engine.NoticeParked {
		t.Fatal(r)
	}
	a := w.payQR("A1", "k1")
	c.act(a.Number, "paid")
	w.clock.SetOffset(2 * time.Second)
	parked, err := w.store.DueNotices(context.Background(), 10)
	if err != nil || len(parked) != 1 {
		t.Fatal(parked, err)
	}
	if err := w.engine.StepNotice(context.Background(), parked[0]); err != nil {
		t.Fatal(err)
	}
	w.settle(time.Second)
	w.want(w.payment("A1", 1), payonce.Succeeded)
	if parked, _ = w.store.DueNotices(context.Background(), 10); len(parked) != 0 {
		t.Fatal("still parked")
	}
}

func TestL09_PaidWithoutAnyNotice(t *testing.T) {
	w, c := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	c.act(a.Number, "paid")
	w.settle(time.Minute)
	w.want(w.payment("A1", 1), payonce.Succeeded)
}

func TestA12_OtherAmountIsAMismatchNotPaid(t *testing.T) {
	w, _ := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	f := settledFact(a.Number)
	f.Amount = 1
	w.notice("e1", a.Number, f)
	w.want(w.payment("A1", 1), payonce.Unknown)
	if o := w.order("A1").Order; o.Status != payonce.OrderOpen || o.AmountPaid != 0 {
		t.Fatalf("order %s, paid %d", o.Status, o.AmountPaid)
	}
}

func TestUnscannedCodeCannotBeSwitchedAway(t *testing.T) {
	w, c := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	r := w.scan("A1", "k2", "page")
	_, err := w.engine.Pay(context.Background(), r)
	var ref *engine.Refusal
	if codeOf(err) != string(payonce.CodeOutcomeUnknown) || !errors.As(err, &ref) || !ref.ProvableAt.After(a.DeadAt) {
		t.Fatalf("got %v", err)
	}
	if c.calls["close"] != 0 {
		t.Fatal("an unseen number was closed")
	}
	// After its end the channel's own time proves it, and the switch works.
	w.clock.SetOffset(18 * time.Minute)
	res, err := w.engine.Pay(context.Background(), r)
	if err != nil || res.Payment.Sequence != 2 || res.Payment.Status != payonce.Pending || res.Payment.Action == nil {
		t.Fatalf("%v %+v", err, res)
	}
	w.want(w.payment("A1", 1), payonce.Cancelled)
}

func TestScannedTradeIsClosedBeforeTheSwitch(t *testing.T) {
	w, c := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	c.act(a.Number, "waiting")
	res, err := w.engine.Pay(context.Background(), w.scan("A1", "k2", "page"))
	if err != nil || res.Payment.Sequence != 2 {
		t.Fatal(err)
	}
	w.want(w.payment("A1", 1), payonce.Cancelled)
	// What no rule can prevent: it is paid all the same, and the new form too.
	c.act(a.Number, "paid")
	w.notice("e1", a.Number, settledFact(a.Number))
	w.want(w.payment("A1", 1), payonce.Succeeded)
	o := w.order("A1").Order
	if o.Status != payonce.OrderPaid || o.AmountSurplus != 0 {
		t.Fatalf("order %s surplus %d", o.Status, o.AmountSurplus)
	}
	if p := w.payment("A1", 2); !p.Superseded || o.Shows(p, c.now()) != nil {
		t.Fatal("the newer attempt is still offered")
	}
	b := w.payment("A1", 2)
	c.act(b.Number, "paid")
	w.notice("e2", b.Number, settledFact(b.Number))
	if o := w.order("A1").Order; o.AmountPaid != 1000 || o.AmountSurplus != 1000 {
		t.Fatalf("paid %d surplus %d", o.AmountPaid, o.AmountSurplus)
	}
}

func TestCloseThatCameTooLateIsAskedAboutAtOnce(t *testing.T) {
	w, c := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	c.act(a.Number, "waiting")
	c.faults["query"] = []fault{{answer: &channel.Answer{Fact: payonce.Fact{Kind: payonce.StateWaiting, Number: a.Number}, Raw: []byte("w")}}}
	c.act(a.Number, "paid") // between the question and the close
	_, err := w.engine.Pay(context.Background(), w.scan("A1", "k2", "page"))
	if codeOf(err) != string(payonce.CodeOrderAlreadyPaid) {
		t.Fatalf("got %v", err)
	}
	w.want(w.payment("A1", 1), payonce.Succeeded)
}

func TestLostCodeIsFetchedAgainOrProvenDead(t *testing.T) {
	w, c := newPayerWorld(t)
	c.faults["begin"] = []fault{{effect: true}}
	a := w.payQR("A1", "k1")
	w.want(a, payonce.Unknown)
	w.settle(10 * time.Second)
	if p := w.payment("A1", 1); p.Status != payonce.Pending || p.Action == nil {
		t.Fatalf("%s %v", p.Status, p.Action)
	}
	// Nobody was given the key: a switch proves the old one dead at once.
	c.faults["begin"] = []fault{{effect: true}}
	w.want(w.payQR("A2", "k2"), payonce.Unknown)
	if _, err := w.engine.Pay(context.Background(), w.scan("A2", "k3", "page")); err != nil {
		t.Fatal(err)
	}
	w.want(w.payment("A2", 1), payonce.Cancelled)
}

func TestT01_LateMoneyOnAClosedOrderIsSurplus(t *testing.T) {
	w, c := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	c.act(a.Number, "waiting")
	res, err := w.engine.CloseOrder(context.Background(), w.action("close"), "A1")
	if err != nil || res.Order.Status != payonce.OrderClosed {
		t.Fatalf("%v %+v", err, res)
	}
	c.act(a.Number, "paid")
	w.notice("e1", a.Number, settledFact(a.Number))
	p, o := w.payment("A1", 1), w.order("A1").Order
	if p.Status != payonce.Succeeded || p.Effective || o.Status != payonce.OrderClosed || o.AmountSurplus != 1000 {
		t.Fatalf("%s %v %s %d", p.Status, p.Effective, o.Status, o.AmountSurplus)
	}
}

func TestFormIsHandedOutByItsIntent(t *testing.T) {
	w, c := newPayerWorld(t)
	res, err := w.engine.Pay(context.Background(), w.scan("A1", "k1", "page"))
	if err != nil || res.Payment.Status != payonce.Pending || res.Payment.Action == nil || c.calls["begin"] != 0 {
		t.Fatalf("%v %+v", err, res)
	}
	w.settle(20 * time.Minute) // never opened: dead by the channel's own time
	w.want(w.payment("A1", 1), payonce.Cancelled)
	c.act(res.Payment.Number, "paid")
	w.settle(26 * time.Hour) // the last question finds late money even without a notice
	w.want(w.payment("A1", 1), payonce.Succeeded)
}

func TestNoticeThatNamesAnotherAccountIsNoKnowledge(t *testing.T) {
	w, _ := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	f := settledFact(a.Number)
	f.Account = "ali1 (livemode true)"
	w.notice("e1", a.Number, f)
	w.want(w.payment("A1", 1), payonce.Pending)
}

func TestNoticeOfAnotherAmountNumberOrAccountChangesNothing(t *testing.T) {
	w, _ := newPayerWorld(t)
	a := w.payQR("A1", "k1")
	_, err := w.engine.Notice(context.Background(), "other", channel.Notice{EventID: "e1", Number: a.Number, Fact: settledFact(a.Number)}, "{}", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.want(w.payment("A1", 1), payonce.Pending)
	if _, err := w.store.Notice(context.Background(), store.NoticeID{Account: "other", EventID: "e1"}); err != nil {
		t.Fatal("the notice is not kept")
	}
}
