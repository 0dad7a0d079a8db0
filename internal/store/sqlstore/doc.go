// Package sqlstore is the one body of portable SQL behind package store. What
// differs between engines stands behind [Dialect]; packages sqlite, postgres
// and mysql open a database and hand theirs in.
//
// A write is one transaction per batch: lock the orders in the order of their
// key hash, read the picture, let the units decide, and write the differences
// with one statement per table. The order row is the lock of everything that
// belongs to the order, and its version rises with every unit that writes, so
// that a second writer is refused on any engine.
//
// The rules of the SQL: slots are nullable unique columns; updates are guarded
// by a version that always rises; times are microseconds since 1970 UTC of the
// database's clock; identifiers compare as bytes; no RETURNING, SKIP LOCKED,
// advisory locks or session state.
//
// The package must not know what a decision means, or an engine by name.
package sqlstore
