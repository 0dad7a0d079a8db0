package memory_test

import (
	"context"
	"testing"

	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/memory"
	"github.com/payonce/payonce/internal/store/sqlite"
	"github.com/payonce/payonce/internal/store/sqlstore"
	"github.com/payonce/payonce/internal/store/storetest"
)

// TestContract: the memory keeps the promises of package store, and the same cases
// hold for a database.
func TestContract(t *testing.T) {
	for _, c := range []storetest.Contract{
		{Name: "memory", Open: func(t testing.TB, clock *run.Clock) store.Store {
			return memory.New(memory.Options{Runner: run.NewLive(clock)})
		}},
		{Name: "SQLite", Open: func(t testing.TB, clock *run.Clock) store.Store {
			ctx := context.Background()
			s, err := sqlite.Open(ctx, "sqlite://"+t.TempDir()+"/payonce.db", sqlstore.Options{Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if err := s.Migrate(ctx, sqlstore.MigrateOptions{}); err != nil {
				t.Fatal(err)
			}
			return s
		}},
	} {
		t.Run(c.Name, func(t *testing.T) { storetest.RunContract(t, c) })
	}
}
