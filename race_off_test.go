//go:build !race

package payonce_test

const raceEnabled = false
