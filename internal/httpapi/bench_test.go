package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/payonce/payonce/internal/engine"
)

// BenchmarkPay is one POST /v1/payments without engine, store and socket: all
// that this package costs on the hot path. The aim is under 40 µs.
func BenchmarkPay(b *testing.B) {
	w := newWorld(b, func(o *Options) { o.Logger = slog.New(slog.NewJSONHandler(io.Discard, nil)) })
	res := &engine.Result{Order: openOrder(), Payment: paid()}
	w.engine.onPay = func(context.Context, engine.PayRequest) (*engine.Result, error) { return res, nil }
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/v1/payments", strings.NewReader(goodBody))
		r.Header = http.Header{"Authorization": {"Bearer " + apiKey}, "Idempotency-Key": {"0190a7b2-7e5c-7aaa-8888-111122223333"}, "Content-Type": {mediaJSON}}
		w.engine.calls = w.engine.calls[:0]
		w.handler.ServeHTTP(nullWriter{http.Header{}}, r)
	}
}

type nullWriter struct{ h http.Header }

func (n nullWriter) Header() http.Header         { return n.h }
func (n nullWriter) Write(b []byte) (int, error) { return len(b), nil }
func (n nullWriter) WriteHeader(int)             {}
