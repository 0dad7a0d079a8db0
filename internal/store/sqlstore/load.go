package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// load takes the locks in the order of the key hashes and reads the picture of
// each job: the clock after the locks, so that a decision never acts on a time
// before it had the order.
func (s *Store) load(ctx context.Context, tx *sql.Tx, jobs []*job) error {
	if err := s.lockOrders(ctx, tx, jobs); err != nil {
		return err
	}
	now, keys, err := s.nowAndKeys(ctx, tx, jobs)
	if err != nil {
		return err
	}
	if err := s.checkFresh(ctx, tx, jobs, keys); err != nil {
		return err
	}
	notices, err := s.loadNotices(ctx, tx, jobs)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		s.begin(j, now)
		if id := j.unit.Notice; id != nil && j.err == nil {
			j.view.Notice = notices[*id]
		}
		if k := j.unit.Key; k != nil && j.err == nil {
			j.view.Key = keys[*k]
		}
	}
	byOrder := make(map[string]*job, len(jobs))
	var withPayments, withCharges []any
	for _, j := range jobs {
		if j.before != nil && j.row.LastSequence > 0 {
			byOrder[j.row.ID] = j
			withPayments = append(withPayments, j.row.ID)
		}
	}
	if err := s.loadPayments(ctx, tx, withPayments, byOrder); err != nil {
		return err
	}
	for id, j := range byOrder {
		for p := range j.payments {
			if p.ChargeCount > 0 {
				withCharges = append(withCharges, id)
				break
			}
		}
	}
	return s.loadCharges(ctx, tx, withCharges, byOrder)
}

func (s *Store) lockOrders(ctx context.Context, tx *sql.Tx, jobs []*job) error {
	byHash := make(map[[32]byte]*job, len(jobs))
	hashes := make([]any, len(jobs))
	for i, j := range jobs {
		byHash[j.hash] = j
		hashes[i] = j.hash[:]
	}
	query, args := s.in(s.q.orders, hashes)
	return each(ctx, tx, query, args, func() *orderRow { return new(orderRow) }, orderRows.dest, func(o *orderRow) {
		if j := byHash[KeyHash(o.Key)]; j != nil {
			j.row, j.before = o, orderRows.values(o)
		}
	})
}

func (s *Store) nowAndKeys(ctx context.Context, tx *sql.Tx, jobs []*job) (time.Time, map[[32]byte]*store.KeyRecord, error) {
	var ids []any
	for _, j := range jobs {
		if k := j.unit.Key; k != nil {
			ids = append(ids, k[:])
		}
	}
	var now int64
	if len(ids) == 0 {
		err := tx.QueryRowContext(ctx, s.q.now).Scan(&now)
		return time.UnixMicro(now).Add(s.offset()).UTC(), nil, err
	}
	keys := make(map[[32]byte]*store.KeyRecord, len(ids))
	query, args := s.in(s.q.nowAndKeys, ids)
	dest := func(k *store.KeyRecord) []any { return append([]any{&now}, keyRows.dest(k)...) }
	err := each(ctx, tx, query, args, func() *store.KeyRecord { return new(store.KeyRecord) }, dest, func(k *store.KeyRecord) {
		if k.OrderID != "" {
			keys[k.ID] = k
		}
	})
	return time.UnixMicro(now).Add(s.offset()).UTC(), keys, err
}

// checkFresh finds a twin that committed between the two reads: its key is seen,
// the order that it made was not there to be locked. The picture would show a key
// without its payment, so the attempt is made again.
func (s *Store) checkFresh(ctx context.Context, tx *sql.Tx, jobs []*job, keys map[[32]byte]*store.KeyRecord) error {
	for _, j := range jobs {
		if j.row != nil || j.unit.Key == nil || keys[*j.unit.Key] == nil {
			continue
		}
		var n int
		err := tx.QueryRowContext(ctx, s.d.Rebind("SELECT COUNT(*) FROM orders WHERE key_hash = ?"), j.hash[:]).Scan(&n)
		if err != nil {
			return err
		}
		if n > 0 {
			return errStale
		}
	}
	return nil
}

// begin gives a job its view, with a new order where there is none.
func (s *Store) begin(j *job, now time.Time) {
	if j.row == nil {
		c := j.unit.Create
		if c == nil {
			j.err = store.ErrNotFound
			return
		}
		j.created = true
		j.row = &orderRow{Order: payonce.Order{
			ID: c.ID, Key: c.Key, Status: payonce.OrderOpen, Amount: c.Amount, Currency: c.Currency, Subject: c.Subject,
			Policy: c.Policy, ExpiresAt: c.ExpiresAt, Metadata: c.Metadata, CreatedAt: now, UpdatedAt: now,
		}}
	}
	j.view = &store.View{Created: j.created}
	j.view.Order, j.view.Now, j.view.NewID = &j.row.Order, now, s.newID(now)
	j.payments = make(map[*payonce.Payment][]any)
	j.charges = make(map[*payonce.Charge][]any)
}

func (s *Store) loadPayments(ctx context.Context, tx *sql.Tx, orders []any, byOrder map[string]*job) error {
	if len(orders) == 0 {
		return nil
	}
	query, args := s.in(s.q.payments, orders)
	return each(ctx, tx, query, args, func() *payonce.Payment { return new(payonce.Payment) }, paymentRows.dest, func(p *payonce.Payment) {
		j := byOrder[p.OrderID]
		j.view.Payments = append(j.view.Payments, p)
		j.payments[p] = paymentRows.values(p)
	})
}

func (s *Store) loadCharges(ctx context.Context, tx *sql.Tx, orders []any, byOrder map[string]*job) error {
	if len(orders) == 0 {
		return nil
	}
	query, args := s.in(s.q.charges, orders)
	return each(ctx, tx, query, args, func() *payonce.Charge { return new(payonce.Charge) }, chargeRows.dest, func(c *payonce.Charge) {
		j := byOrder[c.OrderID]
		j.view.Charges = append(j.view.Charges, c)
		j.charges[c] = chargeRows.values(c)
	})
}

// querier is a transaction, a connection or a pool.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each reads all rows of a query into new values.
func each[T any](ctx context.Context, q querier, query string, args []any, make func() *T, dest func(*T) []any, use func(*T)) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // its error is in rows.Err
	for rows.Next() {
		v := make()
		if err := rows.Scan(dest(v)...); err != nil {
			return err
		}
		use(v)
	}
	return rows.Err()
}
