package memory

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// maxAmount is the largest sum that the databases take.
const maxAmount = 9_000_000_000_000_000

type orderIdentity struct {
	id       string
	key      payonce.OrderKey
	currency payonce.Currency
	policy   payonce.Policy
	created  time.Time
}

// fixedOrder are the columns of an order that never change.
func fixedOrder(o *payonce.Order) orderIdentity {
	return orderIdentity{o.ID, o.Key, o.Currency, o.Policy, stamp(o.CreatedAt)}
}

// sameFixed compares the columns of a payment that never change.
func sameFixed(a, b *payonce.Payment) bool {
	return a.ID == b.ID && a.OrderID == b.OrderID && a.Key == b.Key && a.Sequence == b.Sequence && a.Part == b.Part &&
		a.Amount == b.Amount && a.Currency == b.Currency && a.Channel == b.Channel && a.Account == b.Account && a.Method == b.Method &&
		a.Number == b.Number && a.Inputs == b.Inputs && a.CreatedAt.Equal(stamp(b.CreatedAt)) && bytes.Equal(a.Request, b.Request)
}

// samePayment compares what may change. Both are as stored.
func samePayment(a, b *payonce.Payment) bool {
	x, y := plain(a), plain(b)
	return x == y && slices.Equal(a.Permits, b.Permits) && sameAction(a.Action, b.Action) && sameFailure(a.Failure, b.Failure)
}

// plainPayment is a payment without the members that == does not compare.
type plainPayment struct {
	status                                                           payonce.PaymentStatus
	effective, superseded, accepted, seen, handedOut, declined, dead bool
	givenUp, lastAsked                                               bool
	authorized, refunded                                             payonce.Amount
	returnURL, object, ref, reason, owner, evidence                  string
	deadAt, until, due, caller, updated, succeeded                   time.Time
	prepares, send, close, asks, charges                             int
	fence, version, revision                                         int64
}

func plain(p *payonce.Payment) plainPayment {
	return plainPayment{p.Status, p.Effective, p.Superseded, p.Accepted, p.Seen, p.HandedOut, p.Declined, p.Dead, p.GivenUp, p.LastAsked,
		p.AmountAuthorized, p.AmountRefunded, p.ReturnURL, p.ObjectID, p.ChannelPaymentID, p.UnknownReason, p.LeaseOwner, p.EvidenceID,
		p.DeadAt, p.LeaseUntil, p.DueAt, p.CallerAt, p.UpdatedAt, p.SucceededAt, p.Prepares, p.SendKey, p.CloseKey, p.Asks, p.ChargeCount,
		p.Fence, p.Version, p.Revision}
}

func sameAction(a, b *payonce.Action) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && a.QRCode == b.QRCode && a.URL == b.URL && a.Method == b.Method && a.ExpiresAt.Equal(b.ExpiresAt) &&
		sameMap(a.Fields, b.Fields) && sameMap(a.Params, b.Params)
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func sameFailure(a, b *payonce.Failure) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// check is the schema in code: unique keys, then the CHECKs.
func (s *Store) check(j *job) error {
	v := j.view
	if err := errors.Join(checkOrder(v.Order), s.uniqueOrder(j), s.uniquePayments(v), s.uniqueAdded(j)); err != nil {
		return err
	}
	for _, p := range slices.Concat(j.added, j.changed) {
		if err := checkPayment(p); err != nil {
			return err
		}
	}
	for _, c := range slices.Concat(j.newCosts, j.changedCharges) {
		kind := c.Kind == payonce.ChargeEffective || c.Kind == payonce.ChargeSurplus || c.Kind == payonce.ChargeMismatch
		if !kind || c.Amount < 0 || !currency(c.Currency) || c.EvidenceID == "" {
			return fmt.Errorf("charges: kind %q, amount %d, currency %q, evidence %q", c.Kind, c.Amount, c.Currency, c.EvidenceID)
		}
	}
	return nil
}

func currency(c payonce.Currency) bool {
	return len(c) == 3 && c[0] >= 'A' && c[0] <= 'Z' && c[1] >= 'A' && c[1] <= 'Z' && c[2] >= 'A' && c[2] <= 'Z'
}

func environment(e payonce.Environment) bool { return e == payonce.Test || e == payonce.Live }

func checkOrder(o *payonce.Order) error {
	switch o.Status {
	case payonce.OrderOpen, payonce.OrderPartiallyPaid, payonce.OrderPaid, payonce.OrderClosing, payonce.OrderClosed:
	default:
		return fmt.Errorf("orders_status: %q", o.Status)
	}
	switch {
	case !environment(o.Key.Environment):
		return fmt.Errorf("orders_environment: %q", o.Key.Environment)
	case o.Policy != payonce.PolicySingle && o.Policy != payonce.PolicySplit:
		return fmt.Errorf("orders_policy: %q", o.Policy)
	case !currency(o.Currency):
		return fmt.Errorf("orders_currency: %q", o.Currency)
	case o.Amount <= 0 || o.Amount > maxAmount:
		return fmt.Errorf("orders_amount: %d", o.Amount)
	case o.AmountPaid < 0 || o.Reserved < 0 || o.AmountRefunded < 0 || o.AmountSurplus < 0:
		return fmt.Errorf("orders_sums: paid %d, reserved %d, refunded %d, surplus %d", o.AmountPaid, o.Reserved, o.AmountRefunded, o.AmountSurplus)
	case o.Reserved+o.AmountPaid > o.Amount:
		return fmt.Errorf("orders_room: reserved %d and paid %d of %d", o.Reserved, o.AmountPaid, o.Amount)
	case o.Status == payonce.OrderPaid && o.AmountPaid != o.Amount:
		return fmt.Errorf("orders_paid: %d of %d", o.AmountPaid, o.Amount)
	case o.Version < 0 || o.LastSequence < 0 || o.LastSequence > 1000 || o.AuditLength < 0: // the version is about to rise
		return fmt.Errorf("orders_counters: version %d, sequence %d, audit %d", o.Version, o.LastSequence, o.AuditLength)
	}
	return nil
}

func checkPayment(p *payonce.Payment) error {
	final := p.Status == payonce.Succeeded || p.Status == payonce.Failed || p.Status == payonce.Cancelled
	switch {
	case !final && !p.Status.Live():
		return fmt.Errorf("payments_status: %q", p.Status)
	case !environment(p.Key.Environment):
		return fmt.Errorf("payments_environment: %q", p.Key.Environment)
	case !currency(p.Currency):
		return fmt.Errorf("payments_currency: %q", p.Currency)
	case p.Amount <= 0 || p.Amount > maxAmount:
		return fmt.Errorf("payments_amount: %d", p.Amount)
	case p.AmountAuthorized < 0 || p.AmountRefunded < 0:
		return fmt.Errorf("payments_sums: authorized %d, refunded %d", p.AmountAuthorized, p.AmountRefunded)
	case final && p.EvidenceID == "":
		return fmt.Errorf("payments_evidence: %s without evidence", p.Status)
	case p.Effective && p.Status != payonce.Succeeded:
		return fmt.Errorf("payments_pays: effective and %s", p.Status)
	case p.Number == "" || p.Account == "":
		return errors.New("payments_names: no number or account")
	case p.Status.Live() && p.DueAt.IsZero():
		return fmt.Errorf("payments_due_live: %s and never due", p.Status)
	case p.LeaseOwner != "" && p.DueAt.IsZero():
		return errors.New("payments_leased: leased and never due")
	case p.Sequence < 1 || p.Fence < 1 || p.Version < 1 || p.ChargeCount < 0:
		return fmt.Errorf("payments_counters: sequence %d, fence %d, version %d, charges %d", p.Sequence, p.Fence, p.Version, p.ChargeCount)
	}
	return nil
}

func (s *Store) uniqueOrder(j *job) error {
	if o := j.view.Order; j.before == nil && (s.byID[o.ID] != nil || o.ID == "" || s.orders[o.Key] != nil || o.Key != j.unit.Order) {
		return fmt.Errorf("orders_pkey: order %q is there, or is not the order of its unit", o.ID)
	}
	return nil
}

// uniquePayments: two payments share no slot, number, object or sequence. Slots and
// sequences name the order, so its own payments are all that can clash.
func (s *Store) uniquePayments(v *store.View) error {
	taken := map[string]bool{}
	take := func(kind, value string) error {
		if value == "" {
			return nil
		}
		if taken[kind+value] {
			return fmt.Errorf("payments_%s: %s is taken", kind, value)
		}
		taken[kind+value] = true
		return nil
	}
	for _, p := range v.Payments {
		number, object := s.numbers[name{p.Account, p.Number}], s.objects[name{p.Account, p.ObjectID}]
		if p.OrderID != v.Order.ID || number != "" && number != p.ID || object != "" && p.ObjectID != "" && object != p.ID {
			return fmt.Errorf("payments_number, payments_object: payment %s", p.ID)
		}
		objectName := ""
		if p.ObjectID != "" {
			objectName = p.Account + "\x00" + p.ObjectID
		}
		if err := errors.Join(take("live:", p.LiveSlot()), take("effective:", p.EffectiveSlot()), take("sequence:", fmt.Sprint(p.Sequence)),
			take("id:", p.ID), take("number:", p.Account+"\x00"+p.Number), take("object:", objectName)); err != nil {
			return err
		}
	}
	return nil
}

// uniqueAdded: new rows are new, and say what they must.
func (s *Store) uniqueAdded(j *job) error {
	v := j.view
	for _, p := range j.added {
		if s.payments[p.ID] != nil || p.ID == "" {
			return fmt.Errorf("payments_pkey: %q", p.ID)
		}
	}
	fresh := map[name]bool{}
	for _, c := range j.newCosts {
		id := name{c.Account, c.PaymentRef}
		if s.charges[id] || fresh[id] {
			return fmt.Errorf("charges_ref: %s", c.PaymentRef)
		}
		fresh[id] = true
	}
	if k := v.NewKey; k != nil && (s.keys[k.ID] != nil || k.OrderID == "" || k.Kind == "payment" && k.PaymentID == "" || !environment(k.Environment)) {
		return fmt.Errorf("idempotency_keys: %x of a %s", k.ID[:4], k.Kind)
	}
	if n := v.NewNotice; n != nil {
		stored := s.notices[n.NoticeID]
		if j.unit.Notice == nil || *j.unit.Notice != n.NoticeID {
			return fmt.Errorf("notices: %s is not the one that was looked up", n.EventID)
		}
		refused := stored != nil && (v.Notice == nil || stored.Status != store.NoticeParked)
		if refused || n.Account == "" || n.EventID == "" || n.Status != store.NoticeApplied && n.Status != store.NoticeParked {
			return fmt.Errorf("notices: %s of %s, %q", n.EventID, n.Account, n.Status)
		}
	}
	for i, e := range v.Evidence {
		same := func(o store.Evidence) bool { return o.PaymentID == e.PaymentID && o.ID == e.ID }
		if e.ID == "" || e.OrderID == "" || slices.ContainsFunc(s.evidence[e.PaymentID], same) || slices.ContainsFunc(v.Evidence[:i], same) {
			return fmt.Errorf("evidence_pkey: %s of payment %s", e.ID, e.PaymentID)
		}
	}
	for i, e := range v.Outbox {
		same := func(o store.OutboxEvent) bool {
			return o.ID == e.ID || o.Subject == e.Subject && o.Type == e.Type && o.Change == e.Change
		}
		if s.eventIDs[e.ID] || s.once[eventID{e.Subject, e.Type, e.Change}] || slices.ContainsFunc(v.Outbox[:i], same) {
			return fmt.Errorf("events_once: %s %s %d", e.Subject, e.Type, e.Change)
		}
	}
	for _, a := range v.Answers {
		if a.HTTPStatus < 100 || a.HTTPStatus > 599 {
			return fmt.Errorf("answers_http_status: %d", a.HTTPStatus)
		}
	}
	return nil
}
