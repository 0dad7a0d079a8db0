package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// maxRows bounds the rows of one statement.
const maxRows = 32

// save writes what the jobs decided, one statement per table, all sent together.
func (s *Store) save(ctx context.Context, tx Session, jobs []*job) error {
	var writing []*job
	for _, j := range jobs {
		if j.err == nil && j.writes {
			s.seal(j)
			writing = append(writing, j)
		}
	}
	var statements []Statement
	for i := range written {
		statements = written[i].statements(s, statements, writing)
	}
	if len(statements) == 0 {
		return nil
	}
	return tx.Run(ctx, statements...)
}

// seal completes a decision before its rows are taken: it moves the versions that
// guard them, chains the audit entries, and fills in times. Pointers that the
// decision kept show what is stored.
func (s *Store) seal(j *job) {
	v, o := j.view, j.row
	o.Version++
	s.o.Runner.Random(j.token[:])
	o.writer = j.token
	for _, e := range o.Chain(cleaned(v.Changes), j.unit.Actor, j.unit.Salt, v.Now) {
		j.audit = append(j.audit, store.AuditRow{AuditEntry: e, Salt: j.unit.Salt})
	}
	j.stored = orderRows.values(o)
	for _, p := range j.payments.changed {
		p.Revision++
	}
	for _, p := range j.payments.added {
		p.Revision = 1
	}
	if k := v.NewKey; k != nil && k.CreatedAt.IsZero() {
		k.CreatedAt = v.Now
	}
	for i := range v.Evidence {
		if e := &v.Evidence[i]; e.At.IsZero() {
			e.At = v.Now
		}
	}
	for i := range v.Outbox {
		if e := &v.Outbox[i]; e.At.IsZero() {
			e.At = v.Now
		}
	}
}

// part is one table's part in writing a batch. A new table is one entry in
// written.
type part struct {
	table  Table
	update bool
	guard  string // of an update: the column that is one less than its new value
	ignore bool   // of an insert: rows that are there already are left out
	rows   func(*job) [][]any
	sorted []int // columns of a unique key that two orders can fight for
	// trace are columns whose values only this attempt can have stored together;
	// nil where there are none.
	trace []int
	// single makes one statement for a job, where rows is nil.
	single func(*Store, *job) (Statement, bool)
}

// written are the parts of a batch in the order that is the same for all writers:
// what two orders can fight for comes in the order of its key, after all order
// locks.
var written = [...]part{
	{table: orderRows.table, rows: func(j *job) [][]any { return only(j.stored, j.created) }},
	{table: orderRows.change, update: true, guard: "version", rows: func(j *job) [][]any { return only(orderRows.changing(j.stored), !j.created) }},
	// Slots move: the old holder lets go before the new one takes.
	updates(paymentRows, "revision", func(j *job) []*payonce.Payment { return j.payments.changed }),
	inserts(paymentRows, func(j *job) []*payonce.Payment { return j.payments.added }).known("id"),
	inserts(keyRows, func(j *job) []*store.KeyRecord { return only(j.view.NewKey, j.view.NewKey != nil) }).
		by("id").known("id", "order_id", "payment_id", "created_at"),
	inserts(noticeRows, func(j *job) []*store.Notice {
		return only(j.view.NewNotice, j.view.NewNotice != nil && j.view.Notice == nil)
	}).
		by("account", "event_id").known("account", "event_id", "status", "payment_id", "received_at"),
	inserts(evidenceRows, func(j *job) []*store.Evidence { return pointers(j.view.Evidence) }).known("payment_id", "id"),
	updates(chargeRows, "", func(j *job) []*payonce.Charge { return j.charges.changed }),
	inserts(chargeRows, func(j *job) []*payonce.Charge { return j.charges.added }).by("account", "payment_ref").known("id"),
	inserts(eventRows, func(j *job) []*store.OutboxEvent { return pointers(j.view.Outbox) }).by("subject", "type", "change_no").known("id"),
	inserts(auditRows, func(j *job) []*store.AuditRow { return pointers(j.audit) }).known("order_id", "n", "hash"),
	{single: (*Store).applyParked},
	inserts(answerRows, func(j *job) []*store.Answer { return pointers(j.view.Answers) }).ignoring(),
}

func inserts[T any](r *rows[T], of func(*job) []*T) part {
	return part{table: r.table, rows: func(j *job) [][]any {
		var out [][]any
		for _, v := range of(j) {
			out = append(out, r.values(v))
		}
		return out
	}}
}

func updates[T any](r *rows[T], guard string, of func(*job) []*T) part {
	return part{table: r.change, update: true, guard: guard, rows: func(j *job) [][]any {
		var out [][]any
		for _, v := range of(j) {
			out = append(out, r.changing(r.values(v)))
		}
		return out
	}}
}

func (p part) by(columns ...string) part    { p.sorted = p.table.places(columns); return p }
func (p part) known(columns ...string) part { p.trace = p.table.places(columns); return p }
func (p part) ignoring() part               { p.ignore = true; return p }

// places are the positions of columns in a row.
func (t *Table) places(columns []string) []int {
	out := make([]int, len(columns))
	for i, name := range columns {
		if out[i] = slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name }); out[i] < 0 {
			panic("no column " + t.Name + "." + name)
		}
	}
	return out
}

// statements appends what the jobs write in this part.
func (p part) statements(s *Store, to []Statement, jobs []*job) []Statement {
	var all [][]any
	for _, j := range jobs {
		if p.rows != nil {
			all = append(all, p.rows(j)...)
		} else if st, ok := p.single(s, j); ok {
			to = append(to, st)
		}
	}
	if p.sorted != nil {
		slices.SortFunc(all, func(a, b []any) int { return compareRows(a, b, p.sorted) })
	}
	for chunk := range slices.Chunk(all, maxRows) {
		st := Statement{Touches: len(chunk)}
		switch {
		case p.update:
			st.Text, st.Args = s.d.Update(p.table, p.guard, chunk)
		default:
			st.Text, st.Args = s.d.Insert(p.table, chunk, p.ignore)
		}
		if p.ignore {
			st.Touches = anyNumber
		}
		to = append(to, st)
	}
	return to
}

// compareRows compares two rows by some of their columns.
func compareRows(a, b []any, columns []int) int {
	for _, c := range columns {
		n := 0
		switch x := a[c].(type) {
		case string:
			n = strings.Compare(x, b[c].(string))
		case []byte:
			n = bytes.Compare(x, b[c].([]byte))
		case int64:
			n = cmp.Compare(x, b[c].(int64))
		}
		if n != 0 {
			return n
		}
	}
	return 0
}

// only is a list of one, or none.
func only[T any](v T, there bool) []T {
	if !there {
		return nil
	}
	return []T{v}
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
