package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// broken is a unit that a CHECK refuses after everything else was written.
func broken(no string) *store.Unit {
	u := pay(no, "broken-"+no, nil)
	decide := u.Decide
	u.Decide = func(v *store.View) error {
		err := decide(v)
		v.Order.Reserved = v.Order.Amount + 1
		return err
	}
	return u
}

// testAllOrNothing: the unit that raises takes nothing with it, the others of its
// batch are written once although they were decided twice, and answers of units
// that decided against writing stand.
func testAllOrNothing(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	var known string
	f.must(pay("known", "k0", &known))
	calls := 0
	good := settle("known", known, "ref0")
	inner := good.Decide
	good.Decide = func(v *store.View) error { calls++; return inner(v) }
	refuses := errors.New("decided against it")
	against := &store.Unit{Order: orderKey("known2"), Create: order("known2"), Decide: func(v *store.View) error {
		v.Order.Reserved = 77 // must not be written
		v.Evidence = append(v.Evidence, store.Evidence{ID: "evd_x", OrderID: v.Order.ID})
		return refuses
	}}
	absent := &store.Unit{Order: orderKey("absent"), Decide: func(*store.View) error { t.Error("decided on an absent order"); return nil }}
	panics := &store.Unit{Order: orderKey("panics"), Create: order("panics"), Decide: func(*store.View) error { panic("boom") }}
	var fresh string
	results := f.Write(t.Context(), []*store.Unit{pay("new", "k1", &fresh), broken("bad"), good, against, absent, panics})

	if results[0] != nil || results[2] != nil {
		t.Fatalf("good units: %v, %v", results[0], results[2])
	}
	if !errors.Is(results[1], store.ErrConflict) {
		t.Errorf("refused by a CHECK: %v", results[1])
	}
	if !errors.Is(results[3], refuses) || !errors.Is(results[4], store.ErrNotFound) {
		t.Errorf("decided against, absent: %v, %v", results[3], results[4])
	}
	if results[5] == nil || !strings.Contains(results[5].Error(), "boom") {
		t.Errorf("panic: %v", results[5])
	}
	if calls != 2 {
		t.Errorf("the settling unit was decided %d times; the batch was not taken apart", calls)
	}
	for query, want := range map[string]int{
		"SELECT COUNT(*) FROM orders": 2, "SELECT COUNT(*) FROM payments": 2, "SELECT COUNT(*) FROM idempotency_keys": 2,
		"SELECT COUNT(*) FROM evidence": 1, "SELECT COUNT(*) FROM charges": 1, "SELECT COUNT(*) FROM answers": 1,
		"SELECT COUNT(*) FROM events WHERE type = 'payment.succeeded'": 1, "SELECT COUNT(*) FROM events WHERE type = 'order.paid'": 1,
	} {
		if n := f.count(query); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
	if p, err := f.Payment(t.Context(), scope, fresh); err != nil || p.Status != payonce.Processing {
		t.Errorf("the id that the decision kept is not the one stored: %v", err)
	}
}

// testNoTrace: a unit that changes nothing does not even move the version; one
// that makes its order does.
func testNoTrace(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	nothing := &store.Unit{Order: orderKey("o1"), Create: order("o1"), Decide: func(*store.View) error { return nil }}
	f.must(nothing)
	first, err := f.Order(t.Context(), orderKey("o1"))
	if err != nil || first.Order.Version != 1 {
		t.Fatalf("the order was not made: %+v %v", first, err)
	}
	f.must(nothing)
	second, err := f.Order(t.Context(), orderKey("o1"))
	if err != nil || second.Order.Version != 1 {
		t.Fatalf("a unit that writes nothing left a trace: %+v %v", second, err)
	}
	if first.Order.Subject != order("").Subject || first.Order.Status != payonce.OrderOpen || first.Order.CreatedAt.IsZero() {
		t.Fatalf("order: %+v", first.Order)
	}
}

// testFixedColumns: number, body, amount, currency and account of a payment never
// change, nor does a payment leave its order.
func testFixedColumns(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	f.must(pay("o1", "k1", nil))
	for name, change := range map[string]func(*store.View){
		"number":   func(v *store.View) { v.Payments[0].Number = "X" },
		"request":  func(v *store.View) { v.Payments[0].Request = []byte("other") },
		"amount":   func(v *store.View) { v.Payments[0].Amount = 1 },
		"account":  func(v *store.View) { v.Payments[0].Account = "X" },
		"left out": func(v *store.View) { v.Payments = nil },
		"order id": func(v *store.View) { v.Order.ID = "ord_x" },
	} {
		err := f.write(&store.Unit{Order: orderKey("o1"), Decide: func(v *store.View) error { change(v); return nil }})
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// testStalePicture: a worker that found a payment due looks again under the lock
// and sees that it has finished meanwhile.
func testStalePicture(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	var id string
	f.must(pay("o1", "k1", &id))
	f.clock.SetOffset(time.Hour)
	due, err := f.DuePayments(t.Context(), 10)
	if err != nil || len(due) != 1 || due[0].PaymentID != id || due[0].Order != orderKey("o1") {
		t.Fatalf("due: %v %v", due, err)
	}
	f.must(settle("o1", id, "ref1"))
	late := errors.New("finished meanwhile")
	err = f.write(&store.Unit{Order: due[0].Order, Decide: func(v *store.View) error {
		p := v.Payment(id)
		if p.Status == payonce.Succeeded {
			return late
		}
		v.Claim(p, payonce.Lease{Owner: "w", Until: v.Now}, "lease-over")
		return nil
	}})
	if !errors.Is(err, late) {
		t.Fatalf("got %v", err)
	}
}

// testRogueWriter: a row that somebody changed without the order's lock is not
// overwritten; the unit runs again on a fresh picture and leaves nothing of its
// first run.
func testRogueWriter(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: nobody can write between picture and update")
	}
	f := e.open(t, sqlstore.Options{})
	var id string
	f.must(pay("o1", "k1", &id))
	calls := 0
	u := touch("o1")
	inner := u.Decide
	u.Decide = func(v *store.View) error {
		if calls++; calls == 1 {
			if _, err := f.DB().Exec(f.Dialect().Rebind("UPDATE payments SET asks = 40, revision = revision + 1 WHERE id = ?"), id); err != nil {
				t.Error(err)
			}
		}
		return inner(v)
	}
	f.must(u)
	p, err := f.Payment(t.Context(), scope, id)
	if err != nil || calls != 2 || p.Asks != 41 || p.Revision != 3 || f.count("SELECT COUNT(*) FROM evidence") != 1 {
		t.Fatalf("calls %d, payment %+v, %v", calls, p, err)
	}
}

// testDuplicatesInBatch: a batch that names an order or a key twice against the
// contract is still written unit after unit.
func testDuplicatesInBatch(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	results := f.Write(t.Context(), []*store.Unit{pay("o1", "k1", nil), pay("o1", "k2", nil), pay("o2", "k1", nil), pay("o3", "k3", nil)})
	if results[0] != nil || !errors.Is(results[1], payonce.ErrSlotTaken) || !errors.Is(results[2], errKnown) || results[3] != nil {
		t.Fatalf("results: %v", results)
	}
}

// testEndedContext: a context that ends before COMMIT writes nothing and leaves
// the pool usable.
func testEndedContext(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{MaxConns: 2})
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		u := pay("o1", "k1", nil)
		inner := u.Decide
		u.Decide = func(v *store.View) error { cancel(); return inner(v) }
		err := f.Write(ctx, []*store.Unit{u})[0]
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
	if n := f.count("SELECT COUNT(*) FROM orders"); n != 0 {
		t.Fatalf("%d orders", n)
	}
	f.must(pay("o1", "k1", nil))
}
