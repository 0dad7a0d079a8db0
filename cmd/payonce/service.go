package main

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/httpapi"
	"github.com/payonce/payonce/internal/ingest"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlstore"
	"github.com/payonce/payonce/internal/web"
	"github.com/payonce/payonce/internal/worker"
)

// plan is what a service is started with beside its configuration.
type plan struct {
	config *config.Config
	log    *slog.Logger
	api    net.Listener // nil: no API, workers alone
	admin  net.Listener // nil with api
	dev    *devParts    // nil outside of payonce dev
}

// service is a running service. Its parts are named once, here.
type service struct {
	plan
	clock    *run.Clock
	runner   *run.Live
	store    *sqlstore.Store
	engine   *engine.Engine
	accounts []engine.Account
	registry *prometheus.Registry
	ready    atomic.Bool
	// draining ends when the service stops taking work.
	draining context.Context
	drain    context.CancelFunc
}

// drainTime is how long a stopping service waits for what is under way. What
// takes longer is found by the next start.
const drainTime = 10 * time.Second

// runService runs a service until ctx ends, and then drains it.
func runService(ctx context.Context, p plan) error {
	run.SpareCollections()
	s := &service{plan: p, clock: new(run.Clock), registry: prometheus.NewRegistry()}
	if p.dev != nil {
		s.clock = p.dev.clock
	}
	s.runner = run.NewLive(s.clock)
	s.draining, s.drain = context.WithCancel(context.Background())
	defer s.drain()
	lock, locked := holdNode(ctx, p.config, p.log)
	if locked {
		defer lock.Release()
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.store.Close()
	handler, err := s.build(ctx)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	servers := s.serve(handler, failed)
	if err := s.takeOver(ctx, locked); err != nil {
		s.stop(servers)
		return err
	}
	if p.config.Worker {
		s.work()
	}
	s.ready.Store(true)
	p.log.Info("ready", "node", p.config.NodeID, "version", buildVersion(), "api", addressOf(p.api), "admin", addressOf(p.admin), "worker", p.config.Worker)
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.stop(servers)
	return err
}

// open opens the database and makes sure that its schema is this version's.
func (s *service) open(ctx context.Context) (err error) {
	s.store, err = openDatabase(ctx, s.config.DatabaseURL, sqlstore.Options{Runner: s.runner, Clock: s.clock, Logger: s.log})
	if err != nil {
		return err
	}
	if s.dev != nil {
		err = s.dev.prepare(ctx, s.store)
	} else {
		err = checkSchema(ctx, s.store)
	}
	if err != nil {
		s.store.Close()
	}
	return coded(exitDatabase, err)
}

// build makes the engine and everything in front of it.
func (s *service) build(ctx context.Context) (http.Handler, error) {
	installation, err := s.store.Installation(ctx)
	if err != nil {
		return nil, coded(exitDatabase, err)
	}
	if s.accounts, err = openAccounts(s.config); err != nil {
		return nil, coded(exitConfig, err)
	}
	fingerprints, err := newFingerprinter(installation, s.config)
	if err != nil {
		return nil, coded(exitConfig, err)
	}
	signer, err := web.NewSigner(installation, s.config.PublicURL)
	if err != nil {
		return nil, coded(exitFault, err)
	}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	encoder := httpapi.Encoder{DocsURL: s.config.DocsURL, Checkout: signer.CheckoutURL}
	committer := store.NewCommitter(s.runner, s.store, store.CommitterOptions{})
	s.engine, err = engine.New(engine.Config{
		Store: s.store, Submit: committer.Submit, Runner: s.runner, Accounts: s.accounts,
		Installation: installation, NodeID: s.config.NodeID, Incarnation: s.newID(""), PublicURL: s.config.PublicURL,
		AnswerWithin: s.config.AnswerWithin, CallTimeout: s.config.CallTimeout,
		Encoder: encoder, Logger: s.log, Observe: newObserver(s.registry),
	})
	if err != nil {
		return nil, coded(exitFault, err)
	}
	if s.api == nil {
		return nil, nil
	}
	api, err := httpapi.New(httpapi.Options{
		Engine: s.engine, Reader: s.store, Fingerprinter: fingerprints, Encoder: encoder, Runner: s.runner,
		RequestID: func() string { return s.newID("req_") }, Logger: s.log, Registerer: s.registry, Ready: s.isReady, Draining: s.draining,
	})
	if err != nil {
		return nil, coded(exitFault, err)
	}
	pages, err := web.New(s.webOptions(signer, fingerprints))
	if err != nil {
		return nil, coded(exitFault, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	ingest.New(ingest.Config{Accounts: s.accounts, Engine: s.engine, Logger: s.log, Observe: newNoticeObserver(s.registry)}).Routes(mux)
	for _, path := range []string{"/checkout/", "/assets/", "/shop", "/shop/"} {
		mux.Handle(path, pages)
	}
	return mux, nil
}

func (s *service) webOptions(signer *web.Signer, f *idempotency.Fingerprinter) web.Options {
	o := web.Options{Engine: s.engine, Reader: s.store, Signer: signer, Fingerprints: f, Choices: s.choices, Now: s.runner.Now, Logger: s.log}
	if s.dev != nil {
		o.Shop = s.dev.shop()
	}
	return o
}

func (s *service) isReady(ctx context.Context) error {
	if !s.ready.Load() {
		return fmt.Errorf("starting or stopping")
	}
	return s.store.Ping(ctx)
}

func (s *service) newID(prefix string) string {
	var r [10]byte
	s.runner.Random(r[:])
	return payonce.NewID(prefix, s.runner.Now(), r)
}

// takeOver goes on with what an earlier start of this node left behind. Only the
// lock proves that the earlier start is dead; without it, leases run out.
func (s *service) takeOver(ctx context.Context, locked bool) error {
	if !locked {
		return nil
	}
	n, err := s.engine.TakeOver(ctx)
	if err != nil {
		return exit(exitDatabase, "what an earlier start left behind cannot be read: %w", err)
	}
	if n > 0 {
		s.log.Info("took over what an earlier start left behind", "payments", n)
	}
	return nil
}

// work starts the loops. They stop looking for work when the service drains;
// steps under way go on.
func (s *service) work() {
	w := worker.New(worker.Config{Engine: s.engine, Queue: s.store, Runner: s.runner, Logger: s.log})
	s.runner.Go("worker", func(ctx context.Context) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(s.draining, stop)()
		w.Run(ctx)
	})
}

// stop drains: no new work, then the requests and calls under way end, then the
// loops. What is not done in time has its permit and lease in the database.
func (s *service) stop(servers []*http.Server) {
	s.ready.Store(false)
	s.drain()
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	for _, srv := range servers {
		if err := srv.Shutdown(ctx); err != nil {
			s.log.Warn("requests were still under way and are cut off", "error", err)
			srv.Close()
		}
	}
	if err := s.engine.Drain(ctx); err != nil {
		s.log.Warn("calls to a channel were still under way; the next start asks what became of them", "error", err)
	}
	if err := s.runner.Stop(ctx); err != nil {
		s.log.Warn("loops did not end in time", "error", err)
	}
	s.log.Info("stopped")
}

// derivedSecret is the id of the fingerprint secret that every installation has.
const derivedSecret = "installation"

// newFingerprinter takes the configured secrets and, behind them, the one that
// is derived from the installation id. The id is random, kept by every backup
// and known to all processes on the database, so that no secret has to be handed
// around; keeping the derived one for ever means that configuring another does
// not turn an honest retry into a reused key.
func newFingerprinter(installation string, c *config.Config) (*idempotency.Fingerprinter, error) {
	key, err := hkdf.Key(sha256.New, []byte(installation), nil, "payonce fingerprint v1", sha256.Size)
	if err != nil {
		return nil, err
	}
	var secrets []idempotency.Secret
	for _, f := range c.FingerprintSecrets {
		secrets = append(secrets, idempotency.Secret{ID: f.ID, Key: []byte(f.Secret.Reveal())})
	}
	secrets = append(secrets, idempotency.Secret{ID: derivedSecret, Key: key})
	return idempotency.NewFingerprinter(secrets[0], secrets[1:]...)
}
