package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

// Contract is a store under the part of the suite that needs nothing but package
// store: no SQL, no second connection, no network in between. What only the
// databases have is declared here and tested by [Run].
type Contract struct {
	Name string
	// Open makes an empty store whose clock is moved by the given one.
	Open func(t testing.TB, clock *run.Clock) store.Store
}

// RunContract runs that part of the suite.
func RunContract(t *testing.T, c Contract) {
	for _, k := range []struct {
		name string
		run  func(*testing.T, *bare)
	}{
		{"PaymentFromIntentToAnswer", bareLife},
		{"SlotAndKeyRace", bareRace},
		{"UnitIsAllOrNothing", bareAllOrNothing},
		{"NothingWrittenLeavesNoTrace", bareNoTrace},
		{"WhatTheSchemaRefuses", bareRefusals},
		{"CopiesAreHandedOut", bareCopies},
		{"AllMembersRoundTrip", bareRoundTrip},
		{"EndedContext", bareEndedContext},
		{"QueueFindsWork", bareQueue},
		{"ListsByScopeAndPage", bareLists},
		{"Notices", bareNotices},
		{"Admin", bareAdmin},
		{"TextFromOutside", bareText},
	} {
		t.Run(k.name, func(t *testing.T) {
			clock := &run.Clock{}
			k.run(t, &bare{T: t, Store: c.Open(t, clock), clock: clock})
		})
	}
}

// bare is one fresh store.
type bare struct {
	*testing.T
	store.Store
	clock *run.Clock
}

func (b *bare) write(u *store.Unit) error { return b.Write(context.Background(), []*store.Unit{u})[0] }

func (b *bare) must(u *store.Unit) {
	b.Helper()
	if err := b.write(u); err != nil {
		b.Fatalf("write: %v", err)
	}
}

func (b *bare) order(no string) *store.OrderWithPayments {
	b.Helper()
	o, err := b.Order(b.Context(), orderKey(no))
	if err != nil {
		b.Fatal(err)
	}
	return o
}

func bareLife(t *testing.T, b *bare) {
	var id string
	b.must(pay("o1", "k1", &id))
	b.must(settle("o1", id, "ref1"))
	o := b.order("o1")
	if o.Order.Status != payonce.OrderPaid || o.Order.AmountPaid != 10000 || o.Order.Reserved != 0 || o.Order.Version != 2 {
		t.Fatalf("order: %+v", o.Order)
	}
	if len(o.Payments) != 1 || o.Payments[0].Status != payonce.Succeeded || o.Payments[0].Revision != 2 {
		t.Fatalf("payments: %+v", o.Payments)
	}
	r, err := b.Replay(t.Context(), *recordID("k1"))
	if err != nil || r.Payment.ID != id || r.Answer == nil || r.Answer.HTTPStatus != 201 || r.Order.ID != o.Order.ID || r.Now.IsZero() {
		t.Fatalf("replay: %+v, %v", r, err)
	}
	audit, err := b.Audit(t.Context(), o.Order.ID)
	if err != nil || len(audit) == 0 {
		t.Fatalf("audit: %v, %v", audit, err)
	}
	var head [32]byte
	for i, a := range audit {
		if a.N != int64(i+1) || !payonce.VerifyAudit(head, a.Salt, &a.AuditEntry) {
			t.Fatalf("audit entry %d does not verify", a.N)
		}
		head = a.Hash
	}
	if head != o.Order.AuditHead || o.Order.AuditLength != int64(len(audit)) {
		t.Fatal("the order's audit head is not the last entry")
	}
}

// bareRace: many racers, of which pairs share a key; one attempt per order.
func bareRace(t *testing.T, b *bare) {
	const orders, racers = 8, 8
	var won [orders]int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for r := range racers {
		wg.Go(func() {
			for i := range orders {
				o := (i + r) % orders
				err := b.write(pay(fmt.Sprint("o", o), fmt.Sprintf("k%d-%d", r/2, o), nil))
				if err != nil && !errors.Is(err, payonce.ErrSlotTaken) && !errors.Is(err, errKnown) {
					t.Errorf("racer %d: %v", r, err)
				}
				if err == nil {
					mu.Lock()
					won[o]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for o, n := range won {
		if n != 1 || len(b.order(fmt.Sprint("o", o)).Payments) != 1 {
			t.Errorf("order %d: %d racers were told that they won", o, n)
		}
	}
}

func bareAllOrNothing(t *testing.T, b *bare) {
	var known string
	b.must(pay("known", "k0", &known))
	refuses := errors.New("decided against it")
	units := []*store.Unit{
		pay("new", "k1", nil), broken("bad"), settle("known", known, "ref0"),
		{Order: orderKey("known2"), Create: order("known2"), Decide: func(v *store.View) error { v.Order.Reserved = 77; return refuses }},
		{Order: orderKey("absent"), Decide: func(*store.View) error { t.Error("decided on an absent order"); return nil }},
		{Order: orderKey("panics"), Create: order("panics"), Decide: func(*store.View) error { panic("boom") }},
		pay("new", "k2", nil), pay("o2", "k1", nil),
	}
	results := b.Write(t.Context(), units)
	if results[0] != nil || results[2] != nil {
		t.Fatalf("good units: %v, %v", results[0], results[2])
	}
	for i, want := range map[int]error{1: store.ErrConflict, 3: refuses, 4: store.ErrNotFound, 6: payonce.ErrSlotTaken, 7: errKnown} {
		if !errors.Is(results[i], want) {
			t.Errorf("unit %d: %v, want %v", i, results[i], want)
		}
	}
	if results[5] == nil || !strings.Contains(results[5].Error(), "boom") {
		t.Errorf("panic: %v", results[5])
	}
	list, err := b.Orders(t.Context(), scope, store.OrderFilter{})
	if err != nil || len(list) != 2 || b.order("known").Order.Status != payonce.OrderPaid {
		t.Errorf("%d orders, %v", len(list), err)
	}
	if _, err := b.Replay(t.Context(), *recordID("broken-bad")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the refused unit left its key: %v", err)
	}
}

func bareNoTrace(t *testing.T, b *bare) {
	nothing := &store.Unit{Order: orderKey("o1"), Create: order("o1"), Decide: func(*store.View) error { return nil }}
	for range 2 {
		b.must(nothing)
		o := b.order("o1").Order
		if o.Version != 1 || o.Status != payonce.OrderOpen || o.Subject != order("").Subject || o.CreatedAt.IsZero() {
			t.Fatalf("order: %+v", o)
		}
	}
}

// refusals are changes that never may be written, each on an order with one live
// payment and next to one that is paid.
var refusals = map[string]func(*store.View){
	"number":          func(v *store.View) { v.Payments[0].Number = "X" },
	"request":         func(v *store.View) { v.Payments[0].Request = []byte("other") },
	"amount":          func(v *store.View) { v.Payments[0].Amount = 1 },
	"currency":        func(v *store.View) { v.Payments[0].Currency = "EUR" },
	"account":         func(v *store.View) { v.Payments[0].Account = "X" },
	"left out":        func(v *store.View) { v.Payments = nil },
	"order id":        func(v *store.View) { v.Order.ID = "ord_x" },
	"order policy":    func(v *store.View) { v.Order.Policy = payonce.PolicySplit },
	"room":            func(v *store.View) { v.Order.AmountPaid = 1 },
	"negative sum":    func(v *store.View) { v.Order.AmountSurplus = -1 },
	"order amount":    func(v *store.View) { v.Order.Reserved, v.Order.Amount = 0, 0 },
	"order status":    func(v *store.View) { v.Order.Status = "open" },
	"paid in part":    func(v *store.View) { v.Order.Status = payonce.OrderPaid },
	"no evidence":     func(v *store.View) { v.Payments[0].Status = payonce.Failed },
	"pays, not done":  func(v *store.View) { v.Payments[0].Effective = true },
	"payment status":  func(v *store.View) { v.Payments[0].Status = "Pending" },
	"leased for ever": func(v *store.View) { v.Payments[0].DueAt = time.Time{} },
	"two live":        func(v *store.View) { v.Payments = append(v.Payments, second(v)) },
	"same sequence": func(v *store.View) {
		p := second(v)
		p.Superseded, p.Sequence = true, 1
		v.Payments = append(v.Payments, p)
	},
	"same number": func(v *store.View) {
		p := second(v)
		p.Superseded, p.Number = true, v.Payments[0].Number
		v.Payments = append(v.Payments, p)
	},
	"no fence": func(v *store.View) {
		p := second(v)
		p.Superseded, p.Fence = true, 0
		v.Payments = append(v.Payments, p)
	},
	"object twice":     func(v *store.View) { v.Payments[0].ObjectID = "obj-paid" },
	"charge twice":     func(v *store.View) { v.Charges = append(v.Charges, chargeOf(v, "ref-paid")) },
	"unproven charge":  func(v *store.View) { c := chargeOf(v, "r"); c.EvidenceID = ""; v.Charges = append(v.Charges, c) },
	"kind of charge":   func(v *store.View) { c := chargeOf(v, "r"); c.Kind = "good"; v.Charges = append(v.Charges, c) },
	"key twice":        func(v *store.View) { v.NewKey = keyOf(v, "k-paid") },
	"key of nothing":   func(v *store.View) { v.NewKey = keyOf(v, "fresh"); v.NewKey.PaymentID = "" },
	"event twice":      func(v *store.View) { e := eventOf(v); v.Outbox = []store.OutboxEvent{e, e} },
	"event known":      func(v *store.View) { e := eventOf(v); e.Subject, e.Change = "s", 7; v.Outbox = []store.OutboxEvent{e} },
	"evidence unnamed": func(v *store.View) { v.Evidence = []store.Evidence{{OrderID: v.Order.ID}} },
	"notice twice": func(v *store.View) {
		v.NewNotice = &store.Notice{NoticeID: store.NoticeID{Account: "acc1", EventID: "e1"}, Status: store.NoticeApplied}
	},
	"status of an answer": func(v *store.View) {
		v.Answers = []store.Answer{{PaymentID: v.Payments[0].ID, Status: payonce.Pending, HTTPStatus: 99}}
	},
}

func second(v *store.View) *payonce.Payment {
	p := payment(v, "", v.Order.Amount)
	p.Fence, p.Version = 1, 1
	return p
}

func chargeOf(v *store.View, ref string) *payonce.Charge {
	return &payonce.Charge{ID: v.NewID("chg_"), OrderID: v.Order.ID, PaymentID: v.Payments[0].ID, Account: "acc1", PaymentRef: ref,
		Amount: 1, Currency: "CNY", Kind: payonce.ChargeSurplus, EvidenceID: "evd_1"}
}

func keyOf(v *store.View, key string) *store.KeyRecord {
	return &store.KeyRecord{ID: *recordID(key), Merchant: scope.Merchant, Environment: scope.Environment, Kind: "payment", OrderID: v.Order.ID, PaymentID: v.Payments[0].ID}
}

func eventOf(v *store.View) store.OutboxEvent {
	return store.OutboxEvent{ID: v.NewID(payonce.PrefixEvent), Order: v.Order.Key, Type: "t", Subject: v.Order.ID, Change: 1}
}

func bareRefusals(t *testing.T, b *bare) {
	var paid string
	b.must(pay("paid", "k-paid", &paid))
	b.must(settle("paid", paid, "ref-paid"))
	b.must(&store.Unit{Order: orderKey("paid"), Notice: &store.NoticeID{Account: "acc1", EventID: "e1"}, Decide: func(v *store.View) error {
		v.Payments[0].ObjectID = "obj-paid"
		e := eventOf(v)
		e.Subject, e.Change = "s", 7
		v.Outbox = []store.OutboxEvent{e}
		v.NewNotice = &store.Notice{NoticeID: store.NoticeID{Account: "acc1", EventID: "e1"}, Status: store.NoticeApplied}
		return nil
	}})
	b.must(pay("o1", "k1", nil))
	before := b.order("o1")
	for name, change := range refusals {
		if err := b.write(&store.Unit{Order: orderKey("o1"), Decide: func(v *store.View) error { change(v); return nil }}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
		if after := b.order("o1"); !reflect.DeepEqual(before, after) {
			t.Fatalf("%s: a refused unit left a trace", name)
		}
	}
	err := b.write(&store.Unit{Order: orderKey("paid"), Decide: func(v *store.View) error { v.Charges[0].PaymentRef = "x"; return nil }})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("a charge got another name: %v", err)
	}
}

// bareCopies: nobody outside a unit can change what is stored.
func bareCopies(t *testing.T, b *bare) {
	var kept *payonce.Payment
	u := pay("o1", "k1", nil)
	inner := u.Decide
	u.Decide = func(v *store.View) error { err := inner(v); kept = v.Payments[0]; return err }
	b.must(u)
	before := b.order("o1")
	kept.Permits[0].End, kept.Status, kept.Asks = payonce.EndRefused, payonce.Failed, 9
	read := b.order("o1")
	read.Payments[0].Permits[0].End, read.Order.AmountPaid = payonce.EndAccepted, 5
	_ = b.write(&store.Unit{Order: orderKey("o1"), Decide: func(v *store.View) error {
		v.Payments[0].Permits[0].End, v.Order.Reserved = payonce.EndNotSent, 0
		return errKnown
	}})
	same(t, "order", b.order("o1"), before)
}

func bareRoundTrip(t *testing.T, b *bare) {
	fill := &filler{t: t}
	p, c, k := filled[payonce.Payment](fill), filled[payonce.Charge](fill), filled[store.KeyRecord](fill)
	ev, an := filled[store.Evidence](fill), filled[store.Answer](fill)
	var o *payonce.Order
	u := &store.Unit{Order: orderKey("o1"), Create: order("o1"), Key: recordID("k"), Actor: "actor", Salt: salt()}
	u.Decide = func(v *store.View) error {
		o = v.Order
		id, key, currency := o.ID, o.Key, o.Currency
		fill.fill(reflect.ValueOf(o).Elem())
		o.ID, o.Key, o.Currency, o.Policy, o.Status = id, key, currency, payonce.PolicySingle, payonce.OrderPartiallyPaid
		o.Amount, o.AmountPaid, o.Reserved = 1000, 400, 500
		p.OrderID, p.Key, p.Currency, p.Superseded, p.Status = id, key, "JPY", false, payonce.Succeeded
		c.OrderID, c.PaymentID, c.Currency, c.Kind = id, p.ID, "KWD", payonce.ChargeEffective
		k.ID, k.OrderID, k.PaymentID, k.Environment = *recordID("k"), id, p.ID, payonce.Live
		ev.OrderID, ev.PaymentID = id, p.ID
		an.PaymentID, an.Status, an.HTTPStatus = p.ID, p.Status, 201
		v.Payments, v.Charges = []*payonce.Payment{p}, []*payonce.Charge{c}
		v.NewKey, v.Evidence, v.Answers = k, []store.Evidence{*ev}, []store.Answer{*an}
		v.Changes = []payonce.Change{*filled[payonce.Change](fill)}
		return nil
	}
	b.must(u)
	b.must(&store.Unit{Order: u.Order, Key: u.Key, Decide: func(v *store.View) error {
		same(t, "order under the lock", v.Order, o)
		same(t, "payment under the lock", v.Payments, []*payonce.Payment{p})
		same(t, "charge under the lock", v.Charges, []*payonce.Charge{c})
		same(t, "key under the lock", v.Key, k)
		return nil
	}})
	got := b.order("o1")
	same(t, "order", got.Order, o)
	same(t, "payment", got.Payments[0], p)
	r, err := b.Replay(t.Context(), k.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "key", &r.Key, k)
	same(t, "answer", r.Answer, an)
	list, err := b.Evidence(t.Context(), store.Scope{Merchant: p.Key.Merchant, Environment: p.Key.Environment}, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "evidence", list, []store.Evidence{*ev})
	found, err := b.Find(t.Context(), p.Account, "", p.ObjectID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "payment by its object", found, p)
	b.roundTripChanges(fill, u.Order, p)
}

// roundTripChanges: whatever may change does, one member at a time, and is not
// forgotten when it is the only one.
func (b *bare) roundTripChanges(fill *filler, key payonce.OrderKey, p *payonce.Payment) {
	fixed := []string{"ID", "OrderID", "Key", "Sequence", "Part", "Amount", "Currency", "Channel", "Account", "Method", "Number", "Request",
		"Inputs", "CreatedAt", "Status", "Effective", "Superseded", "Revision"}
	r := reflect.TypeFor[payonce.Payment]()
	for i := range r.NumField() {
		if slices.Contains(fixed, r.Field(i).Name) {
			continue
		}
		var want any
		b.must(&store.Unit{Order: key, Decide: func(v *store.View) error {
			m := reflect.ValueOf(v.Payment(p.ID)).Elem().Field(i)
			if m.Kind() == reflect.Bool {
				m.SetBool(!m.Bool())
			} else {
				fill.fill(m)
			}
			want = m.Interface()
			return nil
		}})
		got := b.order(key.OrderNo).Payments[0]
		same(b.T, r.Field(i).Name, reflect.ValueOf(got).Elem().Field(i).Interface(), want)
	}
}

func bareEndedContext(t *testing.T, b *bare) {
	ctx, cancel := context.WithCancel(t.Context())
	u := pay("o1", "k1", nil)
	inner := u.Decide
	u.Decide = func(v *store.View) error { cancel(); return inner(v) }
	if err := b.Write(ctx, []*store.Unit{u})[0]; !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := b.Order(t.Context(), orderKey("o1")); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("the order was made: %v", err)
	}
	b.must(pay("o1", "k1", nil))
}
