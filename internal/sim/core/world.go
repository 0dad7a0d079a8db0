// Package core is what all simulated channels share: the journalled books,
// the virtual clock, the seed with everything derived from it, fault
// injection, the counters of received calls and the delivery of notices.
//
// State of all channels lives under one lock and is changed inside Update,
// whose records form one durable step; whoever answers the outside waits for
// it first, so that no answer shows anything that a crash could take back.
//
// The package must not know the wire of any channel, nor anything of the
// service that is judged.
package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/payonce/payonce/internal/sim/journal"
)

// Errors of the control operations; the control API turns them into 404, 409
// and 400.
var (
	ErrUnknown    = errors.New("not on the books")
	ErrNotPayable = errors.New("not payable")
	ErrBad        = errors.New("bad request")
)

// Options are what Open needs. All members are required except
// ClockListeners.
type Options struct {
	DataDir        string
	Seed           int64 // 0: the stored one, else a random one
	ClockListeners []string
	Logger         *slog.Logger
	Now            func() time.Time
	Client         *http.Client // for notices and clock listeners; follows no redirects
}

// World is the ground that the simulated channels stand on.
type World struct {
	Log  *slog.Logger
	Seed Seed

	opts    Options
	journal *journal.Journal
	mu      sync.Mutex
	meta    *journal.Table[metaRow]
	ids     metaRow // "ids": how many ids were made
	idsUsed bool

	boot     string // label of this start
	requests atomic.Int64

	clock    clock
	faults   faults
	switches switches
	calls    calls
	notices  notices

	// Timers on the virtual and on the real clock.
	timers     *schedule
	realTimers *schedule

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// metaRow is a number of the installation: seed, offset, count of ids.
type metaRow struct {
	N int64 `json:"n"`
}

// New makes a world without its folder; channels register their tables on
// Journal and then Open is called.
func New(opts Options) *World {
	w := &World{opts: opts, Log: opts.Logger}
	w.journal = journal.New(&w.mu) // a step is what happens under the lock
	w.meta = journal.NewTable[metaRow](w.journal, "meta")
	w.calls.table = journal.NewTable[callRow](w.journal, "call")
	w.notices.table = journal.NewTable[Notice](w.journal, "notice")
	w.notices.bodies = journal.NewBlobs(w.journal, "body")
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Journal is where channels register their tables before Open.
func (w *World) Journal() *journal.Journal { return w.journal }

// Open replays the folder and starts timers and deliveries.
func (w *World) Open() error {
	if err := w.journal.Open(w.opts.DataDir); err != nil {
		return err
	}
	if err := w.loadMeta(); err != nil {
		w.journal.Close()
		return err
	}
	w.timers = newSchedule(w.Now)
	w.realTimers = newSchedule(w.RealNow)
	w.wg.Go(func() { w.timers.run(w.ctx) })
	w.wg.Go(func() { w.realTimers.run(w.ctx) })
	w.openNotices()
	return nil
}

func (w *World) loadMeta() error {
	seed := w.opts.Seed
	if stored := w.meta.Get("seed"); stored != nil {
		if seed != 0 && seed != stored.N {
			return fmt.Errorf("sim: folder %s was made with seed %d, not %d", w.opts.DataDir, stored.N, seed)
		}
		seed = stored.N
	} else {
		if seed == 0 {
			seed = randomSeed()
		}
		w.meta.Put("seed", &metaRow{N: seed})
	}
	w.Seed = newSeed(seed)
	if ids := w.meta.Get("ids"); ids != nil {
		w.ids = *ids
	}
	if offset := w.meta.Get("offset"); offset != nil {
		w.clock.offset.Store(offset.N)
	}
	boots := metaRow{N: 1}
	if stored := w.meta.Get("boots"); stored != nil {
		boots.N += stored.N
	}
	w.meta.Put("boots", &boots)
	w.boot = fmt.Sprint("boot ", boots.N)
	return w.journal.Wait(w.journal.Seal())
}

// Close stops timers and deliveries, waits for them and closes the folder.
func (w *World) Close() error {
	w.cancel()
	w.stopNotices()
	w.wg.Wait()
	return w.journal.Close()
}

// Update changes state: fn runs alone, and its records become durable
// together. The returned position is for Wait. fn must check first and change
// afterwards: there is no rollback.
func (w *World) Update(fn func()) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.journal.Appended()
	fn()
	if w.idsUsed {
		w.idsUsed = false
		row := w.ids
		w.meta.Put("ids", &row)
	}
	if w.journal.Appended() == before {
		return w.journal.Sealed()
	}
	return w.journal.Seal()
}

// note changes state that nobody waits for.
func (w *World) note(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

// View reads state. The position covers all that fn can have seen.
func (w *World) View(fn func()) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
	return w.journal.Sealed()
}

// Wait blocks until the position is on disk.
func (w *World) Wait(pos uint64) error { return w.journal.Wait(pos) }

// Sleep waits in real time; false when the simulator stops first.
func (w *World) Sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// ID makes a new id: prefix and 24 letters and digits that follow from the
// seed and from how many ids were made before. Only inside Update.
func (w *World) ID(prefix string) string {
	w.ids.N++
	w.idsUsed = true
	return prefix + w.Seed.Text(prefix, w.ids.N, 24)
}

// RequestID makes an id that is unique over restarts but not part of the
// books: nothing is written for it.
func (w *World) RequestID(prefix string) string {
	return prefix + w.Seed.Text(w.boot, w.requests.Add(1), 14)
}

// Sequence is the number of the last id, a serial number for rows. Only
// inside Update.
func (w *World) Sequence() int64 { return w.ids.N }

// At runs fn at a virtual time, or soon when it has passed. Timers do not
// survive the process: channels set them again from their rows.
func (w *World) At(t time.Time, fn func()) { w.timers.add(t, fn) }
