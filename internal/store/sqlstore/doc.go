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
// What failed, where, and what happens then:
//
//	                     a batch of several          a unit alone
//	unavailable          all again, once             again, once
//	read-only server     the same, on another connection
//	not begun            as unavailable: no unit had a part in it
//	lock held            each unit alone             again, once; the batch's wait counts
//	deadlock, stale      each unit alone             again, 6 tries in all
//	unique key           each unit alone             again, 6 tries in all: the fresh picture shows who won
//	CHECK or type        each unit alone             refused at once
//	decision's error     that unit's answer          its answer
//	COMMIT refused       as the class says           as the class says
//	COMMIT unanswered    read back once for all;     read back;
//	                       committed: written          committed: written
//	                       rolled back: each alone     rolled back: again, once
//	                       unreadable: outcome unknown for all that wrote
//
// Out of tries, a unique key or a CHECK is ErrConflict and everything else
// ErrUnavailable: nothing was written. All tries together have Timeout, or end
// with the caller's context where that is earlier; a COMMIT that was sent gets a
// little more; reading back has Timeout of its own. A unit is never answered
// ErrUnavailable when it may have been written.
//
// The package must not know what a decision means, or an engine by name.
package sqlstore
