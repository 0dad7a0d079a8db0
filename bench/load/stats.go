package main

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/payonce/payonce/bench/internal/wire"
)

// recorder is what one connection saw. It belongs to one goroutine.
type recorder struct {
	micros   []uint32
	statuses map[int]int
	replayed int
	errors   int
	first    string // the first error's text
}

func newRecorder() *recorder { return &recorder{statuses: map[int]int{}} }

// add records one answer. Whatever is neither 2xx nor expected is an error.
func (r *recorder) add(d time.Duration, resp response, err error, expected ...int) {
	if err != nil {
		r.fail(err.Error())
		return
	}
	r.micros = append(r.micros, uint32(min(d.Microseconds(), math.MaxUint32)))
	r.statuses[resp.status]++
	if resp.replayed {
		r.replayed++
	}
	if resp.status/100 != 2 && !slices.Contains(expected, resp.status) {
		r.fail(strconv.Itoa(resp.status) + " " + string(resp.body[:min(len(resp.body), 300)]))
	}
}

func (r *recorder) fail(text string) {
	r.errors++
	if r.first == "" {
		r.first = text
	}
}

func summarize(mode string, recorders []*recorder, took time.Duration) wire.Result {
	res := wire.Result{Mode: mode, Conns: len(recorders), Seconds: took.Seconds(), Statuses: map[string]int{}}
	var all []uint32
	statuses := map[int]int{}
	for _, r := range recorders {
		all = append(all, r.micros...)
		res.Errors += r.errors
		res.Replayed += r.replayed
		if res.FirstError == "" {
			res.FirstError = r.first
		}
		for s, n := range r.statuses {
			statuses[s] += n
		}
	}
	for _, s := range slices.Sorted(maps.Keys(statuses)) {
		res.Statuses[strconv.Itoa(s)] = statuses[s]
	}
	slices.Sort(all)
	res.Requests = len(all)
	if took > 0 {
		res.RPS = float64(len(all)) / took.Seconds()
	}
	res.P50, res.P95, res.P99, res.Max = percentile(all, 50), percentile(all, 95), percentile(all, 99), percentile(all, 100)
	return res
}

// percentile returns, in milliseconds, the smallest value that p per cent of the
// sorted microseconds do not exceed.
func percentile(sorted []uint32, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(float64(len(sorted))*p/100)) - 1
	return float64(sorted[max(i, 0)]) / 1000
}
