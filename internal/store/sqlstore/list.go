package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// Limits of a page.
const (
	defaultPage = 50
	maxPage     = 1000
)

func page(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, maxPage)
}

// filter collects conditions.
type filter struct {
	text string
	args []any
}

func (f *filter) and(condition string, args ...any) {
	if f.text == "" {
		f.text = "WHERE " + condition
	} else {
		f.text += " AND " + condition
	}
	f.args = append(f.args, args...)
}

func scoped(s store.Scope) *filter {
	f := &filter{}
	f.and("t.merchant = ?", s.Merchant)
	f.and("t.environment = ?", string(s.Environment))
	return f
}

// newest ends a page of rows by descending id; ids rise with time.
func (f *filter) newest(after string, limit int) {
	if after != "" {
		f.and("t.id < ?", after)
	}
	f.text += " ORDER BY t.id DESC LIMIT ?"
	f.args = append(f.args, page(limit))
}

// Payments implements store.Reader.
func (s *Store) Payments(ctx context.Context, sc store.Scope, pf store.PaymentFilter) ([]*payonce.Payment, error) {
	f := scoped(sc)
	if pf.OrderNo != "" {
		hash := KeyHash(payonce.OrderKey{Merchant: sc.Merchant, Environment: sc.Environment, OrderNo: pf.OrderNo})
		f.and("t.order_id = (SELECT o.id FROM orders o WHERE o.key_hash = ?)", hash[:])
	}
	if pf.Status != "" {
		f.and("t.status = ?", string(pf.Status))
	}
	if pf.Number != "" {
		f.and("t.number = ?", pf.Number)
	}
	if pf.Key != nil {
		f.and("t.id = (SELECT k.payment_id FROM idempotency_keys k WHERE k.id = ?)", pf.Key[:])
	}
	f.newest(pf.After, pf.Limit)
	return query(ctx, s, paymentRows, f.text, f.args...)
}

// Orders implements store.Reader.
func (s *Store) Orders(ctx context.Context, sc store.Scope, of store.OrderFilter) ([]*store.OrderWithPayments, error) {
	f := scoped(sc)
	if of.Status != "" {
		f.and("t.status = ?", string(of.Status))
	}
	f.newest(of.After, of.Limit)
	orders, err := query(ctx, s, orderRows, f.text, f.args...)
	if err != nil || len(orders) == 0 {
		return nil, err
	}
	out := make([]*store.OrderWithPayments, len(orders))
	byID := make(map[string]*store.OrderWithPayments, len(orders))
	ids := make([]any, len(orders))
	for i, o := range orders {
		out[i] = &store.OrderWithPayments{Order: &o.Order}
		byID[o.ID] = out[i]
		ids[i] = o.ID
	}
	text, args := s.in(s.q.payments, ID, ids)
	err = all(ctx, s, text, args, paymentRows.dest, func(p *payonce.Payment) {
		o := byID[p.OrderID]
		o.Payments = append(o.Payments, p)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// due reads what a worker looks for.
func (s *Store) due(ctx context.Context, text string, args ...any) ([]store.Due, error) {
	var out []store.Due
	dest := func(d *store.Due) []any {
		return []any{textTo(&d.Order.Merchant), textTo(&d.Order.Environment), textTo(&d.Order.OrderNo), textTo(&d.PaymentID)}
	}
	err := all(ctx, s, s.d.Rebind(text), args, dest, func(d *store.Due) { out = append(out, *d) })
	return out, err
}

// DuePayments implements store.Queue.
func (s *Store) DuePayments(ctx context.Context, limit int) ([]store.Due, error) {
	return s.due(ctx, "SELECT merchant, environment, order_no, id FROM payments WHERE due_at <= "+s.d.Now()+" + ? ORDER BY due_at LIMIT ?",
		s.offset().Microseconds(), page(limit))
}

// HeldBy implements store.Queue. A CHECK sees to it that a leased payment is
// due, so the index on due_at finds it.
func (s *Store) HeldBy(ctx context.Context, prefix, except string, limit int) ([]store.Due, error) {
	f := &filter{}
	f.and("due_at IS NOT NULL")
	f.and("lease_owner <> ''")
	f.and("lease_owner >= ?", prefix)
	if end := after(prefix); end != "" {
		f.and("lease_owner < ?", end)
	}
	f.and("lease_owner <> ?", except)
	return s.due(ctx, "SELECT merchant, environment, order_no, id FROM payments "+f.text+" ORDER BY due_at LIMIT ?", append(f.args, page(limit))...)
}

// after is the smallest text above all that start with prefix, in the order of
// bytes; "" when there is none. Owners are ASCII.
func after(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0x7f {
			return prefix[:i] + string(prefix[i]+1)
		}
	}
	return ""
}

// DueOrders implements store.Queue.
func (s *Store) DueOrders(ctx context.Context, limit int) ([]store.Due, error) {
	return s.due(ctx, "SELECT merchant, environment, order_no, '' FROM orders WHERE due_at <= "+s.d.Now()+" + ? ORDER BY due_at LIMIT ?",
		s.offset().Microseconds(), page(limit))
}

// NextDue implements store.Queue.
func (s *Store) NextDue(ctx context.Context) (time.Time, error) {
	var due sql.NullInt64
	if err := s.row(ctx, "SELECT MIN(due_at) FROM payments WHERE due_at IS NOT NULL", nil, &due); err != nil {
		return time.Time{}, err
	}
	return fromMicros(due.Int64), nil
}
