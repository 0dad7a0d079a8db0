package prove

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// number reads a setting of a long search.
func number(t *testing.T, name string, def uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return def
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// situations are what a search must have come through to be worth something.
var situations = []string{
	"CREATED to CANCELLED", "CREATED to PROCESSING", "PROCESSING to CREATED", "PROCESSING to UNKNOWN", "PROCESSING to FAILED",
	"PROCESSING to SUCCEEDED", "PENDING to CANCELLED", "PENDING to SUCCEEDED", "UNKNOWN to PROCESSING", "UNKNOWN to PENDING",
	"UNKNOWN to CANCELLED", "UNKNOWN to SUCCEEDED", "CANCELLED to SUCCEEDED", "FAILED to SUCCEEDED",
	"sent again", "switched", "late money", "late arrival of begin", "late arrival of close", "clock jumps", "notice", "time passes",
	"crash at send", "crash at answer", "crash at write", "crash at read", "write answer lost", "write unavailable",
	"send not sent", "send refused", "send key spent", "send request lost", "send delayed", "answer answer lost",
	"told CLOSED", "told CLOSING", "told PAID", "told order-already-paid", "told order-closed", "told payment-outcome-unknown", "told idempotency-in-progress",
}

// TestI20_RandomSchedulesKeepThePromise: whatever is lost, delayed, refused, killed
// or late, and whatever the clocks of the processes say, the channels' books and
// ours agree and the invariants hold.
//
// PAYONCE_PROVE_SCHEDULES and PAYONCE_PROVE_FIRST make it a long search.
func TestI20_RandomSchedulesKeepThePromise(t *testing.T) {
	const few = 3000
	n, first := number(t, "PAYONCE_PROVE_SCHEDULES", few), number(t, "PAYONCE_PROVE_FIRST", 0)
	start := time.Now()
	reached, broken := map[string]int{}, map[string]int{}
	for seed := first; seed < first+n; seed++ {
		r := Random(Draft(seed), seed)
		for k := range r.Reached {
			reached[k]++
		}
		for _, v := range r.Violations {
			if broken[v.Rule]++; broken[v.Rule] <= 2 {
				t.Errorf("seed %d: %s at step %d: %s\n%+v\n  %s", seed, v.Rule, v.Step, v.Detail, Draft(seed), strings.Join(r.Trace, "\n  "))
			}
		}
	}
	t.Logf("%d schedules, %.0f per second; broken: %v", n, float64(n)/time.Since(start).Seconds(), broken)
	for _, s := range situations {
		if reached[s] == 0 && n >= few {
			t.Errorf("no schedule came through %q", s)
		}
	}
}

func TestSameSeedSameHistory(t *testing.T) {
	hashes := map[uint64]bool{}
	for seed := range uint64(100) {
		a, b := Random(Draft(seed), seed), Random(Draft(seed), seed)
		if a.Hash != b.Hash || a.Steps != b.Steps {
			t.Errorf("seed %d: %x after %d steps, then %x after %d", seed, a.Hash, a.Steps, b.Hash, b.Steps)
		}
		hashes[a.Hash] = true
	}
	if len(hashes) < 90 {
		t.Errorf("100 seeds have %d histories", len(hashes))
	}
}

// TestBrokenChannelsAreFound: the judge sees what it is there for.
func TestBrokenChannelsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		lie  lie
		rule string
	}{
		"says closed, stays open": {closesNot, "I13-closed-before-switched"},
		"forgets what it charged": {forgetsPaid, "I05-no-end-while-charged"},
		"charges twice":           {takesTwice, "I14-no-charge-unrecorded"},
		"charges what none saw":   {paysAnyone, "I05-no-end-while-charged"},
	} {
		found := map[string]bool{}
		for seed := uint64(0); seed < 3000 && !found[c.rule]; seed++ {
			s := Draft(seed)
			s.lie = c.lie
			for _, v := range Random(s, seed).Violations {
				found[v.Rule] = true
			}
		}
		if !found[c.rule] {
			t.Errorf("%s: found %v, not %s", name, found, c.rule)
		}
	}
}
