package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// scope is the merchant and environment of the suite.
var scope = store.Scope{Merchant: "m1", Environment: payonce.Test}

// fixture is one fresh database and what cases make in it.
type fixture struct {
	testing.TB
	*sqlstore.Store
	url    string
	engine Engine
	clock  *run.Clock
}

var (
	serial atomic.Int64
	live   = run.NewLive(nil)
)

func orderKey(no string) payonce.OrderKey {
	return payonce.OrderKey{Merchant: scope.Merchant, Environment: scope.Environment, OrderNo: no}
}

// newID makes a unique id outside of a transaction.
func newID(prefix string) string {
	var random [10]byte
	live.Random(random[:])
	return payonce.NewID(prefix, live.Now(), random)
}

// order is an order of 100.00 CNY that is to be made.
func order(no string) *payonce.Order {
	return &payonce.Order{ID: newID(payonce.PrefixOrder), Key: orderKey(no), Amount: 10000, Currency: "CNY",
		Subject: "Tea 茶 🍵", Policy: payonce.PolicySingle}
}

// recordID makes an idempotency record id out of a key.
func recordID(key string) *[32]byte {
	h := sha256.Sum256([]byte(key))
	return &h
}

func salt() (s [16]byte) {
	live.Random(s[:])
	return s
}

// payment is an attempt on the whole order of the view.
func payment(v *store.View, part string, amount payonce.Amount) *payonce.Payment {
	seq := v.Order.LastSequence + 1
	return &payonce.Payment{
		ID: v.NewID(payonce.PrefixPayment), OrderID: v.Order.ID, Key: v.Order.Key, Sequence: seq, Part: part,
		Status: payonce.Created, Amount: amount, Currency: v.Order.Currency, Channel: "alipay", Account: "acc1", Method: "qr",
		Number:  payonce.ChannelNumber("installation", v.Order.Key, seq),
		Request: []byte(`{"a":1}`), DeadAt: v.Now.Add(15 * time.Minute),
	}
}

// pay is a unit like the first transaction of a payment: record, order, payment,
// permit, event, audit.
func pay(no, key string, made *string) *store.Unit {
	u := &store.Unit{Order: orderKey(no), Create: order(no), Key: recordID(key), Actor: "request", Salt: salt()}
	u.Decide = func(v *store.View) error {
		if v.Key != nil {
			return errKnown
		}
		p := payment(v, "", v.Order.Amount)
		if err := v.AddPayment(p); err != nil {
			return err
		}
		if _, err := v.Permit(p, payonce.Lease{Owner: "node1/1", Until: v.Now.Add(time.Minute)}); err != nil {
			return err
		}
		v.NewKey = &store.KeyRecord{ID: *u.Key, Merchant: scope.Merchant, Environment: scope.Environment, Kind: "payment",
			OrderID: v.Order.ID, PaymentID: p.ID, FPVersion: 1, FPSecret: "s1", FP: sha256.Sum256([]byte(key)), AnswerUntil: v.Now.Add(20 * time.Second)}
		outbox(v)
		if made != nil {
			*made = p.ID
		}
		return nil
	}
	return u
}

var errKnown = fmt.Errorf("key is known")

// settle is a unit like the second transaction: evidence, success, events,
// answer. The payment is the order's first when it is not named.
func settle(no, payment, ref string) *store.Unit {
	u := &store.Unit{Order: orderKey(no), Actor: "request", Salt: salt()}
	u.Decide = func(v *store.View) error {
		p := v.Payment(payment)
		if payment == "" {
			p = v.Payments[0]
		}
		if p == nil {
			return store.ErrNotFound
		}
		e := store.Evidence{ID: v.NewID(payonce.PrefixEvidence), OrderID: v.Order.ID, PaymentID: p.ID, Kind: "settled", Source: "begin",
			Number: p.Number, Permit: 1, Fence: p.Fence, Raw: []byte("paid")}
		v.Evidence = append(v.Evidence, e)
		v.Apply(p, payonce.Fact{Kind: payonce.StateSettled, Source: "begin", Number: p.Number, Account: p.Account, PaymentRef: ref,
			Amount: p.Amount, Currency: p.Currency, Permit: 1, Fence: p.Fence, EvidenceID: e.ID})
		outbox(v)
		v.Answers = append(v.Answers, store.Answer{PaymentID: p.ID, Status: p.Status, HTTPStatus: 201, ContentType: "application/json", Body: []byte("{}")})
		return nil
	}
	return u
}

// finished is a unit that ends the order's first payment: only then may it never
// be due.
func finished(no string) *store.Unit {
	u := settle(no, "", "ref of "+no)
	inner := u.Decide
	u.Decide = func(v *store.View) error {
		if err := inner(v); err != nil {
			return err
		}
		v.Release(v.Payments[0], time.Time{})
		return nil
	}
	return u
}

// outbox turns the aggregate's events into rows, as the engine does.
func outbox(v *store.View) {
	for _, e := range v.Events {
		data, _ := json.Marshal(e)
		v.Outbox = append(v.Outbox, store.OutboxEvent{ID: v.NewID(payonce.PrefixEvent), Order: v.Order.Key, Type: e.Type, Subject: e.Subject, Change: e.Change, Data: data})
	}
	v.Events = nil
}

// write runs one unit.
func (f *fixture) write(u *store.Unit) error {
	return f.Write(context.Background(), []*store.Unit{u})[0]
}

// must runs one unit that has to succeed.
func (f *fixture) must(u *store.Unit) {
	f.Helper()
	if err := f.write(u); err != nil {
		f.Fatalf("write: %v", err)
	}
}

// count counts rows.
func (f *fixture) count(query string, args ...any) int {
	f.Helper()
	var n int
	if err := f.DB().QueryRow(f.Dialect().Rebind(query), args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return n
}
