package prove

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/memory"
)

// db is the store as the engines see it: every call is a step of its own, and a
// write may fail or lose its answer.
type db struct {
	*memory.Store
	w *world
}

var writeFaults = []variant{unavailable, lostAnswer}

func (d *db) read(what string) {
	d.w.park(step{kind: "read", what: what})
	d.w.told(d.w.stored().time(d.w.now))
}

// Write implements store.Writer.
func (d *db) Write(ctx context.Context, units []*store.Unit) []error {
	out := make([]error, len(units))
	for i, u := range units {
		out[i] = d.write(ctx, u)
	}
	return out
}

func (d *db) write(ctx context.Context, u *store.Unit) error {
	v := d.w.park(step{kind: "write", what: u.Actor, variants: writeFaults})
	d.w.told(d.w.stored().time(d.w.now))
	if v == unavailable {
		return store.ErrUnavailable
	}
	var before *store.OrderWithPayments
	if d.w.commits > 0 {
		before = d.w.order()
	}
	err := d.Store.Write(ctx, []*store.Unit{u})[0]
	if errors.Is(err, store.ErrConflict) {
		d.w.fail("schema", "a decision was refused: %v", err)
	}
	if err == nil {
		d.w.commits++
		d.w.committed(before, d.w.order())
		if v == lostAnswer {
			return store.ErrOutcomeUnknown
		}
	}
	return err
}

// Replay implements store.Reader.
func (d *db) Replay(ctx context.Context, key [32]byte) (*store.Replay, error) {
	d.read("key")
	return d.Store.Replay(ctx, key)
}

// Payment implements store.Reader.
func (d *db) Payment(ctx context.Context, s store.Scope, id string) (*payonce.Payment, error) {
	d.read("payment")
	return d.Store.Payment(ctx, s, id)
}

// Order implements store.Reader.
func (d *db) Order(ctx context.Context, key payonce.OrderKey) (*store.OrderWithPayments, error) {
	d.read("order")
	return d.Store.Order(ctx, key)
}

// Find implements store.Reader.
func (d *db) Find(ctx context.Context, account, number, object string) (*payonce.Payment, error) {
	d.read("number")
	return d.Store.Find(ctx, account, number, object)
}

// Notice implements store.Notices.
func (d *db) Notice(ctx context.Context, id store.NoticeID) (*store.Notice, error) {
	d.read("notice")
	return d.Store.Notice(ctx, id)
}

// Park implements store.Notices.
func (d *db) Park(ctx context.Context, n store.Notice) error {
	if d.w.park(step{kind: "write", what: "park", variants: []variant{unavailable}}) == unavailable {
		return store.ErrUnavailable
	}
	d.w.commits++
	return d.Store.Park(ctx, n)
}

// Postpone implements store.Notices.
func (d *db) Postpone(ctx context.Context, id store.NoticeID, due time.Time) error {
	d.w.park(step{kind: "write", what: "postpone"})
	d.w.commits++
	return d.Store.Postpone(ctx, id, due)
}

// HeldBy implements store.Queue.
func (d *db) HeldBy(ctx context.Context, prefix, except string, limit int) ([]store.Due, error) {
	d.read("held")
	return d.Store.HeldBy(ctx, prefix, except, limit)
}

// stored is the digest of what the books say: everything that a decision can
// depend on, and nothing that only tells who wrote it.
func (w *world) stored() digest {
	if w.commits == 0 { // the order is about to be made
		return digestStart
	}
	if w.storedAt == w.commits {
		return w.storedIs
	}
	h := digestStart
	for _, key := range w.orders {
		h = digestOrder(h, w.order())
		for _, c := range w.books.Charges(key) {
			h = h.text(c.PaymentRef).text(string(c.Kind)).num(int64(c.Amount))
		}
	}
	for _, n := range w.posts {
		if row, err := w.books.Notice(context.Background(), n.id()); err == nil {
			h = h.text(row.EventID).text(row.Status).time(row.DueAt)
		}
	}
	for _, c := range w.clients {
		_, err := w.books.Replay(context.Background(), c.keyID())
		h = h.flag(err == nil)
	}
	w.storedAt, w.storedIs = w.commits, h
	return h
}

func digestOrder(h digest, ow *store.OrderWithPayments) digest {
	o := ow.Order
	h = h.text(string(o.Status)).num(int64(o.Amount)).num(int64(o.AmountPaid)).num(int64(o.AmountSurplus)).num(int64(o.Reserved)).num(int64(o.LastSequence))
	for _, p := range ow.Payments {
		h = h.text(p.Number).text(string(p.Status)).text(p.ObjectID).text(p.LeaseOwner).text(p.UnknownReason).num(p.Fence).num(p.Version).
			num(int64(p.Prepares)).num(int64(p.SendKey)).num(int64(p.CloseKey)).num(int64(p.Asks)).num(int64(p.ChargeCount)).
			time(p.DueAt).time(p.LeaseUntil).time(p.CallerAt).time(p.UpdatedAt).time(p.DeadAt).
			flag(p.Effective).flag(p.Superseded).flag(p.Accepted).flag(p.Seen).flag(p.HandedOut).flag(p.Declined).flag(p.Dead).
			flag(p.GivenUp).flag(p.LastAsked).flag(p.Action != nil).flag(p.Failure != nil)
		for _, m := range p.Permits {
			h = h.num(int64(m.No)).num(m.Fence).text(string(m.End)).time(m.GivenAt)
		}
	}
	return h
}

// fail notes a violation once.
func (w *world) fail(rule, format string, args ...any) {
	detail := format
	if len(args) > 0 {
		detail = fmt.Sprintf(format, args...)
	}
	for _, v := range w.violations {
		if v.Rule == rule {
			return
		}
	}
	w.violations = append(w.violations, Violation{Rule: rule, Detail: detail, Step: len(w.trace)})
}
