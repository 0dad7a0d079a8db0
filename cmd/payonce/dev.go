package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/cmd/payonce/internal/filelock"
	"github.com/payonce/payonce/cmd/payonce/internal/supervise"
)

type devOptions struct{ addr, sim, data string }

func newDev(io streams) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: service, simulated channel, demo shop",
		Long: `Starts the service with its workers on SQLite and the simulated channels, each in
a process of its own, and starts them again when they die. When the service is
ready it prints one line of JSON with the addresses and the API key; logs go to
the other stream. Everything is kept in the data folder: a second start finds
orders, books and keys again.

Open the shop in a browser, lose an answer of the channel, kill the service in
the middle of a payment, and look at the channel's books: one charge.`,
		Example: `  payonce dev
  payonce dev --addr 127.0.0.1:8080 --sim 127.0.0.1:9090 --data ./demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDev(cmd.Context(), io, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", config.DefaultAddr, "address of the API and the shop")
	f.StringVar(&o.sim, "sim", "127.0.0.1:9090", "address of the simulated channels")
	f.StringVar(&o.data, "data", "", "data folder (default: a new temporary one)")
	return cmd
}

// demo is a running payonce dev: the sockets that its children serve and what
// they are told. The parent holds the sockets open while a child is started
// again, so that clients wait instead of being refused.
type demo struct {
	streams
	log             *slog.Logger
	data            string
	api, admin, sim net.Listener
	ready           chan struct{}
}

func runDev(parent context.Context, io streams, o devOptions) error {
	ctx, stop := untilStopped(parent)
	defer stop()
	d := &demo{streams: io, log: io.textLog("dev"), ready: make(chan struct{})}
	lock, err := d.openData(ctx, o.data)
	if err != nil {
		return err
	}
	defer lock.Release()
	for _, s := range []struct {
		to            *net.Listener
		setting, addr string
	}{{&d.api, "--addr", o.addr}, {&d.sim, "--sim", o.sim}, {&d.admin, "admin", "127.0.0.1:0"}} {
		ln, err := listen(ctx, s.setting, s.addr, portPatience)
		if err != nil {
			return err
		}
		defer ln.Close()
		*s.to = ln
	}
	return d.run(ctx)
}

// openData makes the data folder and locks it: two services on one SQLite file
// and two simulators on one set of books would only confuse.
func (d *demo) openData(ctx context.Context, dir string) (*filelock.Lock, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "payonce-dev-")
	} else if err = os.MkdirAll(dir, 0o700); err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, exit(exitConfig, "--data: %w", err)
	}
	d.data = dir
	lock, err := filelock.Acquire(ctx, filepath.Join(dir, "dev.lock"), lockPatience)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, exit(exitConfig, "--data: %s is in use by another payonce dev: %w", dir, err)
	}
	if err != nil {
		return nil, exit(exitConfig, "--data: %s cannot be locked: %w", dir, err)
	}
	return lock, nil
}

// run keeps both children until ctx ends; the simulator outlives the service, so
// that calls under way get their answers.
func (d *demo) run(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return coded(exitFault, err)
	}
	sim, service, err := d.children(exe)
	if err != nil {
		return coded(exitFault, err)
	}
	ctx, stopService := context.WithCancel(ctx)
	defer stopService()
	simCtx, stopSim := context.WithCancel(context.Background())
	defer stopSim()
	ended := make(chan error, 2)
	go func() {
		defer stopService()
		ended <- supervise.Keep(simCtx, sim)
	}()
	go func() {
		defer stopSim()
		defer stopService()
		ended <- supervise.Keep(ctx, service)
	}()
	if d.await(ctx) {
		close(d.ready)
		err = d.announce()
		if err != nil {
			stopService()
		}
	}
	for range 2 {
		if e := <-ended; e != nil && err == nil {
			err = childError(e)
		}
	}
	return err
}

// children describes both children. A child that cannot start because of its
// folder, database or port says so and is given up, unless it once was ready.
func (d *demo) children(exe string) (sim, service supervise.Child, err error) {
	giveUp := func(code int) bool {
		select {
		case <-d.ready:
			return false
		default:
			return code >= exitUsage && code <= exitPort
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, config.EnvFailpoint+"=") })
	simArgs := []string{"sim", "--child", "--addr", d.sim.Addr().String(), "--data", filepath.Join(d.data, "sim"), "--clock-listener", urlOf(d.admin.Addr()) + "/_dev/clock",
		"--stripe-webhook", urlOf(d.api.Addr()) + "/webhooks/stripe/" + devAccount}
	serviceArgs := []string{"service", "--addr", d.api.Addr().String(), "--admin", d.admin.Addr().String(), "--data", d.data, "--sim", urlOf(d.sim.Addr())}
	sim = supervise.Child{Name: "simulator", Path: exe, Args: simArgs, Env: env, Output: d.err, Grace: 5 * time.Second, GiveUp: giveUp, Log: d.log}
	// A failpoint is for the first service alone: its successors, which have to
	// pick up the pieces, would die of it again.
	service = supervise.Child{Name: "service", Path: exe, Args: serviceArgs, Env: os.Environ(), EnvAgain: env, Output: d.err,
		Terminate: true, Grace: drainTime + 2*time.Second, GiveUp: giveUp, Log: d.log}
	if runtime.GOOS == "windows" { // sockets cannot be handed on there
		for _, ln := range []net.Listener{d.api, d.admin, d.sim} {
			ln.Close()
		}
		return sim, service, nil
	}
	if sim.Files, err = descriptors(d.sim); err != nil {
		return sim, service, err
	}
	if service.Files, err = descriptors(d.api, d.admin); err != nil {
		return sim, service, err
	}
	sim.Args, service.Args = append(sim.Args, "--inherit"), append(service.Args, "--inherit")
	return sim, service, nil
}

func descriptors(listeners ...net.Listener) ([]*os.File, error) {
	var out []*os.File
	for _, ln := range listeners {
		tcp, ok := ln.(*net.TCPListener)
		if !ok {
			return nil, errors.New("not a TCP socket")
		}
		f, err := tcp.File()
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// await asks /readyz until it says 200; false when ctx ends first.
func (d *demo) await(ctx context.Context) bool {
	client := &http.Client{Timeout: 5 * time.Second} // the socket is open before the service is
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, urlOf(d.api.Addr())+"/readyz", nil)
		if err != nil {
			return false
		}
		if res, err := client.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

// announce prints the one line that scripts wait for.
func (d *demo) announce() error {
	api := urlOf(d.api.Addr())
	d.log.Info("ready", "shop", api+"/shop", "data", d.data)
	return coded(exitFault, json.NewEncoder(d.out).Encode(struct {
		API     string `json:"api"`
		Sim     string `json:"sim"`
		Shop    string `json:"shop"`
		Metrics string `json:"metrics"`
		APIKey  string `json:"api_key"`
	}{api, urlOf(d.sim.Addr()), api + "/shop", urlOf(d.admin.Addr()) + "/metrics", devKey}))
}
