package engine_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

func codeOf(err error) string {
	var pe *payonce.Error
	var ip *idempotency.Problem
	switch {
	case errors.As(err, &pe):
		return string(pe.Code)
	case errors.As(err, &ip):
		return ip.Code
	}
	return ""
}

func TestF1_SameRequestTwiceIsOnePayment(t *testing.T) {
	w := newWorld(t)
	a := w.pay("A1", "k1")
	w.want(a.Payment, payonce.Succeeded)
	if a.Replayed || a.Stored == nil {
		t.Fatalf("first answer: replayed %v, stored %v", a.Replayed, a.Stored)
	}
	b := w.pay("A1", "k1")
	if !b.Replayed || b.Payment.ID != a.Payment.ID || string(b.Stored.Body) != string(a.Stored.Body) {
		t.Fatal("the second answer is not the first one replayed")
	}
	if n := w.channel.count("begin"); n != 1 {
		t.Fatalf("%d money calls, want 1", n)
	}
	w.paidOnce("A1")
}

func TestG03_LostAnswerIsUnknownNotFailed(t *testing.T) {
	for _, effect := range []bool{true, false} {
		w := newWorld(t)
		w.channel.fail("begin", fault{effect: effect})
		w.want(w.pay("A1", "k1").Payment, payonce.Unknown)
		w.settle(5 * time.Minute)
		w.want(w.payment("A1", 1), payonce.Succeeded)
		w.paidOnce("A1")
		w.sameBytes()
	}
}

func TestA03_LostPrepareIsRepeatedUnderTheSameKey(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("prepare", fault{effect: true}, fault{effect: true})
	w.want(w.pay("A1", "k1").Payment, payonce.Unknown)
	w.settle(5 * time.Minute)
	w.paidOnce("A1")
	if n := len(w.channel.objects); n != 1 {
		t.Fatalf("%d objects at the channel, want 1", n)
	}
}

func TestSpentKeyIsNotRepeatedForEver(t *testing.T) {
	w := newWorld(t)
	spent := channel.Answer{Fact: payonce.Fact{Reason: "http-5xx"}, KeySpent: true}
	w.channel.fail("prepare", fault{answer: &spent})
	w.channel.fail("begin", fault{answer: &spent})
	w.pay("A1", "k1")
	w.settle(5 * time.Minute)
	w.paidOnce("A1")
	if p := w.payment("A1", 1); p.Prepares != 2 || p.SendKey != 2 {
		t.Fatalf("keys %d and %d, want 2 and 2", p.Prepares, p.SendKey)
	}
}

func TestDeclineIsClosedBeforeTheOrderIsFree(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "declined"})
	res := w.pay("A1", "k1")
	w.want(res.Payment, payonce.Failed)
	if res.Payment.Failure == nil || res.Payment.Failure.ChannelCode != "generic_decline" || w.channel.count("close") != 1 {
		t.Fatalf("failure %+v after %d closes", res.Payment.Failure, w.channel.count("close"))
	}
	again := w.pay("A1", "k2")
	if again.Payment.Sequence != 2 {
		t.Fatalf("sequence %d, want 2", again.Payment.Sequence)
	}
	w.paidOnce("A1")
}

func TestDeclineWhoseCloseIsLostStaysLive(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "declined"})
	w.channel.fail("close", fault{effect: false})
	w.want(w.pay("A1", "k1").Payment, payonce.Unknown)
	w.settle(5 * time.Minute)
	w.want(w.payment("A1", 1), payonce.Failed)
	if w.order("A1").Order.Reserved != 0 {
		t.Fatal("the slot was not freed")
	}
}

func TestR08_OtherKeyConvergesOnALiveAttempt(t *testing.T) {
	w := newWorld(t)
	w.channel.entered, w.channel.hold = make(chan string, 10), make(chan struct{})
	first := make(chan *engine.Result, 1)
	go func() { first <- w.pay("A1", "k1") }()
	for s := range w.channel.entered {
		if s == "begin" {
			break
		}
	}
	b := w.pay("A1", "k2")
	if !b.Converged || b.Replayed {
		t.Fatalf("converged %v replayed %v", b.Converged, b.Replayed)
	}
	w.want(b.Payment, payonce.Processing)
	_, err := w.engine.Pay(context.Background(), w.request("A1", "k1"))
	if codeOf(err) != idempotency.CodeInProgress {
		t.Fatalf("twin in the call: %v", err)
	}
	close(w.channel.hold)
	if a := <-first; a.Payment.ID != b.Payment.ID {
		t.Fatal("two payments")
	}
	if again := w.pay("A1", "k2"); !again.Replayed || again.Payment.Status != payonce.Succeeded {
		t.Fatal("the converged key does not show the payment")
	}
	w.paidOnce("A1")
}

func TestG01_ParallelTwinsChargeOnce(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			key := "same"
			if i%2 == 0 {
				key = string(rune('a' + i))
			}
			_, err := w.engine.Pay(context.Background(), w.request("A1", key))
			if err != nil && codeOf(err) != idempotency.CodeInProgress && codeOf(err) != string(payonce.CodeOrderAlreadyPaid) {
				t.Errorf("twin: %v", err)
			}
		}()
	}
	wg.Wait()
	w.paidOnce("A1")
	if n := w.channel.count("begin"); n != 1 {
		t.Fatalf("%d money calls, want 1", n)
	}
}

func TestI04_SameKeyOtherRequestIsRefused(t *testing.T) {
	w := newWorld(t)
	w.pay("A1", "k1")
	_, err := w.engine.Pay(context.Background(), w.request("A2", "k1"))
	if codeOf(err) != idempotency.CodeKeyReused {
		t.Fatalf("got %v", err)
	}
	if w.channel.count("prepare") != 1 {
		t.Fatal("the second request reached the channel")
	}
	if _, err := w.store.Order(context.Background(), w.key("A2")); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("the refused request left an order: %v", err)
	}
}

func TestA08_PaidOrderRefusesAnotherPayment(t *testing.T) {
	w := newWorld(t)
	w.pay("A1", "k1")
	_, err := w.engine.Pay(context.Background(), w.request("A1", "k2"))
	var ref *engine.Refusal
	if codeOf(err) != string(payonce.CodeOrderAlreadyPaid) || !errors.As(err, &ref) || ref.Payment == nil || !ref.Payment.Effective {
		t.Fatalf("got %v", err)
	}
}

func TestSwitchOfCardClosesTheOldAttemptFirst(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.want(w.pay("A1", "k1").Payment, payonce.Pending)
	r := w.request("A1", "k2")
	r.Payer.PaymentMethod = "pm_other"
	res, err := w.engine.Pay(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	w.want(res.Payment, payonce.Succeeded)
	w.want(w.payment("A1", 1), payonce.Cancelled)
	if w.payment("A1", 1).EvidenceID == "" {
		t.Fatal("cancelled without evidence")
	}
	w.paidOnce("A1")
}

func TestSwitchLosesToAPaymentThatWasFaster(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.pay("A1", "k1")
	w.channel.setAll("action", "paid")
	r := w.request("A1", "k2")
	r.Payer.PaymentMethod = "pm_other"
	_, err := w.engine.Pay(context.Background(), r)
	if codeOf(err) != string(payonce.CodeOrderAlreadyPaid) {
		t.Fatalf("got %v", err)
	}
	w.paidOnce("A1")
}

func TestSwitchIsRefusedWhileTheOldAttemptCannotBeClosed(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	w.pay("A1", "k1")
	w.channel.fail("query", fault{})
	r := w.request("A1", "k2")
	r.Payer.PaymentMethod = "pm_other"
	_, err := w.engine.Pay(context.Background(), r)
	var ref *engine.Refusal
	if codeOf(err) != string(payonce.CodeOutcomeUnknown) || !errors.As(err, &ref) || ref.ProvableAt.IsZero() || ref.Why == "" {
		t.Fatalf("got %v", err)
	}
	// The payer may go back to the first card: nothing was sent to take it away.
	back := w.pay("A1", "k3")
	if !back.Converged || back.Payment.Sequence != 1 || back.Order.Shows(back.Payment, back.Payment.CreatedAt) == nil {
		t.Fatalf("converged %v on %d", back.Converged, back.Payment.Sequence)
	}
}

func TestCancelDuringACallOutlivesItsRequest(t *testing.T) {
	w := newWorld(t)
	w.channel.fail("begin", fault{effect: true, state: "action"})
	release := w.abandon("A1", "k1", "begin")
	done := make(chan bool, 1)
	id := w.payment("A1", 1).ID
	go func() {
		_, proven, err := w.engine.Cancel(context.Background(), w.action("cancel"), id)
		if err != nil {
			t.Error(err)
		}
		done <- proven
	}()
	for !w.payment("A1", 1).GivenUp {
		runtime.Gosched() // the wish is committed before anything is waited for
	}
	release()
	if !<-done {
		t.Error("not proven")
	}
	w.want(w.payment("A1", 1), payonce.Cancelled)
}

func TestReplayedAmendChangesNothing(t *testing.T) {
	w := newWorld(t)
	key := func(s string) engine.ActionRequest {
		a, k := w.action("amend"), sha256.Sum256([]byte(s))
		a.Key, a.Fingerprint = &k, idempotency.Fingerprint{Version: 1, Secret: "s1", Sum: k}
		return a
	}
	ctx := context.Background()
	if _, err := w.engine.CreateOrder(ctx, engine.OrderRequest{ActionRequest: w.action("order"), Order: w.key("A1"), Amount: 300, Currency: "USD", Subject: "tea"}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		key    string
		amount payonce.Amount
		want   payonce.Amount
	}{{"k1", 500, 500}, {"k2", 700, 700}, {"k1", 500, 700}} {
		res, err := w.engine.AmendOrder(ctx, key(step.key), "A1", step.amount, "")
		if err != nil || res.Order.Amount != step.want {
			t.Fatalf("%s: %v %+v", step.key, err, res)
		}
	}
}

func TestKnownKeyIsAnsweredWhateverBecameOfItsAccount(t *testing.T) {
	w := newWorld(t)
	w.pay("A1", "k1")
	r := w.request("A1", "k1")
	r.Account = "gone"
	res, err := w.engine.Pay(context.Background(), r)
	if err != nil || !res.Replayed {
		t.Fatal(err)
	}
}

func TestCreatedPastItsEndGivesWayToANewAttempt(t *testing.T) {
	w := newWorld(t)
	no := channel.Answer{Fact: payonce.Fact{Kind: payonce.StateNotSent, Reason: "dial"}}
	w.channel.fail("prepare", fault{answer: &no})
	w.want(w.pay("A1", "k1").Payment, payonce.Created)
	w.clock.SetOffset(31 * time.Minute)
	res := w.pay("A1", "k2")
	if res.Converged || res.Payment.Sequence != 2 {
		t.Fatalf("sequence %d", res.Payment.Sequence)
	}
	w.paidOnce("A1")
	if ev, err := w.store.Evidence(context.Background(), store.Scope{Merchant: "m1", Environment: payonce.Test}, w.payment("A1", 1).ID); err != nil || ev[len(ev)-1].ID != w.payment("A1", 1).EvidenceID {
		t.Fatalf("the proof is not stored: %v", err)
	}
}

func TestRespondAsyncIsDoneByAWorker(t *testing.T) {
	w := newWorld(t)
	r := w.request("A1", "k1")
	r.Prefer.RespondAsync = true
	res, err := w.engine.Pay(context.Background(), r)
	if err != nil || !res.Async || res.Payment.Status != payonce.Created {
		t.Fatalf("%v %+v", err, res)
	}
	w.settle(time.Second)
	w.paidOnce("A1")
}

func TestNotSentMayRunAgainUnderTheSameKey(t *testing.T) {
	w := newWorld(t)
	no := channel.Answer{Fact: payonce.Fact{Kind: payonce.StateNotSent, Reason: "dial"}}
	w.channel.fail("prepare", fault{answer: &no})
	w.want(w.pay("A1", "k1").Payment, payonce.Created)
	res := w.pay("A1", "k1")
	w.want(res.Payment, payonce.Succeeded)
	w.channel.fail("begin", fault{answer: &no})
	w.want(w.pay("A2", "k2").Payment, payonce.Created)
	w.pay("A2", "k2")
	if w.channel.charges() != 2 {
		t.Fatal("two orders, two charges")
	}
}

func TestNotSentWithoutACallerEndsCancelled(t *testing.T) {
	w := newWorld(t)
	no := channel.Answer{Fact: payonce.Fact{Kind: payonce.StateNotSent, Reason: "dial"}}
	for range 40 {
		w.channel.fail("prepare", fault{answer: &no})
	}
	w.pay("A1", "k1")
	w.settle(time.Hour)
	w.want(w.payment("A1", 1), payonce.Cancelled)
	if w.channel.charges() != 0 {
		t.Fatal("charged")
	}
}
