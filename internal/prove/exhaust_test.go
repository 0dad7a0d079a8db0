package prove

import (
	"os"
	"strings"
	"testing"
	"time"
)

// bounded are the small cases of which every schedule is played, as far as the
// number of states allows. Whole ones are played to the last.
var bounded = []struct {
	name   string
	script Script
	whole  bool
	want   []string // situations that it must come through
}{
	{"pay by code, one fault", Script{Clients: []Request{{Kind: "pay", Method: "qr"}}, Faults: 1, Times: 1}, true, nil},
	{"pay by card, two faults", Script{Clients: []Request{{Kind: "pay", Method: "card"}}, Faults: 2}, true, []string{"PROCESSING to UNKNOWN"}},
	{"code, then form", Script{Clients: []Request{{Kind: "pay", Method: "qr"}, {Kind: "pay", Method: "page"}}}, true, []string{"switched"}},
	{"close against pay", Script{Clients: []Request{{Kind: "pay", Method: "qr"}, {Kind: "close"}}}, true, []string{"told CLOSED", "told PAID"}},
	{"close, card, a crash", Script{Clients: []Request{{Kind: "pay", Method: "card"}, {Kind: "close"}}, Crashes: 1, TakeOver: true}, false, nil},
	{"two methods, a crash, time", Script{Clients: []Request{{Kind: "pay", Method: "qr"}, {Kind: "pay", Method: "card"}}, Crashes: 1, Times: 1}, false, nil},
	{"two methods, two faults", Script{Clients: []Request{{Kind: "pay", Method: "qr"}, {Kind: "pay", Method: "card"}}, Faults: 2, Times: 1}, false, nil},
	{"close, two methods, a crash, late money", Script{Clients: []Request{{Kind: "pay", Method: "qr"}, {Kind: "pay", Method: "page"}, {Kind: "close"}},
		Crashes: 1, Late: 1, Times: 1}, false, nil},
}

// TestI01_EverySmallSchedule plays all schedules of small cases.
//
// PAYONCE_PROVE_STATES raises the bound of states, PAYONCE_PROVE_CASE picks cases by
// a part of their name.
func TestI01_EverySmallSchedule(t *testing.T) {
	states := int(number(t, "PAYONCE_PROVE_STATES", 500))
	for _, c := range bounded {
		if !strings.Contains(c.name, os.Getenv("PAYONCE_PROVE_CASE")) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			s := c.script
			s.Steps = 400
			limit := Limit{States: states}
			if c.whole {
				limit.States = 100_000
			}
			f := Exhaust(s, limit)
			t.Logf("%d states, %d schedules, %d cut at known states, at most %d steps, whole: %v, %.0f states per second", f.States, f.Schedules, f.Cut, f.Deepest, f.Whole,
				float64(f.States)/time.Since(start).Seconds())
			if c.whole && !f.Whole {
				t.Error("not every schedule was played")
			}
			for _, w := range c.want {
				if !f.Reached[w] {
					t.Errorf("no schedule came through %q", w)
				}
			}
			if c.whole {
				randomAgrees(t, s, f)
			}
			for _, r := range f.Bad[:min(len(f.Bad), 2)] {
				t.Errorf("%+v\n  %s", r.Violations, strings.Join(r.Trace, "\n  "))
			}
		})
	}
}

// randomAgrees: no drawn schedule ends where the search of all of them did not come.
// It would if two states that differ had been taken for one.
func randomAgrees(t *testing.T, s Script, f Found) {
	t.Helper()
	s.Plain = true
	for seed := range uint64(300) {
		d := dice(mix(seed))
		w, _ := play(s, 1, func(w *world, moves []move) int { return d.below(len(moves)) })
		if !f.ends[w.ended] {
			t.Fatalf("seed %d ends where no schedule of the whole search did: %v", seed, w.trace)
		}
	}
}

// TestExhaustFindsABrokenChannel: equal states are cut, and the fault is still
// found.
func TestExhaustFindsABrokenChannel(t *testing.T) {
	s := Script{Clients: []Request{{Kind: "pay", Method: "qr"}, {Kind: "pay", Method: "page"}}, Steps: 400, lie: closesNot}
	f := Exhaust(s, Limit{States: 20_000, First: true})
	if len(f.Bad) == 0 || f.Bad[0].Violations[0].Rule != "I13-closed-before-switched" || len(f.Bad[0].Trace) == 0 {
		t.Errorf("found %+v in %d states", f.Bad, f.States)
	}
}
