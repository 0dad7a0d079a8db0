package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/engine"
)

// TestPanic: one request ends in 500, the process lives, the log has the stack
// and nothing that the panic quoted.
func TestPanic(t *testing.T) {
	w := newWorld(t)
	w.engine.onPay = func(context.Context, engine.PayRequest) (*engine.Result, error) { panic("canary of a client") }
	m := w.pay("k", goodBody).problem(500, "internal")
	if m["safe_new_key"] != false || m["retry"] != "same-key" {
		t.Errorf("%v", m)
	}
	w.engine.onPay = func(context.Context, engine.PayRequest) (*engine.Result, error) {
		var none *engine.Result
		return none, errors.New(none.Payment.ID)
	}
	w.pay("k", goodBody).problem(500, "internal")
	w.engine.onPay = nil
	w.pay("k", goodBody).ok(201)
	logs := w.logs.String()
	if strings.Contains(logs, "canary") || !strings.Contains(logs, "nil pointer") || !strings.Contains(logs, "pay.go") {
		t.Errorf("logs: %s", logs)
	}
	if n := w.handler.(*api).buffered.Load(); n != 0 {
		t.Errorf("a panic kept %d bytes of the memory budget", n)
	}
}

// TestX10NoCanary: keys, tokens, personal data and ids of orders reach neither
// log nor metric, whatever becomes of the request.
func TestX10NoCanary(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{paid()}
	body := strings.NewReplacer("A1", "CANARYorder", "pm_card_visa", "CANARYpm", "a book", "CANARYsubject").Replace(goodBody)
	w.pay("CANARYkey", body).ok(201)
	w.pay("CANARYkey,", body)
	w.pay("CANARYkey", body[:len(body)-1])
	w.call("POST", "/v1/CANARYpath", body)
	w.call("CANARYMETHOD", "/v1/payments", "")
	w.call("GET", "/v1/orders/CANARYorder", "")
	w.call("GET", "/v1/payments?idempotency_key=CANARYkey", "")
	w.call("GET", "/v1/payments?CANARYparameter=1", "")
	w.call("GET", "/v1/payments", "", "Authorization: Bearer sk_test_CANARY")
	w.engine.onPay = func(context.Context, engine.PayRequest) (*engine.Result, error) {
		return nil, &payonce.Error{Code: payonce.CodeStoreUnavailable, Detail: "down", Err: errors.New("dial tcp: refused")}
	}
	w.pay("CANARYkey", body).problem(503, "store-unavailable")
	seen := w.logs.String() + w.metricsText()
	if strings.Contains(strings.ToUpper(seen), "CANARY") {
		t.Errorf("found in:\n%s", seen)
	}
	if !strings.Contains(seen, "dial tcp: refused") {
		t.Error("the cause is not in the log")
	}
}

func (w *world) metricsText() string {
	w.t.Helper()
	rec := httptest.NewRecorder()
	NewAdmin(w.registry).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		w.t.Fatalf("/metrics %d", rec.Code)
	}
	return rec.Body.String()
}

// TestOneLineAndOneCount for each request, by the route's template.
func TestOneLineAndOneCount(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{paid()}
	a := w.call("GET", "/v1/payments/"+payID, "")
	w.call("GET", "/nothing", "")
	w.call("BREW", "/healthz", "")
	lines := strings.Split(strings.TrimSpace(w.logs.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %s", len(lines), w.logs.String())
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		t.Fatal(err)
	}
	if line["route"] != "/v1/payments/{id}" || line["status"] != 200.0 || line["method"] != "GET" || line["request_id"] != a.header.Get("Request-Id") || line["took"] == nil {
		t.Errorf("%s", lines[0])
	}
	text := w.metricsText()
	for _, want := range []string{
		`payonce_http_requests_total{code="200",method="GET",route="/v1/payments/{id}"} 1`,
		`payonce_http_requests_total{code="404",method="GET",route="unmatched"} 1`,
		`payonce_http_requests_total{code="405",method="OTHER",route="unmatched"} 1`,
		`payonce_http_request_seconds_count{method="GET",route="/v1/payments/{id}"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestAdmin(t *testing.T) {
	w := newWorld(t)
	rec := httptest.NewRecorder()
	NewAdmin(w.registry).ServeHTTP(rec, httptest.NewRequest("GET", "/debug/pprof/cmdline", nil))
	if rec.Code != 200 {
		t.Errorf("pprof %d", rec.Code)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/", "/openapi.yaml", "/docs", "/schemas/Payment.json"} {
		w.call("GET", path, "").problem(404, "not-found")
	}
}

func TestNewWantsItsParts(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no parts, no error")
	}
	w := newWorld(t)
	o := w.handler.(*api).Options
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "metrics") {
		t.Errorf("metrics registered twice: %v", err)
	}
}

// TestRealServer: what a recorder cannot show: chunked bodies over the limit, a
// stream that outlives the server's write deadline, a client that leaves it.
func TestRealServer(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{inState(payonce.Processing)}
	change, left := make(chan *payonce.Payment), make(chan struct{})
	w.engine.onWait = func(ctx context.Context, _ string, _ int64, _ time.Duration) (*payonce.Payment, error) {
		select {
		case p := <-change:
			return p, nil
		case <-ctx.Done():
			close(left)
			return nil, ctx.Err()
		}
	}
	server := httptest.NewUnstartedServer(w.handler)
	server.Config.WriteTimeout = time.Minute
	server.Start()
	defer server.Close()
	send := func(method, path string, body io.Reader) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+apiKey)
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("Content-Type", mediaJSON)
		if method == "GET" {
			r.Header.Set("Accept", mediaEvents)
		}
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := send("POST", "/v1/payments", io.MultiReader(strings.NewReader(goodBody), strings.NewReader(strings.Repeat(" ", 2<<20))))
	_ = res.Body.Close()
	if res.StatusCode != 413 {
		t.Errorf("chunked body over the limit: %d", res.StatusCode)
	}
	res = send("POST", "/v1/payments", io.MultiReader(strings.NewReader(goodBody)))
	_ = res.Body.Close()
	if res.StatusCode != 201 {
		t.Errorf("chunked body: %d", res.StatusCode)
	}
	res = send("GET", "/v1/payments/"+payID, nil)
	lines := bufio.NewScanner(res.Body)
	next := func() (all string) {
		for lines.Scan() && lines.Text() != "" {
			all += lines.Text() + "\n"
		}
		return all
	}
	if first := next(); !strings.HasPrefix(first, "event: payment\nid: 3\ndata: {") {
		t.Errorf("first event %q", first)
	}
	unknown := inState(payonce.Unknown)
	unknown.Version = 4
	change <- unknown
	if second := next(); !strings.Contains(second, `"status":"UNKNOWN"`) {
		t.Errorf("second event %q", second)
	}
	_ = res.Body.Close() // the client leaves: the wait must end
	<-left
}
