package payonce_test

import (
	"testing"

	"pgregory.net/rapid"
)

// TestInvariants_HoldAfterEveryStep plays random operations with random facts on
// single and split orders: invariants 1, 2, 4, 5, 6, 7, 12 and 16 hold after each
// step, and no permit is given for a payment that is superseded, closed, past
// its end, or whose order takes no payment. A send that may have had an effect is
// repeated only after a fresh answer that the channel has nothing confirmed, asked
// under the present fence, well inside the window in which it recognises the
// repeat, while somebody wants it, and never after its end was decided.
func TestInvariants_HoldAfterEveryStep(t *testing.T) {
	given := map[string]int{}
	rounds := 100
	if testing.Short() || raceEnabled {
		rounds = 20
	}
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			m := newMachine(t, given)
			for range rapid.IntRange(10, 60).Draw(t, "steps") {
				m.step()
			}
		})
	}
	t.Log(given)
	for _, right := range []string{"permit", "prepare", "resend", "close", "give up", "unsent", "amend"} {
		if given[right] == 0 && !t.Failed() {
			t.Errorf("the play never came to: %s", right)
		}
	}
}
