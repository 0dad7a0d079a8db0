package main

import (
	"context"
	"strings"
	"time"

	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/internal/store/mysql"
	"github.com/payonce/payonce/internal/store/postgres"
	"github.com/payonce/payonce/internal/store/sqlite"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

// commandTimeout bounds a command that only needs the database.
const commandTimeout = time.Minute

// dialects are the engines by the scheme of their URL.
var dialects = map[string]sqlstore.Dialect{"sqlite": sqlite.Dialect, "postgres": postgres.Dialect, "postgresql": postgres.Dialect, "mysql": mysql.Dialect}

func openDatabase(ctx context.Context, url config.Secret, o sqlstore.Options) (*sqlstore.Store, error) {
	raw := url.Reveal()
	scheme, _, _ := strings.Cut(raw, "://")
	open := map[string]func(context.Context, string, sqlstore.Options) (*sqlstore.Store, error){
		"sqlite": sqlite.Open, "postgres": postgres.Open, "postgresql": postgres.Open, "mysql": mysql.Open,
	}[scheme]
	if open == nil {
		return nil, exit(exitConfig, "database_url: %q is none of sqlite, postgres, mysql", scheme)
	}
	s, err := open(ctx, raw, o)
	if err != nil {
		return nil, exit(exitDatabase, "the database cannot be opened: %w", err)
	}
	return s, nil
}

// checkSchema refuses a database that lacks migrations of this version: what
// the service would write must not depend on what somebody forgot.
func checkSchema(ctx context.Context, s *sqlstore.Store) error {
	states, err := s.Status(ctx)
	if err != nil {
		return exit(exitDatabase, "the state of the schema cannot be read: %w", err)
	}
	missing := 0
	for _, m := range states {
		if !m.Applied {
			missing++
		}
	}
	if missing > 0 {
		return exit(exitDatabase, "the database lacks %d of %d migrations; run payonce migrate up first", missing, len(states))
	}
	if _, err := s.Installation(ctx); err != nil {
		return exit(exitDatabase, "the database has no installation id; run payonce migrate up first: %w", err)
	}
	return nil
}
