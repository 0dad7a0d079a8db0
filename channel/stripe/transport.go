package stripe

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
	"sync/atomic"
	"time"

	sdk "github.com/stripe/stripe-go/v84"
)

const (
	maxBody = 1 << 20
	// callLimit ends a call whose context has no deadline.
	callLimit = 80 * time.Second
)

// exchange is one request and all that is known of its answer. The round
// tripper fills it, so that nothing between the wire and the classification
// (the SDK's own error handling) can change or hide what was received.
type exchange struct {
	request   []byte      // the body, as stored
	connected atomic.Bool // a connection was there: bytes may have left
	status    int
	header    http.Header
	body      []byte
	verified  bool  // over TLS with a chain that was verified for the host
	tooLarge  bool  // body is only the beginning
	err       error // no answer, or its body broke off
}

type exchangeKey struct{}

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
	// HTTP/2 repeats requests that the server says it did not process, and
	// net/http counts on that. HTTP/1 keeps one call one request.
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.TLSClientConfig.NextProtos = nil
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.DisableCompression = true // evidence is the bytes as received
	t.MaxResponseHeaderBytes = 64 << 10
	return t, nil
}

// once sends a request at most once and reads the answer in full, within its
// limit, before anyone else sees it.
type once struct {
	next  http.RoundTripper
	query string // of the base URL
}

// unsendable is an empty body that net/http cannot recognise as empty.
type unsendable struct{}

func (unsendable) Read([]byte) (int, error) { return 0, io.EOF }
func (unsendable) Close() error             { return nil }

// RoundTrip makes the request unrepeatable: net/http sends again, on a new
// connection, whatever it takes for idempotent (a GET, or a POST that carries
// an Idempotency-Key) when a reused connection dies, unless the request has a
// body that it cannot rewind.
func (o *once) RoundTrip(req *http.Request) (*http.Response, error) {
	ex, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("request without an exchange")
	}
	out := req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { ex.connected.Store(true) },
	}))
	// The body comes from the exchange, not through the SDK, which would send it
	// in chunks without a length.
	if out.Body != nil {
		out.Body.Close()
	}
	out.GetBody, out.ContentLength, out.Body = nil, int64(len(ex.request)), unsendable{}
	if len(ex.request) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(ex.request))
	}
	if o.query != "" {
		u := *out.URL
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += o.query
		out.URL = &u
	}
	res, err := o.next.RoundTrip(out)
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
	res.Body = io.NopCloser(bytes.NewReader(ex.body))
	return res, nil
}

// send makes one request through the SDK. key is "" only for GET.
func (a *Adapter) send(ctx context.Context, method, path, key, body string) *exchange {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callLimit)
		defer cancel()
	}
	ex := &exchange{request: []byte(body)}
	params := &sdk.RawParams{Params: sdk.Params{Context: context.WithValue(ctx, exchangeKey{}, ex)}}
	// The SDK would describe this machine and its environment here.
	params.Headers = http.Header{
		"User-Agent":                 {"Payonce stripe-go/" + sdk.ClientVersion},
		"X-Stripe-Client-User-Agent": {`{"bindings_version":"` + sdk.ClientVersion + `","lang":"go","publisher":"stripe"}`},
	}
	if key != "" {
		params.IdempotencyKey = &key
	}
	_, err := a.backend.RawRequest(method, path, a.cfg.SecretKey, body, params)
	if ex.status == 0 && ex.err == nil {
		ex.err = err // it ended before the wire
		if err == nil {
			ex.err = errors.New("no answer")
		}
	}
	return ex
}

// reason names why an exchange carries no readable answer; "" when it has one.
func (ex *exchange) reason() string {
	var ne net.Error
	switch {
	case ex.err != nil && !ex.connected.Load():
		return "not-connected"
	case errors.Is(ex.err, context.DeadlineExceeded) || (errors.As(ex.err, &ne) && ne.Timeout()):
		return "timeout"
	case errors.Is(ex.err, context.Canceled):
		return "cancelled"
	case ex.err != nil:
		return "connection-lost"
	case ex.tooLarge:
		return "too-large"
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
		return fmt.Errorf("stripe: %s", ex.reason())
	}
	return fmt.Errorf("stripe: %s: %s", ex.reason(), a.redact.text(err.Error()))
}

// statusError describes an answer by its status and the identifiers in it,
// never by its text.
func (a *Adapter) statusError(ex *exchange) error {
	msg := fmt.Sprintf("stripe: HTTP %d", ex.status)
	if e := decodeError(ex.body); e != nil {
		for _, p := range [...][2]string{{"type", e.Type}, {"code", e.Code}, {"decline_code", e.DeclineCode}, {"param", e.Param}} {
			if p[1] != "" {
				msg += " " + p[0] + " " + word(p[1])
			}
		}
	}
	if id := ex.header.Get("Request-Id"); id != "" {
		msg += " request " + word(id)
	}
	return errors.New(a.redact.text(msg))
}

// word keeps an identifier of the channel fit for logs and callers.
func word(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	b := []byte(s)
	for i, c := range b {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '[' || c == ']' || c == '.'
		if !ok {
			b[i] = '?'
		}
	}
	return string(b)
}
