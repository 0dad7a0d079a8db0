package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// report is everything that was measured. Ratios are what lasts; rates belong
// to the machine.
type report struct {
	Cores    int               `json:"cores"`
	Go       string            `json:"go"`
	Postgres map[string]string `json:"postgres"`
	Command  string            `json:"command"`
	Conns    int               `json:"conns"`
	Pool     int               `json:"pool"`

	Pairs   []pair    `json:"pairs"`
	First   spread    `json:"first_ratio"`
	Replay  spread    `json:"replay_ratio"`
	Memory  spread    `json:"vmhwm_mib"`
	Control twins     `json:"twins_port"`
	Twins   twins     `json:"twins_service"`
	Slow    *slowCase `json:"slow_channel"` // nil: left out

	Claims []claim `json:"claims"`
}

// spread is the median of some figures with their extremes, the measure of the
// noise.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	s := slices.Sorted(slices.Values(values))
	mid := s[len(s)/2]
	if len(s)%2 == 0 {
		mid = (s[len(s)/2-1] + mid) / 2
	}
	return spread{Median: mid, Min: s[0], Max: s[len(s)-1]}
}

func (s spread) times() string { return fmt.Sprintf("%.2f x (%.2f to %.2f)", s.Median, s.Min, s.Max) }

func (s spread) plain() string { return fmt.Sprintf("%.0f (%.0f to %.0f)", s.Median, s.Min, s.Max) }

// claim is a statement of the product beside what was measured. Hard claims do
// not depend on the machine: the benchmark fails when one is not met.
type claim struct {
	Name     string `json:"name"`
	Wanted   string `json:"wanted"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
	Hard     bool   `json:"hard"`
}

func column(pairs []pair, f func(pair) float64) []float64 {
	out := make([]float64, len(pairs))
	for i, p := range pairs {
		out[i] = f(p)
	}
	return out
}

// judge fills in medians and claims.
func (r *report) judge() {
	r.First = spreadOf(column(r.Pairs, func(p pair) float64 { return p.Ratio }))
	r.Replay = spreadOf(column(r.Pairs, func(p pair) float64 { return p.ReplayRatio }))
	r.Memory = spreadOf(column(r.Pairs, func(p pair) float64 { return p.HighWater }))
	wrong, lost, unmarked := 0, int64(0), 0
	for _, p := range r.Pairs {
		wrong += p.Port.Errors + p.Service.Errors + p.Replay.Errors
		lost += p.Lost
		unmarked += p.Replay.Requests - p.Replay.Replayed
	}
	r.Claims = []claim{
		{"first payments, service to port", "1.5 x", r.First.times(), r.First.Median >= 1.5, false},
		{"replays to own first payments", "3 x", r.Replay.times(), r.Replay.Median >= 3, false},
		{"memory high-water mark", "100 MiB", fmt.Sprintf("%.0f MiB", r.Memory.Max), r.Memory.Max <= 100, false},
		{"requests that failed", "0", fmt.Sprint(wrong), wrong == 0, true},
		{"answers without their charge, or the reverse", "0", fmt.Sprint(lost), lost == 0, true},
		{"repeated requests that were not replays", "0", fmt.Sprint(unmarked), unmarked == 0, true},
		{"control: keys that the port charged twice", "> 0", fmt.Sprintf("%d of %d", r.Control.OverCharged, twinKeys), r.Control.OverCharged > 0, true},
		{"keys that the service charged twice", "0", fmt.Sprintf("%d of %d", r.Twins.OverCharged, twinKeys), r.Twins.OverCharged == 0, true},
		{"keys that the service charged", fmt.Sprint(twinKeys), fmt.Sprint(r.Twins.Charges), r.Twins.Charges == twinKeys && r.Twins.Succeeded == twinKeys, true},
	}
	if s := r.Slow; s != nil {
		p99 := max(s.Health.P99, s.Get.P99, s.Pay.P99)
		failed := s.Health.Errors + s.Get.Errors + s.Pay.Errors + s.First.Errors + s.Again.Errors
		r.Claims = append(r.Claims,
			claim{"slow channel: p99 of everything else", "< 1000 ms", fmt.Sprintf("%.1f ms", p99), p99 < 1000 && s.Throughout, true},
			claim{"slow channel: requests that failed", "0", fmt.Sprint(failed), failed == 0, true},
			claim{"slow channel: payments charged once", fmt.Sprint(s.Held), fmt.Sprint(s.Charges), s.Charges == int64(s.Held) && s.Again.Statuses["201"] == s.Held, true})
	}
}

// quiet is the share of the machine that others may use before the figures are
// doubted.
const quiet = 0.1

// failed reports whether a hard claim was not met.
func (r *report) failed() bool { return broken(r.Claims) }

func broken(claims []claim) bool {
	return slices.ContainsFunc(claims, func(c claim) bool { return c.Hard && !c.Met })
}

func printClaims(w io.Writer, claims []claim) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", "claim", "wanted", "measured", "")
	for _, c := range claims {
		verdict := "met"
		if !c.Met {
			verdict = "NOT MET"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, c.Wanted, c.Measured, verdict)
	}
	fmt.Fprintln(w)
}

// printNoise tells how much of the machine others used, 0 to 1.
func printNoise(w io.Writer, busy spread) {
	fmt.Fprintf(w, "in use by others before a run, per cent\t%s\n", spread{100 * busy.Median, 100 * busy.Min, 100 * busy.Max}.plain())
	if busy.Median > quiet {
		fmt.Fprintln(w, "the machine was not quiet: take the speed again when it is")
	}
}

func (r *report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printClaims(t, r.Claims)
	rate := func(f func(pair) float64) string { return spreadOf(column(r.Pairs, f)).plain() }
	fmt.Fprintf(t, "context: %d cores, PostgreSQL %s, %d connections, pool of %d\n", r.Cores, r.Postgres["server_version"], r.Conns, r.Pool)
	fmt.Fprintf(t, "requests per second\tport %s\tservice %s\treplays %s\n", rate(func(p pair) float64 { return p.Port.RPS }),
		rate(func(p pair) float64 { return p.Service.RPS }), rate(func(p pair) float64 { return p.Replay.RPS }))
	fmt.Fprintf(t, "p99, ms\tport %s\tservice %s\treplays %s\n", rate(func(p pair) float64 { return p.Port.P99 }),
		rate(func(p pair) float64 { return p.Service.P99 }), rate(func(p pair) float64 { return p.Replay.P99 }))
	printNoise(t, spreadOf(column(r.Pairs, func(p pair) float64 { return max(p.Busy[0], p.Busy[1]) })))
	return t.Flush()
}

// write puts a report into a file.
func write(path string, report any) error {
	b, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
