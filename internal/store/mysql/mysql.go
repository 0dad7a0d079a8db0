// Package mysql opens a MySQL or MariaDB database for Payonce, and what speaks
// their protocol.
//
// It must not know what is stored.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/payonce/payonce/internal/store/sqlstore"
)

// Open opens mysql://user:pass@host:port/db?params. The parameters are those of
// the driver; what correctness needs is set here and cannot be overridden.
func Open(ctx context.Context, rawURL string, o sqlstore.Options) (*sqlstore.Store, error) {
	config, err := Config(rawURL)
	if err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	// The driver's own limit is what ends a COMMIT that nobody answers: it takes no
	// context.
	config.ReadTimeout, config.WriteTimeout = o.Timeout, o.Timeout
	config.Params["innodb_lock_wait_timeout"] = seconds(o.LockWait)
	// A client that vanished within a transaction holds its locks until the server
	// gives the session up. No idle connection of the pool gets so old.
	config.Params["wait_timeout"] = seconds(2 * sqlstore.ConnLifetime)
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errors.New("the database URL is not a valid mysql:// URL") // the driver's text may show the password
	}
	db := sql.OpenDB(connector)
	sqlstore.Pool(db, o.MaxConns)
	s := sqlstore.New(dialect{}, db, db, o)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to MySQL: %w", err), s.Close())
	}
	return s, nil
}

// Config turns a URL into the driver's settings.
func Config(rawURL string) (*mysql.Config, error) {
	wrong := errors.New("the database URL is not of the form mysql://user:pass@host:port/db")
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "mysql" || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return nil, wrong
	}
	dsn := "tcp(placeholder:1)/"
	if u.RawQuery != "" {
		dsn += "?" + u.RawQuery
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, wrong
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Addr = u.Host
	if u.Port() == "" {
		config.Addr += ":3306"
	}
	config.DBName = strings.Trim(u.Path, "/")
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.ParseTime, config.Loc = true, time.UTC
	config.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
	config.RejectReadOnly = true    // a demoted server's connections are left
	config.InterpolateParams = true // one round trip per statement; quoting is safe in utf8mb4
	config.MultiStatements = false
	config.ClientFoundRows = false
	config.Logger = quiet{}
	if err := config.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, err
	}
	config.Timeout = orElse(config.Timeout, 5*time.Second)
	return config, nil
}

func orElse(d, def time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return def
}

// seconds rounds up to whole seconds, which is how the server counts.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// quiet keeps the driver from writing to stderr: errors come back as errors.
type quiet struct{}

// Print implements mysql.Logger.
func (quiet) Print(v ...any) { slog.Debug("mysql driver", "message", fmt.Sprint(v...)) }
