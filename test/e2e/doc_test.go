// Package e2e tests the real binary from outside: processes, HTTP, and the
// simulated channel's books, which alone decide how often money was taken.
//
// The tests start the service on SQLite, PostgreSQL and MariaDB, kill it, cut
// its connections, let the channel misbehave and move virtual time. What a test
// believes of a payment it reads from the API; what it believes of money it
// reads from the simulator.
//
// The package must not know the service's database: it makes and drops
// databases, and looks into none.
package e2e
