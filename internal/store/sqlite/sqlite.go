// Package sqlite opens a SQLite database for Payonce: one file, one connection
// that writes, several that read.
//
// It must not know what is stored.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/payonce/payonce/internal/store/sqlstore"
)

// readers is the number of connections that read.
const readers = 4

// Open opens sqlite:///path/file.db, and creates the file unless o.ReadOnly. A
// commit is on the disk before it is answered.
func Open(ctx context.Context, rawURL string, o sqlstore.Options) (*sqlstore.Store, error) {
	path, ok := strings.CutPrefix(rawURL, "sqlite://")
	if !ok || path == "" {
		return nil, errors.New("the database URL is not of the form sqlite:///path/file.db")
	}
	o = o.WithDefaults()
	write, err := open(path, o.ReadOnly, 1)
	if err != nil {
		return nil, err
	}
	read, err := open(path, true, min(readers, o.MaxConns))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	s := sqlstore.New(dialect{path: path}, write, read, o)
	// The first connection makes the file, before readers look for it.
	if err := write.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), s.Close())
	}
	return s, nil
}

func open(path string, readOnly bool, conns int) (*sql.DB, error) {
	q := url.Values{"_pragma": {"busy_timeout(5000)", "synchronous(FULL)", "foreign_keys(1)"}}
	if readOnly {
		q.Add("_pragma", "query_only(1)")
	} else {
		q.Add("_pragma", "journal_mode(WAL)")
		q.Set("_txlock", "immediate")
	}
	return openWith(path, q, conns)
}

func openWith(path string, q url.Values, conns int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	sqlstore.Pool(db, conns)
	db.SetConnMaxLifetime(0) // nothing fails over; opening costs reading the schema
	return db, nil
}
