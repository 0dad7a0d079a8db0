package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

func newDoctor(io streams) *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check configuration, database, clock and channel accounts",
		Long: `Checks what a service needs and says in plain sentences what it finds: the
configuration, the database and its schema, the difference between this
machine's clock and the database's, and each channel account by a question that
changes nothing. Secrets are never shown. The exit code is 1 when something is
not in order.`,
		Example: "  payonce doctor --config payonce.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), commandTimeout)
			defer cancel()
			d := &doctor{streams: io}
			d.examine(ctx, &src)
			if d.bad > 0 {
				return exit(exitNotGood, "%d of %d findings need attention", d.bad, d.found)
			}
			return nil
		},
	}
	src.flags(cmd, true)
	return cmd
}

// doctor counts its findings.
type doctor struct {
	streams
	found, bad int
}

func (d *doctor) good(format string, args ...any) {
	d.found++
	fmt.Fprintf(d.out, "ok    "+format+"\n", args...)
}

func (d *doctor) wrong(format string, args ...any) {
	d.found++
	d.bad++
	fmt.Fprintf(d.out, "WRONG "+format+"\n", args...)
}

func (d *doctor) note(format string, args ...any) { fmt.Fprintf(d.out, "note  "+format+"\n", args...) }

func (d *doctor) examine(ctx context.Context, src *source) {
	c, ok := d.configuration(src)
	if !ok {
		return
	}
	d.database(ctx, c.DatabaseURL)
	accounts, err := openAccounts(c)
	if err != nil {
		d.wrong("An account cannot be used: %v.", err)
		return
	}
	for i := range accounts {
		d.account(ctx, &accounts[i])
	}
}

func (d *doctor) configuration(src *source) (*config.Config, bool) {
	if src.data != "" {
		url, err := src.databaseURL(d.textLog(""))
		if err != nil {
			d.wrong("%v.", err)
			return nil, false
		}
		return &config.Config{DatabaseURL: url}, true
	}
	c, warnings, err := config.Load(src.config())
	for _, w := range warnings {
		d.note("%s.", w)
	}
	if p, ok := err.(config.Problems); ok { //nolint:errorlint // Load returns nothing else
		for _, problem := range p {
			d.wrong("%s.", problem)
		}
		return nil, false
	}
	n := 0
	for _, m := range c.Merchants {
		n += len(m.Accounts)
	}
	d.good("The configuration is valid: %d merchants with %d accounts.", len(c.Merchants), n)
	if n == 0 {
		d.wrong("No channel account is configured, so nothing can be paid.")
	}
	return c, true
}

func (d *doctor) database(ctx context.Context, url config.Secret) {
	s, err := openDatabase(ctx, url, sqlstore.Options{ReadOnly: true})
	if err != nil {
		d.wrong("%v.", err)
		return
	}
	defer s.Close()
	before := time.Now()
	now, err := s.Now(ctx)
	if err != nil {
		d.wrong("The database does not answer: %v.", err)
		return
	}
	took := time.Since(before)
	d.good("The database answers in %v.", took.Round(100*time.Microsecond))
	if err := checkSchema(ctx, s); err != nil {
		d.wrong("%v.", err)
	} else {
		d.good("The schema is that of this version.")
	}
	d.clocks(before.Add(took/2), now)
}

// clockTolerance is how far this machine's clock may be off. Safety does not
// rest on it; the ages that people read do, and the times in notices' signatures.
const clockTolerance = 5 * time.Second

func (d *doctor) clocks(here, there time.Time) {
	diff := here.Sub(there).Abs().Round(time.Millisecond)
	if diff > clockTolerance {
		d.wrong("The clocks of this machine and of the database differ by %v; set them by NTP.", diff)
		return
	}
	d.good("The clocks of this machine and of the database agree within %v.", max(diff, time.Millisecond))
}

// prober is an adapter that can ask whose account its credentials open.
type prober interface {
	Probe(context.Context) (accountID string, livemode bool, err error)
}

func (d *doctor) account(ctx context.Context, a *engine.Account) {
	name := fmt.Sprintf("Account %s (%s, %s, merchant %s)", a.ID, a.Channel, a.Environment, a.Merchant)
	if a.Paused {
		d.note("%s is paused.", name)
	}
	p, ok := a.Adapter.(prober)
	if !ok {
		d.note("%s cannot be asked without a payment.", name)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	id, _, err := p.Probe(ctx)
	if err != nil {
		d.wrong("%s: %v.", name, err)
		return
	}
	d.good("%s answers as %s.", name, id)
}
