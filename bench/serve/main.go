// Command serve is the service as it is measured: the real API, engine,
// committer, worker and store on PostgreSQL, with a channel inside the process
// that answers at once (account "fast") or after a fixed delay (account
// "slow") and counts what it charges. Logs and metrics are on, as in production.
//
// With --notices it has an Alipay account as well, whose payments wait for their
// payers when it starts and whose notices it has signed into a file. Then no
// worker runs: the only work is that of the notices.
//
// It must not know a rule of the service; it only puts the parts together.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/bench/internal/books"
	"github.com/payonce/payonce/bench/internal/wire"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/httpapi"
	"github.com/payonce/payonce/internal/ingest"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/postgres"
	"github.com/payonce/payonce/internal/store/sqlstore"
	"github.com/payonce/payonce/internal/worker"
)

type settings struct {
	database string
	conns    int
	each     bool
	slow     time.Duration
	log      string
	token    string
	lanes    int
	batch    int
	notices  int
	file     string
	alone    bool
}

func main() {
	var s settings
	flag.StringVar(&s.database, "database", "", "URL of an empty PostgreSQL database")
	flag.IntVar(&s.conns, "conns", 16, "connections of the pool")
	flag.BoolVar(&s.each, "count-each", false, "count charges for each payment")
	flag.DurationVar(&s.slow, "slow", 30*time.Second, "how long account slow takes to answer")
	flag.StringVar(&s.log, "log", os.DevNull, "file for the log")
	flag.StringVar(&s.token, "token", "sk_test_bench", "API key")
	flag.IntVar(&s.lanes, "lanes", 0, "lanes of the committer; 0 is the service's default")
	flag.IntVar(&s.batch, "batch", 0, "most units of one batch; 0 is the service's default")
	flag.IntVar(&s.notices, "notices", 0, "payments that wait for a notice; 0 is none")
	flag.StringVar(&s.file, "file", "", "file that the notices are written to")
	flag.BoolVar(&s.alone, "alone", false, "handle each notice in a transaction of its own, without the committer")
	flag.Parse()
	if err := s.serve(); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

const (
	merchant  = "bench"
	publicURL = "http://127.0.0.1"
)

func (s *settings) serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	file, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	logger := slog.New(slog.NewJSONHandler(file, nil))
	run.SpareCollections()
	runner := run.NewLive(nil)
	db, err := postgres.Open(ctx, s.database, sqlstore.Options{Runner: runner, MaxConns: s.conns, Logger: logger})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := s.prepare(ctx, db); err != nil {
		return err
	}
	b := &books.Books{Each: s.each}
	handler, err := s.wire(ctx, db, runner, logger, b)
	if err != nil {
		return err
	}
	return listen(ctx, handler, b, runner)
}

// prepare makes the schema and the API key.
func (s *settings) prepare(ctx context.Context, db *sqlstore.Store) error {
	if err := db.Migrate(ctx, sqlstore.MigrateOptions{}); err != nil {
		return err
	}
	now, err := db.Now(ctx)
	if err != nil {
		return err
	}
	return db.AddAPIKey(ctx, store.APIKey{ID: "bench", Hash: sha256.Sum256([]byte(s.token)), Merchant: merchant,
		Environment: payonce.Test, Role: "api", CreatedAt: now})
}

// wire puts the parts together and starts the worker.
func (s *settings) wire(ctx context.Context, db *sqlstore.Store, runner *run.Live, logger *slog.Logger, b *books.Books) (http.Handler, error) {
	installation, err := db.Installation(ctx)
	if err != nil {
		return nil, err
	}
	committer := store.NewCommitter(runner, db, store.CommitterOptions{Lanes: s.lanes, MaxBatch: s.batch})
	encoder := httpapi.Encoder{Checkout: func(k payonce.OrderKey) string { return publicURL + "/checkout/" + k.OrderNo }}
	var accounts []engine.Account
	for _, a := range []*account{newAccount("fast", 0, b), newAccount("slow", s.slow, b)} {
		accounts = append(accounts, engine.Account{ID: a.id, Channel: "stripe", Merchant: merchant, Environment: payonce.Test, Adapter: a})
	}
	config := engine.Config{
		Store: db, Submit: committer.Submit, Runner: runner, Accounts: accounts, Installation: installation,
		NodeID: "bench", Incarnation: rand.Text(), PublicURL: publicURL, Encoder: encoder, Logger: logger,
	}
	if s.notices > 0 {
		return s.noticeHandler(ctx, db, config)
	}
	e, err := engine.New(config)
	if err != nil {
		return nil, err
	}
	secret := sha256.Sum256([]byte("fingerprints of " + installation))
	prints, err := idempotency.NewFingerprinter(idempotency.Secret{ID: "bench", Key: secret[:]})
	if err != nil {
		return nil, err
	}
	w := worker.New(worker.Config{Engine: e, Queue: db, Runner: runner, Logger: logger})
	runner.Go("worker", w.Run)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return httpapi.New(httpapi.Options{
		Engine: e, Reader: db, Fingerprinter: prints, Encoder: encoder, Runner: runner, RequestID: requestID,
		Logger: logger, Registerer: registry, Ready: db.Ping, Draining: ctx,
	})
}

// noticeHandler prepares payments and their notices, and serves the inbox. The
// payments are made with the committer on both sides; --alone is about notices.
func (s *settings) noticeHandler(ctx context.Context, db *sqlstore.Store, config engine.Config) (http.Handler, error) {
	from, err := newSender()
	if err != nil {
		return nil, err
	}
	config.Accounts = []engine.Account{from.account}
	e, err := engine.New(config)
	if err != nil {
		return nil, err
	}
	if err := from.prepare(ctx, e, s.notices, s.file); err != nil {
		return nil, err
	}
	// What the planner knows of a database that has been in use for a while.
	if _, err := db.DB().ExecContext(ctx, "ANALYZE"); err != nil {
		return nil, err
	}
	if s.alone {
		config.Submit = nil
		if e, err = engine.New(config); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	ingest.New(ingest.Config{Accounts: config.Accounts, Engine: e, Logger: config.Logger}).Routes(mux)
	mux.HandleFunc("GET "+wire.PathNotices, tell(db.DB()))
	return mux, nil
}

func requestID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand aborts the process instead
	return hex.EncodeToString(b[:])
}

// listen serves until ctx ends, says where on standard output, and ends all work.
func listen(ctx context.Context, handler http.Handler, b *books.Books, runner *run.Live) error {
	control, err := b.Serve()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	if err := json.NewEncoder(os.Stdout).Encode(wire.Ready{Addr: l.Addr().String(), Control: control}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(end), runner.Stop(end))
}
