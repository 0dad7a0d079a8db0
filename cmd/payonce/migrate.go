package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/payonce/payonce/internal/store/sqlstore"
)

func newMigrate(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Prepare the database, or show what it lacks",
		Long: `The schema of the database is brought up to date by hand, before a new version
is started: payonce serve refuses a database that lacks a migration. Several
processes may migrate at once.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return exit(exitUsage, "migrate needs one of up, status, sql")
		},
	}
	cmd.AddCommand(newMigrateUp(io), newMigrateStatus(io), newMigrateSQL(io))
	return cmd
}

// withDatabase runs f on the database that the source names.
func withDatabase(cmd *cobra.Command, io streams, src *source, o sqlstore.Options, f func(context.Context, *sqlstore.Store) error) error {
	url, err := src.databaseURL(io.textLog(""))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), commandTimeout)
	defer cancel()
	s, err := openDatabase(ctx, url, o)
	if err != nil {
		return err
	}
	defer s.Close()
	return coded(exitDatabase, f(ctx, s))
}

func newMigrateUp(io streams) *cobra.Command {
	var src source
	var installation string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply what the database lacks",
		Long: `Applies the migrations that the database lacks. The first one also makes the
installation id, under which every channel number is derived: each backup keeps
it, and after the loss of a database without one it can be given again with
--installation, so that the same orders get the same numbers.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd, io, &src, sqlstore.Options{}, func(ctx context.Context, s *sqlstore.Store) error {
				before, err := s.Status(ctx)
				if err != nil {
					return err
				}
				if err := s.Migrate(ctx, sqlstore.MigrateOptions{Installation: installation}); err != nil {
					return err
				}
				applied := 0
				for _, m := range before {
					if !m.Applied {
						applied++
					}
				}
				fmt.Fprintf(io.out, "%d applied, %d in all\n", applied, len(before))
				return nil
			})
		},
	}
	src.flags(cmd, true)
	cmd.Flags().StringVar(&installation, "installation", "", "installation id for disaster recovery; an existing one is never changed")
	return cmd
}

func newMigrateStatus(io streams) *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which migrations the database has; exit code 1 when some are missing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd, io, &src, sqlstore.Options{}, func(ctx context.Context, s *sqlstore.Store) error {
				states, err := s.Status(ctx)
				if err != nil {
					return err
				}
				missing := 0
				for _, m := range states {
					word := "applied"
					if !m.Applied {
						word = "missing"
						missing++
					}
					fmt.Fprintf(io.out, "%-8s %d %s\n", word, m.Version, m.Name)
				}
				if missing > 0 {
					return exit(exitNotGood, "%d of %d migrations are missing; payonce migrate up applies them", missing, len(states))
				}
				return nil
			})
		},
	}
	src.flags(cmd, true)
	return cmd
}

func newMigrateSQL(io streams) *cobra.Command {
	var src source
	var engine string
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "Print the schema, for people who run migrations by hand",
		Long: `Prints the statements of all migrations for the engine of the configured
database, or for the one named by --engine, which needs no configuration.`,
		Example: "  payonce migrate sql --engine postgres > schema.sql",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if engine == "" {
				url, err := src.databaseURL(io.textLog(""))
				if err != nil {
					return err
				}
				engine, _, _ = strings.Cut(url.Reveal(), "://")
			}
			d, ok := dialects[engine]
			if !ok {
				return exit(exitUsage, "--engine must be sqlite, postgres or mysql")
			}
			text, err := sqlstore.SQL(d)
			if err != nil {
				return coded(exitFault, err)
			}
			fmt.Fprint(io.out, text)
			return nil
		},
	}
	src.flags(cmd, true)
	cmd.Flags().StringVar(&engine, "engine", "", "sqlite, postgres or mysql")
	return cmd
}
