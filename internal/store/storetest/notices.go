package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// parked is a message for a number that is not known yet.
func parked(event string, due time.Time) store.Notice {
	return store.Notice{NoticeID: store.NoticeID{Account: "acc1", EventID: event}, Status: store.NoticeParked, Type: "trade.paid",
		Number: "N-" + event, Headers: "{}", Body: []byte("body of " + event), ReceivedAt: due.Add(-time.Minute), DueAt: due}
}

// tell is a unit that stores a notice for the order's first payment, or applies
// the one that is parked.
func tell(no string, id store.NoticeID) *store.Unit {
	u := &store.Unit{Order: orderKey(no), Notice: &id, Actor: "notice", Salt: salt()}
	u.Decide = func(v *store.View) error {
		if v.Notice != nil && v.Notice.Status == store.NoticeApplied {
			return errKnown
		}
		v.NewNotice = &store.Notice{NoticeID: id, Status: store.NoticeApplied, Type: "trade.paid", Number: v.Payments[0].Number,
			PaymentID: v.Payments[0].ID, Headers: "{}", Body: []byte("body of " + id.EventID), ReceivedAt: v.Now}
		return nil
	}
	return u
}

// testParking: messages without a payment wait, are found when they are due, and
// are stored as they came first.
func testParking(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	now, err := f.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fill := &filler{t: t}
	first := *filled[store.Notice](fill)
	first.Status, first.DueAt = store.NoticeParked, now.Add(-time.Hour)
	if _, err := f.Notice(t.Context(), first.NoticeID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	later := first
	later.Body, later.DueAt = []byte("other"), now
	for _, n := range []store.Notice{first, later} {
		if err := f.Park(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	first.PaymentID = "" // nobody's yet, whatever was said
	got, err := f.Notice(t.Context(), first.NoticeID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "parked", *got, first)
	for _, n := range []store.Notice{parked("second", now.Add(-time.Minute)), parked("future", now.Add(time.Hour)), parked("never", time.Time{})} {
		if err := f.Park(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	second := parked("second", now.Add(-time.Minute))
	due := func(limit int, want ...store.NoticeID) {
		t.Helper()
		found, err := f.DueNotices(t.Context(), limit)
		if err != nil || len(found) != len(want) {
			t.Fatalf("due: %+v %v, want %v", found, err, want)
		}
		for i, n := range found {
			if n.NoticeID != want[i] || len(n.Body) == 0 {
				t.Errorf("due: %+v, want %v", n, want[i])
			}
		}
	}
	due(10, first.NoticeID, second.NoticeID)
	due(1, first.NoticeID)
	postpone := func(id store.NoticeID, to time.Time) {
		t.Helper()
		if err := f.Postpone(t.Context(), id, to); err != nil {
			t.Fatal(err)
		}
	}
	postpone(first.NoticeID, now.Add(-time.Second))
	due(10, second.NoticeID, first.NoticeID)
	postpone(first.NoticeID, time.Time{})
	due(10, second.NoticeID)
	postpone(store.NoticeID{Account: "nobody", EventID: "x"}, now)
	f.clock.SetOffset(2 * time.Hour)
	due(10, second.NoticeID, parked("future", now).NoticeID)
}

// testNoticeUnits: a notice is written with its effect, once; a parked one is
// taken over as it came and waits no more.
func testNoticeUnits(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	var id string
	f.must(pay("o1", "k1", &id))
	now, _ := f.Now(t.Context())
	wait := parked("e1", now.Add(-time.Hour))
	if err := f.Park(t.Context(), wait); err != nil {
		t.Fatal(err)
	}
	var seen *store.Notice
	u := tell("o1", wait.NoticeID)
	inner := u.Decide
	u.Decide = func(v *store.View) error { seen = v.Notice; return inner(v) }
	f.must(u)
	same(t, "parked under the lock", *seen, wait)
	applied := wait
	applied.Status, applied.PaymentID, applied.DueAt = store.NoticeApplied, id, time.Time{}
	f.must(tell("o1", store.NoticeID{Account: "acc2", EventID: "e1"})) // another account's
	for range 2 {
		got, err := f.Notice(t.Context(), wait.NoticeID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "applied", *got, applied)
		if err := f.Postpone(t.Context(), wait.NoticeID, now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := f.Park(t.Context(), wait); err != nil {
			t.Fatal(err)
		}
	}
	if due, err := f.DueNotices(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("applied notices are due: %+v %v", due, err)
	}
	if err := f.write(tell("o1", wait.NoticeID)); !errors.Is(err, errKnown) {
		t.Errorf("the second time: %v", err)
	}
	for name, u := range map[string]*store.Unit{
		"over an applied one": {Notice: &wait.NoticeID}, "another one": {Notice: &store.NoticeID{Account: "a", EventID: "b"}}, "not looked up": {},
	} {
		u.Order = orderKey("o1")
		u.Decide = func(v *store.View) error { v.NewNotice = &applied; return nil }
		if err := f.write(u); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i, err := range f.Write(t.Context(), []*store.Unit{tell("o1", store.NoticeID{Account: "acc1", EventID: "e2"}), pay("o2", "k2", nil)}) {
		if err != nil {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	results := f.Write(t.Context(), []*store.Unit{tell("o1", store.NoticeID{Account: "acc1", EventID: "e3"}), tell("o2", store.NoticeID{Account: "acc1", EventID: "e3"})})
	if results[0] != nil || !errors.Is(results[1], errKnown) {
		t.Errorf("one notice twice in a batch: %v", results)
	}
}

// testNoticeRace: two processes that take one message for two orders at once
// write it once, stored or parked before.
func testNoticeRace(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	processes := []*sqlstore.Store{f.Store, f.again(sqlstore.Options{})}
	f.must(pay("o0", "k0", nil))
	f.must(pay("o1", "k1", nil))
	for round := range 20 {
		n := parked(fmt.Sprint("e", round), time.Time{})
		if round%2 == 1 {
			if err := f.Park(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		var won atomic.Int64
		var wg sync.WaitGroup
		for i, s := range processes {
			wg.Go(func() {
				u := tell(fmt.Sprint("o", i), n.NoticeID)
				inner := u.Decide
				u.Decide = func(v *store.View) error {
					v.Evidence = append(v.Evidence, store.Evidence{ID: v.NewID(payonce.PrefixEvidence), OrderID: v.Order.ID, PaymentID: v.Payments[0].ID})
					return inner(v)
				}
				switch err := s.Write(context.Background(), []*store.Unit{u})[0]; {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, errKnown):
					t.Errorf("round %d, process %d: %v", round, i, err)
				}
			})
		}
		wg.Wait()
		if n := f.count("SELECT COUNT(*) FROM evidence"); won.Load() != 1 || n != round+1 {
			t.Fatalf("round %d: %d of two were told that they wrote it, %d did", round, won.Load(), n-round)
		}
	}
}

// testLostNotice: a unit that wrote nothing but a notice is known by it when its
// COMMIT was lost and others have written its order since.
func testLostNotice(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there is no network between Write and COMMIT")
	}
	f := e.open(t, sqlstore.Options{})
	s, p := f.through(sqlstore.Options{MaxConns: 2})
	f.must(pay("o1", "k1", nil))
	for name, how := range map[string]cut{"after": cutAfter, "before": cutBefore} {
		calls := 0
		id := store.NoticeID{Account: "acc1", EventID: name}
		u := tell("o1", id)
		inner := u.Decide
		u.Decide = func(v *store.View) error { calls++; return inner(v) }
		p.arm(how, false)
		p.before("orders", func() { f.must(touch("o1")) })
		if err := s.Write(t.Context(), []*store.Unit{u})[0]; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := map[cut]int{cutAfter: 1, cutBefore: 2}[how]; calls != want {
			t.Errorf("%s: decided %d times, want %d", name, calls, want)
		}
		if got, err := f.Notice(t.Context(), id); err != nil || got.Status != store.NoticeApplied {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

// benchNotices compares units of notices in batches with one after the other.
func benchNotices(b *testing.B, f *fixture) {
	const orders = 64
	for i := range orders {
		f.must(pay(fmt.Sprint("n", i), fmt.Sprint("n", i), nil))
	}
	for _, size := range []int{1, orders} {
		b.Run(fmt.Sprintf("notices-%d", size), func(b *testing.B) {
			n := 0
			for b.Loop() {
				if n++; n%size != 0 {
					continue // written with the last of its batch
				}
				units := make([]*store.Unit, size)
				for i := range units {
					units[i] = tell(fmt.Sprint("n", i), store.NoticeID{Account: "acc1", EventID: newID("e")})
				}
				for _, err := range f.Write(b.Context(), units) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
