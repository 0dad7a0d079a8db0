package postgres

import (
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/payonce/payonce/internal/store/sqlstore"
)

// Dialect is PostgreSQL's, for printing the schema without a database.
var Dialect sqlstore.Dialect = dialect{}

type dialect struct{}

// Name implements sqlstore.Dialect.
func (dialect) Name() string { return "postgres" }

// Schema implements sqlstore.Dialect.
func (dialect) Schema() sqlstore.SchemaRules {
	return sqlstore.SchemaRules{
		Types: map[sqlstore.Kind]string{
			sqlstore.ID: `TEXT COLLATE "C"`, sqlstore.Name: `TEXT COLLATE "C"`, sqlstore.Human: "TEXT", sqlstore.JSON: "TEXT",
			sqlstore.Hash: "BYTEA", sqlstore.Salt: "BYTEA", sqlstore.Blob: "BYTEA", sqlstore.Int: "BIGINT", sqlstore.Bool: "SMALLINT",
		},
		CurrencyForm: "currency ~ '^[A-Z]{3}$'",
	}
}

// Migrations implements sqlstore.Dialect.
func (dialect) Migrations() (goose.Dialect, lock.Locker, error) {
	l, err := lock.NewPostgresTableLocker(lock.WithTableLockTimeout(200*time.Millisecond, 600))
	return goose.DialectPostgres, l, err
}

// Isolation implements sqlstore.Dialect.
func (dialect) Isolation() sql.IsolationLevel { return sql.LevelReadCommitted }

// Rebind implements sqlstore.Dialect. No text of ours holds a literal question
// mark.
func (dialect) Rebind(query string) string {
	var b strings.Builder
	n := 0
	for {
		before, rest, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
		query = rest
	}
}

// Now implements sqlstore.Dialect: stable within a statement, so an index is
// used, and later than the locks that earlier statements waited for.
func (dialect) Now() string {
	return "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000 AS BIGINT)"
}

// Locking implements sqlstore.Dialect: rows are locked after they are sorted.
func (dialect) Locking(string) (hint, suffix string) { return "", " FOR UPDATE" }

// Insert implements sqlstore.Dialect. Rows of parameters cost the server half of
// what one array for each column costs it: each array is a function of its own.
func (dialect) Insert(t sqlstore.Table, rows [][]any, ignore bool) (string, []any) {
	return text(t, kindOf(ignore), len(rows), func(values string) string {
		query := "INSERT INTO " + t.Name + " (" + sqlstore.Names(t.Columns, "") + ") SELECT * FROM " + values +
			" WHERE v." + t.Columns[0].Name + " IS NOT NULL"
		if ignore {
			query += " ON CONFLICT DO NOTHING"
		}
		return query
	}), filled(t, rows)
}

// Update implements sqlstore.Dialect.
func (dialect) Update(t sqlstore.Table, guard string, rows [][]any) (string, []any) {
	return text(t, updating, len(rows), func(values string) string {
		id := t.Columns[0].Name
		query := "UPDATE " + t.Name + " t SET " + sqlstore.Assignments(t, "") + " FROM " + values + " WHERE t." + id + " = v." + id
		if guard != "" {
			query += " AND t." + guard + " = v." + guard + " - 1"
		}
		return query
	}), filled(t, rows)
}

// kind is what a text does.
type kind uint8

const (
	inserting kind = iota
	ignoring
	updating
)

func kindOf(ignore bool) kind {
	if ignore {
		return ignoring
	}
	return inserting
}

// texts are the statements made so far: one for each table, kind and number of
// rows.
var texts sync.Map

type textKey struct {
	table         string
	columns, rows int
	kind          kind
}

// text returns the statement for n rows, which is made once.
func text(t sqlstore.Table, k kind, n int, build func(values string) string) string {
	key := textKey{t.Name, len(t.Columns), rounded(n), k}
	if made, ok := texts.Load(key); ok {
		return made.(string)
	}
	made := build(valuesOf(t, key.rows))
	texts.Store(key, made)
	return made
}

// rounded is the next power of two: rows without a key fill up, and few texts are
// to be prepared.
func rounded(n int) int {
	m := 1
	for m < n {
		m *= 2
	}
	return m
}

// valuesOf is a list of n rows named v. The first one tells the types.
func valuesOf(t sqlstore.Table, n int) string {
	var b strings.Builder
	b.WriteString("(VALUES ")
	for r := range n {
		if r > 0 {
			b.WriteString(", ")
		}
		for i, c := range t.Columns {
			b.WriteString(map[bool]string{true: "(", false: ", "}[i == 0] + "$" + strconv.Itoa(r*len(t.Columns)+i+1))
			if r == 0 {
				b.WriteString("::" + cast(c.Kind))
			}
		}
		b.WriteString(")")
	}
	b.WriteString(") AS v (" + sqlstore.Names(t.Columns, "") + ")")
	return b.String()
}

func cast(k sqlstore.Kind) string {
	switch k {
	case sqlstore.Hash, sqlstore.Salt, sqlstore.Blob:
		return "bytea"
	case sqlstore.Int:
		return "bigint"
	case sqlstore.Bool:
		return "smallint"
	}
	return "text"
}

// filled are the arguments of all rows, NULL in those that fill up.
func filled(t sqlstore.Table, rows [][]any) []any {
	out := make([]any, rounded(len(rows))*len(t.Columns))
	for i, row := range rows {
		copy(out[i*len(t.Columns):], row)
	}
	return out
}

// Classify implements sqlstore.Dialect. A FATAL error ends the connection and
// says nothing about the transaction: a server that shuts down may have
// committed before it says so.
func (dialect) Classify(err error) (sqlstore.Class, string) {
	e := (*pgconn.PgError)(nil)
	if !errors.As(err, &e) || e.Severity == "FATAL" || e.Severity == "PANIC" {
		return sqlstore.ClassUnavailable, ""
	}
	switch e.Code {
	case "40001", "40P01": // serialization, deadlock
		return sqlstore.ClassRetry, ""
	case "55P03": // lock_timeout
		return sqlstore.ClassHeld, ""
	case "23505":
		return sqlstore.ClassDuplicate, ""
	case "25006":
		return sqlstore.ClassReadOnly, ""
	case "26000", "42P05":
		return sqlstore.ClassUnavailable, "a pooler that shares server connections needs default_query_exec_mode=cache_describe or exec in the database URL"
	case "42P01":
		return sqlstore.ClassUnavailable, "run `payonce migrate up`"
	}
	switch e.Code[:min(2, len(e.Code))] {
	case "22", "23":
		return sqlstore.ClassRefused, ""
	}
	return sqlstore.ClassUnavailable, ""
}

// List implements sqlstore.Lists.
func (dialect) List(kind sqlstore.Kind, values []any) (string, any) {
	if kind == sqlstore.Hash {
		out := make([][]byte, len(values))
		for i, v := range values {
			out[i] = v.([]byte)
		}
		return "= ANY(?::bytea[])", out
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.(string)
	}
	return "= ANY(?::text[])", out
}
