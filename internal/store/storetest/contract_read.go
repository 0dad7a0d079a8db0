package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

func bareQueue(t *testing.T, b *bare) {
	if next, err := b.NextDue(t.Context()); err != nil || !next.IsZero() {
		t.Fatalf("empty: %v %v", next, err)
	}
	lease := func(no, owner string, in time.Duration) {
		b.must(pay(no, "k"+no, nil))
		b.must(&store.Unit{Order: orderKey(no), Decide: func(v *store.View) error {
			v.Claim(v.Payments[0], payonce.Lease{Owner: owner, Until: v.Now.Add(in)}, "test")
			return nil
		}})
	}
	lease("later", "nodeB/1", time.Hour)
	lease("first", "nodeA/1", -2*time.Hour)
	lease("second", "nodeA/2", -time.Hour)
	lease("never", "nodeA/3", -3*time.Hour)
	b.must(finished("never"))
	b.must(&store.Unit{Order: orderKey("over"), Create: order("over"), Decide: func(v *store.View) error {
		v.Order.ExpiresAt = v.Now.Add(-time.Hour)
		return nil
	}})
	expect := func(what string, due []store.Due, err error, want ...string) {
		t.Helper()
		var got []string
		for _, d := range due {
			got = append(got, d.Order.OrderNo)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v (%v)", what, got, want, err)
		}
	}
	due, err := b.DuePayments(t.Context(), 10)
	expect("due", due, err, "first", "second")
	due, err = b.DuePayments(t.Context(), 1)
	expect("due, one", due, err, "first")
	due, err = b.HeldBy(t.Context(), "nodeA/", "nodeA/2", 10)
	expect("held by A", due, err, "first")
	due, err = b.HeldBy(t.Context(), "node", "", 10)
	expect("held by all", due, err, "first", "second", "later")
	due, err = b.DueOrders(t.Context(), 10)
	expect("orders", due, err, "over")
	b.clock.SetOffset(2 * time.Hour)
	due, err = b.DuePayments(t.Context(), 10)
	expect("two hours later", due, err, "first", "second", "later")
	b.must(&store.Unit{Order: orderKey("over"), Decide: func(v *store.View) error { v.CloseOrder("expired"); return nil }})
	due, err = b.DueOrders(t.Context(), 10)
	expect("closed orders", due, err)
}

func bareLists(t *testing.T, b *bare) {
	var ids []string
	for i := range 7 {
		var id string
		b.must(pay(fmt.Sprint("o", i), fmt.Sprint("k", i), &id))
		ids = append(ids, id)
	}
	b.must(settle("o3", ids[3], "r"))
	slices.Sort(ids)
	slices.Reverse(ids)
	var paged []string
	for after := ""; ; {
		list, err := b.Payments(t.Context(), scope, store.PaymentFilter{Limit: 3, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			paged = append(paged, p.ID)
		}
		if len(list) < 3 {
			break
		}
		after = list[2].ID
	}
	if !slices.Equal(paged, ids) {
		t.Errorf("pages: %v, want %v", paged, ids)
	}
	orders, err := b.Orders(t.Context(), scope, store.OrderFilter{Status: payonce.OrderOpen, Limit: 5})
	if err != nil || len(orders) != 5 || len(orders[0].Payments) != 1 || orders[0].Order.ID < orders[1].Order.ID {
		t.Fatalf("orders: %v %v", orders, err)
	}
	o := b.order("o3")
	p := o.Payments[0]
	for name, f := range map[string]store.PaymentFilter{"number": {Number: p.Number}, "order": {OrderNo: "o3"}, "status": {Status: payonce.Succeeded}, "key": {Key: recordID("k3")}} {
		if list, err := b.Payments(t.Context(), scope, f); err != nil || len(list) != 1 || list[0].ID != p.ID {
			t.Errorf("%s: %v, %v", name, list, err)
		}
		for _, other := range []store.Scope{{Merchant: "m2", Environment: payonce.Test}, {Merchant: "m1", Environment: payonce.Live}} {
			if list, err := b.Payments(t.Context(), other, f); err != nil || len(list) != 0 {
				t.Errorf("%s in another scope: %d found, %v", name, len(list), err)
			}
		}
	}
	stranger := store.Scope{Merchant: "m2", Environment: payonce.Test}
	_, err1 := b.Payment(t.Context(), stranger, p.ID)
	_, err2 := b.Evidence(t.Context(), stranger, p.ID)
	_, err3 := b.Find(t.Context(), "acc2", p.Number, "")
	_, err4 := b.Replay(t.Context(), *recordID("nobody's"))
	_, err5 := b.Order(t.Context(), payonce.OrderKey{Merchant: "m2", Environment: payonce.Test, OrderNo: "o3"})
	for i, err := range []error{err1, err2, err3, err4, err5} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("read %d: %v", i, err)
		}
	}
	versions, err := b.Versions(t.Context(), append(slices.Clone(ids), "pay_absent"))
	if err != nil || len(versions) != 7 || versions[p.ID] != p.Version {
		t.Errorf("versions: %v %v", versions, err)
	}
}

func bareNotices(t *testing.T, b *bare) {
	now, err := b.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := store.NoticeID{Account: "acc1", EventID: "e1"}
	n := store.Notice{NoticeID: id, Number: "N", Headers: "{}", Body: []byte("raw"), ReceivedAt: now, DueAt: now}
	for _, body := range []string{"raw", "another"} { // the first one stays
		n.Body = []byte(body)
		if err := b.Park(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	due, err := b.DueNotices(t.Context(), 10)
	if err != nil || len(due) != 1 || string(due[0].Body) != "raw" || due[0].Status != store.NoticeParked {
		t.Fatalf("due: %+v, %v", due, err)
	}
	if err := b.Postpone(t.Context(), id, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if due, err := b.DueNotices(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("postponed: %+v, %v", due, err)
	}
	var made string
	b.must(pay("o1", "k1", &made))
	apply := func() error {
		return b.write(&store.Unit{Order: orderKey("o1"), Notice: &id, Decide: func(v *store.View) error {
			if v.Notice == nil {
				return store.ErrNotFound
			}
			m := *v.Notice
			m.Status, m.PaymentID, m.DueAt = store.NoticeApplied, made, time.Time{}
			v.NewNotice = &m
			return nil
		}})
	}
	if err := apply(); err != nil {
		t.Fatal(err)
	}
	got, err := b.Notice(t.Context(), id)
	if err != nil || got.Status != store.NoticeApplied || got.PaymentID != made || !got.DueAt.IsZero() {
		t.Errorf("applied: %+v, %v", got, err)
	}
	if err := apply(); !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("applied twice: %v", err)
	}
	if _, err := b.Notice(t.Context(), store.NoticeID{Account: "acc2", EventID: "e1"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another account's: %v", err)
	}
}

func bareAdmin(t *testing.T, b *bare) {
	k := store.APIKey{ID: "key_1", Hash: *recordID("secret"), Merchant: "m1", Environment: payonce.Test, Role: "api", CreatedAt: time.UnixMicro(5).UTC()}
	for range 2 {
		if err := b.AddAPIKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []store.APIKey{
		{ID: "key_2", Hash: k.Hash, Merchant: "m2", Environment: k.Environment, Role: k.Role},
		{ID: "key_1", Hash: *recordID("x"), Merchant: "m1", Environment: k.Environment, Role: k.Role},
	} {
		if err := b.AddAPIKey(t.Context(), other); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%+v: %v", other, err)
		}
	}
	if got, err := b.APIKey(t.Context(), k.Hash); err != nil || *got != k {
		t.Errorf("key: %+v %v", got, err)
	}
	var first []store.APIKey
	for range 2 {
		if err := b.RevokeAPIKey(t.Context(), "key_1"); err != nil {
			t.Fatal(err)
		}
		keys, err := b.APIKeys(t.Context())
		if err != nil || len(keys) != 1 || keys[0].RevokedAt.IsZero() || first != nil && keys[0] != first[0] {
			t.Fatalf("keys: %+v %v", keys, err)
		}
		first = keys
		b.clock.SetOffset(time.Hour)
	}
	if err := b.RevokeAPIKey(t.Context(), "key_9"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("absent key: %v", err)
	}
	if id, err := b.Installation(t.Context()); err != nil || len(id) != 32 {
		t.Errorf("installation: %q %v", id, err)
	}
}

func bareText(t *testing.T, b *bare) {
	var id string
	b.must(pay("o1", "k1", &id))
	const bad, good = "zero\x00 broken\xff 🍵", "zero\uFFFD broken\uFFFD 🍵"
	b.must(&store.Unit{Order: orderKey("o1"), Actor: "notice", Salt: salt(), Decide: func(v *store.View) error {
		v.Payments[0].UnknownReason = bad
		v.Changes = append(v.Changes, payonce.Change{PaymentID: id, Cause: bad})
		v.Evidence = append(v.Evidence, store.Evidence{ID: "evd_1", OrderID: v.Order.ID, PaymentID: id, Detail: bad, Raw: []byte(bad)})
		return nil
	}})
	p, err := b.Payment(t.Context(), scope, id)
	ev, err2 := b.Evidence(t.Context(), scope, id)
	audit, err3 := b.Audit(t.Context(), p.OrderID)
	if err != nil || err2 != nil || err3 != nil || p.UnknownReason != good || ev[0].Detail != good || string(ev[0].Raw) != bad {
		t.Errorf("%q, %+v, %v %v %v", p.UnknownReason, ev, err, err2, err3)
	}
	last := audit[len(audit)-1]
	if last.Changes[0].Cause != good || !payonce.VerifyAudit(audit[len(audit)-2].Hash, last.Salt, &last.AuditEntry) {
		t.Errorf("audit %+v", last)
	}
}
