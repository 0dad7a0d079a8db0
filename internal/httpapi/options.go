package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

// Engine is what the API needs of *engine.Engine. Errors are *engine.Refusal,
// *payonce.Error, *idempotency.Problem, or those of package store.
type Engine interface {
	Pay(context.Context, engine.PayRequest) (*engine.Result, error)
	CreateOrder(context.Context, engine.OrderRequest) (*engine.OrderResult, error)
	AmendOrder(ctx context.Context, a engine.ActionRequest, orderNo string, amount payonce.Amount, subject string) (*engine.OrderResult, error)
	CloseOrder(ctx context.Context, a engine.ActionRequest, orderNo string) (*engine.OrderResult, error)
	Sync(ctx context.Context, a engine.ActionRequest, paymentID string) (*payonce.Payment, error)
	// Cancel reports whether it is proven that the payment can take no money.
	Cancel(ctx context.Context, a engine.ActionRequest, paymentID string) (*payonce.Payment, bool, error)
	// Wait returns the payment once its version differs, or as it is after d.
	Wait(ctx context.Context, s store.Scope, paymentID string, version int64, d time.Duration) (*payonce.Payment, error)
}

// Options are the parts and settings of the API.
type Options struct {
	Engine        Engine
	Reader        store.Reader
	Fingerprinter *idempotency.Fingerprinter
	Encoder       Encoder // the one that the engine was given
	Runner        run.Runner
	// RequestID makes the id of a request: unique, without meaning, fit for a
	// header.
	RequestID func() string

	Logger     *slog.Logger          // nil: none
	Registerer prometheus.Registerer // nil: no metrics
	// Ready fails while the service should get no requests. It is asked by
	// /readyz alone; nil means always ready.
	Ready func(context.Context) error
	// Allow is asked once for each authenticated request. It returns how long the
	// caller has to wait, 0 to go on; nil means no limit.
	Allow func(store.Scope) time.Duration
	// Draining ends when the server stops taking requests: long polls and streams
	// end with it, calls that move money do not. nil: never.
	Draining context.Context

	MaxBody    int64 // bytes of one request body; 0 means 1 MiB
	MaxBuffers int64 // bytes of all request bodies at once; 0 means 256 MiB
	MaxWaiters int64 // long polls and streams at once; 0 means 1000
}

const (
	defaultBuffers = 256 << 20
	defaultWaiters = 1000
)

// api is the handler with everything that its requests share.
type api struct {
	Options
	mux       *http.ServeMux
	keys      *keyCache
	metrics   *metrics
	unmatched *route
	exposed   []string // Access-Control-Expose-Headers
	buffered  atomic.Int64
	waiting   atomic.Int64
}

// New returns the handler of the API.
func New(o Options) (http.Handler, error) {
	if o.Engine == nil || o.Reader == nil || o.Fingerprinter == nil || o.Runner == nil || o.RequestID == nil {
		return nil, errors.New("httpapi: Engine, Reader, Fingerprinter, Runner and RequestID are needed")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Draining == nil {
		o.Draining = context.Background()
	}
	if o.MaxBody <= 0 {
		o.MaxBody = idempotency.MaxRequestBody
	}
	if o.MaxBuffers <= 0 {
		o.MaxBuffers = defaultBuffers
	}
	if o.MaxWaiters <= 0 {
		o.MaxWaiters = defaultWaiters
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	h := make(http.Header)
	idempotency.Expose(h)
	a := &api{
		Options: o, mux: http.NewServeMux(), keys: newKeyCache(), metrics: m,
		unmatched: &route{path: "unmatched", access: accessOpen},
		exposed:   h["Access-Control-Expose-Headers"],
	}
	doc := humago.New(a.mux, documentConfig())
	for _, r := range routes() {
		a.register(doc, r)
	}
	return a, nil
}
