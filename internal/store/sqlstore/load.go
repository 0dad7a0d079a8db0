package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// load takes the locks in the order of the key hashes and reads the picture of
// each job: the clock after the locks, so that a decision never acts on a time
// before it had the order. All statements are sent together, and each sees what
// was committed when its turn came.
func (s *Store) load(ctx context.Context, tx Session, jobs []*job) error {
	p := newPicture(s, jobs)
	if err := tx.Run(ctx, p.statements()...); err != nil {
		return err
	}
	if err := s.checkFresh(ctx, tx, jobs, p.keys); err != nil {
		return err
	}
	now := time.UnixMicro(p.now).Add(s.offset()).UTC()
	byOrder := make(map[string]*job, len(jobs))
	for _, j := range jobs {
		s.begin(j, now)
		if id := j.unit.Notice; id != nil && j.err == nil {
			j.view.Notice = p.notices[*id]
		}
		if k := j.unit.Key; k != nil && j.err == nil {
			j.view.Key = p.keys[*k]
		}
		if j.before != nil {
			byOrder[j.row.ID] = j
		}
	}
	// A payment of an order that was not there to be locked belongs to a twin that
	// committed since; the unique keys refuse what is decided without it.
	for _, pay := range p.payments {
		if j := byOrder[pay.OrderID]; j != nil {
			j.view.Payments = append(j.view.Payments, pay)
			j.payments.saw(pay)
		}
	}
	return s.loadCharges(ctx, tx, jobs, byOrder)
}

// picture is what a batch reads under its locks.
type picture struct {
	s        *Store
	jobs     []*job
	byHash   map[[32]byte]*job
	now      int64
	keys     map[[32]byte]*store.KeyRecord
	notices  map[store.NoticeID]*store.Notice
	payments []*payonce.Payment
}

func newPicture(s *Store, jobs []*job) *picture {
	p := &picture{s: s, jobs: jobs, byHash: make(map[[32]byte]*job, len(jobs)), keys: make(map[[32]byte]*store.KeyRecord, len(jobs))}
	for _, j := range jobs {
		p.byHash[j.hash] = j
	}
	return p
}

// statements locks the orders, then reads the clock and the keys, the notices and
// the payments.
func (p *picture) statements() []Statement {
	hashes := make([]any, len(p.jobs))
	var ids []any
	for i, j := range p.jobs {
		hashes[i] = j.hash[:]
		if k := j.unit.Key; k != nil {
			ids = append(ids, k[:])
		}
	}
	text, args := p.s.in(p.s.q.orders, Hash, hashes)
	all := []Statement{reads(text, args, orderRows.dest, func(o *orderRow) {
		if j := p.byHash[KeyHash(o.Key)]; j != nil {
			j.row, j.before = o, orderRows.values(o)
		}
	})}
	if len(ids) == 0 {
		all = append(all, Statement{Text: p.s.q.now, Row: func() []any { return []any{&p.now} }, Got: func() {}})
	} else {
		text, args := p.s.in(p.s.q.nowAndKeys, Hash, ids)
		dest := func(k *store.KeyRecord) []any { return append([]any{&p.now}, keyRows.dest(k)...) }
		all = append(all, reads(text, args, dest, func(k *store.KeyRecord) {
			if k.OrderID != "" {
				p.keys[k.ID] = k
			}
		}))
	}
	if st, ok := p.readNotices(); ok {
		all = append(all, st)
	}
	text, args = p.s.in(p.s.q.paymentsOf, Hash, hashes)
	return append(all, reads(text, args, paymentRows.dest, func(pay *payonce.Payment) { p.payments = append(p.payments, pay) }))
}

// checkFresh finds a twin that committed between the two reads: its key is seen,
// the order that it made was not there to be locked. The picture would show a key
// without its payment, so the attempt is made again.
func (s *Store) checkFresh(ctx context.Context, tx Session, jobs []*job, keys map[[32]byte]*store.KeyRecord) error {
	for _, j := range jobs {
		if j.row != nil || j.unit.Key == nil || keys[*j.unit.Key] == nil {
			continue
		}
		var n int64
		err := tx.Run(ctx, Statement{Text: s.d.Rebind("SELECT COUNT(*) FROM orders WHERE key_hash = ?"), Args: []any{j.hash[:]},
			Row: func() []any { return []any{&n} }, Got: func() {}})
		if err != nil {
			return err
		}
		if n > 0 {
			return ErrStale
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
}

// loadCharges reads the charges of orders that have any.
func (s *Store) loadCharges(ctx context.Context, tx Session, jobs []*job, byOrder map[string]*job) error {
	var orders []any
	for _, j := range jobs {
		if j.before != nil && slices.ContainsFunc(j.view.Payments, func(p *payonce.Payment) bool { return p.ChargeCount > 0 }) {
			orders = append(orders, j.row.ID)
		}
	}
	if len(orders) == 0 {
		return nil
	}
	text, args := s.in(s.q.charges, ID, orders)
	return tx.Run(ctx, reads(text, args, chargeRows.dest, func(c *payonce.Charge) {
		j := byOrder[c.OrderID]
		j.view.Charges = append(j.view.Charges, c)
		j.charges.saw(c)
	}))
}
