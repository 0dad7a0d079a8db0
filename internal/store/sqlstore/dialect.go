package sqlstore

import (
	"database/sql"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Kind is what a column holds; a dialect gives each kind its type.
type Kind uint8

// Kinds of columns.
const (
	ID    Kind = iota // an identifier of ours or a word of a closed set, ASCII, compared as bytes
	Name              // a name from outside, compared as bytes
	Human             // text for people, UTF-8
	JSON              // JSON as text
	Hash              // 32 bytes
	Salt              // 16 bytes
	Blob              // bytes
	Int               // 64-bit integer: amounts, counters, microseconds
	Bool              // 0 or 1
)

// Column is one column of a table.
type Column struct {
	Name string
	Kind Kind
	Null bool
}

// Table is what a statement needs to know of a table. The first column is the
// one that identifies a row in updates.
type Table struct {
	Name    string
	Columns []Column
}

// Class says what an error of the database means.
type Class uint8

// Classes of errors. A new or unknown error is ClassUnavailable: nothing is
// concluded from it.
const (
	ClassUnavailable Class = iota // the database cannot be used, or something unknown
	ClassRetry                    // serialization failure, deadlock: again on a fresh picture
	ClassHeld                     // somebody else held a lock for longer than LockWait
	ClassDuplicate                // a unique key refused
	ClassRefused                  // a CHECK or a type refused: trying again changes nothing
	ClassReadOnly                 // this server takes no writes; the connection is given up
)

// SchemaRules are the words in which an engine declares a table.
type SchemaRules struct {
	Types        map[Kind]string
	InlineIndex  bool   // indexes stand in CREATE TABLE (one DDL statement per migration)
	TableSuffix  string // after the closing parenthesis
	CurrencyForm string // condition on column currency: three upper case letters
}

// Dialect is everything that differs between engines.
type Dialect interface {
	// Name is sqlite, postgres or mysql.
	Name() string
	// Schema gives the words of the schema.
	Schema() SchemaRules
	// Migrations gives the dialect of the migration library and a lock that lets
	// several processes migrate at once.
	Migrations() (goose.Dialect, lock.Locker, error)
	// Isolation is what every transaction asks for.
	Isolation() sql.IsolationLevel
	// Rebind turns ? into the engine's placeholders.
	Rebind(query string) string
	// Now is an expression for the clock in microseconds since 1970 UTC, at the
	// start of the statement.
	Now() string
	// Locking gives the index hint after the table name and the suffix of a
	// SELECT that locks its rows in the order of that index.
	Locking(index string) (hint, suffix string)
	// Insert builds one statement for all rows. With ignore, rows whose key is
	// taken are left out.
	Insert(t Table, rows [][]any, ignore bool) (query string, args []any)
	// Update builds one statement that sets all columns of t but the first in
	// the row that the first column names, where column guard is one less than
	// its new value.
	Update(t Table, guard string, rows [][]any) (query string, args []any)
	// Classify says what an error of the driver means. The hint is for people,
	// "" where the error says it itself.
	Classify(err error) (c Class, hint string)
}

// PlainInsert builds INSERT … VALUES (?, …), (?, …) followed by tail.
func PlainInsert(t Table, rows [][]any, tail string) (string, []any) {
	var b strings.Builder
	b.WriteString("INSERT INTO " + t.Name + " (")
	names(&b, t.Columns, "")
	b.WriteString(") VALUES ")
	group := "(" + Marks(len(t.Columns)) + ")"
	args := make([]any, 0, len(rows)*len(t.Columns))
	for i, row := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(group)
		args = append(args, row...)
	}
	b.WriteString(tail)
	return b.String(), args
}

func names(b *strings.Builder, columns []Column, prefix string) {
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(prefix + c.Name)
	}
}

// Names lists the columns' names with a prefix, separated by commas.
func Names(columns []Column, prefix string) string {
	var b strings.Builder
	names(&b, columns, prefix)
	return b.String()
}

// Assignments lists "name = v.name" for all columns but the first.
func Assignments(t Table, target string) string {
	var b strings.Builder
	for i, c := range t.Columns[1:] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(target + c.Name + " = v." + c.Name)
	}
	return b.String()
}

// Marks is n question marks separated by commas.
func Marks(n int) string {
	if n == 0 {
		return ""
	}
	return strings.Repeat("?, ", n-1) + "?"
}
