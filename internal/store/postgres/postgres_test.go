package postgres_test

import (
	"database/sql"
	"testing"

	"go.uber.org/goleak"

	"github.com/payonce/payonce/internal/store/postgres"
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
	Survive: "SET LOCAL deadlock_timeout = '60s'",
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { storetest.Run(t, engine) }

func BenchmarkWrite(b *testing.B) { storetest.Bench(b, engine) }
