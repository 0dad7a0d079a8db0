package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/payonce/payonce/internal/store/sqlstore"
)

// Dialect is SQLite's, for printing the schema without a database.
var Dialect sqlstore.Dialect = dialect{}

type dialect struct{ path string }

// Name implements sqlstore.Dialect.
func (dialect) Name() string { return "sqlite" }

// Schema implements sqlstore.Dialect.
func (dialect) Schema() sqlstore.SchemaRules {
	return sqlstore.SchemaRules{
		Types: map[sqlstore.Kind]string{
			sqlstore.ID: "TEXT", sqlstore.Name: "TEXT", sqlstore.Human: "TEXT", sqlstore.JSON: "TEXT",
			sqlstore.Hash: "BLOB", sqlstore.Salt: "BLOB", sqlstore.Blob: "BLOB", sqlstore.Int: "INTEGER", sqlstore.Bool: "INTEGER",
		},
		TableSuffix:  " STRICT",
		CurrencyForm: "currency GLOB '[A-Z][A-Z][A-Z]'",
	}
}

// Migrations implements sqlstore.Dialect.
func (d dialect) Migrations() (goose.Dialect, lock.Locker, error) {
	return goose.DialectSQLite3, &fileLock{path: d.path + "-migrate"}, nil
}

// Isolation implements sqlstore.Dialect: the one writer is alone.
func (dialect) Isolation() sql.IsolationLevel { return sql.LevelDefault }

// Rebind implements sqlstore.Dialect.
func (dialect) Rebind(query string) string { return query }

// Now implements sqlstore.Dialect. SQLite's clock has milliseconds.
func (dialect) Now() string { return "CAST(ROUND(unixepoch('subsec') * 1000) * 1000 AS INTEGER)" }

// Locking implements sqlstore.Dialect: BEGIN IMMEDIATE has locked everything.
func (dialect) Locking(string) (hint, suffix string) { return "", "" }

// Insert implements sqlstore.Dialect.
func (dialect) Insert(t sqlstore.Table, rows [][]any, ignore bool) (string, []any) {
	tail := ""
	if ignore {
		tail = " ON CONFLICT DO NOTHING"
	}
	return sqlstore.PlainInsert(t, rows, tail)
}

// Update implements sqlstore.Dialect.
func (dialect) Update(t sqlstore.Table, guard string, rows [][]any) (string, []any) {
	var b strings.Builder
	b.WriteString("WITH v (" + sqlstore.Names(t.Columns, "") + ") AS (VALUES ")
	group := "(" + sqlstore.Marks(len(t.Columns)) + ")"
	var args []any
	for i, row := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(group)
		args = append(args, row...)
	}
	id := t.Columns[0].Name
	b.WriteString(") UPDATE " + t.Name + " SET " + sqlstore.Assignments(t, "") + " FROM v WHERE " + t.Name + "." + id + " = v." + id)
	if guard != "" {
		b.WriteString(" AND " + t.Name + "." + guard + " = v." + guard + " - 1")
	}
	return b.String(), args
}

// Classify implements sqlstore.Dialect.
func (dialect) Classify(err error) (sqlstore.Class, string) {
	e := (*sqlite.Error)(nil)
	if !errors.As(err, &e) {
		return sqlstore.ClassUnavailable, ""
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return sqlstore.ClassDuplicate, ""
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return sqlstore.ClassHeld, ""
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		return sqlstore.ClassRefused, ""
	case sqlite3.SQLITE_READONLY:
		return sqlstore.ClassReadOnly, ""
	}
	return sqlstore.ClassUnavailable, ""
}

// fileLock lets one process migrate at a time. It is an exclusive transaction on
// a file of its own beside the database: the operating system ends it with the
// process.
type fileLock struct {
	path string
	db   *sql.DB
	tx   *sql.Tx
}

// Lock waits until nobody else migrates.
func (l *fileLock) Lock(ctx context.Context, _ *sql.DB) error {
	db, err := openWith(l.path, url.Values{"_pragma": {"busy_timeout(60000)"}, "_txlock": {"exclusive"}}, 1)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	l.db, l.tx = db, tx
	return nil
}

// Unlock lets the next one in.
func (l *fileLock) Unlock(context.Context, *sql.DB) error {
	return errors.Join(l.tx.Rollback(), l.db.Close())
}
