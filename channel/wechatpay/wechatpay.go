// Package wechatpay is the adapter of one direct merchant of WeChat Pay (API v3):
// methods native (a code that the payer scans), jsapi (inside WeChat), h5 (from a
// mobile browser) and app (from the merchant's own app).
//
// All four are one prepay call that makes an order and moves no money; the payer
// alone pays. An order that was not paid stays NOTPAY, after failed tries and
// after its time_expire too: only a query that says CLOSED ends it. Query is by
// our number; close is sent only to a number that was seen, because closing one
// that was never ordered answers success all the same and burns the number.
//
// The same bytes under the same number give a new code of the same order, so
// begin may be repeated with the stored bytes. What is fresh in each request is
// its Authorization header alone.
//
// Signing, verifying and decrypting are the official SDK's. Around it stand what
// it does not do: its fixed host becomes the configured address, redirects stop,
// bodies are bounded, nothing is sent twice, a status is looked at before a body
// is believed, and a panic is no knowledge. See docs/channels.md for the facts
// that this package relies on.
//
// The package must not know the engine, the store, the simulator, or any other
// adapter.
package wechatpay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/wechatpay-apiv3/wechatpay-go/core"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/signers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/validators"
)

// The methods.
const (
	MethodNative = "native"
	MethodJSAPI  = "jsapi"
	MethodH5     = "h5"
	MethodApp    = "app"
)

const (
	ownServer = "https://api.mch.weixin.qq.com"

	// life is the absolute expiry of an order: short, because it bounds how long a
	// code that was believed to be gone can be paid.
	life = 15 * time.Minute
	// h5Life is how long the link of h5 opens, counted from when it was made.
	h5Life = 5 * time.Minute
	// dedupe: out_trade_no is unique per merchant for good. The window only says
	// that a repeat never makes a second order; the expiry ends sends much earlier.
	dedupe = 24 * time.Hour

	minAmount payonce.Amount = 1              // fen
	maxAmount payonce.Amount = 10_000_000_000 // a bound of ours, WeChat documents none
	cny                      = payonce.Currency("CNY")
)

// Config describes one merchant (mchid).
type Config struct {
	Account     string // id of the account in this installation
	Environment payonce.Environment
	AppID       string // bound to the merchant: of the public account or mini program
	// MobileAppID is the app of method app, from the open platform. Empty: AppID.
	MobileAppID string
	MchID       string
	// MerchantSerial is the serial number, in hex, of the merchant certificate that
	// belongs to MerchantPrivateKey.
	MerchantSerial     string
	MerchantPrivateKey string // PEM, PKCS#8 or PKCS#1

	// PublicKeyID and PublicKey are WeChat Pay's public key (PUB_KEY_ID_…, PEM).
	PublicKeyID, PublicKey string
	// PlatformCertificate holds one or more platform certificates as PEM. With it
	// the list of certificates is fetched once more when an unknown serial comes.
	// Both kinds together: the months of the change from one to the other.
	PlatformCertificate string
	// APIv3Key decrypts notices and the list of certificates: 32 characters.
	APIv3Key string

	// BaseURL is where the paths /v3/… start, empty for WeChat Pay's own host. The
	// test environment must name one: WeChat Pay has no test system. A path in it is
	// not signed, a query is.
	BaseURL string
	// TrustedDate declares the Date header of BaseURL trusted although it is not
	// WeChat Pay's own host.
	TrustedDate bool
	// Transport carries TLS roots or a proxy; it is copied, and made unable to
	// repeat a request. Nil: the system's roots, proxy from the environment.
	Transport *http.Transport
	// Now is the real clock, for the age of signatures. Nil: time.Now.
	Now func() time.Time
}

// Adapter serves one merchant. It is safe for concurrent use.
type Adapter struct {
	cfg    Config
	base   *url.URL
	signer *signers.SHA256WithRSASigner
	sdk    *core.Client // verifies what a 2xx brings
	bare   *core.Client // for the certificates, which bring what verifies them
	conns  *http.Transport
	now    func() time.Time
	keys   keyring
	// own: the adapter talks to WeChat Pay itself, whose demands are its own.
	own     bool
	ownDate bool // the Date header of a TLS-verified answer is WeChat Pay's own
	redact  redactor
}

var _ channel.Adapter = (*Adapter)(nil)

// New checks the configuration and makes the adapter. It does no I/O.
func New(cfg Config) (*Adapter, error) {
	a, err := build(cfg)
	if err != nil {
		return nil, fmt.Errorf("wechatpay account %q: %w", cfg.Account, err)
	}
	return a, nil
}

func build(cfg Config) (*Adapter, error) {
	if cfg.MobileAppID == "" {
		cfg.MobileAppID = cfg.AppID
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	base, err := baseOf(cfg.BaseURL, cfg.Environment)
	if err != nil {
		return nil, err
	}
	conns, err := hardened(cfg.Transport)
	if err != nil {
		return nil, err
	}
	a := &Adapter{cfg: cfg, base: base, conns: conns, now: cfg.Now, redact: newRedactor(cfg.MerchantPrivateKey, cfg.APIv3Key)}
	if a.now == nil {
		a.now = time.Now
	}
	a.own = base.Scheme+"://"+base.Host == ownServer
	a.ownDate = a.own && cfg.Transport == nil
	if err := a.loadKeys(); err != nil {
		return nil, err
	}
	return a, a.connect()
}

// connect makes the SDK's clients on a transport of ours.
func (a *Adapter) connect() error {
	settings := core.DialSettings{
		Signer:    a.signer,
		Validator: validator{a},
		HTTPClient: &http.Client{
			Transport:     &once{base: a.base, conns: a.conns},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	sdk, err := core.NewClientWithDialSettings(context.Background(), &settings)
	if err != nil {
		return err
	}
	a.sdk, a.bare = sdk, core.NewClientWithValidator(sdk, &validators.NullValidator{})
	return nil
}

func (c *Config) check() error {
	switch {
	case c.Account == "":
		return errors.New("account id is missing")
	case c.Environment != payonce.Test && c.Environment != payonce.Live:
		return fmt.Errorf("environment is %q, want test or live", string(c.Environment))
	case !printable(c.AppID, 32) || !printable(c.MobileAppID, 32):
		return errors.New("appid must be an application bound to the merchant (wx…, up to 32 characters)")
	case !printable(c.MchID, 32):
		return errors.New("mchid must be the merchant's number (up to 32 digits)")
	case !printable(c.MerchantSerial, 64) || strings.Trim(c.MerchantSerial, "0123456789abcdefABCDEF") != "":
		return errors.New("merchant_serial must be the serial number, in hex, of the merchant's API certificate")
	case len(c.APIv3Key) != 32:
		return errors.New("apiv3_key must be the 32 characters of the APIv3 key (not the key of API v2)")
	}
	return nil
}

// baseOf reads the address that the paths are added to.
func baseOf(s string, env payonce.Environment) (*url.URL, error) {
	if s == "" {
		if env == payonce.Test {
			return nil, errors.New("base_url is missing: WeChat Pay has no test system of its own")
		}
		s = ownServer
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.Fragment != "" {
		return nil, errors.New("base_url must be an absolute http or https address without user and fragment")
	}
	if env == payonce.Live && u.Scheme != "https" && !loopback(u.Hostname()) {
		return nil, errors.New("base_url of a live account must be https")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Account returns the id of the account in this installation.
func (a *Adapter) Account() string { return a.cfg.Account }

// Methods returns the capabilities of the four methods. A try of the payer that
// failed leaves the order NOTPAY; WeChat Pay does not report it.
func (a *Adapter) Methods() map[string]channel.Capabilities {
	c := channel.Capabilities{
		// Only who holds the code, the link or the signed parameters can pay: nothing
		// at WeChat shows a payer the open orders of a merchant.
		OnlyByAction: true, RepeatBegin: true, ReusedAfterDecline: true, DedupeWindow: dedupe, Life: life,
		Min: minAmount, Max: maxAmount, Currencies: []payonce.Currency{cny},
	}
	return map[string]channel.Capabilities{MethodNative: c, MethodJSAPI: c, MethodH5: c, MethodApp: c}
}

// CloseIdleConnections gives back connections that wait for the next call.
func (a *Adapter) CloseIdleConnections() { a.conns.CloseIdleConnections() }

// Probe asks for a number that cannot exist, for doctor and start-up: the answer
// proves the address, the merchant and its key. Where there are platform
// certificates it fetches their list too, which proves them and the APIv3 key.
// WeChat Pay's public key is proven by the first signed answer only, since
// refusals carry no signature.
func (a *Adapter) Probe(ctx context.Context) error {
	number := strings.Repeat("0", payonce.NumberLength)
	p := payonce.Payment{Number: number}
	ans := a.read(stepQuery, &p, a.get(ctx, a.numberPath(number)))
	if ans.Kind == payonce.StateUnknown {
		return fmt.Errorf("wechatpay account %q: %w", a.cfg.Account, ans.Err)
	}
	if a.keys.certificates {
		if err := a.refresh(ctx); err != nil {
			return fmt.Errorf("wechatpay account %q: %w", a.cfg.Account, err)
		}
	}
	return nil
}

// printable accepts 1 … limit visible ASCII characters.
func printable(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
