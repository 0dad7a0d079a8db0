package sqlstore

import (
	"context"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// query reads all rows of T; tail follows the name of the table, which is t.
func query[T any](ctx context.Context, s *Store, r *rows[T], tail string, args ...any) ([]*T, error) {
	var out []*T
	err := all(ctx, s, s.d.Rebind("SELECT "+r.read+" FROM "+r.table.Name+" t "+tail), args, r.dest, func(v *T) { out = append(out, v) })
	return out, err
}

// one returns the only row, or ErrNotFound.
func one[T any](found []*T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, store.ErrNotFound
	}
	return found[0], nil
}

// Order implements store.Reader.
func (s *Store) Order(ctx context.Context, key payonce.OrderKey) (*store.OrderWithPayments, error) {
	hash := KeyHash(key)
	o, err := one(query(ctx, s, orderRows, "WHERE t.key_hash = ?", hash[:]))
	if err != nil {
		return nil, err
	}
	payments, err := query(ctx, s, paymentRows, "WHERE t.order_id = ? ORDER BY t.sequence", o.ID)
	if err != nil {
		return nil, err
	}
	return &store.OrderWithPayments{Order: &o.Order, Payments: payments}, nil
}

// Payment implements store.Reader.
func (s *Store) Payment(ctx context.Context, sc store.Scope, id string) (*payonce.Payment, error) {
	return one(query(ctx, s, paymentRows, "WHERE t.id = ? AND t.merchant = ? AND t.environment = ?", id, sc.Merchant, string(sc.Environment)))
}

// Find implements store.Reader.
func (s *Store) Find(ctx context.Context, account, number, object string) (*payonce.Payment, error) {
	if number == "" {
		return one(query(ctx, s, paymentRows, "WHERE t.object_id = ? AND t.account = ?", object, account))
	}
	return one(query(ctx, s, paymentRows, "WHERE t.number = ? AND t.account = ?", number, account))
}

// Versions implements store.Reader.
func (s *Store) Versions(ctx context.Context, ids []string) (map[string]int64, error) {
	out := make(map[string]int64, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	values := make([]any, len(ids))
	for i, id := range ids {
		values[i] = id
	}
	type row struct {
		id      string
		version int64
	}
	text, args := s.in(s.q.versions, ID, values)
	err := all(ctx, s, text, args, func(r *row) []any { return []any{textTo(&r.id), intTo(&r.version)} }, func(r *row) { out[r.id] = r.version })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Evidence implements store.Reader, oldest first. A payment of another merchant
// or environment is not found.
func (s *Store) Evidence(ctx context.Context, sc store.Scope, paymentID string) ([]store.Evidence, error) {
	if _, err := s.Payment(ctx, sc, paymentID); err != nil {
		return nil, err
	}
	found, err := query(ctx, s, evidenceRows, "WHERE t.payment_id = ? ORDER BY t.id", paymentID)
	return values(found), err
}

// Audit implements store.Reader, in the order of the chain.
func (s *Store) Audit(ctx context.Context, orderID string) ([]store.AuditRow, error) {
	found, err := query(ctx, s, auditRows, "WHERE t.order_id = ? ORDER BY t.n", orderID)
	return values(found), err
}

func values[T any](found []*T) []T {
	out := make([]T, len(found))
	for i, v := range found {
		out[i] = *v
	}
	return out
}

// Ping implements store.Reader. The statement touches no row and is rolled
// back, but a server that takes no writes refuses it.
func (s *Store) Ping(ctx context.Context) error {
	return s.within(ctx, func(ctx context.Context) error { return s.inTx(ctx, s.touchNothing(ctx)) })
}

// Now implements store.Queue.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now int64
	if err := s.row(ctx, s.q.now, nil, &now); err != nil {
		return time.Time{}, err
	}
	return fromMicros(now).Add(s.offset()), nil
}
