package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

func TestGetPayment(t *testing.T) {
	w := newWorld(t)
	p := withQR(inState(payonce.Pending))
	w.reader.payments = []*payonce.Payment{p}
	w.reader.orders[p.Key] = &store.OrderWithPayments{Order: openOrder()}
	m := w.call("GET", "/v1/payments/"+payID, "").ok(200)
	if m["next_check_at"] != "2030-01-02T12:01:00.123456Z" || at(m, "action", "type") != "qr_code" {
		t.Errorf("%v", m)
	}
	closing := openOrder()
	closing.Status = payonce.OrderClosing
	w.reader.orders[p.Key] = &store.OrderWithPayments{Order: closing}
	if m := w.call("GET", "/v1/payments/"+payID, "").ok(200); at(m, "action", "type") != "none" {
		t.Errorf("an action of a closing order is shown: %v", m)
	}
	for _, id := range []string{payID2, "x", "pay_1", "ord_01JGQ0000000000000000000AA", "pay_01JGQ0000000000000000000aa", "%2e%2e"} {
		w.call("GET", "/v1/payments/"+id, "").problem(404, "not-found")
	}
	head := w.call("HEAD", "/v1/payments/"+payID, "")
	if head.code != 200 {
		t.Errorf("HEAD %d", head.code)
	}
}

// TestLongPoll: the answer comes on a change, at once when the state is final,
// and early when the server is to stop.
func TestLongPoll(t *testing.T) {
	draining, drain := context.WithCancel(context.Background())
	w := newWorld(t, func(o *Options) { o.Draining = draining })
	w.reader.payments = []*payonce.Payment{inState(payonce.Processing)}
	w.engine.onWait = func(ctx context.Context, id string, version int64, d time.Duration) (*payonce.Payment, error) {
		if id != payID || version != 3 || d != 7*time.Second {
			t.Errorf("waits for %s after %d for %v", id, version, d)
		}
		return paid(), nil
	}
	if m := w.call("GET", "/v1/payments/"+payID+"?wait=7", "").ok(200); m["status"] != "SUCCEEDED" {
		t.Errorf("%v", m)
	}
	w.engine.onWait = func(ctx context.Context, _ string, _ int64, _ time.Duration) (*payonce.Payment, error) {
		drain()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if m := w.call("GET", "/v1/payments/"+payID+"?wait=7", "").ok(200); m["status"] != "PROCESSING" {
		t.Errorf("%v", m)
	}
	w.engine.onWait = nil // a call would panic
	w.reader.payments = []*payonce.Payment{paid()}
	w.call("GET", "/v1/payments/"+payID+"?wait=7", "").ok(200)
	w.call("GET", "/v1/payments/"+payID+"?wait=0", "").ok(200)
}

// TestClientLeavesLongPoll: nobody is answered, and it does not count as a fault
// of the service.
func TestClientLeavesLongPoll(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{inState(payonce.Processing)}
	r := httptest.NewRequest("GET", "/v1/payments/"+payID+"?wait=7", nil)
	r.Header.Set("Authorization", "Bearer "+apiKey)
	ctx, leave := context.WithCancel(r.Context())
	w.engine.onWait = func(ctx context.Context, _ string, _ int64, _ time.Duration) (*payonce.Payment, error) {
		leave()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r.WithContext(ctx))
	if rec.Body.Len() != 0 {
		t.Errorf("answered %s", rec.Body)
	}
	if text := w.metricsText(); !strings.Contains(text, `code="499"`) || strings.Contains(text, `request_seconds_count{`) {
		t.Errorf("counted as\n%s", text)
	}
}

// TestR33WaitersAreBounded: too many long polls come back early, too many
// streams are refused; places are given back.
func TestR33WaitersAreBounded(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxWaiters = 1 })
	w.reader.payments = []*payonce.Payment{inState(payonce.Processing)}
	nested := 0
	w.engine.onWait = func(context.Context, string, int64, time.Duration) (*payonce.Payment, error) {
		nested++
		w.call("GET", "/v1/payments/"+payID+"?wait=7", "").ok(200)
		w.call("GET", "/v1/payments/"+payID, "", "Accept: text/event-stream").problem(429, "rate-limited")
		return paid(), nil
	}
	w.call("GET", "/v1/payments/"+payID+"?wait=7", "").ok(200)
	w.call("GET", "/v1/payments/"+payID+"?wait=7", "").ok(200)
	if nested != 2 {
		t.Errorf("waited %d times", nested)
	}
}

// TestStream: one event at once, one for each change, a comment when nothing
// changed; the end after a final state.
func TestStream(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{inState(payonce.Processing)}
	pending := withQR(inState(payonce.Pending))
	pending.Version = 4
	w.reader.orders[pending.Key] = &store.OrderWithPayments{Order: openOrder()}
	done := paid()
	done.Version = 6
	steps := []*payonce.Payment{inState(payonce.Processing), pending, done}
	w.engine.onWait = func(_ context.Context, _ string, version int64, d time.Duration) (*payonce.Payment, error) {
		if d != 15*time.Second {
			t.Errorf("waits %v", d)
		}
		next := steps[0]
		steps = steps[1:]
		return next, nil
	}
	a := w.call("GET", "/v1/payments/"+payID, "", "Accept: application/json;q=0.5, text/event-stream")
	v := view{now: noon, nextCheck: true}
	event := func(p *payonce.Payment) string {
		return fmt.Sprintf("event: payment\nid: %d\ndata: %s\n\n", p.Version, appendPayment(nil, openOrder(), p, v))
	}
	want := event(inState(payonce.Processing)) + ": still here\n\n" + event(pending) + event(done)
	if a.code != 200 || a.header.Get("Content-Type") != "text/event-stream" || string(a.body) != want {
		t.Errorf("%d %s\n got %s\nwant %s", a.code, a.header.Get("Content-Type"), a.body, want)
	}
}

// TestStreamEnds: errors before the first event are problems; later ones end
// the stream; q=0 and HEAD ask for no stream.
func TestStreamEnds(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{inState(payonce.Processing)}
	w.engine.onWait = func(context.Context, string, int64, time.Duration) (*payonce.Payment, error) {
		return nil, store.ErrUnavailable
	}
	accept := "Accept: text/event-stream"
	if a := w.call("GET", "/v1/payments/"+payID, "", accept); a.code != 200 || len(a.body) == 0 {
		t.Errorf("%d %s", a.code, a.body)
	}
	w.call("GET", "/v1/payments/"+payID2, "", accept).problem(404, "not-found")
	w.call("GET", "/v1/payments/"+payID, "", accept+";q=0").ok(200)
	if a := w.call("HEAD", "/v1/payments/"+payID, "", accept); a.header.Get("Content-Type") != mediaJSON {
		t.Errorf("HEAD %v", a.header)
	}
}

// TestPages: newest first, cursors go on where the page ended.
func TestPages(t *testing.T) {
	w := newWorld(t)
	for i := 6; i >= 0; i-- {
		p := paid()
		p.ID = fmt.Sprintf("pay_01JGQ00000000000000000000%d", i)
		w.reader.payments = append(w.reader.payments, p)
	}
	var ids []string
	path, pages := "/v1/payments?limit=3", 0
	for next := path; next != ""; pages++ {
		m := w.call("GET", next, "").ok(200)
		for _, p := range m["data"].([]any) {
			ids = append(ids, p.(map[string]any)["id"].(string))
		}
		next = ""
		if m["has_more"] == true {
			next = path + "&after=" + m["next"].(string)
		} else if m["next"] != nil {
			t.Error("a cursor behind the last page")
		}
	}
	if pages != 3 || len(ids) != 7 || ids[0] <= ids[6] {
		t.Errorf("%d pages, %v", pages, ids)
	}
	if w.call("GET", "/v1/payments", "").ok(200); w.reader.filter.Limit != 51 {
		t.Errorf("limit %d", w.reader.filter.Limit)
	}
	w.call("GET", "/v1/payments?order_no=A1&status=UNKNOWN&channel_number=0123456789ABCDEFGHIJ", "").ok(200)
	if f := w.reader.filter; f.OrderNo != "A1" || f.Status != payonce.Unknown || f.Number != "0123456789ABCDEFGHIJ" {
		t.Errorf("filter %+v", f)
	}
}

// TestActionsOnPayments: sync and cancel; 202 while unproven; a known key marks
// the answer.
func TestActionsOnPayments(t *testing.T) {
	w := newWorld(t)
	w.engine.onSync = func(a engine.ActionRequest, id string) (*payonce.Payment, error) {
		if id != payID || a.Action != "sync" || a.Scope.Merchant != "m1" || a.Key != nil {
			t.Errorf("%s %+v", id, a)
		}
		return paid(), nil
	}
	if m := w.call("POST", "/v1/payments/"+payID+"/sync", "{}").ok(200); m["next_check_at"] != nil {
		t.Errorf("next_check_at in an answer to POST: %v", m)
	}
	proven := false
	w.engine.onCancel = func(a engine.ActionRequest, _ string) (*payonce.Payment, bool, error) {
		if a.Action != "cancel" || a.Key == nil || a.Same == nil {
			t.Errorf("%+v", a)
		}
		return inState(payonce.Unknown), proven, nil
	}
	path := "/v1/payments/" + payID + "/cancel"
	a := w.call("POST", path, "{}", "Idempotency-Key: c1")
	if a.ok(202); a.header.Get("Retry-After") == "" || a.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%v", a.header)
	}
	proven = true
	w.reader.records[idempotency.Scope{Environment: "test", Tenant: "m1"}.Record("c1")] = &store.Replay{}
	a = w.call("POST", path, "{}", "Idempotency-Key: c1")
	if a.ok(200); a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v", a.header)
	}
	w.call("POST", "/v1/payments/x/cancel", "{}").problem(404, "not-found")
	w.engine.onCancel = func(engine.ActionRequest, string) (*payonce.Payment, bool, error) {
		return nil, false, store.ErrNotFound
	}
	w.call("POST", path, "{}").problem(404, "not-found")
	w.engine.onCancel = func(engine.ActionRequest, string) (*payonce.Payment, bool, error) {
		return nil, false, store.ErrUnavailable
	}
	w.call("POST", path, "{}").problem(503, "store-unavailable")
	w.call("POST", path, "{}", "Idempotency-Key: c2").problem(503, "idempotency-unavailable")
}

func TestHealth(t *testing.T) {
	ready := errors.New("postgres://user:canary@db is gone")
	w := newWorld(t, func(o *Options) { o.Ready = func(context.Context) error { return ready } })
	if m := w.call("GET", "/healthz", "", "Authorization: -").ok(200); m["status"] != "ok" {
		t.Errorf("%v", m)
	}
	w.call("GET", "/readyz", "", "Authorization: -").problem(503, "store-unavailable")
	ready = nil
	w.call("GET", "/readyz", "", "Authorization: -").ok(200)
	w.call("POST", "/healthz", "", "Authorization: -").problem(http.StatusMethodNotAllowed, "method-not-allowed")
}
