package storetest

import (
	"bytes"
	"testing"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// testLife: a payment from its intent to its answer, read back on every way.
func testLife(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	var id string
	f.must(pay("o1", "k1", &id))
	f.must(settle("o1", id, "ref1"))

	got, err := f.Order(t.Context(), orderKey("o1"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Order.Status != payonce.OrderPaid || got.Order.AmountPaid != 10000 || got.Order.Reserved != 0 || got.Order.Version != 2 {
		t.Fatalf("order: %+v", got.Order)
	}
	if len(got.Payments) != 1 || got.Payments[0].Status != payonce.Succeeded || got.Payments[0].Revision != 2 {
		t.Fatalf("payments: %+v", got.Payments)
	}
	r, err := f.Replay(t.Context(), *recordID("k1"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Payment.ID != id || r.Answer == nil || r.Answer.HTTPStatus != 201 || r.Order.ID != got.Order.ID || r.Now.IsZero() {
		t.Fatalf("replay: %+v", r)
	}
	f.verifyAudit(t, got.Order.ID)
}

// verifyAudit recomputes the whole chain of an order.
func (f *fixture) verifyAudit(t *testing.T, orderID string) {
	t.Helper()
	audit, err := f.Audit(t.Context(), orderID)
	if err != nil || len(audit) == 0 {
		t.Fatalf("audit: %v %v", audit, err)
	}
	var head [32]byte
	for i, a := range audit {
		if a.N != int64(i+1) || !payonce.VerifyAudit(head, a.Salt, &a.AuditEntry) {
			t.Fatalf("audit entry %d does not verify", a.N)
		}
		head = a.Hash
	}
	var stored []byte
	if err := f.DB().QueryRow(f.Dialect().Rebind("SELECT audit_head FROM orders WHERE id = ?"), orderID).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(head[:], stored) {
		t.Fatal("the order's audit head is not the last entry")
	}
}
