package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

func newKeys(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, list and revoke API keys",
		Long: `API keys are how a shop's backend is known. A key belongs to one merchant and
one environment and has a role: api (orders and payments), operator (also cases
and evidence) or read. Only a hash of it is stored, so it is printed once.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return exit(exitUsage, "keys needs one of create, list, revoke")
		},
	}
	cmd.AddCommand(newKeysCreate(io), newKeysList(io), newKeysRevoke(io))
	return cmd
}

func newKeysCreate(io streams) *cobra.Command {
	var src source
	var merchant, environment, role string
	cmd := &cobra.Command{
		Use:     "create --merchant M --environment test|live --role api|operator|read",
		Short:   "Make a key and print it once, as JSON",
		Example: "  payonce keys create --merchant m1 --environment live --role api --config payonce.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkKeyFlags(merchant, environment, role); err != nil {
				return err
			}
			return withDatabase(cmd, io, &src, sqlstore.Options{}, func(ctx context.Context, s *sqlstore.Store) error {
				if err := checkSchema(ctx, s); err != nil {
					return err
				}
				now, err := s.Now(ctx)
				if err != nil {
					return err
				}
				secret := newAPIKey(environment)
				k := apiKey(secret, merchant, payonce.Environment(environment), role, now)
				if err := s.AddAPIKey(ctx, k); err != nil {
					return err
				}
				return coded(exitFault, json.NewEncoder(io.out).Encode(struct {
					ID  string `json:"id"`
					Key string `json:"key"`
				}{k.ID, secret}))
			})
		},
	}
	src.flags(cmd, true)
	cmd.Flags().StringVar(&merchant, "merchant", "", "merchant that the key belongs to")
	cmd.Flags().StringVar(&environment, "environment", "", "test or live")
	cmd.Flags().StringVar(&role, "role", "", "api, operator or read")
	return cmd
}

func checkKeyFlags(merchant, environment, role string) error {
	switch {
	case merchant == "":
		return exit(exitUsage, "--merchant is required")
	case environment != string(payonce.Test) && environment != string(payonce.Live):
		return exit(exitUsage, "--environment must be test or live")
	case role != "api" && role != "operator" && role != "read":
		return exit(exitUsage, "--role must be api, operator or read")
	}
	return nil
}

// newAPIKey makes a key of at least 256 random bits. Its prefix names the
// environment.
func newAPIKey(environment string) string {
	return "sk_" + environment + "_" + strings.ToLower(rand.Text()+rand.Text())
}

// apiKey is what is stored of a key. The id of a given key is new each time; the
// hash decides.
func apiKey(secret, merchant string, environment payonce.Environment, role string, now time.Time) store.APIKey {
	var r [10]byte
	_, _ = rand.Read(r[:]) // never fails: crypto/rand aborts the process instead
	return store.APIKey{ID: payonce.NewID(payonce.PrefixKey, now, r), Hash: sha256.Sum256([]byte(secret)), Merchant: merchant,
		Environment: environment, Role: role, CreatedAt: now}
}

func newKeysList(io streams) *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys; what is secret about them is not known any more",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd, io, &src, sqlstore.Options{ReadOnly: true}, func(ctx context.Context, s *sqlstore.Store) error {
				keys, err := s.APIKeys(ctx)
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tMERCHANT\tENVIRONMENT\tROLE\tCREATED\tREVOKED")
				for _, k := range keys {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Merchant, k.Environment, k.Role, day(k.CreatedAt), day(k.RevokedAt))
				}
				return w.Flush()
			})
		},
	}
	src.flags(cmd, true)
	return cmd
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func newKeysRevoke(io streams) *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a key; requests with it are refused from now on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDatabase(cmd, io, &src, sqlstore.Options{}, func(ctx context.Context, s *sqlstore.Store) error {
				err := s.RevokeAPIKey(ctx, args[0])
				if errors.Is(err, store.ErrNotFound) {
					return exit(exitNotGood, "there is no key %s; payonce keys list shows all", args[0])
				}
				if err == nil {
					fmt.Fprintln(io.out, args[0], "revoked")
				}
				return err
			})
		},
	}
	src.flags(cmd, true)
	return cmd
}
