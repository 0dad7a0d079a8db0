package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/payonce/payonce/internal/store"
)

// batchOf lets a lone unit start, queues units behind it, and returns the batch
// that they make and its results.
func batchOf(t *testing.T, g *gate, c *store.Committer, ctx context.Context, units ...*store.Unit) ([]*store.Unit, <-chan []error) {
	t.Helper()
	first := submit(c, t.Context(), unit("first", nil))
	<-g.started
	results := submit(c, ctx, units...)
	waitFor(t, c, len(units))
	g.pass <- struct{}{}
	<-first
	return <-g.started, results
}

// TestA2CommitterSetsASuspectAside: an order whose unit the store could not write
// delays its neighbours once; from then on it runs in a lane of its own, until it
// has gone well for a while.
func TestA2CommitterSetsASuspectAside(t *testing.T) {
	for _, failure := range []error{store.ErrUnavailable, store.ErrConflict} {
		g := newGate()
		c, _ := oneLane(t, g, store.CommitterOptions{})
		bad := func() *store.Unit {
			return unit("bad", func(*store.View) error { return fmt.Errorf("%w: held", failure) })
		}
		batch, results := batchOf(t, g, c, t.Context(), bad(), unit("good", nil))
		g.pass <- struct{}{}
		if got := <-results; len(batch) != 2 || !errors.Is(got[0], failure) || got[1] != nil {
			t.Fatalf("batch of %d: %v", len(batch), got)
		}
		again := submit(c, t.Context(), bad())
		if b := <-g.started; len(b) != 1 || b[0].Order.OrderNo != "bad" {
			t.Fatalf("the suspect shares a batch: %v", b)
		}
		other := submit(c, t.Context(), unit("good", nil))
		if b := <-g.started; b[0].Order.OrderNo != "good" {
			t.Fatalf("%s ran before its neighbour", b[0].Order.OrderNo)
		}
		g.pass <- struct{}{} // the suspect's batch and its neighbour's, in whatever turn
		g.pass <- struct{}{}
		<-again
		<-other
		for range 8 {
			done := submit(c, t.Context(), unit("bad", nil))
			<-g.started
			g.pass <- struct{}{}
			<-done
		}
		batch, results = batchOf(t, g, c, t.Context(), unit("bad", nil), unit("good", nil))
		g.pass <- struct{}{}
		if <-results; len(batch) != 2 {
			t.Errorf("after eight good results the order still runs alone: batch of %d", len(batch))
		}
	}
}

// TestA2CommitterBlamesNobodyForADeadStore: when all of a batch failed, no order
// is set aside.
func TestA2CommitterBlamesNobodyForADeadStore(t *testing.T) {
	g := newGate()
	c, _ := oneLane(t, g, store.CommitterOptions{})
	down := func(*store.View) error { return store.ErrUnavailable }
	for range 2 {
		batch, results := batchOf(t, g, c, t.Context(), unit("a", down), unit("b", down))
		g.pass <- struct{}{}
		if <-results; len(batch) != 2 {
			t.Errorf("batch of %d", len(batch))
		}
	}
}

// deadlines is a Writer that reports the deadline of each batch.
type deadlines struct {
	gate
	until chan time.Time
}

func (d *deadlines) Write(ctx context.Context, units []*store.Unit) []error {
	t, _ := ctx.Deadline()
	d.started <- units
	d.until <- t
	<-d.pass
	return make([]error, len(units))
}

// TestA2CommitterBatchEndsWithItsCallers: the batch is tried until shortly after
// the last of its callers stops waiting, and as long as it takes when one of them
// waits so long; ending them does not end it.
func TestA2CommitterBatchEndsWithItsCallers(t *testing.T) {
	d := &deadlines{*newGate(), make(chan time.Time, 1)}
	c, _ := oneLane(t, d, store.CommitterOptions{})
	soon, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	later, cancel2 := context.WithDeadline(t.Context(), time.Now().Add(2*time.Hour))
	defer cancel2()
	last, _ := later.Deadline()
	for name, endless := range map[string]bool{"deadlines": false, "one without": true} {
		first := submit(c, t.Context(), unit("first", nil))
		<-d.started
		if u := <-d.until; !u.IsZero() {
			t.Errorf("%s: a caller without a deadline got %v", name, u)
		}
		all := []<-chan []error{submit(c, later, unit("b", nil)), submit(c, soon, unit("a", nil))}
		if endless {
			all = append(all, submit(c, t.Context(), unit("c", nil)))
		}
		waitFor(t, c, len(all))
		d.pass <- struct{}{}
		<-first
		if n := len(<-d.started); n != len(all) {
			t.Fatalf("%s: batch of %d", name, n)
		}
		u := <-d.until
		if endless != u.IsZero() || !endless && (u.Before(last) || u.After(last.Add(time.Minute))) {
			t.Errorf("%s: until %v, the last caller waits until %v", name, u, last)
		}
		d.pass <- struct{}{}
		for _, r := range all {
			<-r
		}
	}
}
