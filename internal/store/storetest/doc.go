// Package storetest is the conformance suite of package store. Every engine runs
// the whole suite, each case in a database of its own.
//
// It must not know how an engine works: differences are data in [Engine].
package storetest
