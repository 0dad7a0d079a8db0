package sqlite_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/payonce/payonce/internal/store/sqlite"
	"github.com/payonce/payonce/internal/store/sqlstore"
	"github.com/payonce/payonce/internal/store/storetest"
)

var engine = storetest.Engine{
	Name: "SQLite", Open: sqlite.Open, OneWriter: true,
	Tables: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { storetest.Run(t, engine) }

func BenchmarkWrite(b *testing.B) { storetest.Bench(b, engine) }

func TestOpenRefusesOtherURLs(t *testing.T) {
	for _, url := range []string{"", "file.db", "sqlite://", "postgres://h/db"} {
		if s, err := sqlite.Open(t.Context(), url, sqlstore.Options{}); err == nil {
			t.Errorf("%q was opened", url)
			_ = s.Close()
		}
	}
}

// TestCommitIsDurable: what answers a commit must be on the disk, whatever the
// library's default is.
func TestCommitIsDurable(t *testing.T) {
	s, err := sqlite.Open(t.Context(), "sqlite://"+t.TempDir()+"/with ? and % in it.db", sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "busy_timeout": "5000"} {
		var got string
		if err := s.DB().QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %s (%v)", pragma, got, want, err)
		}
	}
}

// TestBusyIsTriedAgain: another process that holds the file's lock is a reason to
// try again, not a conflict.
func TestBusyIsTriedAgain(t *testing.T) {
	url := "sqlite://" + t.TempDir() + "/p.db"
	one, err := sqlite.Open(t.Context(), url, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	two, err := sqlite.Open(t.Context(), url, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = two.Close() }()
	tx, err := one.DB().BeginTx(t.Context(), nil) // immediate: takes the lock
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	conn, err := two.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	_, err = conn.BeginTx(context.Background(), nil)
	if class, _ := two.Dialect().Classify(err); err == nil || class != sqlstore.ClassHeld {
		t.Errorf("class %d of %v", class, err)
	}
	if class, _ := two.Dialect().Classify(errors.New("other")); class != sqlstore.ClassUnavailable {
		t.Errorf("an unknown error has class %d", class)
	}
}
