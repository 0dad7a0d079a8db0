package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// testQueue: what is due is found, oldest first; what is not, is not.
func testQueue(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	if next, err := f.NextDue(t.Context()); err != nil || !next.IsZero() {
		t.Fatalf("empty: %v %v", next, err)
	}
	ids := map[string]string{}
	lease := func(no, owner string, in time.Duration) {
		var id string
		f.must(pay(no, "k"+no, &id))
		ids[id] = no
		f.must(&store.Unit{Order: orderKey(no), Decide: func(v *store.View) error {
			v.Claim(v.Payments[0], payonce.Lease{Owner: owner, Until: v.Now.Add(in)}, "test")
			return nil
		}})
	}
	lease("later", "nodeB/1", time.Hour)
	lease("first", "nodeA/1", -2*time.Hour)
	lease("second", "nodeA/2", -time.Hour)
	lease("never", "nodeA/3", -3*time.Hour)
	f.must(finished("never"))

	found := func(due []store.Due, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, d := range due {
			if d.PaymentID != "" && ids[d.PaymentID] != d.Order.OrderNo || d.Order.Merchant != scope.Merchant || d.Order.Environment != scope.Environment {
				t.Errorf("wrong order: %+v", d)
			}
			out = append(out, d.Order.OrderNo)
		}
		return out
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("due", found(f.DuePayments(t.Context(), 10)), "first", "second")
	expect("due, one", found(f.DuePayments(t.Context(), 1)), "first")
	expect("held by A", found(f.HeldBy(t.Context(), "nodeA/", "nodeA/2", 10)), "first")
	expect("held by all", found(f.HeldBy(t.Context(), "node", "", 10)), "first", "second", "later")
	now, err := f.Now(t.Context())
	next, err2 := f.NextDue(t.Context())
	if err != nil || err2 != nil || next.Sub(now) > -119*time.Minute || next.Sub(now) < -121*time.Minute {
		t.Errorf("next due %v, now %v (%v, %v)", next, now, err, err2)
	}

	change := func(no string, set func(*store.View)) {
		o := order(no)
		f.must(&store.Unit{Order: o.Key, Create: o, Decide: func(v *store.View) error { set(v); return nil }})
	}
	change("expired", func(v *store.View) { v.Order.ExpiresAt = v.Now.Add(-time.Hour) })
	change("partly paid", func(v *store.View) {
		v.Order.Status, v.Order.ExpiresAt = payonce.OrderPartiallyPaid, v.Now.Add(-time.Minute)
	})
	change("closing", func(v *store.View) {
		v.Order.Status, v.Order.ExpiresAt = payonce.OrderClosing, v.Now.Add(-time.Hour)
	})
	change("closed", func(v *store.View) {
		v.Order.Status, v.Order.ExpiresAt = payonce.OrderClosed, v.Now.Add(-time.Hour)
	})
	change("valid", func(v *store.View) { v.Order.ExpiresAt = v.Now.Add(time.Hour) })
	change("endless", func(v *store.View) {})
	expect("due orders", found(f.DueOrders(t.Context(), 10)), "expired", "partly paid")
}

// aheadRunner is a process whose clock runs an hour ahead of the database's.
type aheadRunner struct{ *run.Live }

func (r aheadRunner) Now() time.Time { return r.Live.Now().Add(time.Hour) }

// testClock: the process's clock changes nothing; the clock that simulations set
// moves everything.
func testClock(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	var id string
	f.must(pay("o1", "k1", &id)) // leased for a minute
	ahead := f.again(sqlstore.Options{Runner: aheadRunner{run.NewLive(nil)}})
	if due, err := ahead.DuePayments(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("a wrong clock of the process made a lease end: %v %v", due, err)
	}
	if errs := ahead.Write(t.Context(), []*store.Unit{{Order: orderKey("o1"), Decide: func(v *store.View) error {
		if p := v.Payment(id); !v.Now.Before(p.LeaseUntil) || v.Now.Before(p.CreatedAt) {
			t.Errorf("now %v, created %v, lease until %v", v.Now, p.CreatedAt, p.LeaseUntil)
		}
		return nil
	}}}); errs[0] != nil {
		t.Error(errs[0])
	}
	f.clock.SetOffset(time.Hour)
	due, err := f.DuePayments(t.Context(), 10)
	now, _ := f.Now(t.Context())
	real, _ := ahead.Now(t.Context())
	r, err2 := f.Replay(t.Context(), *recordID("k1"))
	if err != nil || err2 != nil || len(due) != 1 || now.Sub(real) < 59*time.Minute || r.Now.Sub(real) < 59*time.Minute {
		t.Errorf("the simulation's clock: due %v, now %v, real %v, %v", due, now, real, err)
	}
}

// testNames: names that differ only in case, accent or trailing blank are
// different everywhere.
func testNames(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	alike := []string{"Key", "key", "KEY", "kéy", "key ", "key\t", " key", "kéy "}
	for i, a := range alike {
		var id string
		f.must(pay(a, "k"+a, &id))
		f.must(settle(a, id, a))
		if got, err := f.Order(t.Context(), orderKey(a)); err != nil || got.Order.Key.OrderNo != a || got.Payments[0].ID != id {
			t.Errorf("%q: %v %v", a, got, err)
		}
		var known string
		if err := f.write(pay("other", "k"+a, &known)); !errors.Is(err, errKnown) {
			t.Errorf("%q: its own key is new: %v", a, err)
		}
		list, err := f.Payments(t.Context(), scope, store.PaymentFilter{OrderNo: a})
		if err != nil || len(list) != 1 || list[0].ID != id {
			t.Errorf("%q: list %v %v", a, list, err)
		}
		if n := f.count("SELECT COUNT(*) FROM orders"); n != i+1 {
			t.Errorf("%q: %d orders", a, n)
		}
	}
	if n := f.count("SELECT COUNT(*) FROM charges"); n != len(alike) {
		t.Errorf("%d charges", n)
	}
}

// testForeignText: text for people that no database can store as it is must not
// keep a fact about money from being stored, and the audit still verifies.
func testForeignText(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	var id string
	f.must(pay("o1", "k1", &id))
	const bad = "zero\x00 broken\xff 🍵 ' \\ \" ? $1"
	f.must(&store.Unit{Order: orderKey("o1"), Actor: "notice", Salt: salt(), Decide: func(v *store.View) error {
		p := v.Payments[0]
		p.Failure = &payonce.Failure{Code: "declined", Message: bad}
		p.UnknownReason = bad
		v.Changes = append(v.Changes, payonce.Change{PaymentID: id, Cause: bad})
		v.Evidence = append(v.Evidence, store.Evidence{ID: "evd_1", OrderID: v.Order.ID, PaymentID: id, Detail: bad, Raw: []byte(bad)})
		return nil
	}})
	const good = "zero\uFFFD broken\uFFFD 🍵 ' \\ \" ? $1"
	p, err := f.Payment(t.Context(), scope, id)
	if err != nil || p.UnknownReason != good {
		t.Errorf("%q %v", p.UnknownReason, err)
	}
	ev, err := f.Evidence(t.Context(), scope, id)
	if err != nil || len(ev) != 1 || ev[0].Detail != good || string(ev[0].Raw) != bad {
		t.Errorf("%+v %v", ev, err)
	}
	f.verifyAudit(t, p.OrderID)
}

// testLists: pages by descending id, filters, and nothing of another merchant or
// environment.
func testLists(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	var ids []string
	for i := range 7 {
		var id string
		f.must(pay(fmt.Sprint("o", i), fmt.Sprint("k", i), &id))
		ids = append(ids, id)
	}
	f.must(settle("o3", ids[3], "r"))
	slices.Sort(ids)
	slices.Reverse(ids)
	var paged []string
	for after := ""; ; {
		page, err := f.Payments(t.Context(), scope, store.PaymentFilter{Limit: 3, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page {
			paged = append(paged, p.ID)
		}
		if len(page) < 3 {
			break
		}
		after = page[2].ID
	}
	if !slices.Equal(paged, ids) {
		t.Errorf("pages: %v, want %v", paged, ids)
	}
	orders, err := f.Orders(t.Context(), scope, store.OrderFilter{Status: payonce.OrderOpen, Limit: 5})
	if err != nil || len(orders) != 5 || len(orders[0].Payments) != 1 || orders[0].Order.ID < orders[1].Order.ID {
		t.Fatalf("orders: %v %v", orders, err)
	}
	more, err := f.Orders(t.Context(), scope, store.OrderFilter{Status: payonce.OrderOpen, After: orders[4].Order.ID})
	if err != nil || len(more) != 1 {
		t.Errorf("second page: %v %v", more, err)
	}
	p := orders[0].Payments[0]
	f.filters(t, p)
	strangers := store.Scope{Merchant: "m2", Environment: payonce.Test}
	if _, err := f.Payment(t.Context(), strangers, p.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("payment of another merchant: %v", err)
	}
	if _, err := f.Evidence(t.Context(), strangers, p.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("evidence of another merchant: %v", err)
	}
	if got, err := f.Find(t.Context(), p.Account, p.Number, ""); err != nil || got.ID != p.ID {
		t.Errorf("find: %v", err)
	}
	f.byObject(t, p)
	if _, err := f.Replay(t.Context(), *recordID("nobody's")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("replay of an unknown key: %v", err)
	}
	versions, err := f.Versions(t.Context(), append(slices.Clone(ids), "pay_absent"))
	if err != nil || len(versions) != 7 || versions[p.ID] != p.Version {
		t.Errorf("versions: %v %v", versions, err)
	}
}

// byObject: a payment is found by its number, or without one by its object, on its
// own account alone.
func (f *fixture) byObject(t *testing.T, p *payonce.Payment) {
	t.Helper()
	f.must(&store.Unit{Order: p.Key, Decide: func(v *store.View) error { v.Payments[0].ObjectID = "pi_1"; return nil }})
	if got, err := f.Find(t.Context(), p.Account, "", "pi_1"); err != nil || got.ID != p.ID {
		t.Errorf("by object: %v", err)
	}
	if got, err := f.Find(t.Context(), p.Account, p.Number, "pi_2"); err != nil || got.ID != p.ID {
		t.Errorf("the number comes first: %v", err)
	}
	for name, who := range map[string][3]string{
		"number on another account": {"acc2", p.Number, ""}, "object on another account": {"acc2", "", "pi_1"},
		"unknown number, known object": {p.Account, "X", "pi_1"}, "unknown object": {p.Account, "", "pi_2"}, "nothing": {p.Account, "", ""},
	} {
		if _, err := f.Find(t.Context(), who[0], who[1], who[2]); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// filters: each one finds p alone, and nothing in another scope.
func (f *fixture) filters(t *testing.T, p *payonce.Payment) {
	t.Helper()
	for name, filter := range map[string]store.PaymentFilter{
		"number": {Number: p.Number}, "order": {OrderNo: p.Key.OrderNo}, "status": {Status: payonce.Succeeded},
		"key": {Key: recordID("k" + p.Key.OrderNo[1:])},
	} {
		if list, err := f.Payments(t.Context(), scope, filter); err != nil || len(list) != 1 {
			t.Errorf("%s: %d found, %v", name, len(list), err)
		}
		for _, other := range []store.Scope{{Merchant: "m2", Environment: payonce.Test}, {Merchant: "m1", Environment: payonce.Live}} {
			if list, err := f.Payments(t.Context(), other, filter); err != nil || len(list) != 0 {
				t.Errorf("%s in another scope: %d found, %v", name, len(list), err)
			}
		}
	}
}

// testAdmin: credentials and the installation id.
func testAdmin(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	k := store.APIKey{ID: "key_1", Hash: *recordID("secret"), Merchant: "m1", Environment: payonce.Test, Role: "api", CreatedAt: time.UnixMicro(5).UTC()}
	for range 2 {
		if err := f.AddAPIKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	for name, other := range map[string]store.APIKey{
		"hash of another merchant": {ID: "key_2", Hash: k.Hash, Merchant: "m2", Environment: k.Environment, Role: k.Role},
		"id of another key":        {ID: "key_1", Hash: *recordID("x"), Merchant: "m1", Environment: k.Environment, Role: k.Role},
	} {
		if err := f.AddAPIKey(t.Context(), other); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := f.APIKey(t.Context(), k.Hash); err != nil || *got != k {
		t.Errorf("key: %+v %v", got, err)
	}
	if err := f.RevokeAPIKey(t.Context(), "key_1"); err != nil {
		t.Error(err)
	}
	first, err := f.APIKeys(t.Context())
	if err != nil || len(first) != 1 || first[0].RevokedAt.IsZero() {
		t.Fatalf("keys: %+v %v", first, err)
	}
	if err := f.RevokeAPIKey(t.Context(), "key_1"); err != nil {
		t.Error(err)
	}
	if second, err := f.APIKeys(t.Context()); err != nil || second[0] != first[0] {
		t.Errorf("revoked twice: %+v %v", second, err)
	}
	if err := f.RevokeAPIKey(t.Context(), "key_9"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("absent key: %v", err)
	}
	if _, err := f.APIKey(t.Context(), *recordID("other")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("absent secret: %v", err)
	}
	if id, err := f.Installation(t.Context()); err != nil || len(id) != 32 {
		t.Errorf("installation: %q %v", id, err)
	}
}

// testMigrations: four processes may migrate at once; the id of the installation
// is made once, kept, and never changed.
func testMigrations(t *testing.T, e Engine) {
	f := &fixture{TB: t, engine: e, url: e.fresh(t)}
	var wg sync.WaitGroup
	var ids [4]string
	for i := range ids {
		s := f.again(sqlstore.Options{})
		wg.Go(func() {
			if err := s.Migrate(t.Context(), sqlstore.MigrateOptions{}); err != nil {
				t.Errorf("migrate %d: %v", i, err)
				return
			}
			ids[i], _ = s.Installation(t.Context())
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("installations %q", ids)
		}
	}
	s := f.again(sqlstore.Options{})
	f.Store = s
	status, err := s.Status(t.Context())
	if err != nil || len(status) != 11 || !status[10].Applied || status[1].Name != "orders" {
		t.Errorf("status: %+v %v", status, err)
	}
	if n := f.count("SELECT COUNT(*) FROM goose_db_version WHERE version_id > 0"); n != 11 {
		t.Errorf("%d migrations were recorded", n)
	}
	if err := s.Migrate(t.Context(), sqlstore.MigrateOptions{Installation: ids[0]}); err != nil {
		t.Errorf("the same installation: %v", err)
	}
	if err := s.Migrate(t.Context(), sqlstore.MigrateOptions{Installation: "another"}); err == nil {
		t.Error("another installation was accepted")
	}
	given := &fixture{TB: t, engine: e, url: e.fresh(t)}
	g := given.again(sqlstore.Options{})
	if err := g.Migrate(t.Context(), sqlstore.MigrateOptions{Installation: "given"}); err != nil {
		t.Fatal(err)
	}
	if id, err := g.Installation(t.Context()); err != nil || id != "given" {
		t.Errorf("given installation: %q %v", id, err)
	}
	if text, err := sqlstore.SQL(g.Dialect()); err != nil || len(text) < 5000 {
		t.Errorf("schema in words: %d bytes, %v", len(text), err)
	}
}
