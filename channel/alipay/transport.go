package alipay

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
)

const (
	maxBody = 1 << 20
	// callLimit ends a call whose context has no deadline.
	callLimit = 80 * time.Second
)

// exchange is one request and all that is known of its answer.
type exchange struct {
	connected atomic.Bool // a connection was there: bytes may have left
	status    int
	header    http.Header
	body      []byte
	verified  bool  // over TLS with a chain that was verified for the host
	tooLarge  bool  // body is only the beginning
	err       error // no answer, or its body broke off
}

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
	t.DisableCompression = true // evidence is the bytes as received
	t.MaxResponseHeaderBytes = 64 << 10
	return t, nil
}

// post signs and sends one request, once, and reads the answer in full, within
// its limit.
func (a *Adapter) post(ctx context.Context, params map[string]string) *exchange {
	ex := new(exchange)
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callLimit)
		defer cancel()
	}
	signed, err := a.signed(params)
	if err != nil {
		ex.err = err
		return ex
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { ex.connected.Store(true) },
	})
	body := []byte(form(signed))
	// A body that net/http cannot rewind is one that it cannot send again when a
	// reused connection dies.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.gateway.String(), io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		ex.err = err
		return ex
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded;charset=utf-8")
	req.Header.Set("User-Agent", "Payonce")
	res, err := a.client.Do(req)
	if err != nil {
		ex.err = err
		return ex
	}
	defer res.Body.Close()
	ex.status, ex.header = res.StatusCode, res.Header
	ex.verified = res.TLS != nil && len(res.TLS.VerifiedChains) > 0
	ex.body, ex.err = io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if len(ex.body) > maxBody {
		ex.body, ex.tooLarge = ex.body[:maxBody], true
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
	case ex.status >= 300 && ex.status < 400:
		return "redirect"
	case ex.status >= 500:
		return "http-5xx"
	case ex.status != http.StatusOK:
		return "unexpected-status" // Alipay says 200 for everything, errors too
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
		return fmt.Errorf("alipay: %s: HTTP %d", ex.reason(), ex.status)
	}
	return fmt.Errorf("alipay: %s: %s", ex.reason(), a.redact.text(err.Error()))
}

// replyError describes an answer by its codes, never by its text.
func (a *Adapter) replyError(r reply) error {
	msg := "alipay: code " + word(r.code)
	if r.subCode != "" {
		msg += " sub_code " + word(r.subCode)
	}
	if !r.signed {
		msg += " (not signed)"
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
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
		if !ok {
			b[i] = '?'
		}
	}
	return string(b)
}
