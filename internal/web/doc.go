// Package web is what a payer's browser sees: the hosted checkout of an order
// and, where a demo is run, a small shop that shows the promise at work.
//
// The pages decide nothing. A checkout shows what is known of its order and
// hands the payer's wish to the engine under a key that is the same for every
// tab, device, reload and double click; what the payer comes back with from a
// channel changes nothing. A payment whose outcome is not known is never called
// failed.
//
// The package must not know SQL, a channel's protocol, or how the service is
// started.
package web

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

//go:embed assets templates
var files embed.FS

// Engine is what the pages ask of the engine.
type Engine interface {
	Pay(context.Context, engine.PayRequest) (*engine.Result, error)
	CreateOrder(context.Context, engine.OrderRequest) (*engine.OrderResult, error)
	// Ask has the channel asked about a payment whose payer is looking.
	Ask(*payonce.Payment)
}

// Reader is what the pages read.
type Reader interface {
	Order(context.Context, payonce.OrderKey) (*store.OrderWithPayments, error)
	Orders(context.Context, store.Scope, store.OrderFilter) ([]*store.OrderWithPayments, error)
}

// Options are the parts that the pages are made of.
type Options struct {
	Engine       Engine
	Reader       Reader
	Signer       *Signer
	Fingerprints *idempotency.Fingerprinter
	// Choices lists the ways to pay an order of this merchant and environment.
	Choices func(payonce.OrderKey) []Choice
	Now     func() time.Time
	Logger  *slog.Logger
	// Shop adds the demo shop under /shop; nil: there is none.
	Shop *Shop
}

// pages is the handler's state; it is not changed after New.
type pages struct {
	Options
	assets assets
}

// New returns the handler of /checkout/, /assets/ and, where there is a demo
// shop, /shop. Requests that change something are refused when another site's
// page sent them.
func New(o Options) (http.Handler, error) {
	if o.Engine == nil || o.Reader == nil || o.Signer == nil || o.Fingerprints == nil || o.Choices == nil || o.Now == nil || o.Logger == nil {
		return nil, errors.New("web: every option but Shop is required")
	}
	a, err := loadAssets()
	if err != nil {
		return nil, err
	}
	p := &pages{Options: o, assets: a}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", p.asset)
	mux.HandleFunc("GET /checkout/{token}", p.checkout)
	mux.HandleFunc("GET /checkout/{token}/state", p.checkoutState)
	mux.HandleFunc("POST /checkout/{token}/pay", p.checkoutPay)
	if o.Shop != nil {
		p.routeShop(mux)
	}
	return secured(http.NewCrossOriginProtection().Handler(limited(mux))), nil
}

// maxForm bounds the body of a page's form.
const maxForm = 8 << 10

func limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// secured sets the headers of every answer. The address of a checkout is the
// right to see it, so it is neither kept in caches nor told to other sites. The
// policy same-origin (not no-referrer) keeps the Origin header of our own
// forms, by which browsers without fetch metadata are recognised.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy("'self'"))
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("X-Robots-Tag", "noindex, nofollow")
		next.ServeHTTP(w, r)
	})
}

// policy lets a page use our own scripts, styles and pictures, and nothing from
// elsewhere; forms go to the given sources.
func policy(forms string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action " +
		forms + "; base-uri 'none'; frame-ancestors 'none'"
}
