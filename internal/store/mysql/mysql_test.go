package mysql_test

import (
	"database/sql"
	"net/url"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"go.uber.org/goleak"

	"github.com/payonce/payonce/internal/store/mysql"
	"github.com/payonce/payonce/internal/store/sqlstore"
	"github.com/payonce/payonce/internal/store/storetest"
)

// engine is the server under test; PAYONCE_TEST_MYSQL names another one.
var engine = storetest.Engine{
	Name: "MariaDB", Open: mysql.Open,
	Server: storetest.Env("PAYONCE_TEST_MYSQL", "mysql://root@127.0.0.1:3306/mysql"),
	Driver: func(url string) (*sql.DB, error) {
		config, err := mysql.Config(url)
		if err != nil {
			return nil, err
		}
		connector, err := driver.NewConnector(config)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	},
	Create: "CREATE DATABASE %s",
	Drop:   "DROP DATABASE %s",
	At: func(server, name string) string {
		u, err := url.Parse(server)
		if err != nil {
			panic(err) // Driver has read it before
		}
		u.Path = "/" + name
		return u.String()
	},
	Session:         "SELECT CONNECTION_ID()",
	Blocked:         "SELECT COUNT(*) FROM sys.innodb_lock_waits WHERE blocking_pid = ?",
	InsertsDeadlock: true,
	Tables:          "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { storetest.Run(t, engine) }

func BenchmarkWrite(b *testing.B) { storetest.Bench(b, engine) }

// TestA2SessionLimits: locks are waited for shortly, and the server itself ends
// the session of a client that vanished within a transaction, whatever the URL
// says.
func TestA2SessionLimits(t *testing.T) {
	storetest.Settings(t, engine, "?innodb_lock_wait_timeout=50", sqlstore.Options{LockWait: 1500 * time.Millisecond}, map[string]string{
		"SELECT @@SESSION.innodb_lock_wait_timeout": "2",
		"SELECT @@SESSION.wait_timeout":             "360",
	})
}
