// Package books plays the payment channel inside the measured processes: it
// takes the money at once, or after a fixed delay, and keeps count. The count is
// what a measurement believes about double charges, never the word of the
// process that asked for them.
//
// It must not know who asks: neither keys, nor payments, nor a database.
package books

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/payonce/payonce/bench/internal/wire"
)

// Books counts charges. The zero value counts the total alone; it is safe for
// concurrent use.
type Books struct {
	// Each keeps a count for every order, to find orders that were charged more
	// than once. It costs memory for each order, so it is off where the memory of
	// the process is measured.
	Each bool

	charges  atomic.Int64
	inFlight atomic.Int64

	mu     sync.Mutex
	orders map[string]int
}

// Charge takes the money of an order after the delay and returns the channel's
// id of the payment. It fails only with ctx, and then has taken nothing.
func (b *Books) Charge(ctx context.Context, order string, delay time.Duration) (string, error) {
	b.inFlight.Add(1)
	defer b.inFlight.Add(-1)
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if b.Each {
		b.mu.Lock()
		if b.orders == nil {
			b.orders = map[string]int{}
		}
		b.orders[order]++
		b.mu.Unlock()
	}
	return "ch_" + strconv.FormatInt(b.charges.Add(1), 10), nil
}

// Count returns the present state.
func (b *Books) Count() wire.Count {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := wire.Count{Charges: b.charges.Load(), CallsWaiting: b.inFlight.Load(), Orders: len(b.orders)}
	for _, n := range b.orders {
		if n > 1 {
			c.OverCharged++
		}
		c.MostForOne = max(c.MostForOne, n)
	}
	return c
}

// Serve opens the control listener of a measured process on loopback: the count
// of the books, and the profiles of the process. It returns the address.
func (b *Books) Serve() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.PathCount, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(b.Count()) // the asker is gone: nobody to tell
	})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	go func() { _ = http.Serve(l, mux) }() // ends with the process
	return l.Addr().String(), nil
}
