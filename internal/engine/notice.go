package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/internal/store"
)

// NoticeResult says what became of a verified notice.
type NoticeResult int

// Results of a notice. All of them are acknowledged: the notice is stored.
const (
	NoticeApplied   NoticeResult = iota
	NoticeDuplicate              // the event was stored before
	NoticeParked                 // its number is not known here; it is looked at again
)

// How long a notice of an unknown number is looked at again, and how often.
var parkedSteps = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// Notice stores a verified notice and applies what it says, in one transaction.
// An error means that it is not stored and must not be acknowledged.
func (e *Engine) Notice(ctx context.Context, account string, n channel.Notice, headers string, body []byte) (NoticeResult, error) {
	ctx = context.WithoutCancel(ctx)
	id := store.NoticeID{Account: account, EventID: n.EventID}
	known, err := e.Store.Notice(ctx, id)
	switch {
	case err == nil && known.Status == store.NoticeApplied:
		return NoticeDuplicate, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return 0, err
	}
	row := store.Notice{NoticeID: id, Status: store.NoticeApplied, Type: n.Type, Number: n.Number, Object: n.Fact.Object, Headers: headers, Body: body}
	p, err := e.Store.Find(ctx, account, n.Number, n.Fact.Object)
	if errors.Is(err, store.ErrNotFound) {
		return NoticeParked, e.park(ctx, row)
	}
	if err != nil {
		return 0, err
	}
	return e.applyNotice(ctx, p, n, row)
}

func (e *Engine) applyNotice(ctx context.Context, p *payonce.Payment, n channel.Notice, row store.Notice) (NoticeResult, error) {
	var verdict payonce.Verdict
	result := NoticeApplied
	f := n.Fact
	f.Source, f.Permit, f.Fence, f.Version = "notice", 0, 0, 0
	f.Account = cmp.Or(f.Account, row.Account) // an adapter that saw another account says so
	u := &store.Unit{Order: p.Key, Notice: &row.NoticeID}
	err := e.write(ctx, "apply", "notice", u, func(v *store.View) error {
		result = NoticeApplied
		if v.Notice != nil && v.Notice.Status == store.NoticeApplied {
			result = NoticeDuplicate
			return errNothing
		}
		q := v.Payment(p.ID)
		if q == nil {
			return store.ErrNotFound
		}
		row.PaymentID, row.ReceivedAt = q.ID, v.Now
		v.NewNotice = &row
		fact := f
		fact.EvidenceID = v.NewID(payonce.PrefixEvidence)
		v.Evidence = append(v.Evidence, evidenceOf(q, &fact, row.Body, v.Now))
		verdict = v.Apply(q, fact)
		if fact.Kind == payonce.StateUnknown && fact.Reason != "" && q.Status != payonce.Succeeded && q.LeaseOwner == "" {
			// It says that something happened, not what: the channel is asked.
			q.LastAsked, q.DueAt = false, v.Now
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		return result, nil
	}
	if errors.Is(err, store.ErrConflict) && f.Kind != payonce.StateUnknown {
		e.alarm(p.Channel, p.ID, AlarmConflict)
		n.Fact = payonce.Fact{Reason: AlarmConflict}
		return e.applyNotice(ctx, p, n, row)
	}
	if err != nil {
		return 0, err
	}
	if verdict.Alarm != "" {
		e.alarm(p.Channel, p.ID, verdict.Alarm)
	}
	e.Observe("notice", p.Channel, f.Kind.String())
	e.kick() // a success may have superseded an attempt that is to be closed now
	return result, nil
}

func (e *Engine) park(ctx context.Context, row store.Notice) error {
	now, err := e.Store.Now(ctx)
	if err != nil {
		return err
	}
	row.ReceivedAt, row.DueAt = now, now.Add(parkedSteps[0])
	if err := e.Store.Park(ctx, row); err != nil {
		return err
	}
	e.Observe("notice", row.Account, "parked")
	e.Logger.Warn("notice of an unknown number is parked", "account", row.Account, "type", row.Type)
	return nil
}

// StepNotice looks again at a parked notice. When its payment has turned up, the
// channel is asked: its answer says more than a message that has waited.
func (e *Engine) StepNotice(ctx context.Context, row store.Notice) error {
	p, err := e.Store.Find(ctx, row.Account, row.Number, row.Object)
	if err == nil {
		err = e.write(ctx, "apply", "worker", &store.Unit{Order: p.Key, Notice: &row.NoticeID}, func(v *store.View) error {
			q := v.Payment(p.ID)
			if q == nil || v.Notice == nil || v.Notice.Status == store.NoticeApplied {
				return errNothing
			}
			row.Status, row.PaymentID = store.NoticeApplied, q.ID
			v.NewNotice = &row
			if q.Status != payonce.Succeeded && q.LeaseOwner == "" {
				q.LastAsked, q.DueAt = false, v.Now
			}
			return nil
		})
		if err == nil {
			e.kick()
		}
		if errors.Is(err, errNothing) {
			return nil
		}
		return err
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	now, err := e.Store.Now(ctx)
	if err != nil {
		return err
	}
	for _, d := range parkedSteps {
		if d > now.Sub(row.ReceivedAt) {
			return e.Store.Postpone(ctx, row.NoticeID, row.ReceivedAt.Add(d))
		}
	}
	e.alarm(row.Account, row.EventID, AlarmOrphan)
	return e.Store.Postpone(ctx, row.NoticeID, now.Add(24*time.Hour))
}

// AlarmOrphan: a genuine notice names a number that was not found for a day.
const AlarmOrphan = "orphan-notice"
