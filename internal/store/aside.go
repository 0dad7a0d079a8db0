package store

import (
	"errors"
	"slices"
	"sync"

	"github.com/payonce/payonce"
)

const (
	maxAside    = 256 // orders that are set aside at once
	goodResults = 8   // in a row, after which an order is trusted again
)

// aside remembers the orders whose units the store could not write while it wrote
// others of the same batch. The zero value is ready.
type aside struct {
	mu     sync.Mutex
	orders []suspect // the longest-known first
}

type suspect struct {
	order payonce.OrderKey
	good  int // results in a row that were not failures of the store
}

func (a *aside) has(k payonce.OrderKey) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(k) >= 0
}

func (a *aside) find(k payonce.OrderKey) int {
	return slices.IndexFunc(a.orders, func(s suspect) bool { return s.order == k })
}

// learn takes the results of a batch in. When all of them failed, the store did
// and no unit is to blame.
func (a *aside) learn(units []*Unit, results []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	written := slices.ContainsFunc(results, func(err error) bool { return !failed(err) })
	for i, u := range units {
		at := a.find(u.Order)
		switch {
		case failed(results[i]) && at >= 0:
			a.orders[at].good = 0
		case failed(results[i]) && written && len(a.orders) < maxAside:
			a.orders = append(a.orders, suspect{order: u.Order})
		case !failed(results[i]) && at >= 0:
			if a.orders[at].good++; a.orders[at].good >= goodResults {
				a.orders = slices.Delete(a.orders, at, at+1)
			}
		}
	}
}

// failed reports whether the store could not write a unit that it may be able to
// blame. An unknown outcome says nothing about the unit.
func failed(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrConflict) }
