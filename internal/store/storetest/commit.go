package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// through opens the fixture's database by way of a proxy.
func (f *fixture) through(o sqlstore.Options) (*sqlstore.Store, *proxy) {
	f.Helper()
	u, err := url.Parse(f.url)
	if err != nil {
		f.Fatal(err)
	}
	p := newProxy(f.TB, u.Host)
	u.Host = p.ln.Addr().String()
	s, err := f.engine.Open(context.Background(), u.String(), o)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	return s, p
}

// testLostCommit: whatever happens to a COMMIT and its answer, Write says the
// truth, and there is exactly one effect: the one that the decision's own
// pointers show.
func testLostCommit(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there is no network between Write and COMMIT")
	}
	f := e.open(t, sqlstore.Options{})
	s, p := f.through(sqlstore.Options{MaxConns: 2})
	for how, name := range map[cut]string{cutBefore: "before", cutAfter: "after", cutSwallowed: "swallowed", cutLate: "late"} {
		committed := how == cutAfter || how == cutLate
		t.Run(name, func(t *testing.T) {
			lostNewOrders(t, f, s, p, how, committed)
			lostKnownOrder(t, f, s, p, how, committed)
			lostLease(t, f, s, p, how, committed)
		})
	}
	if p.cuts != 12 {
		t.Errorf("%d commits were cut, want 12", p.cuts)
	}
}

// lostNewOrders: a batch that makes three orders, which nobody else can see yet.
func lostNewOrders(t *testing.T, f *fixture, s *sqlstore.Store, p *proxy, how cut, committed bool) {
	p.arm(how, false)
	var units []*store.Unit
	var ids [3]string
	var calls [3]int
	for i := range ids {
		no := fmt.Sprintf("new-%d-%d", how, i)
		u := pay(no, "k"+no, &ids[i])
		inner := u.Decide
		u.Decide = func(v *store.View) error { calls[i]++; return inner(v) }
		units = append(units, u)
	}
	for i, err := range s.Write(t.Context(), units) {
		o, readErr := f.Order(t.Context(), units[i].Order)
		switch {
		case err != nil || readErr != nil:
			t.Errorf("unit %d: %v, %v", i, err, readErr)
		case len(o.Payments) != 1 || o.Payments[0].ID != ids[i]:
			t.Errorf("unit %d: stored %+v, the decision shows %s", i, o.Payments, ids[i])
		case committed && calls[i] != 1:
			t.Errorf("unit %d was committed, and decided %d times", i, calls[i])
		}
	}
}

// lostKnownOrder: a success on an order that exists.
func lostKnownOrder(t *testing.T, f *fixture, s *sqlstore.Store, p *proxy, how cut, committed bool) {
	no := fmt.Sprintf("new-%d-0", how)
	before, err := f.Order(t.Context(), orderKey(no))
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	u := settle(no, before.Payments[0].ID, "ref-"+no)
	inner := u.Decide
	u.Decide = func(v *store.View) error { calls++; return inner(v) }
	p.arm(how, false)
	if err := s.Write(t.Context(), []*store.Unit{u})[0]; err != nil {
		t.Fatal(err)
	}
	after, err := f.Order(t.Context(), orderKey(no))
	if err != nil || after.Order.Status != payonce.OrderPaid || after.Order.Version != before.Order.Version+1 {
		t.Errorf("order: %+v, %v", after.Order, err)
	}
	if n := f.count("SELECT COUNT(*) FROM evidence WHERE payment_id = ?", before.Payments[0].ID); n != 1 {
		t.Errorf("%d pieces of evidence", n)
	}
	if committed && calls != 1 {
		t.Errorf("committed, and decided %d times", calls)
	}
}

// lostLease: a unit without any entry of its own moves a lease.
func lostLease(t *testing.T, f *fixture, s *sqlstore.Store, p *proxy, how cut, committed bool) {
	key := orderKey(fmt.Sprintf("new-%d-1", how))
	before, err := f.Order(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	p.arm(how, false)
	err = s.Write(t.Context(), []*store.Unit{{Order: key, Decide: func(v *store.View) error {
		calls++
		v.Release(v.Payments[0], v.Now.Add(time.Hour))
		v.Payments[0].Fence++
		return nil
	}}})[0]
	after, readErr := f.Order(t.Context(), key)
	if err != nil || readErr != nil || after.Payments[0].Fence != before.Payments[0].Fence+1 || after.Order.Version != before.Order.Version+1 {
		t.Errorf("%v, %v: fence %d → %d", err, readErr, before.Payments[0].Fence, after.Payments[0].Fence)
	}
	if committed && calls != 1 {
		t.Errorf("committed, and decided %d times", calls)
	}
}

// testLostCommitUnreadable: when the database is gone after COMMIT, the outcome
// is unknown and called so, within a bounded time.
func testLostCommitUnreadable(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there is no network between Write and COMMIT")
	}
	f := e.open(t, sqlstore.Options{})
	for how, rows := range map[cut]int{cutAfter: 1, cutBefore: 0} {
		s, p := f.through(sqlstore.Options{Timeout: time.Second, MaxConns: 1})
		f.must(&store.Unit{Order: orderKey("other"), Create: order("other"), Decide: func(*store.View) error { return nil }})
		p.arm(how, true)
		no := fmt.Sprint("o", int(how))
		if err := s.Write(t.Context(), []*store.Unit{pay(no, no, nil)})[0]; !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("cut %d: %v", how, err)
		}
		if n := f.count("SELECT COUNT(*) FROM orders WHERE order_no = ?", no); n != rows {
			t.Errorf("cut %d: %d orders, want %d", how, n, rows)
		}
		if err := s.Write(t.Context(), []*store.Unit{pay("later", "later", nil)})[0]; !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("no database: %v", err)
		}
	}
}

// testDeadlockRetry: the database ends our transaction to break a deadlock with
// a stranger; the unit runs again and sees what the stranger wrote.
func testDeadlockRetry(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: two transactions never wait for each other")
	}
	f := e.open(t, sqlstore.Options{})
	var id string
	f.must(pay("o1", "k1", &id))
	stranger, err := f.DB().BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	run := func(query string, args ...any) error {
		_, err := stranger.Exec(f.Dialect().Rebind(query), args...)
		return err
	}
	if e.Survive != "" {
		if err := run(e.Survive); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 { // many rows: the engine ends the transaction that did less
		if err := run("INSERT INTO idempotency_keys (id, merchant, environment, kind, order_id, payment_id, fp_version, fp_secret, fp, converged, answer_until, created_at)"+
			" VALUES (?, 'm1', 'test', 'order', ?, '', 1, '', ?, 0, 0, 0)", recordID(fmt.Sprint("d", i))[:], "ord_1", recordID("fp")[:]); err != nil {
			t.Fatal(err)
		}
	}
	var strangers sync.WaitGroup
	done := make(chan error, 1)
	calls := 0
	u := pay("o1", "d0", nil)
	u.Decide = func(v *store.View) error {
		if calls++; calls == 1 {
			strangers.Go(func() {
				err := run("UPDATE orders SET updated_at = updated_at WHERE key_hash = ?", hashOf("o1"))
				done <- errors.Join(err, stranger.Commit())
			})
		}
		if v.Key != nil {
			return errKnown
		}
		v.NewKey = &store.KeyRecord{ID: *u.Key, Merchant: "m1", Environment: payonce.Test, Kind: "order", OrderID: v.Order.ID}
		return nil
	}
	if err := f.write(u); !errors.Is(err, errKnown) || calls != 2 {
		t.Errorf("decided %d times: %v", calls, err)
	}
	if err := <-done; err != nil {
		t.Errorf("the stranger: %v", err)
	}
}

// testReadOnly: a database that takes no writes is unavailable, never "not
// found", and reading goes on.
func testReadOnly(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	f.must(pay("o1", "k1", nil))
	s := f.again(sqlstore.Options{ReadOnly: true})
	for range 3 {
		for i, err := range s.Write(t.Context(), []*store.Unit{touch("o1"), pay("o2", "k2", nil)}) {
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("unit %d: %v", i, err)
			}
		}
	}
	if err := s.AddAPIKey(t.Context(), store.APIKey{ID: "key_1", Merchant: "m1", Environment: payonce.Test, Role: "api"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a command: %v", err)
	}
	if err := s.Migrate(t.Context(), sqlstore.MigrateOptions{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("migrate: %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("ping: %v", err)
	}
	if _, err := s.Order(t.Context(), orderKey("o1")); err != nil {
		t.Errorf("read: %v", err)
	}
	if err := f.Ping(t.Context()); err != nil {
		t.Errorf("ping where writing works: %v", err)
	}
}
