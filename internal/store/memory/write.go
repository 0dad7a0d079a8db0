package memory

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// Write implements store.Writer: one unit after the other, each all or nothing. A
// unit that makes its order is written even when the decision adds nothing else;
// any other unit that changes nothing leaves no trace.
func (s *Store) Write(ctx context.Context, units []*store.Unit) []error {
	results := make([]error, len(units))
	for i, u := range units {
		leave, err := s.enter(ctx)
		if err != nil {
			results[i] = err
			continue
		}
		results[i] = s.write(ctx, u)
		leave()
	}
	return results
}

// job is one unit on its way.
type job struct {
	unit   *store.Unit
	view   *store.View
	before *books // nil: the order is made
	known  map[*payonce.Payment]*payonce.Payment
	owed   map[*payonce.Charge]*payonce.Charge

	changed, added           []*payonce.Payment
	changedCharges, newCosts []*payonce.Charge
}

func (s *Store) write(ctx context.Context, u *store.Unit) error {
	j, err := s.load(u)
	if err != nil {
		return err
	}
	if err := decide(u, j.view); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	writes, err := j.compare()
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	if !writes {
		return nil
	}
	if err := s.check(j); err != nil {
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	s.save(j)
	return nil
}

func decide(u *store.Unit, v *store.View) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decision panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return u.Decide(v)
}

// load shows the order to the decision.
func (s *Store) load(u *store.Unit) (*job, error) {
	now := s.now()
	j := &job{unit: u, view: &store.View{}, before: s.orders[u.Order], known: map[*payonce.Payment]*payonce.Payment{}, owed: map[*payonce.Charge]*payonce.Charge{}}
	v := j.view
	v.Now, v.NewID = now, func(prefix string) string {
		var random [10]byte
		s.o.Runner.Random(random[:])
		return payonce.NewID(prefix, now, random)
	}
	switch c := u.Create; {
	case j.before != nil:
		o := j.before.order
		v.Order = &o
		for _, p := range j.before.payments {
			q := copyPayment(p)
			v.Payments = append(v.Payments, q)
			j.known[q] = p
		}
		for _, c := range j.before.charges {
			d := *c
			v.Charges = append(v.Charges, &d)
			j.owed[&d] = c
		}
	case c == nil:
		return nil, store.ErrNotFound
	default:
		v.Created = true
		v.Order = &payonce.Order{ID: c.ID, Key: c.Key, Status: payonce.OrderOpen, Amount: c.Amount, Currency: c.Currency, Subject: c.Subject,
			Policy: c.Policy, ExpiresAt: c.ExpiresAt, Metadata: c.Metadata, CreatedAt: now, UpdatedAt: now}
	}
	if u.Key != nil && s.keys[*u.Key] != nil {
		k := *s.keys[*u.Key]
		v.Key = &k
	}
	if u.Notice != nil && s.notices[*u.Notice] != nil {
		v.Notice = copyNotice(s.notices[*u.Notice])
	}
	return j, nil
}

// compare finds what the decision changed. An error means that it changed what
// never changes.
func (j *job) compare() (writes bool, err error) {
	v := j.view
	writes = v.Created || v.NewKey != nil || v.NewNotice != nil || len(v.Evidence)+len(v.Answers)+len(v.Outbox)+len(v.Changes) > 0
	if !v.Created {
		if fixedOrder(v.Order) != fixedOrder(&j.before.order) {
			return false, fmt.Errorf("order %s: a column that never changes", j.before.order.ID)
		}
		writes = writes || storedOrder(*v.Order) != j.before.order
	}
	found := 0
	for _, p := range v.Payments {
		before := j.known[p]
		switch {
		case before == nil:
			j.added = append(j.added, p)
			continue
		case !sameFixed(before, p):
			return false, fmt.Errorf("payment %s: a column that never changes", before.ID)
		case !samePayment(before, storedPayment(p)):
			j.changed = append(j.changed, p)
		}
		found++
	}
	for _, c := range v.Charges {
		before := j.owed[c]
		switch {
		case before == nil:
			j.newCosts = append(j.newCosts, c)
			continue
		case before.ID != c.ID || before.OrderID != c.OrderID || before.PaymentID != c.PaymentID || before.Account != c.Account ||
			before.PaymentRef != c.PaymentRef || !before.ChargedAt.Equal(stamp(c.ChargedAt)):
			return false, fmt.Errorf("charge %s: a column that never changes", before.ID)
		case before.Amount != c.Amount || before.Currency != c.Currency || before.Kind != c.Kind || before.EvidenceID != c.EvidenceID:
			j.changedCharges = append(j.changedCharges, c)
		}
		found++
	}
	if found != len(j.known)+len(j.owed) {
		return false, fmt.Errorf("order %s: a payment or charge was left out", v.Order.ID)
	}
	return writes || len(j.added)+len(j.changed)+len(j.newCosts)+len(j.changedCharges) > 0, nil
}

// save writes a job that nothing refuses any more. Pointers that the decision kept
// show what is stored.
func (s *Store) save(j *job) {
	v, b := j.view, j.before
	if b == nil {
		b = &books{}
		s.orders[v.Order.Key], s.byID[v.Order.ID] = b, b
	}
	for i := range v.Changes {
		v.Changes[i].Cause = human(v.Changes[i].Cause)
	}
	v.Order.Version++
	for _, e := range v.Order.Chain(v.Changes, j.unit.Actor, j.unit.Salt, v.Now) {
		b.audit = append(b.audit, store.AuditRow{AuditEntry: e, Salt: j.unit.Salt})
	}
	b.order = storedOrder(*v.Order)
	for _, p := range j.changed {
		p.Revision++
		s.putPayment(b, p, slices.Index(b.payments, j.known[p]))
	}
	for _, p := range j.added {
		p.Revision = 1
		s.putPayment(b, p, -1)
	}
	for _, c := range j.changedCharges {
		*j.owed[c] = *c
	}
	for _, c := range j.newCosts {
		d := *c
		d.ChargedAt = stamp(d.ChargedAt)
		b.charges = append(b.charges, &d)
		s.charges[name{c.Account, c.PaymentRef}] = true
	}
	slices.SortFunc(b.payments, func(x, y *payonce.Payment) int { return x.Sequence - y.Sequence })
	slices.SortFunc(b.charges, func(x, y *payonce.Charge) int { return strings.Compare(x.ID, y.ID) })
	s.saveAdded(v)
}

// putPayment stores a payment in the place of its older picture; at < 0: a new one.
func (s *Store) putPayment(b *books, p *payonce.Payment, at int) {
	q := storedPayment(p)
	if at < 0 {
		b.payments = append(b.payments, q)
	} else {
		if old := b.payments[at]; old.ObjectID != q.ObjectID && old.ObjectID != "" {
			delete(s.objects, name{old.Account, old.ObjectID})
		}
		b.payments[at] = q
	}
	s.payments[q.ID] = q
	s.numbers[name{q.Account, q.Number}] = q.ID
	if q.ObjectID != "" {
		s.objects[name{q.Account, q.ObjectID}] = q.ID
	}
}

// saveAdded stores the rows that are only ever added.
func (s *Store) saveAdded(v *store.View) {
	if k := v.NewKey; k != nil {
		if k.CreatedAt.IsZero() {
			k.CreatedAt = v.Now
		}
		c := *k
		c.AnswerUntil, c.CreatedAt = stamp(c.AnswerUntil), stamp(c.CreatedAt)
		s.keys[c.ID] = &c
	}
	if n := v.NewNotice; n != nil && v.Notice == nil {
		s.notices[n.NoticeID] = copyNotice(n)
	} else if n != nil {
		stored := s.notices[n.NoticeID]
		stored.Status, stored.PaymentID, stored.DueAt = n.Status, n.PaymentID, stamp(n.DueAt)
	}
	for i := range v.Evidence {
		e := &v.Evidence[i]
		if e.At.IsZero() {
			e.At = v.Now
		}
		c := *e
		c.Raw, c.At, c.Detail = bytesOf(c.Raw), stamp(c.At), human(c.Detail)
		rows := append(s.evidence[c.PaymentID], c)
		slices.SortFunc(rows, func(x, y store.Evidence) int { return strings.Compare(x.ID, y.ID) })
		s.evidence[c.PaymentID] = rows
	}
	for i := range v.Answers {
		a := v.Answers[i]
		id := answerID{a.PaymentID, a.Status}
		if s.answers[id] == nil { // the first answer of a state stays
			a.Body, a.ContentType = bytesOf(a.Body), human(a.ContentType)
			s.answers[id] = &a
		}
	}
	for i := range v.Outbox {
		e := &v.Outbox[i]
		if e.At.IsZero() {
			e.At = v.Now
		}
		c := *e
		c.Data = bytesOf(c.Data)
		s.events = append(s.events, c)
		s.once[eventID{c.Subject, c.Type, c.Change}] = true
		s.eventIDs[c.ID] = true
	}
}
