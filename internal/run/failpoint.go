//go:build !failpoint

package run

// FailpointsBuilt reports whether this binary can be told to fail.
const FailpointsBuilt = false

// Fail does nothing in a release build.
func Fail(string) error { return nil }
