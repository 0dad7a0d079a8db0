package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/payonce/payonce"
)

// started is the moment for durations: they are of real time, whatever the
// service's clock says.
func started() time.Time { return time.Now() }

// finish ends every request: a panic becomes 500 and the process lives on; one
// line goes to the log, one count to the metrics.
func (a *api) finish(x *exchange, start time.Time) {
	cut := false
	if v := recover(); v != nil {
		cut = x.recovered(v)
	}
	x.releaseBody()
	took := time.Since(start)
	route := a.unmatched.path
	if x.route != nil {
		route = x.route.path
	}
	a.metrics.observe(x, route, took)
	level := slog.LevelInfo
	if x.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	if ctx := x.r.Context(); a.Logger.Enabled(ctx, level) {
		// Template, never the path: paths name orders.
		a.Logger.LogAttrs(ctx, level, "request",
			slog.String("request_id", x.id), slog.String("method", methodLabel(x.r.Method)),
			slog.String("route", route), slog.Int("status", x.status), slog.Duration("took", took))
	}
	if cut {
		panic(http.ErrAbortHandler) // the server closes the connection, so the client sees no end
	}
}

// recovered reports whether the connection has to be cut, because an answer had
// begun already.
func (x *exchange) recovered(v any) (cut bool) {
	if v == http.ErrAbortHandler { //nolint:errorlint // the value itself is the signal
		return true
	}
	// A panic's text may quote what a client sent; only the runtime's is known
	// not to.
	text := fmt.Sprintf("%T", v)
	if err, ok := v.(error); ok {
		var fault runtime.Error
		if errors.As(err, &fault) {
			text = fault.Error()
		}
	}
	x.Logger.LogAttrs(x.r.Context(), slog.LevelError, "panic",
		slog.String("request_id", x.id), slog.String("panic", text), slog.String("stack", string(debug.Stack())))
	if x.status != 0 {
		return true
	}
	if x.route == nil {
		x.route = x.unmatched
	}
	x.Encoder.problem(payonce.CodeInternal, "Something went wrong inside the service. What the request had done until then is kept; repeat it with the same key.").
		Write(x, x.Encoder.docsURL())
	return false
}

// metrics counts requests. Labels are the route's template, the method and the
// status: never an order, a key or an id.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "payonce_http_requests_total",
			Help: "Answered HTTP requests by route template, method and status.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "payonce_http_request_seconds",
			Help:    "Time from the first byte of the handler to its end, without streams and long polls.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 45},
		}, []string{"route", "method"}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("httpapi: metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) observe(x *exchange, route string, took time.Duration) {
	method := methodLabel(x.r.Method)
	m.requests.WithLabelValues(route, method, strconv.Itoa(x.status)).Inc()
	if !x.waited {
		m.seconds.WithLabelValues(route, method).Observe(took.Seconds())
	}
}

// methodLabel bounds the label: a client may send any word as a method.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "OTHER"
}
