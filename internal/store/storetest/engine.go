package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// Engine is one database engine under test; differences between engines are
// members, not code.
type Engine struct {
	Name string
	Open func(ctx context.Context, url string, o sqlstore.Options) (*sqlstore.Store, error)
	// Server is the URL of a database in which databases can be made; "" for an
	// engine of files.
	Server string
	// Driver opens Server for making and dropping databases.
	Driver func(url string) (*sql.DB, error)
	// Create and Drop make and end a database (or schema) of this name.
	Create, Drop string
	// At is the URL of that database.
	At func(server, name string) string
	// OneWriter: writers exclude each other for whole transactions, and there is
	// no network between them and their COMMIT.
	OneWriter bool
	// InsertsDeadlock: racing inserts of one unique key may deadlock by themselves
	// when the first one is rolled back.
	InsertsDeadlock bool
	// Tables lists the tables of the open database.
	Tables string
	// Session asks for the name of the own session, and Blocked how many sessions
	// wait for locks of a named one.
	Session, Blocked string
	// Survive makes a transaction outlive a deadlock with another one.
	Survive string
}

// Env returns an environment variable or a default.
func Env(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

// open makes a fresh database with the schema and opens it.
func (e Engine) open(t testing.TB, o sqlstore.Options) *fixture {
	t.Helper()
	f := &fixture{TB: t, engine: e, url: e.fresh(t), clock: &run.Clock{}}
	if o.Clock == nil {
		o.Clock = f.clock
	}
	f.Store = f.again(o)
	if err := f.Migrate(t.Context(), sqlstore.MigrateOptions{}); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return f
}

// again opens the fixture's database once more.
func (f *fixture) again(o sqlstore.Options) *sqlstore.Store {
	f.Helper()
	s, err := f.engine.Open(context.Background(), f.url, o)
	if err != nil {
		f.Fatalf("open %s: %v", f.engine.Name, err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Errorf("close: %v", err)
		}
	})
	return s
}

// fresh makes an empty database and returns its URL.
func (e Engine) fresh(t testing.TB) string {
	t.Helper()
	if e.Server == "" {
		return "sqlite://" + filepath.Join(t.TempDir(), "payonce.db")
	}
	admin, err := e.Driver(e.Server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	name := fmt.Sprintf("payonce_test_%d_%d_%d", os.Getpid(), live.Now().UnixNano()%1e9, serial.Add(1))
	if _, err := admin.ExecContext(context.Background(), fmt.Sprintf(e.Create, name)); err != nil {
		t.Fatalf("create database: %v", err)
	}
	t.Cleanup(func() {
		admin, err := e.Driver(e.Server)
		if err == nil {
			_, err = admin.ExecContext(context.Background(), fmt.Sprintf(e.Drop, name))
			_ = admin.Close()
		}
		if err != nil {
			t.Errorf("drop database %s: %v", name, err)
		}
	})
	return e.At(e.Server, name)
}

// available skips a missing engine loudly, and fails where it must be there.
func (e Engine) available(t *testing.T) {
	t.Helper()
	if e.Server == "" {
		return
	}
	db, err := e.Driver(e.Server)
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err = db.PingContext(ctx)
		_ = db.Close()
	}
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not reachable at %s: %v", e.Name, e.Server, err)
	default:
		t.Skipf("SKIPPED: NOTHING OF %s IS TESTED: not reachable at %s: %v", e.Name, e.Server, err)
	}
}
