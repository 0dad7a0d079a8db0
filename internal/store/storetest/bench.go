package storetest

import (
	"fmt"
	"testing"

	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// Bench compares first transactions of payments (order, payment, record, event
// and audit rows) in batches of several sizes with one durable insert of a
// single row. Each operation is one unit, or one row.
func Bench(b *testing.B, e Engine) {
	f := e.open(b, sqlstore.Options{})
	b.Run("row", func(b *testing.B) {
		for b.Loop() {
			_, err := f.DB().Exec(f.Dialect().Rebind("INSERT INTO evidence (payment_id, id, order_id, kind, source, number, permit, fence, detail, raw, made_at)"+
				" VALUES (?, ?, 'ord_1', 'unknown', 'query', '', 0, 0, '', ?, 0)"), "pay_1", newID("evd_"), []byte("x"))
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, size := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("units-%d", size), func(b *testing.B) {
			n := 0
			for b.Loop() {
				if n%size != 0 {
					n++
					continue // the batch that holds this unit has been written
				}
				n++
				b.StopTimer()
				units := make([]*store.Unit, size)
				for i := range units {
					no := fmt.Sprint("b", serial.Add(1))
					units[i] = pay(no, no, nil)
				}
				b.StartTimer()
				for _, err := range f.Write(b.Context(), units) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	benchNotices(b, f)
	b.Run("replay", func(b *testing.B) {
		f.must(pay("replay", "replay", nil))
		for b.Loop() {
			if _, err := f.Replay(b.Context(), *recordID("replay")); err != nil {
				b.Fatal(err)
			}
		}
	})
}
