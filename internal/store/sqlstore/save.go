package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/payonce/payonce/internal/store"
)

// maxRows bounds the rows of one statement.
const maxRows = 128

// pending are the rows that a batch writes, by table.
type pending struct {
	newOrders, orders, newPayments, payments, newCharges, charges [][]any
	keys, evidence, answers, events, audit, notices               [][]any
	applied                                                       []Statement // parked notices that met their payment
}

// save writes what the jobs decided, one statement per table. The order of the
// tables is the same for all writers: rows that two orders can fight for (keys,
// charges) come in the order of their key, after all order locks.
func (s *Store) save(ctx context.Context, tx Session, jobs []*job) error {
	var w pending
	for _, j := range jobs {
		if j.err == nil && j.writes {
			s.collect(j, &w)
		}
	}
	statements := s.writing(&w)
	if len(statements) == 0 {
		return nil
	}
	return tx.Run(ctx, statements...)
}

// writing turns rows into statements.
func (s *Store) writing(w *pending) []Statement {
	slices.SortFunc(w.keys, func(a, b []any) int { return bytes.Compare(a[0].([]byte), b[0].([]byte)) })
	slices.SortFunc(w.notices, func(a, b []any) int {
		return cmp.Or(strings.Compare(a[0].(string), b[0].(string)), strings.Compare(a[1].(string), b[1].(string)))
	})
	slices.SortFunc(w.newCharges, func(a, b []any) int { return strings.Compare(a[chargeRef].(string), b[chargeRef].(string)) })

	statements := make([]Statement, 0, 12)
	for _, u := range [...]struct {
		table  Table
		guard  string
		change bool
		rows   [][]any
	}{
		{orderRows.table, "", false, w.newOrders},
		{orderRows.change, "version", true, w.orders},
		// Slots move: the old holder lets go before the new one takes.
		{paymentRows.change, "revision", true, w.payments},
		{paymentRows.table, "", false, w.newPayments},
		{keyRows.table, "", false, w.keys},
		{noticeRows.table, "", false, w.notices},
		{evidenceRows.table, "", false, w.evidence},
		{chargeRows.change, "", true, w.charges},
		{chargeRows.table, "", false, w.newCharges},
		{eventRows.table, "", false, w.events},
		{auditRows.table, "", false, w.audit},
	} {
		for part := range slices.Chunk(u.rows, maxRows) {
			query, args := "", []any(nil)
			if u.change {
				query, args = s.d.Update(u.table, u.guard, part)
			} else {
				query, args = s.d.Insert(u.table, part, false)
			}
			statements = append(statements, Statement{Text: query, Args: args, Touches: len(part)})
		}
	}
	statements = append(statements, w.applied...)
	for part := range slices.Chunk(w.answers, maxRows) {
		query, args := s.d.Insert(answerRows.table, part, true)
		statements = append(statements, Statement{Text: query, Args: args, Touches: anyNumber})
	}
	return statements
}

// chargeRef is the place of payment_ref in a row of charges.
var chargeRef = slices.IndexFunc(chargeRows.table.Columns, func(c Column) bool { return c.Name == "payment_ref" })

// collect turns a job's decision into rows, and moves the versions that guard
// them. Pointers that the decision kept show what is stored.
func (s *Store) collect(j *job, w *pending) {
	v, o := j.view, j.row
	now := v.Now
	o.Version++
	s.o.Runner.Random(j.token[:])
	o.writer = j.token
	for _, e := range o.Chain(cleaned(v.Changes), j.unit.Actor, j.unit.Salt, now) {
		j.audit = append(j.audit, store.AuditRow{AuditEntry: e, Salt: j.unit.Salt})
		w.audit = append(w.audit, auditRows.values(&j.audit[len(j.audit)-1]))
	}
	j.stored = orderRows.values(o)
	if j.created {
		w.newOrders = append(w.newOrders, j.stored)
	} else {
		w.orders = append(w.orders, orderRows.changing(j.stored))
	}
	for _, p := range j.changedPayments {
		p.Revision++
		w.payments = append(w.payments, paymentRows.changing(paymentRows.values(p)))
	}
	for _, p := range j.newPayments {
		p.Revision = 1
		w.newPayments = append(w.newPayments, paymentRows.values(p))
	}
	for _, c := range j.changedCharges {
		w.charges = append(w.charges, chargeRows.changing(chargeRows.values(c)))
	}
	for _, c := range j.newCharges {
		w.newCharges = append(w.newCharges, chargeRows.values(c))
	}
	if k := v.NewKey; k != nil {
		if k.CreatedAt.IsZero() {
			k.CreatedAt = now
		}
		w.keys = append(w.keys, keyRows.values(k))
	}
	if n := v.NewNotice; n != nil && v.Notice == nil {
		w.notices = append(w.notices, noticeRows.values(n))
	} else if n != nil {
		w.applied = append(w.applied, s.applyParked(n))
	}
	for i := range v.Evidence {
		e := &v.Evidence[i]
		if e.At.IsZero() {
			e.At = now
		}
		w.evidence = append(w.evidence, evidenceRows.values(e))
	}
	for i := range v.Answers {
		w.answers = append(w.answers, answerRows.values(&v.Answers[i]))
	}
	for i := range v.Outbox {
		e := &v.Outbox[i]
		if e.At.IsZero() {
			e.At = now
		}
		w.events = append(w.events, eventRows.values(e))
	}
}
