package sqlstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/payonce/payonce"
)

// field binds a column to a member of T.
type field[T any] struct {
	Column
	fixed bool // never changes after the insert
	get   func(*T) any
	to    func(*T) scanner // nil: derived from other members, not read back
}

// rows maps T to its table. The first column identifies the row.
type rows[T any] struct {
	table  Table
	change Table // the first column and those that may change
	fields []field[T]
	read   string // columns to select
}

func newRows[T any](table string, fields []field[T]) *rows[T] {
	r := &rows[T]{table: Table{Name: table}, change: Table{Name: table}, fields: fields}
	var read []Column
	for i, f := range fields {
		r.table.Columns = append(r.table.Columns, f.Column)
		if i == 0 || !f.fixed {
			r.change.Columns = append(r.change.Columns, f.Column)
		}
		if f.to != nil {
			read = append(read, f.Column)
		}
	}
	r.read = Names(read, "t.")
	return r
}

// values is the whole row as it is written.
func (r *rows[T]) values(v *T) []any {
	out := make([]any, len(r.fields))
	for i := range r.fields {
		out[i] = r.fields[i].get(v)
	}
	return out
}

// changing picks the row for an update out of the whole row.
func (r *rows[T]) changing(row []any) []any {
	out := make([]any, 0, len(r.change.Columns))
	for i := range r.fields {
		if i == 0 || !r.fields[i].fixed {
			out = append(out, row[i])
		}
	}
	return out
}

// dest are the destinations for the columns of read.
func (r *rows[T]) dest(v *T) []any {
	out := make([]any, 0, len(r.fields))
	for i := range r.fields {
		if to := r.fields[i].to; to != nil {
			out = append(out, to(v))
		}
	}
	return out
}

// diff compares two pictures of one row. broken names a column that must never
// change and did.
func (r *rows[T]) diff(before, after []any) (changed bool, broken string) {
	for i := range r.fields {
		if same(before[i], after[i]) {
			continue
		}
		if i == 0 || r.fields[i].fixed {
			return true, r.table.Name + "." + r.fields[i].Name
		}
		changed = true
	}
	return changed, ""
}

func same(a, b any) bool {
	x, ok := a.([]byte)
	if !ok {
		return a == b
	}
	y, ok := b.([]byte)
	return ok && bytes.Equal(x, y)
}

// KeyHash is the lock name of an order: SHA-256 of the length-prefixed merchant,
// environment and order number. It compares as bytes on every engine.
func KeyHash(k payonce.OrderKey) [32]byte {
	buf := make([]byte, 0, 160)
	for _, s := range [...]string{k.Merchant, string(k.Environment), k.OrderNo} {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(s)))
		buf = append(buf, s...)
	}
	return sha256.Sum256(buf)
}
