package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// patient is a limit for races: dozens of writers that queue for one row on a busy
// machine are not what the limits are for.
const patient = time.Minute

// testSlotRace: 16 racers want to pay each of 50 orders, in batches of their own
// order. Exactly one payment per order is made and everybody knows who lost.
func testSlotRace(t *testing.T, e Engine) {
	const orders, racers, size = 50, 16, 10
	log := &recorder{}
	f := e.open(t, sqlstore.Options{Logger: slog.New(log), LockWait: patient, Timeout: patient})
	var won [orders]atomic.Int64
	var wg sync.WaitGroup
	for r := range racers {
		order := rand.New(rand.NewPCG(1, uint64(r))).Perm(orders)
		wg.Go(func() {
			for start := 0; start < orders; start += size {
				var units []*store.Unit
				for _, o := range order[start : start+size] {
					units = append(units, pay(fmt.Sprint("o", o), fmt.Sprintf("k%d-%d", r, o), nil))
				}
				for i, err := range f.Write(context.Background(), units) {
					switch {
					case err == nil:
						won[order[start+i]].Add(1)
					case !errors.Is(err, payonce.ErrSlotTaken):
						t.Errorf("racer %d: %v", r, err)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := log.count("deadlock"); n > 0 && !e.InsertsDeadlock {
		t.Errorf("%d deadlocks although batches insert in one order", n)
	}
	for o := range won {
		if n := won[o].Load(); n != 1 {
			t.Errorf("order %d: %d racers were told that they won", o, n)
		}
	}
	for _, table := range []string{"orders", "payments", "idempotency_keys"} {
		if n := f.count("SELECT COUNT(*) FROM " + table); n != orders {
			t.Errorf("%d rows in %s, want %d", n, table, orders)
		}
	}
}

// testKeyRace: 64 first requests for one key at once; also when they name
// different orders, one payment is made.
func testKeyRace(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{LockWait: patient, Timeout: patient})
	for name, orderNo := range map[string]func(int) string{
		"one order":   func(int) string { return "same" },
		"many orders": func(i int) string { return fmt.Sprint("o", i) },
	} {
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				switch err := f.write(pay(orderNo(i), name, nil)); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, errKnown):
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%s: %d of 64 requests were the first", name, won.Load())
		}
	}
	if n := f.count("SELECT COUNT(*) FROM payments"); n != 2 {
		t.Errorf("%d payments", n)
	}
}

// testShuffledBatches: writers that name the same orders in any sequence never
// deadlock, so no batch is taken apart.
func testShuffledBatches(t *testing.T, e Engine) {
	const orders, batches, size = 20, 64, 12
	log := &recorder{}
	f := e.open(t, sqlstore.Options{Logger: slog.New(log), MaxConns: 16, LockWait: patient, Timeout: patient})
	for o := range orders {
		f.must(pay(fmt.Sprint("o", o), fmt.Sprint("k", o), nil))
	}
	var wg sync.WaitGroup
	for b := range batches {
		order := rand.New(rand.NewPCG(2, uint64(b))).Perm(orders)[:size]
		wg.Go(func() {
			var units []*store.Unit
			for _, o := range order {
				units = append(units, touch(fmt.Sprint("o", o)))
			}
			for _, err := range f.Write(context.Background(), units) {
				if err != nil {
					t.Errorf("batch %d: %v", b, err)
				}
			}
		})
	}
	wg.Wait()
	if n := f.count("SELECT SUM(version) FROM orders"); n != orders+batches*size {
		t.Errorf("versions sum to %d, want %d: writes were lost or done twice", n, orders+batches*size)
	}
	if n := log.count("taken apart"); n > 0 {
		t.Errorf("%d batches were taken apart", n)
	}
}

// touch is a unit that adds one piece of evidence and moves the payment.
func touch(no string) *store.Unit {
	u := &store.Unit{Order: orderKey(no), Actor: "worker", Salt: salt()}
	u.Decide = func(v *store.View) error {
		p := v.Payments[0]
		p.Asks++
		v.Evidence = append(v.Evidence, store.Evidence{ID: v.NewID(payonce.PrefixEvidence), OrderID: v.Order.ID, PaymentID: p.ID, Kind: "unknown", Source: "query"})
		return nil
	}
	return u
}

// recorder is a log handler that keeps messages.
type recorder struct {
	mu       sync.Mutex
	messages []string
}

// Enabled implements slog.Handler.
func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := rec.Message
	rec.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	r.messages = append(r.messages, strings.ToLower(text))
	return nil
}

// WithAttrs implements slog.Handler.
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler { return r }

// WithGroup implements slog.Handler.
func (r *recorder) WithGroup(string) slog.Handler { return r }

func (r *recorder) count(part string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, m := range r.messages {
		if strings.Contains(m, part) {
			n++
		}
	}
	return n
}
