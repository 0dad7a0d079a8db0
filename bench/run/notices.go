package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/payonce/payonce/bench/internal/wire"
)

// noticePath is where the notices of the one account are posted to.
const noticePath = "/webhooks/alipay/alipay"

const (
	// noticeSlices is how many slices a run's notices are cut into, beside one that
	// warms up. Both sides have one slice in turn, so that a machine whose other
	// work comes and goes does both the same harm.
	noticeSlices = 9
	// duplicateRounds is how often the notices of a slice are posted again.
	duplicateRounds = 3
)

// noticeSlice is what one side did with some new notices and, directly
// afterwards, with the same ones again.
type noticeSlice struct {
	New   wire.Result `json:"new"`
	Again wire.Result `json:"again"`
}

// noticePair is a slice of each side, one directly after the other.
type noticePair struct {
	Alone      noticeSlice `json:"alone"`
	Shared     noticeSlice `json:"shared"`
	Busy       float64     `json:"busy_before"`
	Ratio      float64     `json:"ratio"`      // new notices, shared to alone
	Duplicates float64     `json:"duplicates"` // of shared: duplicates to new ones
}

// noticeRound is a fresh process and database for each side: one as the service
// is, one with a transaction for each notice.
type noticeRound struct {
	Pairs  []noticePair    `json:"pairs"`
	Held   [2]wire.Notices `json:"held"`      // in the end, by alone and by shared
	Memory float64         `json:"vmhwm_mib"` // of shared
}

// noticeReport is everything that was measured of notices.
type noticeReport struct {
	Cores    int               `json:"cores"`
	Go       string            `json:"go"`
	Postgres map[string]string `json:"postgres"`
	Command  string            `json:"command"`
	Conns    int               `json:"conns"`
	Pool     int               `json:"pool"`
	Slice    int               `json:"slice"` // notices of one slice

	Rounds     []noticeRound `json:"rounds"`
	Ratio      spread        `json:"ratio"`
	Duplicates spread        `json:"duplicates_ratio"`
	Claims     []claim       `json:"claims"`
}

// allNotices measures notices alone.
func (b *bench) allNotices(ctx context.Context, database, command string) (*noticeReport, error) {
	var err error
	if b.postgres, err = connect(ctx, database); err != nil {
		return nil, err
	}
	r := &noticeReport{Cores: runtime.NumCPU(), Go: runtime.Version(), Conns: b.conns, Pool: b.pool, Command: command, Slice: b.slice}
	if r.Postgres, err = b.postgres.settings(ctx); err != nil {
		return nil, err
	}
	for n := range b.noticeRounds {
		round, err := b.noticeRound(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("notices: %w", err)
		}
		r.Rounds = append(r.Rounds, *round)
		so := noticeReport{Rounds: r.Rounds[n:]}
		so.judge()
		b.say("round %d of %d: shared to one each x %.2f (%.2f to %.2f), duplicates x %.1f (%.1f to %.1f)", n+1, b.noticeRounds,
			so.Ratio.Median, so.Ratio.Min, so.Ratio.Max, so.Duplicates.Median, so.Duplicates.Min, so.Duplicates.Max)
	}
	r.judge()
	return r, nil
}

// noticeRound starts both sides, which prepare their payments, and measures them
// slice by slice.
func (b *bench) noticeRound(ctx context.Context, n int) (*noticeRound, error) {
	r := new(noticeRound)
	args := func(name string) []string {
		return []string{"--conns", strconv.Itoa(b.pool), "--notices", strconv.Itoa(b.slice * (noticeSlices + 1)), "--file", b.noticeFile(name)}
	}
	for _, name := range []string{"alone", "shared"} {
		defer func() { _ = os.Remove(b.noticeFile(name)) }() // the folder goes as well
	}
	return r, b.with(ctx, theService, append(args("alone"), "--alone"), func(alone *process) error {
		return b.with(ctx, theService, args("shared"), func(shared *process) error {
			if err := b.noticePairs(ctx, r, n, alone, shared); err != nil {
				return err
			}
			var err error
			for i, p := range []*process{alone, shared} {
				if r.Held[i], err = p.notices(); err != nil {
					return err
				}
			}
			r.Memory, err = shared.highWater()
			return err
		})
	})
}

func (b *bench) noticeFile(name string) string { return filepath.Join(b.programs, "notices-"+name) }

// noticePairs posts the slices. The first one warms up and is not kept.
func (b *bench) noticePairs(ctx context.Context, r *noticeRound, n int, alone, shared *process) error {
	if err := b.postgres.checkpoint(ctx); err != nil { // what the preparation left in memory
		return err
	}
	for i := range noticeSlices + 1 {
		p := noticePair{Busy: busyFor(300 * time.Millisecond)}
		sides := []func() error{
			func() error { return b.noticeSlice(ctx, alone, "alone", i, &p.Alone) },
			func() error { return b.noticeSlice(ctx, shared, "shared", i, &p.Shared) },
		}
		if (i+n)%2 == 1 {
			slices.Reverse(sides)
		}
		for _, side := range sides {
			if err := side(); err != nil {
				return err
			}
		}
		p.Ratio = p.Shared.New.RPS / p.Alone.New.RPS
		p.Duplicates = p.Shared.Again.RPS / p.Shared.New.RPS
		if i > 0 {
			r.Pairs = append(r.Pairs, p)
		}
	}
	return nil
}

func (b *bench) noticeSlice(ctx context.Context, p *process, name string, i int, s *noticeSlice) error {
	args := []string{"--conns", strconv.Itoa(b.conns), "--path", noticePath, "--file", b.noticeFile(name),
		"--skip", strconv.Itoa(i * b.slice), "--take", strconv.Itoa(b.slice)}
	var err error
	if s.New, err = b.load(ctx, p, "notices", args...); err != nil {
		return err
	}
	s.Again, err = b.load(ctx, p, "notices", append(args, "--rounds", strconv.Itoa(duplicateRounds))...)
	return err
}

// notices asks what the database of the process holds.
func (p *process) notices() (wire.Notices, error) {
	var n wire.Notices
	resp, err := http.Get("http://" + p.Addr + wire.PathNotices)
	if err != nil {
		return n, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body) // whatever came of it
		return n, fmt.Errorf("counts of notices: %s: %s", resp.Status, text)
	}
	return n, json.NewDecoder(resp.Body).Decode(&n)
}

// column of all pairs, as a spread.
func (r *noticeReport) column(f func(*noticePair) float64) spread {
	var values []float64
	for _, round := range r.Rounds {
		for i := range round.Pairs {
			values = append(values, f(&round.Pairs[i]))
		}
	}
	return spreadOf(values)
}

// judge fills in medians and claims.
func (r *noticeReport) judge() {
	r.Ratio = r.column(func(p *noticePair) float64 { return p.Ratio })
	r.Duplicates = r.column(func(p *noticePair) float64 { return p.Duplicates })
	posted, wrong, twice := 0, 0, 0
	n := r.Slice * (noticeSlices + 1)
	once := wire.Notices{Succeeded: n, Paid: n, Effective: n, Charges: n, Evidence: n, Events: n, Applied: n, Stored: n}
	for _, round := range r.Rounds {
		for _, p := range round.Pairs {
			for _, s := range []noticeSlice{p.Alone, p.Shared} {
				posted += r.Slice * (1 + duplicateRounds)
				wrong += s.New.Errors + s.Again.Errors + r.Slice*(1+duplicateRounds) - s.New.Requests - s.Again.Requests
			}
		}
		for _, held := range round.Held {
			if held != once {
				twice++
			}
		}
	}
	r.Claims = []claim{
		{"new notices, shared transactions to one each", "1.5 x", r.Ratio.times(), r.Ratio.Median >= 1.5, false},
		{"duplicates to new notices", "3 x", r.Duplicates.times(), r.Duplicates.Median >= 3, false},
		{"notices not answered by the exact word", "0", fmt.Sprintf("%d of %d", wrong, posted), wrong == 0 && posted > 0, true},
		{"databases that hold anything but one success a payment", "0", fmt.Sprintf("%d of %d", twice, 2*len(r.Rounds)), twice == 0, true},
	}
}

func (r *noticeReport) failed() bool { return broken(r.Claims) }

func (r *noticeReport) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printClaims(t, r.Claims)
	line := func(what string, f func(s *noticeSlice) float64) {
		fmt.Fprintf(t, "%s\tone each %s\tshared %s\n", what, r.column(func(p *noticePair) float64 { return f(&p.Alone) }).plain(),
			r.column(func(p *noticePair) float64 { return f(&p.Shared) }).plain())
	}
	fmt.Fprintf(t, "context: %d cores, PostgreSQL %s, %d connections, pool of %d, %d rounds of %d pairs of %d notices\n",
		r.Cores, r.Postgres["server_version"], r.Conns, r.Pool, len(r.Rounds), noticeSlices, r.Slice)
	line("new notices per second", func(s *noticeSlice) float64 { return s.New.RPS })
	line("duplicates per second", func(s *noticeSlice) float64 { return s.Again.RPS })
	line("p99 of new ones, ms", func(s *noticeSlice) float64 { return s.New.P99 })
	printNoise(t, r.column(func(p *noticePair) float64 { return p.Busy }))
	return t.Flush()
}
