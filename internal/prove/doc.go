// Package prove searches for schedules that break the promise. It runs the real
// engine on the store in memory against channels with books of their own, and
// chooses every step itself: which request goes on, which message arrives or is
// lost, when time passes, when a process dies. When a schedule has ended, the
// faults end too, the ladder climbs until nothing moves, and the channels' books
// are compared with ours.
//
// A schedule is a function of its seed and script: whatever it finds can be shown
// again, step by step.
//
// The package must not know how the engine decides, nor repeat one of its rules: it
// knows the invariants, and what a channel may do to us.
package prove
