package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"text/template"

	"github.com/pressly/goose/v3"

	"github.com/payonce/payonce/internal/store"
)

//go:embed migrations/*.sql
var templates embed.FS

// MigrateOptions are what the first migration needs.
type MigrateOptions struct {
	// Installation is the id of the installation, for disaster recovery; "" has
	// one made at random. An installation that exists keeps its id, and another
	// one is refused.
	Installation string
}

// MigrationState is one migration of the schema.
type MigrationState struct {
	Version int64
	Name    string
	Applied bool
}

// migration is one template filled in for an engine.
type migration struct {
	version    int64
	name       string
	statements []string
}

// Migrate brings the schema up to date. Several processes may do it at once.
func (s *Store) Migrate(ctx context.Context, o MigrateOptions) error {
	if s.o.ReadOnly {
		return fmt.Errorf("%w: opened for reading only", store.ErrUnavailable)
	}
	p, err := s.provider()
	if err != nil {
		return err
	}
	if _, err = p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", s.wrap(err))
	}
	return s.install(ctx, o.Installation)
}

// Status lists the migrations and which of them are applied.
func (s *Store) Status(ctx context.Context) ([]MigrationState, error) {
	p, err := s.provider()
	if err != nil {
		return nil, err
	}
	found, err := p.Status(ctx)
	if err != nil {
		return nil, s.wrap(err)
	}
	all, err := migrations(s.d)
	if err != nil {
		return nil, err
	}
	out := make([]MigrationState, len(found))
	for i, m := range found {
		out[i] = MigrationState{Version: m.Source.Version, Name: all[i].name, Applied: m.State == goose.StateApplied}
	}
	return out, nil
}

// SQL returns the schema of an engine, for people who run migrations by hand.
func SQL(d Dialect) (string, error) {
	all, err := migrations(d)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "-- %d %s\n", m.version, m.name)
		for _, text := range m.statements {
			b.WriteString(text + ";\n")
		}
		b.WriteString("\n")
	}
	b.WriteString("-- The installation id is made at random by `payonce migrate up`, or given with --installation.\n")
	return b.String(), nil
}

func (s *Store) provider() (*goose.Provider, error) {
	all, err := migrations(s.d)
	if err != nil {
		return nil, err
	}
	dialect, locker, err := s.d.Migrations()
	if err != nil {
		return nil, err
	}
	steps := make([]*goose.Migration, len(all))
	for i, m := range all {
		steps[i] = goose.NewGoMigration(m.version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			for _, text := range m.statements {
				if _, err := tx.ExecContext(ctx, text); err != nil {
					return fmt.Errorf("%s: %w", m.name, err)
				}
			}
			return nil
		}}, nil)
	}
	return goose.NewProvider(dialect, s.db, nil, goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true),
		goose.WithLocker(locker), goose.WithLogger(goose.NopLogger()))
}

// install makes the installation id where there is none. Of several processes
// the first one wins.
func (s *Store) install(ctx context.Context, wanted string) error {
	id := wanted
	if id == "" {
		var random [16]byte
		s.o.Runner.Random(random[:])
		id = hex.EncodeToString(random[:])
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	t := Table{Name: "installation", Columns: []Column{{"one", Bool, false}, {"id", Name, false}, {"created_at", Int, false}}}
	text, args := s.d.Insert(t, [][]any{{int64(1), id, micros(now)}}, true)
	if err = s.change(ctx, text, args...); err != nil {
		return err
	}
	have, err := s.Installation(ctx)
	if err != nil {
		return err
	}
	if wanted != "" && have != wanted {
		return errors.New("this database belongs to another installation; its id is not changed")
	}
	return nil
}

// migrations fills in the templates for an engine.
func migrations(d Dialect) ([]migration, error) {
	files, err := fs.Glob(templates, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	out := make([]migration, len(files))
	for i, file := range files {
		text, err := templates.ReadFile(file)
		if err != nil {
			return nil, err
		}
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		statements, err := fill(d.Schema(), name, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[i] = migration{version: version, name: name, statements: statements}
	}
	return out, nil
}

// fill makes the statements of one template: CREATE TABLE, and its indexes where
// the engine does not declare them inside. The indexes that unique and sparse
// make are for columns that are mostly NULL: where the engine can, they hold only
// the rows in which the first of their columns is set.
func fill(rules SchemaRules, table, text string) ([]string, error) {
	var indexes []string
	index := func(inline, create string, partial bool) func(name, columns string) string {
		return func(name, columns string) string {
			if rules.InlineIndex {
				return ", " + inline + " " + name + " (" + columns + ")"
			}
			text := create + " IF NOT EXISTS " + name + " ON " + table + " (" + columns + ")"
			if first, _, _ := strings.Cut(columns, ","); partial {
				text += " WHERE " + first + " IS NOT NULL"
			}
			indexes = append(indexes, text)
			return ""
		}
	}
	word := func(k Kind) func() string { return func() string { return rules.Types[k] } }
	t, err := template.New(table).Funcs(template.FuncMap{
		"id": word(ID), "name": word(Name), "human": word(Human), "json": word(JSON), "hash": word(Hash), "salt": word(Salt),
		"blob": word(Blob), "int": word(Int), "bool": word(Bool),
		"currency": func() string { return rules.CurrencyForm },
		"index":    index("KEY", "CREATE INDEX", false),
		"sparse":   index("KEY", "CREATE INDEX", true),
		"unique":   index("UNIQUE KEY", "CREATE UNIQUE INDEX", true),
	}).Parse(text)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	kept := lines[:0]
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			kept = append(kept, line)
		}
	}
	return append([]string{strings.Join(kept, "\n") + rules.TableSuffix}, indexes...), nil
}
