package sqlstore

import "strings"

// queries are the texts that do not depend on a number of rows.
type queries struct {
	now, nowAndKeys, orders, payments, charges, versions, replay string
}

// newQueries builds them once. %IN% stands for a list of placeholders.
func newQueries(d Dialect) queries {
	hint, suffix := d.Locking("orders_key")
	return queries{
		now: "SELECT " + d.Now(),
		nowAndKeys: "SELECT n.now_us, " + keyRows.read + " FROM (SELECT " + d.Now() + " AS now_us) n" +
			" LEFT JOIN idempotency_keys t ON t.id IN (%IN%)",
		orders: "SELECT " + orderRows.read + " FROM orders t" + hint +
			" WHERE t.key_hash IN (%IN%) ORDER BY t.key_hash" + suffix,
		payments: "SELECT " + paymentRows.read + " FROM payments t WHERE t.order_id IN (%IN%) ORDER BY t.order_id, t.sequence",
		charges:  "SELECT " + chargeRows.read + " FROM charges t WHERE t.order_id IN (%IN%) ORDER BY t.order_id, t.id",
		replay: d.Rebind("SELECT " + d.Now() + ", " + prefixed(keyRows.read, "k.") + ", " + prefixed(orderRows.read, "o.") + ", " +
			prefixed(paymentRows.read, "p.") + ", " + prefixed(answerRows.read, "a.") +
			" FROM idempotency_keys k JOIN orders o ON o.id = k.order_id" +
			" LEFT JOIN payments p ON p.id = k.payment_id" +
			" LEFT JOIN answers a ON a.payment_id = p.id AND a.status = p.status WHERE k.id = ?"),
		versions: "SELECT id, version FROM payments WHERE id IN (%IN%)",
	}
}

// in completes a query with a list. The number of placeholders is a power of
// two, the last value fills up: few texts keep the caches of prepared
// statements small.
func (s *Store) in(query string, values []any) (string, []any) {
	n := 1
	for n < len(values) {
		n *= 2
	}
	args := make([]any, n)
	copy(args, values)
	for i := len(values); i < n; i++ {
		args[i] = values[len(values)-1]
	}
	return s.d.Rebind(strings.Replace(query, "%IN%", Marks(n), 1)), args
}

// prefixed names the columns of a read list by another alias.
func prefixed(read, alias string) string {
	return alias + strings.ReplaceAll(strings.TrimPrefix(read, "t."), ", t.", ", "+alias)
}
