package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/cmd/payonce/internal/supervise"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
	"github.com/payonce/payonce/internal/web"
)

// Names of the demo.
const (
	devKey      = "sk_dev_payonce"
	devMerchant = "dev"
	devNode     = "dev"
	devAccount  = "stripe"
)

// devParts is what only the demo's service has: the simulator's clock, a known
// API key and the shop.
type devParts struct {
	clock *run.Clock
	sim   *simClient
	log   func(msg string, args ...any)
}

type serviceOptions struct {
	addr, admin, data, sim string
	inherit                bool // the sockets are descriptors 3 and 4
}

func newService(io streams) *cobra.Command {
	var o serviceOptions
	cmd := &cobra.Command{
		Use:    "service",
		Short:  "The service of payonce dev, which starts it",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return runDevService(cmd.Context(), io, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "", "address of the API")
	f.StringVar(&o.admin, "admin", "", "address of metrics")
	f.StringVar(&o.data, "data", "", "data folder")
	f.StringVar(&o.sim, "sim", "", "address of the simulator")
	f.BoolVar(&o.inherit, "inherit", false, "the sockets are descriptors 3 and 4")
	return cmd
}

func runDevService(parent context.Context, io streams, o serviceOptions) error {
	ctx, stop := untilStopped(parent)
	defer stop()
	gone := supervise.Orphaned()
	go func() {
		// Without its parent nobody would start it again or stop it.
		<-gone
		os.Exit(exitFault)
	}()
	log := io.textLog("service")
	p := plan{log: log, dev: &devParts{clock: new(run.Clock), sim: newSimClient(o.sim), log: log.Info}}
	var err error
	if p.api, p.admin, err = o.sockets(ctx); err != nil {
		return err
	}
	defer p.api.Close()
	defer p.admin.Close()
	if p.config, err = p.dev.configure(ctx, o, urlOf(p.api.Addr())); err != nil {
		return err
	}
	return runService(ctx, p)
}

func (o serviceOptions) sockets(ctx context.Context) (api, admin net.Listener, err error) {
	if !o.inherit {
		if api, err = listen(ctx, "--addr", o.addr, portPatience); err != nil {
			return nil, nil, err
		}
		admin, err = listen(ctx, "--admin", o.admin, portPatience)
		return api, admin, err
	}
	if api, err = inherited(3, "api"); err != nil {
		return nil, nil, err
	}
	admin, err = inherited(4, "admin")
	return api, admin, err
}

// configure makes the configuration of the demo: one merchant with one account
// at the simulator, whose clock the service follows.
func (d *devParts) configure(ctx context.Context, o serviceOptions, api string) (*config.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	keys, err := d.sim.credentials(ctx)
	if err != nil {
		return nil, exit(exitFault, "the simulator does not answer: %w", err)
	}
	offset, err := d.sim.offset(ctx)
	if err != nil {
		return nil, exit(exitFault, "the simulator's clock cannot be read: %w", err)
	}
	d.clock.SetOffset(offset)
	path, err := databaseOf(o.data)
	if err != nil {
		return nil, coded(exitConfig, err)
	}
	return &config.Config{
		PublicURL: api, DatabaseURL: config.NewSecret("sqlite://" + path), NodeID: devNode, StateDir: o.data, Worker: true,
		AnswerWithin: config.DefaultAnswerWithin, CallTimeout: config.DefaultCallTimeout, DocsURL: config.DefaultDocsURL,
		Merchants: []config.Merchant{{ID: devMerchant, Surplus: "auto", Accounts: devAccounts(keys)}},
	}, nil
}

// devAccounts are the demo's accounts at the simulator.
func devAccounts(k credentials) []config.Account {
	return []config.Account{
		{ID: devAccount, Channel: "stripe", Environment: payonce.Test, BaseURL: k.Stripe.BaseURL, TrustedDate: true,
			SecretKey: config.NewSecret(k.Stripe.SecretKey), PublishableKey: k.Stripe.PublishableKey, WebhookSecret: config.NewSecret(k.Stripe.WebhookSecret)},
		{ID: "alipay", Channel: "alipay", Environment: payonce.Test, BaseURL: k.Alipay.BaseURL, TrustedDate: true,
			AppID: k.Alipay.AppID, SellerID: k.Alipay.SellerID, AppPrivateKey: config.NewSecret(k.Alipay.AppPrivateKey),
			AlipayPublicKey: config.NewSecret(k.Alipay.AlipayPublicKey)},
	}
}

// prepare brings the demo's database up to date and stores its key. The same
// key again changes nothing.
func (d *devParts) prepare(ctx context.Context, s *sqlstore.Store) error {
	if err := s.Migrate(ctx, sqlstore.MigrateOptions{}); err != nil {
		return fmt.Errorf("the database cannot be prepared: %w", err)
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	return s.AddAPIKey(ctx, apiKey(devKey, devMerchant, payonce.Test, "api", now))
}

func (d *devParts) shop() *web.Shop {
	return &web.Shop{
		Scope: store.Scope{Merchant: devMerchant, Environment: payonce.Test},
		Books: d.sim.books, BooksURL: d.sim.base + "/_sim/books", Fault: d.sim.fault,
		Kill:    d.kill,
		Process: fmt.Sprintf("%d", os.Getpid()),
	}
}

// kill ends this process without any chance to clean up, as a power cut would.
func (d *devParts) kill() {
	d.log("killed from the demo shop")
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		os.Exit(exitFault) // hardly gentler
	}
	select {} // the signal is on its way
}

// setClock follows the simulator's clock.
func (d *devParts) setClock(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Offset *int64 `json:"offset_s"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10))
	dec.DisallowUnknownFields()
	const century = 100 * 366 * 24 * 3600
	if err := dec.Decode(&in); err != nil || in.Offset == nil || *in.Offset > century || *in.Offset < -century {
		http.Error(w, `{"offset_s": seconds} is expected`, http.StatusBadRequest)
		return
	}
	d.clock.SetOffset(time.Duration(*in.Offset) * time.Second)
	w.WriteHeader(http.StatusNoContent)
}
