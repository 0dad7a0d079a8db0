package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// waits is something with a due time; ties keep the order of their names.
type waits struct {
	due store.Due
	at  time.Time
}

func first(found []waits, limit int) []store.Due {
	slices.SortFunc(found, func(a, b waits) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.due.PaymentID, b.due.PaymentID), strings.Compare(a.due.Order.OrderNo, b.due.Order.OrderNo))
	})
	var out []store.Due
	for _, w := range page(found, limit) {
		out = append(out, w.due)
	}
	return out
}

func (s *Store) duePayments(ctx context.Context, limit int, due func(*payonce.Payment, time.Time) bool) ([]store.Due, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	now := s.now()
	var found []waits
	for _, p := range s.payments {
		if !p.DueAt.IsZero() && due(p, now) {
			found = append(found, waits{store.Due{Order: p.Key, PaymentID: p.ID}, p.DueAt})
		}
	}
	return first(found, limit), nil
}

// DuePayments implements store.Queue.
func (s *Store) DuePayments(ctx context.Context, limit int) ([]store.Due, error) {
	return s.duePayments(ctx, limit, func(p *payonce.Payment, now time.Time) bool { return !now.Before(p.DueAt) })
}

// HeldBy implements store.Queue.
func (s *Store) HeldBy(ctx context.Context, prefix, except string, limit int) ([]store.Due, error) {
	return s.duePayments(ctx, limit, func(p *payonce.Payment, _ time.Time) bool {
		return p.LeaseOwner != "" && strings.HasPrefix(p.LeaseOwner, prefix) && p.LeaseOwner != except
	})
}

// DueOrders implements store.Queue.
func (s *Store) DueOrders(ctx context.Context, limit int) ([]store.Due, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	now := s.now()
	var found []waits
	for _, b := range s.orders {
		o := &b.order
		open := o.Status == payonce.OrderOpen || o.Status == payonce.OrderPartiallyPaid
		if open && !o.ExpiresAt.IsZero() && !now.Before(o.ExpiresAt) {
			found = append(found, waits{store.Due{Order: o.Key}, o.ExpiresAt})
		}
	}
	return first(found, limit), nil
}

// NextDue implements store.Queue.
func (s *Store) NextDue(ctx context.Context) (time.Time, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer leave()
	var next time.Time
	for _, p := range s.payments {
		if !p.DueAt.IsZero() && (next.IsZero() || p.DueAt.Before(next)) {
			next = p.DueAt
		}
	}
	return next, nil
}

// Notice implements store.Notices.
func (s *Store) Notice(ctx context.Context, id store.NoticeID) (*store.Notice, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if s.notices[id] == nil {
		return nil, store.ErrNotFound
	}
	return copyNotice(s.notices[id]), nil
}

// Park implements store.Notices.
func (s *Store) Park(ctx context.Context, n store.Notice) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if n.Account == "" || n.EventID == "" {
		return fmt.Errorf("%w: notices_names", store.ErrConflict)
	}
	if s.notices[n.NoticeID] == nil {
		n.Status, n.PaymentID = store.NoticeParked, ""
		s.notices[n.NoticeID] = copyNotice(&n)
	}
	return nil
}

// DueNotices implements store.Notices.
func (s *Store) DueNotices(ctx context.Context, limit int) ([]store.Notice, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	now := s.now()
	out := []store.Notice{}
	for _, n := range s.notices {
		if !n.DueAt.IsZero() && !now.Before(n.DueAt) {
			out = append(out, *copyNotice(n))
		}
	}
	slices.SortFunc(out, func(a, b store.Notice) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), strings.Compare(a.EventID, b.EventID))
	})
	return page(out, limit), nil
}

// Postpone implements store.Notices.
func (s *Store) Postpone(ctx context.Context, id store.NoticeID, due time.Time) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if n := s.notices[id]; n != nil && n.Status == store.NoticeParked {
		n.DueAt = stamp(due)
	}
	return nil
}
