// Package sim is Payonce's channel simulator: real wire protocols with real
// signatures, books of its own that survive kill -9, a virtual clock and
// faults on every operation. It is the independent judge of the service and
// is written from public facts about the channels alone.
//
// A channel is a package beside this one (stripesim, alipaysim) that is plugged
// in by Open; core is what channels share, journal is their storage.
// docs/simulator.md describes the control API.
//
// The package must not know anything else of this module: neither the
// adapters and the engine that it judges nor their vocabulary.
package sim

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/payonce/payonce/internal/sim/alipaysim"
	"github.com/payonce/payonce/internal/sim/core"
	"github.com/payonce/payonce/internal/sim/stripesim"
)

// Options are the settings of one simulator. Only DataDir is required.
type Options struct {
	// DataDir holds books, clock offset, seed and keys.
	DataDir string
	// Seed decides keys, credentials and ids. 0 takes the stored one, or a
	// random one in a new folder; another one than the stored is refused.
	Seed int64
	// StripeWebhook gets Stripe's notices without an endpoint object.
	StripeWebhook string
	// ClockListeners get POST {"offset_s":N} when the clock moves, and have
	// answered 2xx (or two seconds have passed) before the move is answered.
	ClockListeners []string
	// BaseURL is how clients reach the simulator; empty: the request's host.
	BaseURL string
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
	// Now is the real clock; time.Now when nil.
	Now func() time.Time
}

// channel is what a simulated channel offers to the control API.
type channel interface {
	http.Handler
	Name() string
	Resume()
	CheckFault(f *core.Fault) error
	Charges() []core.Charge // inside View
	Pay(o core.PayOrder) (core.Charge, error)
	Refund(number string, amount int64) (core.Charge, error)
	Dispute(number string) (core.Charge, error)
	Charge(amount int64, currency, number string) (core.Charge, error)
	Page(id string) (core.PageState, error)
	PayPage(id, outcome string) error
	Targets(n core.Notice) map[string]core.Target
}

// mount is a path prefix of a channel, with and without its name in front.
type mount struct {
	prefix string
	ch     channel
}

// Sim is a running simulator.
type Sim struct {
	opts     Options
	w        *core.World
	channels map[string]channel
	mounts   []mount
	ring     *keyring
	stripe   *stripesim.Stripe
	client   *http.Client
	control  http.Handler
}

// Open starts the simulator on its folder. Close it.
func Open(opts Options) (*Sim, error) {
	if opts.DataDir == "" {
		return nil, errors.New("sim: Options.DataDir is required")
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.BaseURL = strings.TrimSuffix(opts.BaseURL, "/")
	s := &Sim{opts: opts, channels: map[string]channel{}, client: core.NoRedirects()}
	s.w = core.New(core.Options{DataDir: opts.DataDir, Seed: opts.Seed, ClockListeners: opts.ClockListeners,
		Logger: opts.Logger, Now: opts.Now, Client: s.client})
	s.ring = newKeyring(opts.DataDir, s.w)
	s.plug(alipaysim.New(s.w, s.ring.alipayKeys(), opts.BaseURL), "/alipay/", "/gateway.do", "/_sim/alipay/")
	s.stripe = stripesim.New(s.w, opts.StripeWebhook, opts.BaseURL)
	s.plug(s.stripe, "/stripe/v1/", "/v1/")
	if err := s.w.Open(); err != nil {
		return nil, err
	}
	for _, ch := range s.channels {
		ch.Resume()
	}
	s.control = s.routes()
	return s, nil
}

func (s *Sim) plug(ch channel, prefixes ...string) {
	s.channels[ch.Name()] = ch
	for _, p := range prefixes {
		s.mounts = append(s.mounts, mount{prefix: p, ch: ch})
	}
}

// Handler serves all channels and the control API.
func (s *Sim) Handler() http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		for _, m := range s.mounts {
			if strings.HasPrefix(r.URL.Path, m.prefix) {
				m.ch.ServeHTTP(rw, r)
				return
			}
		}
		s.control.ServeHTTP(rw, r)
	})
}

// Close stops deliveries and timers, waits for them and closes the books. Stop
// serving the handler first.
func (s *Sim) Close() error {
	err := s.w.Close()
	s.client.CloseIdleConnections()
	return err
}
