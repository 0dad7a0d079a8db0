package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/payonce/payonce/bench/internal/wire"
)

// side is what is measured.
type side string

const (
	thePort    side = "port"
	theService side = "serve"
)

// pair is one run of each side, one directly after the other.
type pair struct {
	Port    wire.Result `json:"port"`
	Service wire.Result `json:"service"`
	Replay  wire.Result `json:"replay"` // of the service, on the same database
	// Busy is how much of the machine others used in the second before the run of
	// the port and before that of the service, 0 to 1.
	Busy        [2]float64 `json:"busy_before"`
	HighWater   float64    `json:"vmhwm_mib"`  // of the service, after both loads
	Ratio       float64    `json:"ratio"`      // first payments, service to port
	ReplayRatio float64    `json:"own_replay"` // replays to first payments of the service
	Lost        int64      `json:"lost"`       // answers without a charge and charges without an answer
}

// pairs runs the sides in turn. The one that begins changes from pair to pair,
// so that a machine that gets slower favours neither.
func (b *bench) pairs(ctx context.Context) ([]pair, error) {
	var all []pair
	for n := range b.rounds {
		var p pair
		order := []side{thePort, theService}
		if n%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			if err := b.one(ctx, s, &p); err != nil {
				return nil, fmt.Errorf("%s: %w", s, err)
			}
		}
		p.Ratio = p.Service.RPS / p.Port.RPS
		p.ReplayRatio = p.Replay.RPS / p.Service.RPS
		b.say("pair %d of %d: port %.0f/s, service %.0f/s (x %.2f), replays %.0f/s (x %.1f), %.0f MiB", n+1, b.rounds,
			p.Port.RPS, p.Service.RPS, p.Ratio, p.Replay.RPS, p.ReplayRatio, p.HighWater)
		all = append(all, p)
	}
	return all, nil
}

// one measures one side on a fresh database.
func (b *bench) one(ctx context.Context, s side, p *pair) error {
	return b.with(ctx, s, []string{"--conns", strconv.Itoa(b.pool)}, func(proc *process) error {
		conns := strconv.Itoa(b.conns)
		if _, err := b.load(ctx, proc, "first", "--conns", conns, "--for", b.warm.String(), "--prefix", "w-"); err != nil {
			return err
		}
		before, err := proc.count()
		if err != nil {
			return err
		}
		busy := busyFor(time.Second)
		r, err := b.load(ctx, proc, "first", "--conns", conns, "--for", b.length.String(), "--prefix", "f-")
		if err != nil {
			return err
		}
		after, err := proc.count()
		if err != nil {
			return err
		}
		if s == thePort {
			p.Port, p.Busy[0] = r, busy
			return nil
		}
		p.Service, p.Busy[1] = r, busy
		missing := int64(r.Requests) - (after.Charges - before.Charges)
		p.Lost = max(missing, -missing)
		if p.Replay, err = b.load(ctx, proc, "replay", "--conns", conns, "--for", (b.length / 2).String(), "--prefix", "k-"); err != nil {
			return err
		}
		p.HighWater, err = proc.highWater()
		return err
	})
}

// with runs a server on a fresh database for f.
func (b *bench) with(ctx context.Context, s side, args []string, f func(*process) error) error {
	url, drop, err := b.postgres.fresh(ctx)
	if err != nil {
		return err
	}
	defer drop()
	if err := b.postgres.checkpoint(ctx); err != nil {
		return err
	}
	proc, err := start(b.program(string(s)), append([]string{"--database", url}, args...)...)
	if err != nil {
		return err
	}
	err = f(proc)
	if ended := proc.stop(); err == nil && ended != nil {
		err = fmt.Errorf("it ended badly: %w", ended)
	}
	return err
}

// twins is the positive control: what 300 keys, each sent by eight connections at
// once, cost in charges.
type twins struct {
	wire.Result
	wire.Count
}

func (b *bench) twins(ctx context.Context, s side) (twins, error) {
	var t twins
	err := b.with(ctx, s, []string{"--conns", strconv.Itoa(b.pool), "--count-each"}, func(proc *process) error {
		var err error
		if t.Result, err = b.load(ctx, proc, "twins", "--conns", "8", "--keys", strconv.Itoa(twinKeys), "--prefix", "t-"); err != nil {
			return err
		}
		t.Count, err = proc.count()
		return err
	})
	if err != nil {
		return t, fmt.Errorf("twins, %s: %w", s, err)
	}
	b.say("twins, %s: %d keys, %d charges, %d keys charged more than once", s, twinKeys, t.Charges, t.OverCharged)
	return t, nil
}

const twinKeys = 300

// busyFor measures which share of the machine is in use while nothing of the
// benchmark runs: the noise that the next figure has to live with.
func busyFor(d time.Duration) float64 {
	idle, total := cpuTicks()
	time.Sleep(d)
	idle2, total2 := cpuTicks()
	if total2 == total {
		return 0
	}
	return 1 - (idle2-idle)/(total2-total)
}

func cpuTicks() (idle, total float64) {
	b, _ := os.ReadFile("/proc/stat") // without it, nothing is told of the noise
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	for i := 1; i < min(len(fields), 9); i++ { // guest time is counted in user time already
		n, _ := strconv.ParseFloat(fields[i], 64)
		total += n
		if i == 4 || i == 5 { // idle, and waiting for a disk
			idle += n
		}
	}
	return idle, total
}
