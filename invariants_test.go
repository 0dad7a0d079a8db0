package payonce_test

import (
	"testing"

	"pgregory.net/rapid"
)

// TestInvariants_HoldAfterEveryStep plays random operations with random facts on
// single and split orders: invariants 1, 2, 4, 5, 6, 7, 12 and 16 hold after each
// step, and no permit is given for a payment that is superseded, closed, past
// its end, or whose order takes no payment.
func TestInvariants_HoldAfterEveryStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			m.step()
		}
	})
}
