package e2e

import (
	"testing"
	"time"
)

// pollEvery is how often a real process is looked at.
const pollEvery = 25 * time.Millisecond

// poll looks until ok or the deadline. It is the only place that sleeps: a real
// process behind a socket gives no other signal.
func poll(within time.Duration, ok func() bool) bool {
	end := time.Now().Add(within)
	for {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pollEvery)
	}
}

// until fails the test when ok does not hold in time.
func until(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	if !poll(within, ok) {
		t.Fatalf("not within %v: %s", within, what)
	}
}

// pace waits between two looks that must lie apart.
func pace(d time.Duration) { time.Sleep(d) }
