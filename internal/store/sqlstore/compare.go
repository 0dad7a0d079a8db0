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
	for _, err := range []error{j.payments.compare(v.Payments), j.charges.compare(v.Charges)} {
		if err != nil {
			return err
		}
	}
	j.writes = j.writes || j.payments.moved() || j.charges.moved()
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
