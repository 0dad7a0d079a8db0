package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// hold locks the row of an order in a transaction of a stranger, as a forgotten
// console does, until the returned function ends it.
func (f *fixture) hold(no string) (release func()) {
	f.Helper()
	tx, err := f.DB().BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err == nil {
		_, err = tx.Exec(f.Dialect().Rebind("UPDATE orders SET updated_at = updated_at + 1 WHERE key_hash = ?"), hashOf(no))
	}
	if err != nil {
		f.Fatal(err)
	}
	return sync.OnceFunc(func() { _ = tx.Rollback() })
}

// testHeldRow: a row that a stranger holds takes its batch apart and delays only
// its own order, which is written when the stranger has gone.
func testHeldRow(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there are no locks of rows")
	}
	f := e.open(t, sqlstore.Options{LockWait: time.Second})
	var units []*store.Unit
	for i := range 8 {
		no := fmt.Sprint("o", i)
		f.must(pay(no, no, nil))
		units = append(units, touch(no))
	}
	release := f.hold("o3")
	defer release()
	start := live.Now()
	for i, err := range f.Write(t.Context(), units) {
		if held := i == 3; held != errors.Is(err, store.ErrUnavailable) || !held && err != nil {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	if d := live.Now().Sub(start); d > 10*time.Second {
		t.Errorf("the batch took %v", d)
	}
	if n := f.count("SELECT COUNT(*) FROM evidence"); n != 7 {
		t.Errorf("%d pieces of evidence, want those of 7 units", n)
	}
	release()
	f.must(touch("o3"))
}

// starts is a writer that tells which batch starts.
type starts struct {
	store.Writer
	batch chan []*store.Unit
}

func (s starts) Write(ctx context.Context, units []*store.Unit) []error {
	s.batch <- units
	return s.Writer.Write(ctx, units)
}

// testHeldRowAside: behind a committer the order that is held does not delay the
// next batches either.
func testHeldRowAside(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there are no locks of rows")
	}
	f := e.open(t, sqlstore.Options{LockWait: time.Second})
	r := run.NewLive(nil)
	defer func() { _ = r.Stop(context.Background()) }()
	w := starts{f.Store, make(chan []*store.Unit, 1)}
	c := store.NewCommitter(r, w, store.CommitterOptions{Lanes: 1})
	for _, no := range []string{"free", "held"} {
		f.must(pay(no, no, nil))
	}
	release := f.hold("held")
	defer release()
	for shared := false; !shared; {
		results := make(chan error, 1)
		r.Go("both", func(context.Context) {
			results <- errors.Join(c.Write(context.Background(), []*store.Unit{touch("free"), touch("held")})...)
		})
		if shared = len(<-w.batch) == 2; !shared {
			<-w.batch
		}
		if err := <-results; !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	held := make(chan error, 1)
	r.Go("held", func(context.Context) { held <- c.Submit(context.Background(), touch("held")) })
	<-w.batch
	if err := c.Submit(t.Context(), touch("free")); err != nil {
		t.Error(err)
	}
	select {
	case err := <-held:
		t.Errorf("the held order went first: %v", err)
	default:
		release()
		<-held // written or given up, as the release came
	}
	<-w.batch
	if err := c.Submit(t.Context(), touch("held")); err != nil {
		t.Error(err)
	}
}

// testCallersTime: a unit that waits for a held row is given up soon after its
// caller stops waiting, and nothing of it is written.
func testCallersTime(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there are no locks of rows")
	}
	f := e.open(t, sqlstore.Options{LockWait: time.Minute, Timeout: time.Minute})
	f.must(pay("o1", "k1", nil))
	r := run.NewLive(nil)
	defer func() { _ = r.Stop(context.Background()) }()
	c := store.NewCommitter(r, f.Store, store.CommitterOptions{})
	release := f.hold("o1")
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := live.Now()
	if err := c.Submit(ctx, touch("o1")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if d := live.Now().Sub(start); d > 20*time.Second {
		t.Errorf("its caller waited %v", d)
	}
	release()
	if n := f.count("SELECT COUNT(*) FROM evidence"); n != 0 {
		t.Errorf("%d pieces of evidence", n)
	}
}

// testLostCommitOfMany: all units behind one lost COMMIT are answered within one
// time limit, and not in one limit each.
func testLostCommitOfMany(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there is no network between Write and COMMIT")
	}
	f := e.open(t, sqlstore.Options{})
	const limit = 2 * time.Second
	s, p := f.through(sqlstore.Options{Timeout: limit, MaxConns: 2})
	var units []*store.Unit
	for i := range 32 {
		no := fmt.Sprint("o", i)
		units = append(units, pay(no, no, nil))
	}
	p.arm(cutAfter, false)
	p.before("", p.silence)
	start := live.Now()
	for i, err := range s.Write(t.Context(), units) {
		if !errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	if d := live.Now().Sub(start); d > 4*limit {
		t.Errorf("32 units took %v", d)
	}
	if n := f.count("SELECT COUNT(*) FROM orders"); n != len(units) {
		t.Errorf("%d orders", n)
	}
}

// testLostCommitWrittenOver: a unit that moved only a lease, and an order that
// others have written since, do not hide how a lost batch ended: another unit of
// it tells.
func testLostCommitWrittenOver(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there is no network between Write and COMMIT")
	}
	for name, how := range map[string]cut{"after": cutAfter, "before": cutBefore} {
		t.Run(name, func(t *testing.T) {
			f := e.open(t, sqlstore.Options{})
			s, p := f.through(sqlstore.Options{MaxConns: 2})
			calls := 0
			var units []*store.Unit
			for i := range 6 {
				no := fmt.Sprint("o", i)
				f.must(pay(no, no, nil))
				units = append(units, &store.Unit{Order: orderKey(no), Decide: func(v *store.View) error {
					calls++
					v.Release(v.Payments[0], v.Now.Add(time.Hour)) // leaves no entry
					v.Payments[0].Fence++
					return nil
				}})
			}
			units = append(units, pay("new", "new", nil))
			p.arm(how, false)
			p.before("orders", func() {
				for i := range 6 {
					f.must(touch(fmt.Sprint("o", i)))
				}
			})
			for i, err := range s.Write(t.Context(), units) {
				if err != nil {
					t.Errorf("unit %d: %v", i, err)
				}
			}
			if want := map[cut]int{cutAfter: 6, cutBefore: 12}[how]; calls != want {
				t.Errorf("the leases were decided %d times, want %d", calls, want)
			}
			if n := f.count("SELECT COUNT(*) FROM payments WHERE fence = 3"); n != 6 {
				t.Errorf("%d leases moved once, want 6", n)
			}
		})
	}
}

// testBoundedCalls: on a connection that leads nowhere every call of the store
// ends within its time limit, also those that are added later.
func testBoundedCalls(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there is no network in between")
	}
	f := e.open(t, sqlstore.Options{})
	const limit = time.Second
	s, p := f.through(sqlstore.Options{Timeout: limit})
	if _, err := s.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.silence()
	var wg sync.WaitGroup
	contract := reflect.TypeFor[store.Store]()
	for i := range contract.NumMethod() {
		m := contract.Method(i)
		if m.Name == "Close" {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(context.Background())}
		for k := 1; k < m.Type.NumIn(); k++ {
			args = append(args, reflect.Zero(m.Type.In(k)))
		}
		switch m.Name {
		case "Write":
			args[1] = reflect.ValueOf([]*store.Unit{pay("o1", "k1", nil)})
		case "Versions":
			args[1] = reflect.ValueOf([]string{"pay_1"})
		}
		wg.Go(func() {
			start := live.Now()
			out := reflect.ValueOf(s).MethodByName(m.Name).Call(args)
			err, _ := out[len(out)-1].Interface().(error)
			if m.Name == "Write" {
				err = out[0].Interface().([]error)[0]
			}
			if d := live.Now().Sub(start); !errors.Is(err, store.ErrUnavailable) || d > 10*limit {
				t.Errorf("%s: %v after %v", m.Name, err, d)
			}
		})
	}
	wg.Wait()
}

// testBoundedCrowd: callers who share their reads do not add up their waits when
// the database is silent.
func testBoundedCrowd(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: there is no network in between")
	}
	f := e.open(t, sqlstore.Options{})
	const limit = time.Second
	s, p := f.through(sqlstore.Options{Timeout: limit})
	if _, err := s.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.silence()
	start := live.Now()
	var wg sync.WaitGroup
	for i := range 1500 {
		wg.Go(func() {
			if _, err := s.Replay(context.Background(), *recordID(fmt.Sprint(i))); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if d := live.Now().Sub(start); d > 6*limit {
		t.Errorf("the last of the callers waited %v", d)
	}
}

// Settings compares what a session of an engine was given, as answers to queries,
// with what it should be. params are added to the URL.
func Settings(t *testing.T, e Engine, params string, o sqlstore.Options, want map[string]string) {
	e.available(t)
	s, err := e.Open(t.Context(), e.Server+params, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for query, value := range want {
		var got string
		if err := s.DB().QueryRow(query).Scan(&got); err != nil || got != value {
			t.Errorf("%s: %q, want %s (%v)", query, got, value, err)
		}
	}
}
