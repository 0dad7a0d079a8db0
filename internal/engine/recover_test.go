package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

// abandon starts a payment whose call does not come back until the returned
// function is called; later calls are not held.
func (w *world) abandon(order, key, step string) (release func()) {
	w.t.Helper()
	entered, hold := make(chan string, 100), make(chan struct{})
	w.channel.mu.Lock()
	w.channel.entered, w.channel.hold = entered, hold
	w.channel.mu.Unlock()
	go func() { _, _ = w.engine.Pay(context.Background(), w.request(order, key)) }()
	for s := range entered {
		if s == step {
			break
		}
	}
	w.channel.mu.Lock()
	w.channel.entered, w.channel.hold = nil, nil
	w.channel.mu.Unlock()
	var once sync.Once
	release = func() { once.Do(func() { close(hold) }) }
	w.t.Cleanup(release)
	return release
}

func TestA04_RestartTakesOverAtOnceAndAsksFirst(t *testing.T) {
	w := newWorld(t)
	w.abandon("A1", "k1", "begin")
	w.engine = w.newEngine("n1", "i2")
	n, err := w.engine.TakeOver(context.Background())
	if err != nil || n != 1 {
		t.Fatalf("took over %d: %v", n, err)
	}
	res := w.pay("A1", "k1")
	if !res.Replayed {
		t.Fatal("not replayed")
	}
	w.want(res.Payment, payonce.Unknown)
	w.settle(time.Minute)
	w.want(w.payment("A1", 1), payonce.Succeeded)
	if w.channel.count("query") == 0 {
		t.Fatal("sent again without asking")
	}
	w.paidOnce("A1")
}

func TestJ04_LateOwnerCannotActAfterItsLease(t *testing.T) {
	w := newWorld(t)
	release := w.abandon("A1", "k1", "begin")
	w.settle(5 * time.Minute) // the lease ends, a worker finishes it
	w.paidOnce("A1")
	version := w.payment("A1", 1).Version
	// The late owner wakes up; its answer says what is known already.
	release()
	if err := w.engine.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := w.payment("A1", 1); got.Version != version || got.Status != payonce.Succeeded {
		t.Fatalf("a late answer changed the payment: %s, version %d, was %d", got.Status, got.Version, version)
	}
	w.paidOnce("A1")
}

func TestR09_SevenDaysWithoutAnAnswerStayUnknown(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true})
	for range 1000 {
		w.channel.fail("query", fault{})
	}
	w.pay("A1", "k1")
	w.settle(7 * 24 * time.Hour)
	w.want(w.payment("A1", 1), payonce.Unknown)
	if n := w.channel.count("query"); n < 50 || n > 400 {
		t.Fatalf("%d questions in seven days", n)
	}
	r := w.request("A1", "k2")
	r.Payer.PaymentMethod = "pm_other"
	if _, err := w.engine.Pay(context.Background(), r); codeOf(err) != string(payonce.CodeOutcomeUnknown) {
		t.Fatalf("a new attempt while the old one is unknown: %v", err)
	}
	w.channel.mu.Lock()
	w.channel.faults = map[string][]fault{}
	w.channel.mu.Unlock()
	w.settle(2 * time.Hour)
	w.paidOnce("A1")
}

func TestI05_NoResendAfterTheDedupeWindow(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: false})
	w.want(w.pay("A1", "k1").Payment, payonce.Unknown)
	w.clock.SetOffset(48 * time.Hour)
	w.settle(time.Hour)
	if n := w.channel.count("begin"); n != 1 {
		t.Fatalf("%d sends, want 1", n)
	}
	w.want(w.payment("A1", 1), payonce.Cancelled)
	if w.channel.count("query") == 0 || w.channel.count("close") == 0 {
		t.Fatal("it was not asked about and closed")
	}
}

func TestA05_TwoWorkersTakeTheSameWork(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: false})
	w.pay("A1", "k1")
	w.clock.SetOffset(time.Minute)
	other := w.newEngine("n2", "i1")
	due, err := w.store.DuePayments(context.Background(), 10)
	if err != nil || len(due) != 1 {
		t.Fatalf("due %v %v", due, err)
	}
	done := make(chan error, 4)
	for _, e := range []*engine.Engine{w.engine, other, w.engine, other} {
		go func() { done <- e.Step(context.Background(), due[0]) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	w.paidOnce("A1")
	if n := w.channel.count("begin"); n != 2 {
		t.Fatalf("%d sends, want the lost one and one more", n)
	}
}

func TestW09_WorkThatWasFinishedMeanwhileIsSkipped(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true})
	w.pay("A1", "k1")
	w.clock.SetOffset(time.Minute)
	due, _ := w.store.DuePayments(context.Background(), 10)
	w.settle(time.Minute)
	w.paidOnce("A1")
	queries := w.channel.count("query")
	for _, d := range due {
		if err := w.engine.Step(context.Background(), d); err != nil {
			t.Fatal(err)
		}
	}
	if w.channel.count("query") != queries {
		t.Fatal("finished work was done again")
	}
}

func TestCloseOrderWithAnOpenAttempt(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.pay("A1", "k1")
	res, err := w.engine.CloseOrder(context.Background(), w.action("close"), "A1")
	if err != nil || !res.Proven || res.Order.Status != payonce.OrderClosed {
		t.Fatalf("%v %+v", err, res)
	}
	w.want(w.payment("A1", 1), payonce.Cancelled)
	if _, err := w.engine.Pay(context.Background(), w.request("A1", "k2")); codeOf(err) != string(payonce.CodeOrderClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestT01_CloseAgainstPaymentPaidWins(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.pay("A1", "k1")
	w.channel.setAll("action", "paid")
	res, err := w.engine.CloseOrder(context.Background(), w.action("close"), "A1")
	if err != nil || res.Order.Status != payonce.OrderPaid {
		t.Fatalf("%v %+v", err, res.Order)
	}
	w.paidOnce("A1")
}

func TestCloseOrderGoesOnWhenTheChannelIsAway(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.pay("A1", "k1")
	w.channel.fail("query", fault{})
	res, err := w.engine.CloseOrder(context.Background(), w.action("close"), "A1")
	if err != nil || res.Proven || res.Order.Status != payonce.OrderClosing {
		t.Fatalf("%v %+v", err, res)
	}
	w.settle(time.Minute)
	if s := w.order("A1").Order.Status; s != payonce.OrderClosed {
		t.Fatalf("order is %s", s)
	}
}

func TestExpiredOrderIsClosedAtTheChannel(t *testing.T) {
	w := newWorld(t)
	now, _ := w.store.Now(context.Background())
	if _, err := w.engine.CreateOrder(context.Background(), engine.OrderRequest{ActionRequest: w.action("order"), Order: w.key("A1"),
		Amount: 1000, Currency: "USD", Subject: "tea", ExpiresAt: now.Add(10 * time.Minute)}); err != nil {
		t.Fatal(err)
	}
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.pay("A1", "k1")
	w.settle(11 * time.Minute)
	if s := w.order("A1").Order.Status; s != payonce.OrderClosed {
		t.Fatalf("order is %s", s)
	}
	w.want(w.payment("A1", 1), payonce.Cancelled)
}

func TestAbandonedActionIsClosedAfterItsEnd(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.pay("A1", "k1")
	w.settle(29 * time.Minute)
	w.want(w.payment("A1", 1), payonce.Pending)
	w.settle(10 * time.Minute)
	w.want(w.payment("A1", 1), payonce.Cancelled)
}

func TestLastQuestionFindsMoneyThatArrivedAfterTheEnd(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.pay("A1", "k1")
	if _, proven, err := w.engine.Cancel(context.Background(), w.action("cancel"), w.payment("A1", 1).ID); err != nil || !proven {
		t.Fatal(err, proven)
	}
	w.want(w.payment("A1", 1), payonce.Cancelled)
	w.channel.setAll("dead", "paid") // what no rule can prevent
	w.settle(26 * time.Hour)
	w.want(w.payment("A1", 1), payonce.Succeeded)
	w.paidOnce("A1")
}

func TestAmendClosesWhatIsLiveFirst(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.pay("A1", "k1")
	res, err := w.engine.AmendOrder(context.Background(), w.action("amend"), "A1", 1500, "")
	if err != nil || res.Order.Amount != 1500 {
		t.Fatalf("%v %+v", err, res)
	}
	w.want(w.payment("A1", 1), payonce.Cancelled)
	if _, err := w.engine.Pay(context.Background(), w.request("A1", "k2")); codeOf(err) != string(payonce.CodeOrderMismatch) {
		t.Fatalf("got %v", err)
	}
}

func (w *world) action(kind string) engine.ActionRequest {
	return engine.ActionRequest{Scope: store.Scope{Merchant: "m1", Environment: payonce.Test}, Action: kind}
}
