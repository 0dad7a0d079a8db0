package sqlstore

import (
	"context"
	"strings"
	"time"

	"github.com/payonce/payonce/internal/store"
)

var noticeRows = newRows("notices", []field[store.Notice]{
	{Column{"account", Name, false}, true, func(n *store.Notice) any { return n.Account }, func(n *store.Notice) scanner { return textTo(&n.Account) }},
	{Column{"event_id", Name, false}, true, func(n *store.Notice) any { return n.EventID }, func(n *store.Notice) scanner { return textTo(&n.EventID) }},
	{Column{"status", ID, false}, false, func(n *store.Notice) any { return n.Status }, func(n *store.Notice) scanner { return textTo(&n.Status) }},
	{Column{"type", Name, false}, true, func(n *store.Notice) any { return n.Type }, func(n *store.Notice) scanner { return textTo(&n.Type) }},
	{Column{"number", Name, false}, true, func(n *store.Notice) any { return n.Number }, func(n *store.Notice) scanner { return textTo(&n.Number) }},
	{Column{"object_id", Name, false}, true, func(n *store.Notice) any { return n.Object }, func(n *store.Notice) scanner { return textTo(&n.Object) }},
	{Column{"payment_id", ID, false}, false, func(n *store.Notice) any { return n.PaymentID }, func(n *store.Notice) scanner { return textTo(&n.PaymentID) }},
	{Column{"headers", JSON, false}, true, func(n *store.Notice) any { return human(n.Headers) }, func(n *store.Notice) scanner { return textTo(&n.Headers) }},
	{Column{"body", Blob, false}, true, func(n *store.Notice) any { return blob(n.Body) }, func(n *store.Notice) scanner { return bytesTo(&n.Body) }},
	{Column{"received_at", Int, false}, true, func(n *store.Notice) any { return micros(n.ReceivedAt) }, func(n *store.Notice) scanner { return timeTo(&n.ReceivedAt) }},
	{Column{"due_at", Int, true}, false, func(n *store.Notice) any { return nullMicros(n.DueAt) }, func(n *store.Notice) scanner { return timeTo(&n.DueAt) }},
})

// readNotices reads the notices that the jobs name, under their order locks.
func (p *picture) readNotices() (st Statement, found bool) {
	var where []string
	var args []any
	for _, j := range p.jobs {
		if id := j.unit.Notice; id != nil {
			where = append(where, "(t.account = ? AND t.event_id = ?)")
			args = append(args, id.Account, id.EventID)
		}
	}
	if len(where) == 0 {
		return Statement{}, false
	}
	p.notices = make(map[store.NoticeID]*store.Notice, len(where))
	text := p.s.d.Rebind("SELECT " + noticeRows.read + " FROM notices t WHERE " + strings.Join(where, " OR "))
	return reads(text, args, noticeRows.dest, func(n *store.Notice) { p.notices[n.NoticeID] = n }), true
}

// applyParked marks a notice that was parked and has met its payment now.
func (s *Store) applyParked(j *job) (st Statement, parked bool) {
	n := j.view.NewNotice
	if n == nil || j.view.Notice == nil {
		return Statement{}, false
	}
	return Statement{
		Text: s.d.Rebind("UPDATE notices SET status = ?, payment_id = ?, due_at = NULL WHERE account = ? AND event_id = ? AND status = ?"),
		Args: []any{n.Status, n.PaymentID, n.Account, n.EventID, store.NoticeParked}, Touches: 1,
	}, true
}

// Notice implements store.Notices.
func (s *Store) Notice(ctx context.Context, id store.NoticeID) (*store.Notice, error) {
	return one(query(ctx, s, noticeRows, "WHERE t.account = ? AND t.event_id = ?", id.Account, id.EventID))
}

// Park implements store.Notices.
func (s *Store) Park(ctx context.Context, n store.Notice) error {
	n.Status, n.PaymentID = store.NoticeParked, ""
	text, args := s.d.Insert(noticeRows.table, [][]any{noticeRows.values(&n)}, true)
	return s.change(ctx, text, args...)
}

// DueNotices implements store.Notices.
func (s *Store) DueNotices(ctx context.Context, limit int) ([]store.Notice, error) {
	found, err := query(ctx, s, noticeRows, "WHERE t.due_at <= "+s.d.Now()+" + ? AND t.status = ? ORDER BY t.due_at LIMIT ?",
		s.offset().Microseconds(), store.NoticeParked, page(limit))
	return values(found), err
}

// Postpone implements store.Notices.
func (s *Store) Postpone(ctx context.Context, id store.NoticeID, due time.Time) error {
	return s.change(ctx, s.d.Rebind("UPDATE notices SET due_at = ? WHERE account = ? AND event_id = ? AND status = ?"),
		nullMicros(due), id.Account, id.EventID, store.NoticeParked)
}
