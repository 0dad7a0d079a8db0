package postgres_test

import (
	"database/sql"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/payonce/payonce/internal/store/postgres"
	"github.com/payonce/payonce/internal/store/sqlstore"
	"github.com/payonce/payonce/internal/store/storetest"
)

// engine is the server under test; PAYONCE_TEST_POSTGRES names another one.
var engine = storetest.Engine{
	Name: "PostgreSQL", Open: postgres.Open,
	Server:  storetest.Env("PAYONCE_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"),
	Driver:  func(url string) (*sql.DB, error) { return sql.Open("pgx", url) },
	Create:  "CREATE SCHEMA %s",
	Drop:    "DROP SCHEMA %s CASCADE",
	At:      func(server, name string) string { return server + "&search_path=" + name },
	Tables:  "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
	Session: "SELECT pg_backend_pid()",
	Blocked: "SELECT COUNT(*) FROM pg_stat_activity WHERE CAST(? AS integer) = ANY(pg_blocking_pids(pid))",
	Survive: "SET LOCAL deadlock_timeout = '60s'",
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { storetest.Run(t, engine) }

func BenchmarkWrite(b *testing.B) { storetest.Bench(b, engine) }

// TestA2SessionLimits: locks are waited for shortly, and the server itself ends
// the transaction of a client that vanished, whatever the URL says.
func TestA2SessionLimits(t *testing.T) {
	storetest.Settings(t, engine, "&lock_timeout=0", sqlstore.Options{Timeout: 7 * time.Second, LockWait: 1500 * time.Millisecond}, map[string]string{
		"SELECT setting FROM pg_settings WHERE name = 'lock_timeout'":                        "1500",
		"SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'": "14000",
	})
	storetest.Settings(t, engine, "&default_query_exec_mode=exec", sqlstore.Options{}, map[string]string{
		"SELECT source FROM pg_settings WHERE name = 'lock_timeout'": "default", // a pooler would refuse it
	})
}
