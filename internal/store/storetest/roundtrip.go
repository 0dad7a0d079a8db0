package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// filler sets every member to a value of its own, so that a column that is
// forgotten or swapped shows, also for members that are added later.
type filler struct {
	t testing.TB
	n int64
}

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%d", f.n))
	case reflect.Int, reflect.Int64:
		v.SetInt(f.n)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{fmt.Sprint("k", f.n): "v"}))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Uint8:
		v.SetUint(uint64(f.n%250) + 1)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMicro(1_700_000_000_000_000 + f.n*1_000_001).UTC()))
			return
		}
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	default:
		f.t.Fatalf("the suite cannot fill a %s", v.Type())
	}
}

func filled[T any](f *filler) *T {
	v := new(T)
	f.fill(reflect.ValueOf(v).Elem())
	return v
}

// testRoundTrip: every member of everything that is stored comes back as it was.
func testRoundTrip(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	fill := &filler{t: t}
	var (
		o  payonce.Order
		p1 = filled[payonce.Payment](fill) // effective
		p2 = filled[payonce.Payment](fill) // live
		c  = filled[payonce.Charge](fill)
		k  = filled[store.KeyRecord](fill)
		ev = filled[store.Evidence](fill)
		an = filled[store.Answer](fill)
		ob = filled[store.OutboxEvent](fill)
		no = filled[store.Notice](fill)
	)
	u := &store.Unit{Order: orderKey("o1"), Create: order("o1"), Actor: "actor", Salt: salt()}
	u.Decide = func(v *store.View) error {
		id, key, currency := v.Order.ID, v.Order.Key, v.Order.Currency
		fill.fill(reflect.ValueOf(v.Order).Elem())
		v.Order.ID, v.Order.Key, v.Order.Currency, v.Order.Policy = id, key, currency, payonce.PolicySplit
		v.Order.Status, v.Order.Amount, v.Order.AmountPaid, v.Order.Reserved = payonce.OrderPartiallyPaid, 1000, 400, 500
		v.Order.LastSequence = 777
		for i, p := range []*payonce.Payment{p1, p2} {
			p.OrderID, p.Key, p.Currency, p.Sequence = id, key, "JPY", i+1
			p.Superseded = false
		}
		p1.Status, p2.Status, p2.Effective = payonce.Succeeded, payonce.Pending, false
		c.OrderID, c.PaymentID, c.Currency, c.Kind = id, p1.ID, "KWD", payonce.ChargeEffective
		k.ID, k.OrderID, k.PaymentID, k.Environment = *recordID("k"), id, p1.ID, payonce.Live
		ev.OrderID, ev.PaymentID = id, p1.ID
		an.PaymentID, an.Status, an.HTTPStatus = p1.ID, p1.Status, 201
		v.Payments, v.Charges = []*payonce.Payment{p1, p2}, []*payonce.Charge{c}
		no.PaymentID, no.Status = p1.ID, store.NoticeApplied
		v.NewNotice = no
		v.NewKey, v.Evidence, v.Answers, v.Outbox = k, []store.Evidence{*ev}, []store.Answer{*an}, []store.OutboxEvent{*ob}
		v.Changes = []payonce.Change{*filled[payonce.Change](fill)}
		return nil
	}
	u.Key, u.Notice = recordID("k"), &no.NoticeID
	read := &store.Unit{Order: u.Order, Key: u.Key, Notice: u.Notice, Decide: func(v *store.View) error {
		o = *v.Order
		same(t, "payment 1 under the lock", v.Payments[0], p1)
		same(t, "payment 2 under the lock", v.Payments[1], p2)
		same(t, "charge under the lock", v.Charges, []*payonce.Charge{c})
		same(t, "key under the lock", v.Key, k)
		same(t, "notice under the lock", v.Notice, no)
		return nil
	}}
	var written payonce.Order
	inner := u.Decide
	var kept *payonce.Order
	u.Decide = func(v *store.View) error { kept = v.Order; return inner(v) }
	f.must(u)
	written = *kept
	f.must(read)
	same(t, "order under the lock", o, written)

	readBack(t, f, u, written, stored{p1, p2, k, ev, an, ob, no})
	roundTripChanges(t, f, fill, u.Order, p2)
}

// stored is what testRoundTrip wrote beside the order.
type stored struct {
	p1, p2 *payonce.Payment
	k      *store.KeyRecord
	ev     *store.Evidence
	an     *store.Answer
	ob     *store.OutboxEvent
	no     *store.Notice
}

// readBack compares what every reader returns with what was written.
func readBack(t *testing.T, f *fixture, u *store.Unit, written payonce.Order, w stored) {
	t.Helper()
	got, err := f.Order(t.Context(), u.Order)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "order", *got.Order, written)
	same(t, "payments", got.Payments, []*payonce.Payment{w.p1, w.p2})
	r, err := f.Replay(t.Context(), *u.Key)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "replayed key", r.Key, *w.k)
	same(t, "replayed order", *r.Order, written)
	same(t, "replayed payment", r.Payment, w.p1)
	same(t, "replayed answer", r.Answer, w.an)
	notice, err := f.Notice(t.Context(), w.no.NoticeID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "notice", notice, w.no)
	evidence, err := f.Evidence(t.Context(), scope, w.p1.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "evidence", evidence, []store.Evidence{*w.ev})
	audit, err := f.Audit(t.Context(), written.ID)
	if err != nil || len(audit) != 1 || audit[0].Actor != "actor" || audit[0].Salt != u.Salt {
		t.Errorf("audit: %+v %v", audit, err)
	}
	if n := f.count("SELECT COUNT(*) FROM events WHERE id = ? AND subject = ? AND change_no = ? AND type = ? AND made_at = ?",
		w.ob.ID, w.ob.Subject, w.ob.Change, w.ob.Type, w.ob.At.UnixMicro()); n != 1 {
		t.Error("the event was not stored as it was")
	}
}

// roundTripChanges: what may change also comes back after a change.
func roundTripChanges(t *testing.T, f *fixture, fill *filler, key payonce.OrderKey, was *payonce.Payment) {
	var p *payonce.Payment
	f.must(&store.Unit{Order: key, Decide: func(v *store.View) error {
		p = v.Payments[1]
		fresh := filled[payonce.Payment](fill)
		fresh.ID, fresh.OrderID, fresh.Key, fresh.Sequence, fresh.Part = was.ID, was.OrderID, was.Key, was.Sequence, was.Part
		fresh.Amount, fresh.Currency, fresh.Channel, fresh.Account, fresh.Method = was.Amount, was.Currency, was.Channel, was.Account, was.Method
		fresh.Number, fresh.Request, fresh.Inputs, fresh.CreatedAt = was.Number, was.Request, was.Inputs, was.CreatedAt
		fresh.Status, fresh.Effective, fresh.Superseded, fresh.Revision = payonce.Failed, false, false, p.Revision
		fresh.ChargeCount = 0
		*p = *fresh
		v.Charges[0].Amount, v.Charges[0].Kind = 5, payonce.ChargeSurplus
		return nil
	}})
	got, err := f.Payment(t.Context(), scope, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Revision != 2 {
		t.Errorf("revision %d", got.Revision)
	}
	same(t, "changed payment", got, p)
	if n := f.count("SELECT COUNT(*) FROM charges WHERE amount = 5 AND kind = 'surplus'"); n != 1 {
		t.Error("the changed charge was not stored")
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, show(got), show(want))
	}
}

func show(v any) string {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer && !r.IsNil() {
		r = r.Elem()
	}
	if r.Kind() == reflect.Slice {
		out := ""
		for i := range r.Len() {
			out += show(r.Index(i).Interface()) + "; "
		}
		return out
	}
	return fmt.Sprintf("%+v", r)
}

// covered names, for every table, the case that writes and reads it.
var covered = map[string]string{
	"installation": "AdminKeysAndInstallation", "orders": "AllMembersRoundTrip", "payments": "AllMembersRoundTrip",
	"charges": "AllMembersRoundTrip", "idempotency_keys": "AllMembersRoundTrip", "evidence": "AllMembersRoundTrip",
	"answers": "AllMembersRoundTrip", "events": "AllMembersRoundTrip", "audit": "AllMembersRoundTrip",
	"notices": "NoticesAreParked", "api_keys": "AdminKeysAndInstallation",
	"goose_db_version": "MigrationsSideBySide", "goose_lock": "MigrationsSideBySide",
}

// testTables: a new table needs a case.
func testTables(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	rows, err := f.DB().QueryContext(t.Context(), e.Tables)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	found := 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		found++
		if !slices.ContainsFunc(cases, func(c testCase) bool { return c.name == covered[name] }) {
			t.Errorf("table %s is covered by no case of the suite", name)
		}
	}
	if found < 11 || rows.Err() != nil {
		t.Errorf("%d tables, %v", found, rows.Err())
	}
}
