package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate is a Writer that announces each batch and waits to be let through.
type gate struct {
	started chan []*store.Unit
	pass    chan struct{}
}

func newGate() *gate {
	return &gate{started: make(chan []*store.Unit), pass: make(chan struct{})}
}

func (g *gate) Write(_ context.Context, units []*store.Unit) []error {
	g.started <- units
	<-g.pass
	out := make([]error, len(units))
	for i, u := range units {
		out[i] = u.Decide(&store.View{})
	}
	return out
}

func unit(order string, decide func(*store.View) error) *store.Unit {
	if decide == nil {
		decide = func(*store.View) error { return nil }
	}
	return &store.Unit{Order: payonce.OrderKey{Merchant: "m", OrderNo: order}, Decide: decide}
}

func oneLane(t *testing.T, w store.Writer, o store.CommitterOptions) (*store.Committer, *run.Live) {
	r := run.NewLive(nil)
	o.Lanes = 1
	t.Cleanup(func() { _ = r.Stop(context.Background()) })
	return store.NewCommitter(r, w, o), r
}

// submit submits units in the background, in their order: Write queues all
// before it waits for any.
func submit(c *store.Committer, ctx context.Context, units ...*store.Unit) <-chan []error {
	done := make(chan []error, 1)
	go func() { done <- c.Write(ctx, units) }()
	return done
}

func TestCommitterTakesWhatQueuedWhileTheLastCommitRan(t *testing.T) {
	g := newGate()
	c, _ := oneLane(t, g, store.CommitterOptions{MaxBatch: 3})
	first := submit(c, t.Context(), unit("a", nil))
	if n := len(<-g.started); n != 1 {
		t.Fatalf("a lone unit waited for others: batch of %d", n)
	}
	var units []*store.Unit
	for i := range 5 {
		units = append(units, unit(fmt.Sprint("o", i), func(*store.View) error { return fmt.Errorf("result %d", i) }))
	}
	rest := submit(c, t.Context(), append([]*store.Unit{unit("b", nil)}, units...)...)
	waitFor(t, c, 6)
	g.pass <- struct{}{}
	<-first
	sizes := []int{len(<-g.started)}
	g.pass <- struct{}{}
	sizes = append(sizes, len(<-g.started))
	g.pass <- struct{}{}
	if sizes[0] != 3 || sizes[1] != 3 {
		t.Fatalf("batches of %v, want the six that had queued in two batches of three", sizes)
	}
	for i, err := range (<-rest)[1:] {
		if err == nil || err.Error() != fmt.Sprintf("result %d", i) {
			t.Fatalf("unit %d got %v", i, err)
		}
	}
}

func TestCommitterNeverPutsOneOrderOrKeyTwiceIntoABatch(t *testing.T) {
	g := newGate()
	c, _ := oneLane(t, g, store.CommitterOptions{})
	key := [32]byte{1}
	withKey := func(order string) *store.Unit { u := unit(order, nil); u.Key = &key; return u }
	block := submit(c, t.Context(), unit("z", nil))
	<-g.started
	// a twice; b and c share a key; the second b must not overtake the first.
	done := submit(c, t.Context(), unit("a", nil), withKey("c"), withKey("b"), unit("b", nil), unit("a", nil), unit("d", nil))
	waitFor(t, c, 6)
	g.pass <- struct{}{}
	<-block
	want := []string{"a c d", "b a", "b"}
	for _, w := range want {
		var got []string
		for _, u := range <-g.started {
			got = append(got, u.Order.OrderNo)
		}
		if strings.Join(got, " ") != w {
			t.Fatalf("batch %v, want %s", got, w)
		}
		g.pass <- struct{}{}
	}
	<-done
}

func TestCommitterNeverPutsOneNoticeTwiceIntoABatch(t *testing.T) {
	g := newGate()
	c, _ := oneLane(t, g, store.CommitterOptions{})
	told := func(order, account string) *store.Unit {
		u := unit(order, nil)
		u.Notice = &store.NoticeID{Account: account, EventID: "e"}
		return u
	}
	batch, results := batchOf(t, g, c, t.Context(), told("a", "1"), told("b", "1"), told("c", "2"), unit("b", nil))
	second := make(chan int)
	go func() {
		g.pass <- struct{}{}
		second <- len(<-g.started) // b with the notice; the later b must not overtake it
		g.pass <- struct{}{}
		<-g.started
		g.pass <- struct{}{}
	}()
	if n := <-second; len(batch) != 2 || batch[0].Order.OrderNo != "a" || batch[1].Order.OrderNo != "c" || n != 1 {
		t.Errorf("batches of %d and %d units", len(batch), n)
	}
	<-results
}

func TestCommitterPanicIsTheUnitsError(t *testing.T) {
	g := newGate()
	c, _ := oneLane(t, g, store.CommitterOptions{})
	done := submit(c, t.Context(), unit("a", func(*store.View) error { panic("boom") }))
	<-g.started
	g.pass <- struct{}{}
	if err := (<-done)[0]; err == nil || !strings.Contains(err.Error(), "boom") {
		t.Fatalf("got %v", err)
	}
	after := submit(c, t.Context(), unit("a", nil))
	<-g.started
	g.pass <- struct{}{}
	if err := (<-after)[0]; err != nil {
		t.Fatalf("the lane is dead: %v", err)
	}
}

type panicking struct{}

func (panicking) Write(context.Context, []*store.Unit) []error { panic("store") }

func TestCommitterStorePanicIsUnknownOutcome(t *testing.T) {
	c, _ := oneLane(t, panicking{}, store.CommitterOptions{})
	for range 2 {
		if err := c.Submit(t.Context(), unit("a", nil)); !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestCommitterContextEnds(t *testing.T) {
	g := newGate()
	c, _ := oneLane(t, g, store.CommitterOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	running := submit(c, ctx, unit("a", nil))
	<-g.started
	ran := false
	queued := submit(c, ctx, unit("b", func(*store.View) error { ran = true; return nil }))
	waitFor(t, c, 1)
	cancel()
	if err := (<-queued)[0]; !errors.Is(err, context.Canceled) {
		t.Fatalf("queued: %v", err)
	}
	select {
	case err := <-running:
		t.Fatalf("a started unit returned %v before its result", err)
	default:
	}
	g.pass <- struct{}{}
	if err := (<-running)[0]; err != nil || ran {
		t.Fatalf("running: %v, queued one ran: %v", err, ran)
	}
	if err := c.Submit(ctx, unit("c", nil)); !errors.Is(err, context.Canceled) {
		t.Fatalf("ended before: %v", err)
	}
}

func TestCommitterBoundedQueueAndEnd(t *testing.T) {
	g := newGate()
	c, r := oneLane(t, g, store.CommitterOptions{MaxQueue: 2})
	running := submit(c, t.Context(), unit("a", nil))
	<-g.started
	results := submit(c, t.Context(), unit("b", nil), unit("c", nil), unit("d", nil))
	waitFor(t, c, 2)
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop(context.Background()) }()
	g.pass <- struct{}{}
	if err := (<-running)[0]; err != nil {
		t.Fatalf("the batch under way was cut: %v", err)
	}
	// Between Stop and its notice one more batch may start; let it through.
	for {
		select {
		case <-g.started:
			g.pass <- struct{}{}
			continue
		case <-stopped:
		}
		break
	}
	if err := (<-results)[2]; !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("full queue: %v", err)
	}
	if err := c.Submit(t.Context(), unit("e", nil)); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("after the end: %v", err)
	}
}

// TestB11LanesAreTheSameInEveryRun, and orders whose numbers are alike spread over
// them.
func TestB11LanesAreTheSameInEveryRun(t *testing.T) {
	for no, want := range map[string]int{"A-1": 2, "A-2": 1, "A-3": 2, "A-4": 1} {
		if got := store.LaneOf(payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: no}, 3); got != want {
			t.Errorf("%s goes through lane %d, want %d", no, got, want)
		}
	}
	var count [2]int
	for i := range 1000 {
		count[store.LaneOf(payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: fmt.Sprint(2 * i)}, 2)]++
	}
	if count[0] < 400 || count[1] < 400 {
		t.Errorf("1000 orders went %v", count)
	}
}

// TestCommitterSerializesOrders: whatever is submitted by whomever, units of one
// order run one after the other and none is lost.
func TestCommitterSerializesOrders(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := run.NewLive(nil)
		m := &model{running: map[string]bool{}, count: map[string]int{}}
		c := store.NewCommitter(r, m, store.CommitterOptions{Lanes: rapid.IntRange(1, 3).Draw(rt, "lanes"), MaxBatch: rapid.IntRange(1, 5).Draw(rt, "batch")})
		orders := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 40).Draw(rt, "orders")
		var wg sync.WaitGroup
		for _, o := range orders {
			wg.Go(func() {
				if err := c.Submit(context.Background(), unit(o, nil)); err != nil {
					rt.Errorf("%s: %v", o, err)
				}
			})
		}
		wg.Wait()
		_ = r.Stop(context.Background())
		total := 0
		for _, n := range m.count {
			total += n
		}
		if m.raced || total != len(orders) {
			rt.Fatalf("raced %v, %d of %d ran", m.raced, total, len(orders))
		}
	})
}

type model struct {
	mu      sync.Mutex
	running map[string]bool
	count   map[string]int
	raced   bool
}

func (m *model) Write(_ context.Context, units []*store.Unit) []error {
	each := func(f func(order string)) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, u := range units {
			f(u.Order.OrderNo)
		}
	}
	each(func(o string) { m.raced = m.raced || m.running[o]; m.running[o] = true; m.count[o]++ })
	each(func(o string) { m.running[o] = false })
	return make([]error, len(units))
}

// waitFor polls until n units wait: queueing gives no signal of its own.
func waitFor(t *testing.T, c *store.Committer, n int) {
	t.Helper()
	for c.Queued() < n {
		if t.Context().Err() != nil {
			t.Fatal("the units were never queued")
		}
		runtime.Gosched()
	}
}
