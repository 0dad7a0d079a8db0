package main

import (
	"strings"
	"testing"

	"github.com/payonce/payonce/bench/internal/wire"
)

// good is a report in which everything is as claimed.
func good() *report {
	p := pair{Port: wire.Result{Requests: 10, RPS: 100}, Service: wire.Result{Requests: 20, RPS: 200},
		Replay: wire.Result{Requests: 30, Replayed: 30, RPS: 700}, Ratio: 2, ReplayRatio: 3.5, HighWater: 40}
	r := &report{Pairs: []pair{p, p, p},
		Control: twins{Count: wire.Count{Charges: 900, OverCharged: 300}},
		Twins:   twins{Count: wire.Count{Charges: twinKeys}, Result: wire.Result{Succeeded: twinKeys}},
		Slow:    &slowCase{Held: 1000, Throughout: true, Charges: 1000, Again: wire.Result{Statuses: map[string]int{"201": 1000}}}}
	return r
}

func TestSpreadOf(t *testing.T) {
	for _, tc := range []struct {
		in   []float64
		want spread
	}{
		{[]float64{3, 1, 2}, spread{2, 1, 3}},
		{[]float64{4, 1, 3, 2}, spread{2.5, 1, 4}},
		{nil, spread{}},
	} {
		if got := spreadOf(tc.in); got != tc.want {
			t.Errorf("spreadOf(%v) is %v, want %v", tc.in, got, tc.want)
		}
	}
}

// TestWhatFailsTheBenchmark: each wrong thing alone, so that no claim can be
// dropped unnoticed.
func TestWhatFailsTheBenchmark(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(*report)
		fails bool
	}{
		{"nothing wrong", func(*report) {}, false},
		{"slow", func(r *report) { r.Pairs[0].Ratio, r.Pairs[1].Ratio, r.Pairs[2].Ratio = 0.1, 0.1, 0.1 }, false},
		{"large", func(r *report) { r.Pairs[1].HighWater = 500 }, false},
		{"a failed request", func(r *report) { r.Pairs[2].Service.Errors = 1 }, true},
		{"a lost answer", func(r *report) { r.Pairs[0].Lost = 1 }, true},
		{"a repeat that was no replay", func(r *report) { r.Pairs[0].Replay.Replayed-- }, true},
		{"a control that found nothing", func(r *report) { r.Control.OverCharged = 0 }, true},
		{"a double charge", func(r *report) { r.Twins.OverCharged = 1 }, true},
		{"a key without success", func(r *report) { r.Twins.Succeeded-- }, true},
		{"others held up", func(r *report) { r.Slow.Get.P99 = 1500 }, true},
		{"payments that did not wait", func(r *report) { r.Slow.Throughout = false }, true},
		{"a slow payment charged twice", func(r *report) { r.Slow.Charges++ }, true},
		{"a slow payment without its result", func(r *report) { r.Slow.Again.Statuses["201"]-- }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := good()
			tc.spoil(r)
			r.judge()
			if r.failed() != tc.fails {
				t.Errorf("failed is %v, want %v: %+v", r.failed(), tc.fails, r.Claims)
			}
			var b strings.Builder
			if err := r.print(&b); err != nil || tc.fails && !strings.Contains(b.String(), "NOT MET") {
				t.Errorf("the table does not show it: %v\n%s", err, b.String())
			}
		})
	}
}
