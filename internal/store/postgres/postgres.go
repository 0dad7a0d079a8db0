// Package postgres opens a PostgreSQL database for Payonce.
//
// It must not know what is stored.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/payonce/payonce/internal/store/sqlstore"
)

// Open opens postgres://…, with any parameter that the driver knows. Several
// hosts with target_session_attrs=read-write follow a failover.
// default_query_exec_mode=cache_describe or exec is for poolers that hand one
// server connection to many clients.
//
// The session's lock_timeout and idle_in_transaction_session_timeout keep a row
// that somebody holds, or that a vanished client of ours held, from stopping
// more than its own order. Poolers refuse parameters that they do not know, so in
// their modes both are left to the role: ALTER ROLE … SET.
func Open(ctx context.Context, rawURL string, o sqlstore.Options) (*sqlstore.Store, error) {
	config, err := pgx.ParseConfig(rawURL)
	if err != nil {
		return nil, errors.New("the database URL is not a valid postgres:// URL") // the driver's text may show the password
	}
	if _, given := config.RuntimeParams["application_name"]; !given {
		config.RuntimeParams["application_name"] = "payonce"
	}
	if o.ReadOnly {
		config.RuntimeParams["default_transaction_read_only"] = "on"
	}
	o = o.WithDefaults()
	if config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.RuntimeParams["lock_timeout"] = strconv.FormatInt(o.LockWait.Milliseconds(), 10)
		config.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt((2 * o.Timeout).Milliseconds(), 10)
	}
	db := stdlib.OpenDB(*config)
	sqlstore.Pool(db, o.MaxConns)
	s := sqlstore.New(dialect{}, db, db, o)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to PostgreSQL: %w", err), s.Close())
	}
	return s, nil
}
