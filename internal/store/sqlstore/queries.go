package sqlstore

import "strings"

// queries are the texts that do not depend on a number of rows.
type queries struct {
	now, nowAndKeys, orders, payments, paymentsOf, charges, versions, known, replay string
}

// newQueries builds them once. %IN% stands for a condition on a list.
func newQueries(d Dialect) queries {
	hint, suffix := d.Locking("orders_key")
	return queries{
		now: "SELECT " + d.Now(),
		nowAndKeys: "SELECT n.now_us, " + keyRows.read + " FROM (SELECT " + d.Now() + " AS now_us) n" +
			" LEFT JOIN idempotency_keys t ON t.id %IN%",
		orders: "SELECT " + orderRows.read + " FROM orders t" + hint +
			" WHERE t.key_hash %IN% ORDER BY t.key_hash" + suffix,
		payments: "SELECT " + paymentRows.read + " FROM payments t WHERE t.order_id %IN% ORDER BY t.order_id, t.sequence",
		paymentsOf: "SELECT " + paymentRows.read + " FROM orders o JOIN payments t ON t.order_id = o.id" +
			" WHERE o.key_hash %IN% ORDER BY t.order_id, t.sequence",
		known:   "SELECT id FROM idempotency_keys WHERE id %IN%",
		charges: "SELECT " + chargeRows.read + " FROM charges t WHERE t.order_id %IN% ORDER BY t.order_id, t.id",
		replay: "SELECT " + d.Now() + ", " + prefixed(keyRows.read, "k.") + ", " + prefixed(orderRows.read, "o.") + ", " +
			prefixed(paymentRows.read, "p.") + ", " + prefixed(answerRows.read, "a.") +
			" FROM idempotency_keys k JOIN orders o ON o.id = k.order_id" +
			" LEFT JOIN payments p ON p.id = k.payment_id" +
			" LEFT JOIN answers a ON a.payment_id = p.id AND a.status = p.status WHERE k.id %IN%",
		versions: "SELECT id, version FROM payments WHERE id %IN%",
	}
}

// in completes a query with a list: one argument where the engine takes a list
// as such, else the number of placeholders is a power of two and the last value
// fills up. Few texts keep the caches of prepared statements small.
func (s *Store) in(query string, kind Kind, values []any) (string, []any) {
	if l, ok := s.d.(Lists); ok {
		condition, arg := l.List(kind, values)
		return s.d.Rebind(strings.Replace(query, "%IN%", condition, 1)), []any{arg}
	}
	n := 1
	for n < len(values) {
		n *= 2
	}
	args := make([]any, n)
	copy(args, values)
	for i := len(values); i < n; i++ {
		args[i] = values[len(values)-1]
	}
	return s.d.Rebind(strings.Replace(query, "%IN%", "IN ("+Marks(n)+")", 1)), args
}

// prefixed names the columns of a read list by another alias.
func prefixed(read, alias string) string {
	return alias + strings.ReplaceAll(strings.TrimPrefix(read, "t."), ", t.", ", "+alias)
}
