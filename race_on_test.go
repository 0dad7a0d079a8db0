//go:build race

package payonce_test

// raceEnabled: the exhaustive test takes a sample, since it has nothing to race.
const raceEnabled = true
