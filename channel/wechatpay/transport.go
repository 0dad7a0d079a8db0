package wechatpay

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	maxBody = 1 << 20
	// callLimit ends a call whose context has no deadline.
	callLimit = 80 * time.Second
)

// exchange is one request and all that is known of its answer. What the SDK
// makes of it is not asked: it takes 202 for success and drops bodies.
type exchange struct {
	connected atomic.Bool // a connection was there: bytes may have left
	answered  bool
	status    int
	header    http.Header
	body      []byte
	verified  bool  // over TLS with a chain that was verified for the host
	tooLarge  bool  // body is only the beginning
	err       error // no answer, or its body broke off
	checked   bool  // its signature was looked at
	proof     error // why its signature proves nothing, nil when it does
}

type exchangeKey struct{}

var errPanic = errors.New("the SDK panicked")

// hardened copies the transport and takes away every way to send a request
// twice or to skip verification.
func hardened(t *http.Transport) (*http.Transport, error) {
	if t == nil {
		t = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     50 * time.Second,
			MaxIdleConns:        64,
			MaxIdleConnsPerHost: 64,
		}
	} else {
		t = t.Clone()
	}
	//lint:ignore SA1019 the deprecated hook skips verification as well
	if t.DialTLSContext != nil || t.DialTLS != nil {
		return nil, errors.New("the transport must not bring its own TLS dialer")
	}
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{}
	}
	if t.TLSClientConfig.InsecureSkipVerify {
		return nil, errors.New("the transport must verify certificates")
	}
	if t.TLSClientConfig.MinVersion < tls.VersionTLS12 {
		t.TLSClientConfig.MinVersion = tls.VersionTLS12
	}
	// HTTP/2 repeats requests that the server says it did not process. HTTP/1
	// keeps one call one request.
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.TLSClientConfig.NextProtos = nil
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.DisableCompression = true // signatures and evidence are over the bytes as received
	t.MaxResponseHeaderBytes = 64 << 10
	return t, nil
}

// once carries a request of the SDK to the configured address, one time, and
// keeps what came back. The SDK signs the path that it knows; the prefix of the
// address is added below the signature.
type once struct {
	base  *url.URL
	conns *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (o *once) RoundTrip(req *http.Request) (*http.Response, error) {
	ex, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("request without an exchange")
	}
	body, err := outgoing(req)
	if err != nil {
		return nil, err
	}
	out := req.Clone(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { ex.connected.Store(true) },
	}))
	out.URL.Scheme, out.URL.Host, out.Host = o.base.Scheme, o.base.Host, ""
	out.URL.Path, out.URL.RawPath = o.base.Path+req.URL.Path, ""
	// net/http sends a request again when a reused connection dies, unless it has a
	// body that cannot be rewound. A question gets one too, which is empty.
	out.GetBody, out.ContentLength, out.Body = nil, int64(len(body)), io.NopCloser(bytes.NewReader(body))
	if len(body) == 0 {
		out.Body = nothing{}
	}
	res, err := o.conns.RoundTrip(out)
	if err != nil {
		ex.err = err
		return nil, err
	}
	defer res.Body.Close()
	ex.status, ex.header = res.StatusCode, res.Header
	ex.verified = res.TLS != nil && len(res.TLS.VerifiedChains) > 0
	ex.body, ex.err = io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if len(ex.body) > maxBody {
		ex.body, ex.tooLarge = ex.body[:maxBody], true
	}
	if ex.err != nil {
		return nil, ex.err
	}
	ex.answered = true
	res.Body = io.NopCloser(bytes.NewReader(ex.body))
	return res, nil
}

// outgoing takes the bytes that the SDK signed.
func outgoing(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	return io.ReadAll(req.Body)
}

// nothing is a body without bytes that net/http cannot know to be empty.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }
func (nothing) Close() error             { return nil }

// get asks, and post sends these bytes. Both return when the answer is there in
// full, or is known not to come.
func (a *Adapter) get(ctx context.Context, path string) *exchange {
	return a.proven(ctx, func(ctx context.Context) error {
		_, err := a.sdk.Get(ctx, a.target(path))
		return err
	})
}

func (a *Adapter) post(ctx context.Context, path string, body []byte) *exchange {
	return a.proven(ctx, func(ctx context.Context) error {
		_, err := a.sdk.Post(ctx, a.target(path), body)
		return err
	})
}

// proven checks what the SDK does not: the signature of a refusal that has one.
func (a *Adapter) proven(ctx context.Context, do func(context.Context) error) *exchange {
	ex := a.exchange(ctx, do)
	if ex.answered && ex.status >= 400 && ex.claimsSignature() {
		a.prove(ctx, ex)
	}
	return ex
}

// target is the address as the SDK signs it: with the query of base_url, without
// its path.
func (a *Adapter) target(path string) string {
	if q := a.base.RawQuery; q != "" {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		path += sep + q
	}
	return ownServer + path
}

func (a *Adapter) exchange(ctx context.Context, do func(context.Context) error) (ex *exchange) {
	ex = new(exchange)
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callLimit)
		defer cancel()
	}
	defer func() {
		if recover() != nil {
			ex.err = errPanic // whatever it says could hold keys
		}
	}()
	if err := do(context.WithValue(ctx, exchangeKey{}, ex)); err != nil && !ex.answered && ex.err == nil {
		ex.err = err
	}
	return ex
}

// reason names why an exchange carries no readable answer; "" when it has one.
func (ex *exchange) reason() string {
	var ne net.Error
	switch {
	case errors.Is(ex.err, errPanic):
		return "panic"
	case ex.err != nil && !ex.connected.Load():
		return "not-connected"
	case errors.Is(ex.err, context.DeadlineExceeded) || (errors.As(ex.err, &ne) && ne.Timeout()):
		return "timeout"
	case errors.Is(ex.err, context.Canceled):
		return "cancelled"
	case ex.err != nil || !ex.answered:
		return "connection-lost"
	case ex.tooLarge:
		return "too-large"
	case ex.status >= 300 && ex.status < 400:
		return "redirect"
	case ex.status == http.StatusAccepted:
		return "accepted-only" // 202: to be asked again, no success
	}
	return ""
}

// cause is the error for the log, without address and secrets.
func (a *Adapter) cause(ex *exchange) error {
	err := ex.err
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	if err == nil {
		return fmt.Errorf("wechatpay: %s: HTTP %d", ex.reason(), ex.status)
	}
	return fmt.Errorf("wechatpay: %s: %s", ex.reason(), a.redact.text(err.Error()))
}
