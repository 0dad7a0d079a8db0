package sqlite_test

import (
	"testing"

	"github.com/payonce/payonce/internal/store/sqlite"
	"github.com/payonce/payonce/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Engine{Name: "SQLite", Open: sqlite.Open, OneWriter: true,
		Tables: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"})
}
