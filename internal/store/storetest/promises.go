package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/payonce/payonce/internal/store/sqlstore"
)

// promise is a statement that the schema has to refuse. The good arguments show
// that nothing else is in its way.
type promise struct {
	name      string // of the constraint, then what engines call it in errors
	setup     string // makes room for the statement
	statement string
	good, bad []any
}

// testPromises: the database repeats the rules about money, whoever writes.
func testPromises(t *testing.T, e Engine) {
	f := e.open(t, sqlstore.Options{})
	var p1, p2 string
	f.must(pay("o1", "k1", &p1))
	f.must(pay("o2", "k2", &p2))
	var s1, s2 string
	f.must(pay("s1", "k3", &s1))
	f.must(settle("s1", s1, "ref1"))
	f.must(pay("s2", "k4", &s2))
	f.must(settle("s2", s2, "ref2"))
	o1, _ := f.Order(t.Context(), orderKey("o1"))
	o2, _ := f.Order(t.Context(), orderKey("o2"))
	q1, _ := f.Order(t.Context(), orderKey("s1"))
	x1, _ := f.Order(t.Context(), orderKey("s2"))

	for _, p := range append(slotPromises(o1.Order.ID, o2.Order.ID, q1.Order.ID, x1.Order.ID, p1, p2, s2), otherPromises(o1.Order.ID, o2.Order.ID, p1, p2, s1, s2)...) {
		f.refuses(t, p)
	}
}

func (f *fixture) refuses(t *testing.T, p promise) {
	t.Helper()
	try := func(args []any) error {
		tx, err := f.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if p.setup != "" {
			if _, err := tx.ExecContext(t.Context(), p.setup); err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
		}
		_, err = tx.ExecContext(t.Context(), f.Dialect().Rebind(p.statement), args...)
		return err
	}
	if err := try(p.good); err != nil {
		t.Errorf("%s: the harmless statement was refused: %v", p.name, err)
	}
	err := try(p.bad)
	if err == nil {
		t.Errorf("%s: was not refused", p.name)
		return
	}
	class, _ := f.Dialect().Classify(err)
	if class != sqlstore.ClassDuplicate && class != sqlstore.ClassRefused {
		t.Errorf("%s: class %d of %v", p.name, class, err)
	}
	called := func(name string) bool { return strings.Contains(err.Error(), name) }
	if !slices.ContainsFunc(strings.Split(p.name, "|"), called) {
		t.Errorf("%s: refused for another reason: %v", p.name, err)
	}
}

func slotPromises(o1, o2, paid1, paid2, p1, p2, s2 string) []promise {
	return []promise{
		{"payments_live|payments.live_slot", "", "UPDATE payments SET order_id = ?, sequence = 2, live_slot = ? WHERE id = ?",
			[]any{o2, o2 + ":", p2}, []any{o1, o1 + ":", p2}},
		{"payments_effective|payments.effective_slot", "", "UPDATE payments SET order_id = ?, sequence = 2, effective_slot = ? WHERE id = ?",
			[]any{paid2, paid2 + ":", s2}, []any{paid1, paid1 + ":", s2}},
		{"payments_live_slot", "", "UPDATE payments SET live_slot = NULL, superseded = ? WHERE id = ?", []any{1, p1}, []any{0, p1}},
		{"payments_live_name", "", "UPDATE payments SET live_slot = ? WHERE id = ?", []any{o1 + ":", p1}, []any{o1 + ":x", p1}},
		{"payments_effective_slot", "", "UPDATE payments SET effective_slot = NULL, effective = ? WHERE id = ?", []any{0, s2}, []any{1, s2}},
		{"payments_effective_name", "", "UPDATE payments SET effective_slot = ? WHERE id = ?", []any{paid2 + ":", s2}, []any{paid2, s2}},
		{"payments_pays", "", "UPDATE payments SET effective = ?, effective_slot = ? WHERE id = ?", []any{0, nil, p1}, []any{1, o1 + ":", p1}},
		{"payments_sequence|payments.order_id, payments.sequence", "", "UPDATE payments SET order_id = ?, live_slot = NULL, superseded = 1, sequence = ? WHERE id = ?",
			[]any{o1, 2, p2}, []any{o1, 1, p2}},
	}
}

func otherPromises(o1, o2, p1, p2, s1, s2 string) []promise {
	return []promise{
		{"orders_room", "", "UPDATE orders SET amount_paid = ? WHERE id = ?", []any{0, o1}, []any{1, o1}},
		{"orders_amount", "", "UPDATE orders SET reserved = 0, amount = ? WHERE id = ?", []any{1, o1}, []any{0, o1}},
		{"orders_sums", "", "UPDATE orders SET reserved = ? WHERE id = ?", []any{0, o1}, []any{-1, o1}},
		{"orders_status", "", "UPDATE orders SET status = ? WHERE id = ?", []any{"CLOSING", o1}, []any{"open", o1}},
		{"orders_paid", "", "UPDATE orders SET status = 'PAID', reserved = 0, amount_paid = ? WHERE id = ?", []any{10000, o1}, []any{9999, o1}},
		{"orders_currency", "", "UPDATE orders SET currency = ? WHERE id = ?", []any{"EUR", o1}, []any{"eur", o1}},
		{"orders_policy", "", "UPDATE orders SET policy = ? WHERE id = ?", []any{"split", o1}, []any{"", o1}},
		{"orders_environment", "", "UPDATE orders SET environment = ? WHERE id = ?", []any{"live", o1}, []any{"Live", o1}},
		{"orders_key|orders.key_hash", "", "UPDATE orders SET key_hash = ? WHERE id = ?", []any{hashOf("fresh"), o1}, []any{hashOf("o2"), o1}},
		{"payments_evidence", "", "UPDATE payments SET status = 'FAILED', live_slot = NULL, evidence_id = ? WHERE id = ?", []any{"evd_1", p1}, []any{"", p1}},
		{"payments_status", "", "UPDATE payments SET live_slot = ?, status = ? WHERE id = ?", []any{o1 + ":", "PENDING", p1}, []any{nil, "Pending", p1}},
		{"payments_amount", "", "UPDATE payments SET amount = ? WHERE id = ?", []any{1, p1}, []any{0, p1}},
		{"payments_currency", "", "UPDATE payments SET currency = ? WHERE id = ?", []any{"EUR", p1}, []any{"EURO", p1}},
		{"orders_counters", "", "UPDATE orders SET last_sequence = ? WHERE id = ?", []any{1000, o1}, []any{1001, o1}},
		{"payments_due_live", "", "UPDATE payments SET lease_owner = '', due_at = ? WHERE id = ?", []any{1, p1}, []any{nil, p1}},
		{"payments_leased", "", "UPDATE payments SET due_at = NULL, lease_owner = ? WHERE id = ?", []any{"", s1}, []any{"n", s1}},
		{"payments_flags", "", "UPDATE payments SET seen = ? WHERE id = ?", []any{1, p1}, []any{2, p1}},
		{"payments_number|payments.number, payments.account", "UPDATE payments SET number = 'N', account = 'A' WHERE id = '" + p1 + "'",
			"UPDATE payments SET number = 'N', account = ? WHERE id = ?", []any{"a", p2}, []any{"A", p2}},
		{"payments_object|payments.object_id, payments.account", "UPDATE payments SET object_id = 'pi_1' WHERE id = '" + p1 + "'",
			"UPDATE payments SET object_id = ? WHERE id = ?", []any{"pi_1 ", p2}, []any{"pi_1", p2}},
		{"charges_ref|charges.payment_ref, charges.account", "", "UPDATE charges SET payment_ref = ? WHERE payment_id = ?", []any{"ref3", s2}, []any{"ref1", s2}},
		{"charges_evidence", "", "UPDATE charges SET evidence_id = ? WHERE payment_id = ?", []any{"evd_1", s1}, []any{"", s1}},
		{"charges_kind", "", "UPDATE charges SET kind = ? WHERE payment_id = ?", []any{"surplus", s1}, []any{"good", s1}},
		{"idempotency_keys_pkey|idempotency_keys.id|PRIMARY", "", "UPDATE idempotency_keys SET id = ? WHERE payment_id = ?", []any{recordID("new")[:], p2}, []any{recordID("k1")[:], p2}},
		{"idempotency_keys_payment", "", "UPDATE idempotency_keys SET payment_id = ? WHERE payment_id = ?", []any{"pay_x", p2}, []any{"", p2}},
		{"audit_pkey|audit.order_id, audit.n|PRIMARY", "", "UPDATE audit SET order_id = ?, n = ? WHERE order_id = '" + o2 + "' AND n = 1", []any{o1, 77}, []any{o1, 1}},
		{"events_once|events.subject, events.type, events.change_no", "", "UPDATE events SET subject = ? WHERE type = 'payment.succeeded' AND subject = ?", []any{"pay_x", s2}, []any{s1, s2}},
		{"events_feed_no", "", "UPDATE events SET feed_no = ? WHERE type = 'payment.succeeded' AND subject = ?", []any{1, s1}, []any{0, s1}},
		{"events_feed|events.feed_no", "UPDATE events SET feed_no = 1 WHERE type = 'payment.succeeded' AND subject = '" + s1 + "'",
			"UPDATE events SET feed_no = ? WHERE type = 'payment.succeeded' AND subject = ?", []any{2, s2}, []any{1, s2}},
		{"notices_pkey|notices.account, notices.event_id|PRIMARY", "",
			"INSERT INTO notices (account, event_id, status, type, object_id, number, payment_id, headers, body, received_at) " +
				"VALUES ('a', 'e1', 'parked', '', '', '', '', '{}', ?, 1), ('a', ?, 'parked', '', '', '', '', '{}', ?, 1)",
			[]any{[]byte{}, "E1", []byte{}}, []any{[]byte{}, "e1", []byte{}}},
		{"installation_one", "", "UPDATE installation SET one = ? WHERE one = 1", []any{1}, []any{2}},
	}
}

func hashOf(orderNo string) []byte {
	h := sqlstore.KeyHash(orderKey(orderNo))
	return h[:]
}
