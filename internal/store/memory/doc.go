// Package memory is a store in the memory of one process, for simulations and
// tests. It keeps the promises of package store to the letter: decisions run under
// one lock, a unit is all or nothing, what the schema of the databases refuses is
// refused here by code, and what never changes is never changed. The same calls
// with the same clock and random numbers leave the same books.
//
// It keeps nothing: a process that uses it for real money loses that money.
//
// The package must not know what a decision means, nor SQL.
package memory
