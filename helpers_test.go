package payonce_test

import (
	"fmt"
	"time"

	"github.com/payonce/payonce"
)

// t0 is the time of every test; nothing here reads a clock.
var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	testWindow = time.Minute     // after it a send cannot arrive any more
	testMargin = 2 * time.Minute // of the channel's time beyond dead_at
	testLife   = 30 * time.Minute
)

func lease() payonce.Lease { return payonce.Lease{Owner: "node/1", Until: t0.Add(time.Minute)} }

// Names of the first attempts of an order, made once: millions of scenes use them.
var (
	paymentIDs, numbers = func() (ids, nos []string) {
		for i := range 100 {
			ids, nos = append(ids, fmt.Sprintf("pay_%d", i)), append(nos, fmt.Sprintf("N%019d", i))
		}
		return ids, nos
	}()
	body = []byte("body")
)

// newOrder returns an open order with nothing in it.
func newOrder(policy payonce.Policy, amount payonce.Amount) *payonce.Aggregate {
	n := 0
	return &payonce.Aggregate{
		Order: &payonce.Order{ID: "ord_1", Key: payonce.OrderKey{Merchant: "m", Environment: payonce.Test, OrderNo: "o"},
			Status: payonce.OrderOpen, Amount: amount, Currency: "CNY", Policy: policy, Version: 1},
		Now:   t0,
		NewID: func(prefix string) string { n++; return fmt.Sprintf("%s%d", prefix, n) },
	}
}

// newPayment returns attempt number seq, not yet in its order.
func newPayment(a *payonce.Aggregate, seq int, part string, amount payonce.Amount) *payonce.Payment {
	return &payonce.Payment{
		ID: paymentIDs[seq], OrderID: a.Order.ID, Key: a.Order.Key, Sequence: seq, Part: part,
		Status: payonce.Created, Amount: amount, Currency: a.Order.Currency, Channel: "fake", Account: "acct",
		Method: "qr", Number: numbers[seq], Request: body, DeadAt: a.Now.Add(testLife),
	}
}

// said is a statement of the channel about p as it now is, asked under the
// present fence and version.
func said(p *payonce.Payment, kind payonce.FactKind, source string) payonce.Fact {
	f := payonce.Fact{Kind: kind, Source: source, Number: p.Number, Account: p.Account, Object: p.ObjectID,
		Fence: p.Fence, Version: p.Version, SendWindow: testWindow, EvidenceID: "evd_said", Reason: "reason"}
	if kind == payonce.StateSettled {
		f.Amount, f.Currency, f.PaymentRef = p.Amount, p.Currency, "ref-"+p.ID
	}
	return f
}

// sent puts a payment into the order and gives it its first permit.
func sent(a *payonce.Aggregate, seq int) *payonce.Payment {
	p := newPayment(a, seq, "", a.Order.Amount)
	must(a.AddPayment(p))
	permit(a, p)
	return p
}

func permit(a *payonce.Aggregate, p *payonce.Payment) payonce.Permit {
	got, err := a.Permit(p, lease())
	must(err)
	return got
}

// testDedupe is how long the channel recognises a repeat, testSafety what of it is
// not used, testMemory how long a caller is remembered.
const (
	testDedupe = 24 * time.Hour
	testSafety = time.Hour
	testMemory = 15 * time.Minute
)

// absence is the channel's fresh answer that it has nothing for p.
func absence(p *payonce.Payment) payonce.Fact { return said(p, payonce.StateAbsent, "query") }

// resend repeats a send that may have been lost, after a question.
func resend(a *payonce.Aggregate, p *payonce.Payment) payonce.Permit {
	got, err := a.Resend(p, lease(), absence(p), true, testDedupe)
	must(err)
	return got
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
