package sqlstore

import (
	"fmt"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// compare finds out what a decision changed. There are no dirty flags: a member
// that a rule sets is written because the row differs. An error means that the
// decision changed what never changes; nothing of it is written.
func (s *Store) compare(j *job) error {
	v := j.view
	if v.Order != &j.row.Order {
		j.row.Order = *v.Order
		v.Order = &j.row.Order
	}
	if n := v.NewNotice; n != nil {
		switch {
		case j.unit.Notice == nil || *j.unit.Notice != n.NoticeID:
			return refusal{fmt.Errorf("the notice %s is not the one that was looked up", n.EventID)}
		case v.Notice != nil && v.Notice.Status != store.NoticeParked:
			return refusal{fmt.Errorf("the notice %s is stored already", n.EventID)}
		}
	}
	j.writes = j.created || v.NewKey != nil || v.NewNotice != nil || len(v.Evidence)+len(v.Answers)+len(v.Outbox)+len(v.Changes) > 0
	if !j.created {
		changed, err := differs(orderRows, j.before, j.row)
		if err != nil {
			return err
		}
		j.writes = j.writes || changed
	}
	if err := comparePayments(j); err != nil {
		return err
	}
	return compareCharges(j)
}

func comparePayments(j *job) error {
	known := 0
	for _, p := range j.view.Payments {
		before, ok := j.payments[p]
		if !ok {
			j.newPayments = append(j.newPayments, p)
			continue
		}
		known++
		changed, err := differs(paymentRows, before, p)
		if err != nil {
			return err
		}
		if changed {
			j.changedPayments = append(j.changedPayments, p)
		}
	}
	if known != len(j.payments) {
		return refusal{fmt.Errorf("a payment of order %s was left out", j.row.ID)}
	}
	j.writes = j.writes || len(j.newPayments)+len(j.changedPayments) > 0
	return nil
}

func compareCharges(j *job) error {
	known := 0
	for _, c := range j.view.Charges {
		before, ok := j.charges[c]
		if !ok {
			j.newCharges = append(j.newCharges, c)
			continue
		}
		known++
		changed, err := differs(chargeRows, before, c)
		if err != nil {
			return err
		}
		if changed {
			j.changedCharges = append(j.changedCharges, c)
		}
	}
	if known != len(j.charges) {
		return refusal{fmt.Errorf("a charge of order %s was left out", j.row.ID)}
	}
	j.writes = j.writes || len(j.newCharges)+len(j.changedCharges) > 0
	return nil
}

func differs[T any](r *rows[T], before []any, now *T) (bool, error) {
	changed, broken := r.diff(before, r.values(now))
	if broken != "" {
		return false, refusal{fmt.Errorf("%s never changes", broken)}
	}
	return changed, nil
}

// cleaned makes a change storable before it is hashed, so that the chain
// verifies over what was stored.
func cleaned(changes []payonce.Change) []payonce.Change {
	for i := range changes {
		changes[i].Cause = human(changes[i].Cause)
	}
	return changes
}
