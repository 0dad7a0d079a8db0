package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// blocker is a stranger's transaction that holds the row of an order, and can
// tell when somebody waits for it.
type blocker struct {
	*fixture
	tx      *sql.Tx
	session any
}

func (f *fixture) block(no string) *blocker {
	f.Helper()
	tx, err := f.DB().BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		f.Fatal(err)
	}
	b := &blocker{fixture: f, tx: tx}
	if err = tx.QueryRow(f.engine.Session).Scan(&b.session); err == nil {
		_, err = tx.Exec(f.Dialect().Rebind("UPDATE orders SET updated_at = updated_at + 1 WHERE key_hash = ?"), hashOf(no))
	}
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// waited returns when somebody waits for the row. The server says so; some keep
// what they say for a tenth of a second.
func (b *blocker) waited() {
	b.Helper()
	for deadline := live.Now().Add(time.Minute); ; {
		if b.count(b.engine.Blocked, b.session) > 0 {
			return
		}
		if live.Now().After(deadline) {
			b.Fatal("nobody ran into the lock")
		}
		tick, _ := live.After(150 * time.Millisecond)
		<-tick
	}
}

func (b *blocker) release() { _ = b.tx.Rollback() }

// testTwinBetweenReads: a twin makes the order and its key after our statement
// has looked for the order and before we look for the key. A decision must never
// be shown the key without its order and payment.
//
// The statement that locks the batch's orders is made to wait for another row; on
// every engine it has looked past the missing order by then, which is why that
// one has the smaller lock name.
func testTwinBetweenReads(t *testing.T, e Engine) {
	if e.OneWriter {
		t.Skip("one writer: no twin commits within a transaction")
	}
	f := e.open(t, sqlstore.Options{LockWait: time.Minute, Timeout: 2 * time.Minute})
	for round := range 3 {
		missing, held := fmt.Sprint("a", round), fmt.Sprint("b", round)
		if bytes.Compare(hashOf(missing), hashOf(held)) > 0 {
			missing, held = held, missing
		}
		f.must(pay(held, held, nil))
		key := "key of " + missing
		stranger := f.block(held)
		var twin string
		calls := 0
		u := pay(missing, key, nil)
		u.Decide = func(v *store.View) error {
			calls++
			if v.Key == nil || v.Created || v.Payment(v.Key.PaymentID) == nil {
				t.Errorf("round %d: the decision was shown key %v, created %v, %d payments", round, v.Key, v.Created, len(v.Payments))
			}
			return errKnown
		}
		done := make(chan []error, 1)
		var writer sync.WaitGroup
		writer.Go(func() { done <- f.Write(context.Background(), []*store.Unit{touch(held), u}) })
		stranger.waited()
		f.must(pay(missing, key, &twin))
		stranger.release()
		results := <-done
		writer.Wait()
		if results[0] != nil || !errors.Is(results[1], errKnown) || calls != 1 {
			t.Errorf("round %d: %v, decided %d times", round, results, calls)
		}
		if n := f.count("SELECT COUNT(*) FROM payments WHERE id = ?", twin); n != 1 {
			t.Errorf("round %d: the twin's payment is gone", round)
		}
	}
}

// testTwins: two processes get the same requests at once, many times over. Each
// decision sees a key together with the payment that it names.
func testTwins(t *testing.T, e Engine) {
	o := sqlstore.Options{LockWait: patient, Timeout: patient}
	f := e.open(t, o)
	processes := []*sqlstore.Store{f.Store, f.again(o)}
	const rounds, size = 4, 50
	for round := range rounds {
		var wg sync.WaitGroup
		for range 2 {
			for _, s := range processes {
				units := make([]*store.Unit, size)
				for i := range units {
					no := fmt.Sprint("o", round, "-", i)
					u := pay(no, no, nil)
					inner := u.Decide
					u.Decide = func(v *store.View) error {
						if v.Key != nil && (v.Created || v.Payment(v.Key.PaymentID) == nil) {
							t.Errorf("%s: key without its payment, created %v", no, v.Created)
						}
						return inner(v)
					}
					units[i] = u
				}
				wg.Go(func() {
					for i, err := range s.Write(context.Background(), units) {
						if err != nil && !errors.Is(err, errKnown) {
							t.Errorf("round %d, unit %d: %v", round, i, err)
						}
					}
				})
			}
		}
		wg.Wait()
	}
	if n := f.count("SELECT COUNT(*) FROM payments"); n != rounds*size {
		t.Errorf("%d payments, want %d", n, rounds*size)
	}
}
