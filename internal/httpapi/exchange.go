package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

// exchange is one request with its answer, and what the checks found out about
// it. It is the ResponseWriter that handlers see.
type exchange struct {
	http.ResponseWriter
	*api
	r     *http.Request
	id    string
	route *route // nil until one matched

	status int  // as sent, 0 before
	muxed  int  // what the mux itself wanted to say without a route
	waited bool // as long as the client wished: its duration says nothing about us

	scope store.Scope
	query url.Values
	key   *[32]byte // record of the Idempotency-Key, nil without one
	body  []byte
	print idempotency.Fingerprint
	same  func(idempotency.Fingerprint) bool // nil without a key
	// printErr: a stored fingerprint could not be compared, which is neither equal
	// nor different.
	printErr error
	buffer   int64 // bytes counted against MaxBuffers
}

// ServeHTTP implements http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ResponseWriter: w, api: a, r: r, id: a.RequestID()}
	h := w.Header()
	h["Request-Id"] = []string{x.id}
	h["Access-Control-Expose-Headers"] = a.exposed
	h["X-Content-Type-Options"] = noSniff
	defer a.finish(x, started())
	a.mux.ServeHTTP(x, r)
	if x.route == nil {
		x.unrouted()
	}
}

var noSniff = []string{"nosniff"}

// unrouted answers for the mux, whose own words are plain text, and which would
// redirect paths that are not clean.
func (x *exchange) unrouted() {
	x.route = x.unmatched
	h := x.Header()
	allow := h.Get("Allow")
	for _, name := range []string{"Content-Type", "Location", "Allow"} {
		h.Del(name)
	}
	if x.muxed == http.StatusMethodNotAllowed {
		h.Set("Allow", allow)
		x.fail(payonce.Errorf(payonce.CodeMethodNotAllowed, "This address takes the methods %s.", allow))
		return
	}
	x.fail(payonce.Errorf(payonce.CodeNotFound, "There is nothing at this address."))
}

// WriteHeader implements http.ResponseWriter. Before a route has matched it is
// the mux that speaks, and nothing is sent.
func (x *exchange) WriteHeader(status int) {
	if x.route == nil {
		x.muxed = status
		return
	}
	if x.status != 0 {
		return
	}
	x.status = status
	x.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(b []byte) (int, error) {
	if x.route == nil {
		return len(b), nil
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return x.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// run makes the checks in the order of R4, then handles the request.
func (x *exchange) run() error {
	if x.route.access != accessOpen {
		if err := x.authenticate(); err != nil {
			return err
		}
	}
	key, err := x.parseKey()
	if err != nil {
		return err
	}
	if err := x.parseQuery(); err != nil {
		return err
	}
	if !x.route.safe() {
		defer x.releaseBody()
		if err := x.readBody(); err != nil {
			return err
		}
		if err := x.identify(key); err != nil {
			return err
		}
	}
	return x.route.handle(x)
}

// parseKey reads the Idempotency-Key where the method changes something (R1).
func (x *exchange) parseKey() (idempotency.Key, error) {
	if x.route.key == keyIgnored {
		return "", nil
	}
	key, present, err := idempotency.ParseKey(x.r.Header, idempotency.KeyOptions{})
	if err != nil {
		return "", err
	}
	if !present && x.route.key == keyRequired {
		return "", idempotency.KeyMissing()
	}
	return key, nil
}

// moneyContext outlives the client: a call that may move money goes on when
// nobody listens any more (R28). The engine sets its own time limits.
func (x *exchange) moneyContext() context.Context { return context.WithoutCancel(x.r.Context()) }

func (x *exchange) orderKey(orderNo string) payonce.OrderKey {
	return payonce.OrderKey{Merchant: x.scope.Merchant, Environment: x.scope.Environment, OrderNo: orderNo}
}

func (x *exchange) action(name string) engine.ActionRequest {
	return engine.ActionRequest{Scope: x.scope, Action: name, Key: x.key, Fingerprint: x.print, Same: x.same}
}

// send writes a JSON answer with the headers of the idempotency layer.
func (x *exchange) send(status int, body []byte, replayed bool) {
	idempotency.Answer{Status: status, Header: jsonHeader, Body: body}.Write(x, replayed)
}

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
	mediaEvents  = "text/event-stream"
)

var jsonHeader = http.Header{"Content-Type": {mediaJSON}}
