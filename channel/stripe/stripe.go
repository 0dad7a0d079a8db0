// Package stripe is the adapter of one Stripe account: method card, a
// PaymentIntent that is created first and confirmed afterwards.
//
// Create moves no money; confirm is the money call; retrieve is the query;
// cancel is the close. The official SDK makes the requests (authentication,
// API version, form content type), but it is given the stored bytes and the
// idempotency key and allowed no retry, and what came back is read by this
// package alone: the SDK's idea of an error decides nothing. See docs/channels.md
// for the facts that this package relies on.
//
// The package must not know the engine, the store, the simulator, or any other
// adapter.
package stripe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/stripe/stripe-go/v84"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// MethodCard is the only method: a card PaymentIntent, created, then confirmed.
const MethodCard = "card"

const (
	defaultBaseURL = "https://api.stripe.com"
	defaultHost    = "api.stripe.com"

	// keptKeys is how long Stripe keeps an idempotency key at least. After that
	// the same key executes again.
	keptKeys = 24 * time.Hour
	// keyMargin is taken off it for clocks that differ and sends that dawdle.
	keyMargin = time.Hour
	// life is ours: an intent does not expire by itself, it is closed.
	life = 30 * time.Minute
	// defaultMaxAmount is the twelve digits of the currencies page; the API
	// reference says eight. Stripe itself refuses what is too large.
	defaultMaxAmount payonce.Amount = 999_999_999_999
)

// Config describes one account.
type Config struct {
	Account     string // id of the account in this installation
	Environment payonce.Environment
	SecretKey   string // sk_test_…, sk_live_…, rk_test_… or rk_live_…
	// PublishableKey is handed to the payer's page beside a client secret; may
	// be empty.
	PublishableKey string
	// WebhookSecrets sign notices; during a roll there are two. Without any,
	// every notice is refused.
	WebhookSecrets []string
	// BaseURL is empty for Stripe itself. A query in it is added to every
	// request.
	BaseURL string
	// TrustedDate declares the Date header of BaseURL trusted although it is not
	// Stripe's own host.
	TrustedDate bool
	// StripeAccount is Stripe's own id (acct_…), "" when it is not known yet.
	StripeAccount string
	// MaxAmount bounds one payment in ISO minor units; zero: twelve digits.
	MaxAmount payonce.Amount
	// Transport carries TLS roots or a proxy; it is copied, and made unable to
	// repeat a request. Nil: the system's roots, proxy from the environment.
	Transport *http.Transport
	// Now is the real clock, for the age of notices. Nil: time.Now.
	Now func() time.Time
}

// Adapter serves one Stripe account. It is safe for concurrent use.
type Adapter struct {
	cfg     Config
	backend sdk.RawRequestBackend
	conns   *http.Transport
	caps    map[string]channel.Capabilities
	now     func() time.Time
	// ownDate: the Date header of a TLS-verified answer is Stripe's own.
	ownDate       bool
	stripeAccount atomic.Pointer[string]
	redact        redactor
}

var (
	_ channel.Adapter  = (*Adapter)(nil)
	_ channel.Preparer = (*Adapter)(nil)
)

// New checks the configuration and makes the adapter. It does no I/O.
func New(cfg Config) (*Adapter, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("stripe account %q: %w", cfg.Account, err)
	}
	base, query, err := splitBase(cfg.BaseURL, cfg.Environment)
	if err != nil {
		return nil, fmt.Errorf("stripe account %q: %w", cfg.Account, err)
	}
	tr, err := hardened(cfg.Transport)
	if err != nil {
		return nil, fmt.Errorf("stripe account %q: %w", cfg.Account, err)
	}
	a := &Adapter{cfg: cfg, now: cfg.Now, redact: newRedactor(append([]string{cfg.SecretKey}, cfg.WebhookSecrets...))}
	a.cfg.WebhookSecrets = append([]string(nil), cfg.WebhookSecrets...)
	if a.now == nil {
		a.now = time.Now
	}
	if cfg.StripeAccount != "" {
		a.stripeAccount.Store(&cfg.StripeAccount)
	}
	a.ownDate = cfg.Transport == nil && base.Scheme == "https" && base.Hostname() == defaultHost
	a.caps = map[string]channel.Capabilities{MethodCard: {
		Prepared:           true,
		ReusedAfterDecline: true,
		DedupeWindow:       keptKeys - keyMargin,
		Life:               life,
		Min:                1,
		Max:                cfg.MaxAmount,
	}}
	if cfg.MaxAmount == 0 {
		c := a.caps[MethodCard]
		c.Max = defaultMaxAmount
		a.caps[MethodCard] = c
	}
	return a, a.connect(base, query, tr)
}

// connect makes the SDK's backend on our own client: no retries, no redirects,
// no telemetry, no log lines.
func (a *Adapter) connect(base *url.URL, query string, tr *http.Transport) error {
	backend := sdk.GetBackendWithConfig(sdk.APIBackend, &sdk.BackendConfig{
		URL:               sdk.String(base.String()),
		MaxNetworkRetries: sdk.Int64(0),
		EnableTelemetry:   sdk.Bool(false),
		LeveledLogger:     &sdk.LeveledLogger{Level: sdk.LevelNull},
		HTTPClient: &http.Client{
			Transport:     &once{next: tr, query: query},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	raw, ok := backend.(sdk.RawRequestBackend)
	if !ok {
		return errors.New("this SDK cannot send raw requests")
	}
	a.backend, a.conns = raw, tr
	return nil
}

// CloseIdleConnections gives back connections that wait for the next call.
func (a *Adapter) CloseIdleConnections() { a.conns.CloseIdleConnections() }

func (c *Config) check() error {
	if c.Account == "" {
		return errors.New("account id is missing")
	}
	if c.Environment != payonce.Test && c.Environment != payonce.Live {
		return fmt.Errorf("environment is %q, want test or live", string(c.Environment))
	}
	if c.SecretKey == "" {
		return errors.New("secret_key is missing")
	}
	live, ok := keyMode(c.SecretKey)
	if !ok {
		return errors.New("secret_key must start with sk_test_, sk_live_, rk_test_ or rk_live_")
	}
	if live != (c.Environment == payonce.Live) {
		return fmt.Errorf("secret_key is a %s key, the account's environment is %s", modeName(live), c.Environment)
	}
	if p := c.PublishableKey; p != "" && !strings.HasPrefix(p, "pk_"+string(c.Environment)+"_") {
		return fmt.Errorf("publishable_key must start with pk_%s_", c.Environment)
	}
	for i, s := range c.WebhookSecrets {
		if !strings.HasPrefix(s, "whsec_") || len(s) <= len("whsec_") || strings.TrimSpace(s) != s {
			return fmt.Errorf("webhook_secret %d must start with whsec_ and hold no blanks", i+1)
		}
	}
	if c.StripeAccount != "" && !strings.HasPrefix(c.StripeAccount, "acct_") {
		return errors.New("stripe_account must start with acct_")
	}
	if c.MaxAmount < 0 || c.MaxAmount > payonce.MaxAmount {
		return errors.New("max_amount is out of range")
	}
	return nil
}

func keyMode(key string) (live, ok bool) {
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c > '~' {
			return false, false // a blank or line break would break the header
		}
	}
	for _, kind := range [...]string{"sk_", "rk_"} {
		rest, found := strings.CutPrefix(key, kind)
		switch {
		case !found:
		case strings.HasPrefix(rest, "live_") && rest != "live_":
			return true, true
		case strings.HasPrefix(rest, "test_") && rest != "test_":
			return false, true
		}
	}
	return false, false
}

func modeName(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// splitBase checks the base URL and takes its query apart: the SDK appends
// paths to what it is given.
func splitBase(s string, env payonce.Environment) (*url.URL, string, error) {
	if s == "" {
		s = defaultBaseURL
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.Fragment != "" {
		return nil, "", errors.New("base_url must be an absolute http or https address without user and fragment")
	}
	if env == payonce.Live && u.Scheme != "https" && !loopback(u.Hostname()) {
		return nil, "", errors.New("base_url of a live account must be https")
	}
	query := u.RawQuery
	u.RawQuery, u.ForceQuery = "", false
	return u, query, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Account returns the id of the account in this installation.
func (a *Adapter) Account() string { return a.cfg.Account }

// Methods returns the capabilities of card.
func (a *Adapter) Methods() map[string]channel.Capabilities {
	m := make(map[string]channel.Capabilities, len(a.caps))
	for k, v := range a.caps {
		m[k] = v
	}
	return m
}

// Probe asks Stripe which account the key belongs to, for doctor and start-up.
// The account object does not say its mode, so livemode is the key's own unless
// the answer states one. An id that differs from the configured one is an
// error; else it is remembered for notices that name their account.
func (a *Adapter) Probe(ctx context.Context) (accountID string, livemode bool, err error) {
	ex := a.send(ctx, http.MethodGet, "/v1/account", "", "")
	if ex.err != nil {
		return "", false, fmt.Errorf("stripe account %q: %w", a.cfg.Account, a.cause(ex))
	}
	if ex.status != http.StatusOK {
		return "", false, fmt.Errorf("stripe account %q: %w", a.cfg.Account, a.statusError(ex))
	}
	var doc struct {
		ID       string `json:"id"`
		Livemode *bool  `json:"livemode"`
	}
	if err := decode(ex.body, &doc); err != nil || !strings.HasPrefix(doc.ID, "acct_") {
		return "", false, fmt.Errorf("stripe account %q: the answer is no account", a.cfg.Account)
	}
	livemode = a.live()
	if doc.Livemode != nil {
		livemode = *doc.Livemode
	}
	if livemode != a.live() {
		return doc.ID, livemode, fmt.Errorf("stripe account %q: livemode is %t, the environment is %s", a.cfg.Account, livemode, a.cfg.Environment)
	}
	if known := a.stripeAccount.Load(); known != nil && *known != doc.ID {
		return doc.ID, livemode, fmt.Errorf("stripe account %q: the key belongs to %s, not to %s", a.cfg.Account, doc.ID, *known)
	}
	a.stripeAccount.Store(&doc.ID)
	return doc.ID, livemode, nil
}

func (a *Adapter) live() bool { return a.cfg.Environment == payonce.Live }
