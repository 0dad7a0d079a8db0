package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// Limits of a page, as in the databases.
const (
	defaultPage = 50
	maxPage     = 1000
)

func page[T any](all []T, limit int) []T {
	if limit <= 0 {
		limit = defaultPage
	}
	return all[:min(len(all), limit, maxPage)]
}

func (b *books) picture() *store.OrderWithPayments {
	o := b.order
	out := &store.OrderWithPayments{Order: &o}
	for _, p := range b.payments {
		out.Payments = append(out.Payments, copyPayment(p))
	}
	return out
}

// Order implements store.Reader.
func (s *Store) Order(ctx context.Context, key payonce.OrderKey) (*store.OrderWithPayments, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	b := s.orders[key]
	if b == nil {
		return nil, store.ErrNotFound
	}
	return b.picture(), nil
}

// Orders implements store.Reader.
func (s *Store) Orders(ctx context.Context, sc store.Scope, f store.OrderFilter) ([]*store.OrderWithPayments, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var found []*books
	for _, b := range s.orders {
		o := &b.order
		if o.Key.Merchant == sc.Merchant && o.Key.Environment == sc.Environment && (f.Status == "" || o.Status == f.Status) && (f.After == "" || o.ID < f.After) {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b *books) int { return strings.Compare(b.order.ID, a.order.ID) })
	var out []*store.OrderWithPayments
	for _, b := range page(found, f.Limit) {
		out = append(out, b.picture())
	}
	return out, nil
}

// Payment implements store.Reader.
func (s *Store) Payment(ctx context.Context, sc store.Scope, id string) (*payonce.Payment, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.payment(sc, id)
}

func (s *Store) payment(sc store.Scope, id string) (*payonce.Payment, error) {
	p := s.payments[id]
	if p == nil || p.Key.Merchant != sc.Merchant || p.Key.Environment != sc.Environment {
		return nil, store.ErrNotFound
	}
	return copyPayment(p), nil
}

// Payments implements store.Reader.
func (s *Store) Payments(ctx context.Context, sc store.Scope, f store.PaymentFilter) ([]*payonce.Payment, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	bound := ""
	if f.Key != nil {
		k := s.keys[*f.Key]
		if k == nil {
			return nil, nil
		}
		bound = k.PaymentID
	}
	var found []*payonce.Payment
	for _, p := range s.payments {
		if p.Key.Merchant == sc.Merchant && p.Key.Environment == sc.Environment && (f.OrderNo == "" || p.Key.OrderNo == f.OrderNo) &&
			(f.Status == "" || p.Status == f.Status) && (f.Number == "" || p.Number == f.Number) && (f.Key == nil || p.ID == bound) &&
			(f.After == "" || p.ID < f.After) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *payonce.Payment) int { return strings.Compare(b.ID, a.ID) })
	var out []*payonce.Payment
	for _, p := range page(found, f.Limit) {
		out = append(out, copyPayment(p))
	}
	return out, nil
}

// Find implements store.Reader.
func (s *Store) Find(ctx context.Context, account, number, object string) (*payonce.Payment, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	id := s.numbers[name{account, number}]
	if number == "" {
		id = s.objects[name{account, object}]
	}
	if id == "" {
		return nil, store.ErrNotFound
	}
	return copyPayment(s.payments[id]), nil
}

// Replay implements store.Reader.
func (s *Store) Replay(ctx context.Context, key [32]byte) (*store.Replay, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	k := s.keys[key]
	if k == nil || s.byID[k.OrderID] == nil {
		return nil, store.ErrNotFound
	}
	o := s.byID[k.OrderID].order
	out := &store.Replay{Key: *k, Order: &o, Now: s.now()}
	if p := s.payments[k.PaymentID]; p != nil {
		out.Payment = copyPayment(p)
		if a := s.answers[answerID{p.ID, p.Status}]; a != nil {
			c := *a
			c.Body = bytesOf(a.Body)
			out.Answer = &c
		}
	}
	return out, nil
}

// Versions implements store.Reader.
func (s *Store) Versions(ctx context.Context, ids []string) (map[string]int64, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make(map[string]int64, len(ids))
	for _, id := range ids {
		if p := s.payments[id]; p != nil {
			out[id] = p.Version
		}
	}
	return out, nil
}

// Evidence implements store.Reader, oldest first.
func (s *Store) Evidence(ctx context.Context, sc store.Scope, paymentID string) ([]store.Evidence, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if _, err := s.payment(sc, paymentID); err != nil {
		return nil, err
	}
	out := make([]store.Evidence, 0, len(s.evidence[paymentID]))
	for _, e := range s.evidence[paymentID] {
		e.Raw = bytesOf(e.Raw)
		out = append(out, e)
	}
	return out, nil
}

// Audit implements store.Reader, in the order of the chain.
func (s *Store) Audit(ctx context.Context, orderID string) ([]store.AuditRow, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if s.byID[orderID] == nil {
		return []store.AuditRow{}, nil
	}
	return slices.Clone(s.byID[orderID].audit), nil
}

// Ping implements store.Reader.
func (s *Store) Ping(ctx context.Context) error {
	leave, err := s.enter(ctx)
	if err == nil {
		leave()
	}
	return err
}

// Now implements store.Queue.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer leave()
	return s.now(), nil
}

// Charges returns the charges of an order, by id: what books of a channel are
// compared with.
func (s *Store) Charges(key payonce.OrderKey) []payonce.Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []payonce.Charge
	if b := s.orders[key]; b != nil {
		for _, c := range b.charges {
			out = append(out, *c)
		}
	}
	return out
}

// Events returns the outbox in the order in which it was written.
func (s *Store) Events() []store.OutboxEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}
