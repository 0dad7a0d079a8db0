package prove

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRandomSchedules(t *testing.T) {
	n := 3000
	if v := os.Getenv("PAYONCE_PROVE_SCHEDULES"); v != "" {
		n, _ = strconv.Atoi(v)
	}
	start := time.Now()
	reached := map[string]int{}
	bad := map[string]int{}
	for seed := range uint64(n) {
		r := Random(Draft(seed), seed)
		for k := range r.Reached {
			reached[k]++
		}
		for _, v := range r.Violations {
			if bad[v.Rule]++; bad[v.Rule] <= 2 {
				t.Errorf("seed %d: %s at step %d: %s\n%+v\n  %s", seed, v.Rule, v.Step, v.Detail, Draft(seed), strings.Join(r.Trace[:min(len(r.Trace), 150)], "\n  "))
			}
		}
	}
	t.Logf("%d schedules, %.0f per second, %v", n, float64(n)/time.Since(start).Seconds(), reached)
	t.Log(bad)
}
