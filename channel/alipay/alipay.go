// Package alipay is the adapter of one Alipay application (OpenAPI, RSA2):
// method qr, a code made by alipay.trade.precreate that the payer scans, and
// method page, a signed form of alipay.trade.page.pay that the payer's browser
// sends itself.
//
// Both are paid by the payer alone: no call of ours moves money, and Alipay has
// no trade under our number until the payer acts. So "trade does not exist" is
// neither a failure nor a proof, and every request carries a short absolute
// expiry. Query is alipay.trade.query; close is alipay.trade.close, which works
// only on a trade that waits. alipay.trade.cancel is never sent: it gives a paid
// trade's money back, and nobody promises that it stops a code that was not
// scanned.
//
// What is equal on every repeat of a number: the stored request, that is
// biz_content (and in it out_trade_no, amount, subject and expiry), method,
// app_id, notify_url, return_url, charset, format, version and sign_type. What
// may differ: timestamp, because the gateway refuses old ones, the serial numbers
// of certificates, which change when certificates are renewed, and sign, which is
// made over all of these. A form keeps its timestamp too: it is stored.
//
// A reply is cut out of the raw bytes and verified there before anything in it
// is read. See docs/channels.md for the facts that this package relies on.
//
// The package must not know the engine, the store, the simulator, or any other
// adapter.
package alipay

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// The methods.
const (
	MethodQR   = "qr"
	MethodPage = "page"
)

const (
	liveGateway = "https://openapi.alipay.com/gateway.do"
	testGateway = "https://openapi-sandbox.dl.alipaydev.com/gateway.do"

	// life is the absolute expiry of a code or form. It is short because until it
	// is over an unopened code or form cannot be closed, only waited for.
	life = 15 * time.Minute
	// dedupe: out_trade_no is unique per merchant for good. The window only says
	// that a repeat never makes a second trade; the expiry ends sends much earlier.
	dedupe = 24 * time.Hour

	minAmount payonce.Amount = 1              // 0.01 yuan
	maxAmount payonce.Amount = 10_000_000_000 // 100 million yuan
	cny                      = payonce.Currency("CNY")
)

// Config describes one application of one merchant.
type Config struct {
	Account     string // id of the account in this installation
	Environment payonce.Environment
	AppID       string // of the application, as the console shows it
	SellerID    string // the merchant's own id at Alipay (PID, 2088…)
	// AppPrivateKey is the application's RSA key of at least 2048 bits: PEM or bare
	// base64, PKCS#8 or PKCS#1.
	AppPrivateKey string

	// AlipayPublicKey verifies answers and notices in public-key mode: Alipay's
	// key, not the application's. PEM or bare base64; during a change of keys
	// several PEM blocks.
	AlipayPublicKey string
	// AppCert, AlipayCert and RootCert are the three PEM files of certificate mode.
	// AlipayCert may hold the old and the new certificate during a renewal.
	AppCert, AlipayCert, RootCert string

	// QRProductCode is what the contract of qr says: FACE_TO_FACE_PAYMENT (also
	// when empty) or QR_CODE_OFFLINE.
	QRProductCode string
	// BaseURL is the gateway, empty for Alipay's own (the sandbox in the test
	// environment). /gateway.do is added where it is missing.
	BaseURL string
	// TrustedDate declares the Date header of BaseURL trusted although it is not
	// Alipay's own host.
	TrustedDate bool
	// Transport carries TLS roots or a proxy; it is copied, and made unable to
	// repeat a request. Nil: the system's roots, proxy from the environment.
	Transport *http.Transport
	// Now is the real clock, for the timestamp of requests. Nil: time.Now.
	Now func() time.Time
}

// Adapter serves one application. It is safe for concurrent use.
type Adapter struct {
	cfg     Config
	gateway *url.URL
	client  *http.Client
	conns   *http.Transport
	now     func() time.Time
	key     *rsa.PrivateKey
	alipay  keyring
	// certSNs are the extra parameters of certificate mode, nil in the other.
	certSNs map[string]string
	// ownDate: the Date header of a TLS-verified answer is Alipay's own.
	ownDate bool
	redact  redactor
}

var (
	_ channel.Adapter = (*Adapter)(nil)
	_ channel.Signer  = (*Adapter)(nil)
)

// New checks the configuration and makes the adapter. It does no I/O.
func New(cfg Config) (*Adapter, error) {
	a, err := build(cfg)
	if err != nil {
		return nil, fmt.Errorf("alipay account %q: %w", cfg.Account, err)
	}
	return a, nil
}

func build(cfg Config) (*Adapter, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	gateway, err := gatewayOf(cfg.BaseURL, cfg.Environment)
	if err != nil {
		return nil, err
	}
	tr, err := hardened(cfg.Transport)
	if err != nil {
		return nil, err
	}
	a := &Adapter{cfg: cfg, gateway: gateway, conns: tr, now: cfg.Now, redact: newRedactor(cfg.AppPrivateKey)}
	if a.now == nil {
		a.now = time.Now
	}
	if err := a.loadKeys(); err != nil {
		return nil, err
	}
	own, _ := url.Parse(ownGateway(cfg.Environment)) // a constant of ours
	a.ownDate = cfg.Transport == nil && gateway.Scheme == "https" && gateway.Host == own.Host
	a.client = &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a, nil
}

func (c *Config) check() error {
	switch {
	case c.Account == "":
		return errors.New("account id is missing")
	case c.Environment != payonce.Test && c.Environment != payonce.Live:
		return fmt.Errorf("environment is %q, want test or live", string(c.Environment))
	case !printable(c.AppID, 32):
		return errors.New("app_id must be the application's id from the console (up to 32 digits)")
	case !printable(c.SellerID, 32):
		return errors.New("seller_id must be the merchant's id at Alipay (PID, 16 digits from 2088), which notices are compared with")
	case c.QRProductCode != "" && c.QRProductCode != "FACE_TO_FACE_PAYMENT" && c.QRProductCode != "QR_CODE_OFFLINE":
		return errors.New("qr_product_code must be FACE_TO_FACE_PAYMENT or QR_CODE_OFFLINE, as the contract says")
	}
	return nil
}

func ownGateway(env payonce.Environment) string {
	if env == payonce.Live {
		return liveGateway
	}
	return testGateway
}

// gatewayOf reads the gateway's address. A query in it stays in every request.
func gatewayOf(s string, env payonce.Environment) (*url.URL, error) {
	if s == "" {
		s = ownGateway(env)
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.Fragment != "" {
		return nil, errors.New("base_url must be an absolute http or https address without user and fragment")
	}
	if env == payonce.Live && u.Scheme != "https" && !loopback(u.Hostname()) {
		return nil, errors.New("base_url of a live account must be https")
	}
	if !strings.HasSuffix(u.Path, "/gateway.do") {
		u = u.JoinPath("gateway.do")
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Account returns the id of the account in this installation.
func (a *Adapter) Account() string { return a.cfg.Account }

// Methods returns the capabilities of qr and page. A failed try of the payer
// leaves the trade waiting; Alipay does not report it. Begin is not repeatable to
// get the code again: a repeat may answer with a code or with an error, so the
// first code is kept and shown.
func (a *Adapter) Methods() map[string]channel.Capabilities {
	c := channel.Capabilities{Life: life, Min: minAmount, Max: maxAmount, Currencies: []payonce.Currency{cny}, ReusedAfterDecline: true}
	qr, page := c, c
	qr.OnlyByAction, qr.DedupeWindow = true, dedupe
	// A form that we sign is committed with its payment: that the channel does not
	// know the number never shows that nobody has the form.
	page.SelfSigned = true
	return map[string]channel.Capabilities{MethodQR: qr, MethodPage: page}
}

// CloseIdleConnections gives back connections that wait for the next call.
func (a *Adapter) CloseIdleConnections() { a.conns.CloseIdleConnections() }

// Probe asks for a number that cannot exist, for doctor and start-up: a signed
// answer proves the address, the application and both keys.
func (a *Adapter) Probe(ctx context.Context) error {
	ex := a.post(ctx, a.question(methodQuery, strings.Repeat("0", payonce.NumberLength)))
	if why := ex.reason(); why != "" {
		return fmt.Errorf("alipay account %q: %w", a.cfg.Account, a.cause(ex))
	}
	r, err := a.open(ex, methodQuery)
	switch {
	case err != nil:
		return fmt.Errorf("alipay account %q: %w", a.cfg.Account, err)
	case !r.signed || r.code != codeFailed && r.code != codeSuccess:
		return fmt.Errorf("alipay account %q: %w", a.cfg.Account, a.replyError(r))
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
