package main

import (
	"strings"
	"testing"

	"github.com/payonce/payonce/bench/internal/wire"
)

// goodNotices is a report in which everything is as claimed.
func goodNotices() *noticeReport {
	const slice, all = 10, 10 * (noticeSlices + 1)
	held := wire.Notices{Succeeded: all, Paid: all, Effective: all, Charges: all, Evidence: all, Events: all, Applied: all, Stored: all}
	side := noticeSlice{New: wire.Result{Requests: slice, RPS: 200}, Again: wire.Result{Requests: slice * duplicateRounds, RPS: 800}}
	round := noticeRound{Held: [2]wire.Notices{held, held}}
	for range noticeSlices {
		round.Pairs = append(round.Pairs, noticePair{Alone: side, Shared: side, Ratio: 2, Duplicates: 4})
	}
	return &noticeReport{Slice: slice, Rounds: []noticeRound{round}}
}

func TestWhatFailsTheBenchmarkOfNotices(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(*noticeRound)
		fails bool
	}{
		{"nothing wrong", func(*noticeRound) {}, false},
		{"slow", func(r *noticeRound) {
			for i := range r.Pairs {
				r.Pairs[i].Ratio, r.Pairs[i].Duplicates = 0.5, 0.5
			}
		}, false},
		{"another word", func(r *noticeRound) { r.Pairs[3].Shared.New.Errors = 1 }, true},
		{"another word for a duplicate", func(r *noticeRound) { r.Pairs[3].Alone.Again.Errors = 1 }, true},
		{"a notice that was not sent", func(r *noticeRound) { r.Pairs[0].Shared.New.Requests-- }, true},
		{"a payment that did not succeed", func(r *noticeRound) { r.Held[1].Succeeded-- }, true},
		{"an order that is not paid", func(r *noticeRound) { r.Held[1].Paid-- }, true},
		{"a second charge", func(r *noticeRound) { r.Held[0].Charges++ }, true},
		{"a second event", func(r *noticeRound) { r.Held[1].Events++ }, true},
		{"a notice that is parked", func(r *noticeRound) { r.Held[1].Applied-- }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := goodNotices()
			tc.spoil(&r.Rounds[0])
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
