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
//
// A connection plans each statement once, by its indexes: every statement of the
// hot path names its rows by a key, and a plan made while the tables were empty
// would read them from end to end. plan_cache_mode=auto in the URL leaves plans to
// the server's own settings.
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
	var options []stdlib.OptionOpenDB
	if _, given := config.RuntimeParams["plan_cache_mode"]; !given && config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		options = append(options, stdlib.OptionAfterConnect(planOnce))
	}
	db := stdlib.OpenDB(*config, options...)
	sqlstore.Pool(db, o.MaxConns)
	s := sqlstore.New(dialect{}, db, db, o)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to PostgreSQL: %w", err), s.Close())
	}
	return s, nil
}

// planOnce is not said at the start of a connection: poolers refuse parameters
// that they do not know.
func planOnce(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"+
		" SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off", pgx.QueryExecModeSimpleProtocol)
	return err
}
