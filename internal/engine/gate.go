package engine

import "sync"

// gate lets one request of a key through to the first transaction at a time: a
// crowd of equal requests becomes one transaction and many reads. It only sheds
// load. Requests that pass it together, here or in other processes, meet in the
// database.
type gate struct {
	mu   sync.Mutex
	busy map[[32]byte]chan struct{}
}

// enter returns leave when the way is free, else a channel that is closed when
// it is.
func (g *gate) enter(key [32]byte) (leave func(), wait <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ch, ok := g.busy[key]; ok {
		return nil, ch
	}
	if g.busy == nil {
		g.busy = map[[32]byte]chan struct{}{}
	}
	ch := make(chan struct{})
	g.busy[key] = ch
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.busy, key)
		close(ch)
	}, nil
}
