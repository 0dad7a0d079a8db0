package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/payonce/payonce/cmd/payonce/internal/supervise"
	"github.com/payonce/payonce/internal/sim"
)

type simOptions struct {
	addr, data, webhook, clock string
	seed                       int64
	child                      bool // of payonce dev
	inherit                    bool // the socket is descriptor 3
}

func newSim(io streams) *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run the simulated channels alone",
		Long: `Runs simulated payment channels that speak the real wire protocols and keep
their own books, for tests and demos. GET /_sim/credentials has all that a
client needs, GET /_sim/books what the channels took, POST /_sim/faults breaks
something, POST /_sim/clock moves the time. The books are in the data folder and
survive any end of the process.`,
		Example: "  payonce sim --addr 127.0.0.1:9090 --data ./sim --stripe-webhook http://127.0.0.1:8080/webhooks/stripe/s1",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runSim(cmd.Context(), io, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "127.0.0.1:9090", "address to listen on")
	f.StringVar(&o.data, "data", "", "folder of the books (default: a new temporary one)")
	f.Int64Var(&o.seed, "seed", 0, "seed of keys and ids; the same seed gives the same keys (default: stored or random)")
	f.StringVar(&o.webhook, "stripe-webhook", "", "address that gets Stripe's notices")
	f.StringVar(&o.clock, "clock-listener", "", "address that is told when the clock moves")
	f.BoolVar(&o.child, "child", false, "end with the parent, not on signals")
	f.BoolVar(&o.inherit, "inherit", false, "the socket is descriptor 3")
	for _, hidden := range []string{"clock-listener", "child", "inherit"} {
		_ = f.MarkHidden(hidden) // the flag is there
	}
	return cmd
}

func runSim(parent context.Context, io streams, o simOptions) error {
	ctx, stop := untilStopped(parent)
	if o.child {
		// Signals to the whole process group reach the simulator too; it has to
		// stay until the service has drained.
		stop()
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
		ctx, stop = context.WithCancel(parent)
		gone := supervise.Orphaned()
		go func() { <-gone; stop() }()
	}
	defer stop()
	log := io.textLog("sim")
	if o.data == "" {
		dir, err := os.MkdirTemp("", "payonce-sim-")
		if err != nil {
			return coded(exitConfig, err)
		}
		o.data = dir
		log.Info("books are kept", "data", dir)
	}
	ln, err := simSocket(ctx, o)
	if err != nil {
		return err
	}
	defer ln.Close()
	opts := sim.Options{DataDir: o.data, Seed: o.seed, StripeWebhook: o.webhook, BaseURL: urlOf(ln.Addr()), Logger: log}
	if o.clock != "" {
		opts.ClockListeners = []string{o.clock}
	}
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		return coded(exitConfig, err)
	}
	s, err := sim.Open(opts)
	if err != nil {
		return exit(exitConfig, "the simulator's folder %s cannot be used: %w", filepath.Clean(o.data), err)
	}
	srv := newServer(s.Handler(), log)
	log.Info("simulator is up", "url", opts.BaseURL, "data", o.data)
	return coded(exitFault, errors.Join(serveUntil(ctx, srv, ln), s.Close()))
}

func simSocket(ctx context.Context, o simOptions) (net.Listener, error) {
	if o.inherit {
		return inherited(3, "sim")
	}
	return listen(ctx, "--addr", o.addr, 0)
}

// serveUntil serves until ctx ends and the requests under way have.
func serveUntil(ctx context.Context, srv *http.Server, ln net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		srv.Close() // a fault that hangs is no reason to stay
	}
	return nil
}
