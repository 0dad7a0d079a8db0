package postgres

import (
	"database/sql"
	"errors"
	"strconv"
	"strings"
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

// Insert implements sqlstore.Dialect. One array per column makes one text for
// any number of rows, so that each connection prepares it once.
func (dialect) Insert(t sqlstore.Table, rows [][]any, ignore bool) (string, []any) {
	query := "INSERT INTO " + t.Name + " (" + sqlstore.Names(t.Columns, "") + ") SELECT * FROM " + unnest(t)
	if ignore {
		query += " ON CONFLICT DO NOTHING"
	}
	return query, arrays(t, rows)
}

// Update implements sqlstore.Dialect.
func (dialect) Update(t sqlstore.Table, guard string, rows [][]any) (string, []any) {
	id := t.Columns[0].Name
	query := "UPDATE " + t.Name + " t SET " + sqlstore.Assignments(t, "") + " FROM " + unnest(t) +
		" AS v (" + sqlstore.Names(t.Columns, "") + ") WHERE t." + id + " = v." + id
	if guard != "" {
		query += " AND t." + guard + " = v." + guard + " - 1"
	}
	return query, arrays(t, rows)
}

// unnest is the table function over one array per column.
func unnest(t sqlstore.Table) string {
	var b strings.Builder
	b.WriteString("unnest(")
	for i, c := range t.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(i+1))
		switch c.Kind {
		case sqlstore.Hash, sqlstore.Salt, sqlstore.Blob:
			b.WriteString("::bytea[]")
		case sqlstore.Int:
			b.WriteString("::bigint[]")
		case sqlstore.Bool:
			b.WriteString("::smallint[]")
		default:
			b.WriteString("::text[]")
		}
	}
	b.WriteString(")")
	return b.String()
}

// arrays turns rows into one array per column.
func arrays(t sqlstore.Table, rows [][]any) []any {
	out := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		switch c.Kind {
		case sqlstore.Hash, sqlstore.Salt, sqlstore.Blob:
			out[i] = column[[]byte](rows, i)
		case sqlstore.Int, sqlstore.Bool:
			out[i] = nullable[int64](c, rows, i)
		default:
			out[i] = nullable[string](c, rows, i)
		}
	}
	return out
}

// column takes column i of rows; NULL is the zero value.
func column[T any](rows [][]any, i int) []T {
	out := make([]T, len(rows))
	for r, row := range rows {
		out[r], _ = row[i].(T)
	}
	return out
}

func nullable[T any](c sqlstore.Column, rows [][]any, i int) any {
	if !c.Null {
		return column[T](rows, i)
	}
	out := make([]*T, len(rows))
	for r, row := range rows {
		if v, ok := row[i].(T); ok {
			out[r] = &v
		}
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
