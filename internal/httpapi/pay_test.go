package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

func (w *world) answers(res *engine.Result, err error) {
	w.engine.onPay = func(context.Context, engine.PayRequest) (*engine.Result, error) { return res, err }
}

// TestStateTable: how POST /v1/payments answers follows from the state, the
// first time, as a replay, and converged.
func TestStateTable(t *testing.T) {
	tried := inState(payonce.Created)
	tried.Permits = []payonce.Permit{{No: 1, End: payonce.EndNotSent}}
	prepared := inState(payonce.Created)
	prepared.Prepares = 1
	for _, c := range []struct {
		name    string
		p       *payonce.Payment
		status  int
		code    string
		retry   string
		safe    bool
		status2 string // Idempotency-Status of a replay
	}{
		{"PENDING", withQR(inState(payonce.Pending)), 201, "", "", false, "replayed"},
		{"SUCCEEDED", paid(), 201, "", "", false, "replayed"},
		{"PROCESSING", inState(payonce.Processing), 202, "", "", false, "pending"},
		{"UNKNOWN", inState(payonce.Unknown), 202, "", "", false, "pending"},
		{"CREATED untried", inState(payonce.Created), 202, "", "", false, "pending"},
		{"CREATED not sent", tried, 503, "channel-unreachable", "same-key", false, "pending"},
		{"CREATED prepare not sent", prepared, 503, "channel-unreachable", "same-key", false, "pending"},
		{"FAILED", inState(payonce.Failed), 402, "payment-declined", "new-key", true, "replayed"},
		{"CANCELLED", inState(payonce.Cancelled), 409, "payment-cancelled", "never", true, "replayed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.answers(&engine.Result{Order: openOrder(), Payment: c.p}, nil)
			first := w.pay("k", goodBody)
			w.answers(&engine.Result{Order: openOrder(), Payment: c.p, Replayed: true}, nil)
			again := w.pay("k", goodBody)
			w.answers(&engine.Result{Order: openOrder(), Payment: c.p, Converged: true}, nil)
			converged := w.pay("k2", goodBody)

			body := first.json()
			if c.code != "" {
				m := first.problem(c.status, c.code)
				if m["retry"] != c.retry || m["safe_new_key"] != c.safe {
					t.Errorf("advice %v %v", m["retry"], m["safe_new_key"])
				}
				body = m["payment"].(map[string]any)
			} else {
				first.ok(c.status)
			}
			if body["id"] != payID || body["next_check_at"] != nil {
				t.Errorf("payment %v", body)
			}
			if first.header.Get("Location") != "/v1/payments/"+payID {
				t.Errorf("Location %q", first.header.Get("Location"))
			}
			if got := first.header.Get("Idempotency-Replayed"); got != "" {
				t.Errorf("the first answer is marked %q", got)
			}
			if !bytes.Equal(first.body, again.body) || again.code != first.code || again.header.Get("Location") != first.header.Get("Location") {
				t.Errorf("R42: replay differs: %d %s", again.code, again.body)
			}
			if again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Idempotency-Status") != c.status2 {
				t.Errorf("replay marks %v", again.header)
			}
			if c.status == 202 || c.status == 503 {
				if first.header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			}
			want := c.status
			if want == 201 {
				want = 200
			}
			if converged.code != want || converged.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("converged %d %v", converged.code, converged.header)
			}
		})
	}
}

// TestR43StoredAnswer: the stored final body is sent as the bytes that were
// stored, whatever the payment looks like now.
func TestR43StoredAnswer(t *testing.T) {
	w := newWorld(t)
	p := paid()
	stored := &store.Answer{PaymentID: p.ID, Status: p.Status}
	stored.HTTPStatus, stored.ContentType, stored.Body = Encoder{}.Answer(openOrder(), p)
	p.AmountRefunded, p.UpdatedAt = 100, noon.Add(time.Hour)
	w.answers(&engine.Result{Order: openOrder(), Payment: p, Stored: stored, Replayed: true}, nil)
	if a := w.pay("k", goodBody); a.code != 201 || !bytes.Equal(a.body, stored.Body) {
		t.Errorf("%d %s", a.code, a.body)
	}
	w.answers(&engine.Result{Order: openOrder(), Payment: p, Stored: stored, Replayed: true, Converged: true}, nil)
	if a := w.pay("k", goodBody); a.code != 200 || !bytes.Equal(a.body, stored.Body) || a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("converged %d %s", a.code, a.body)
	}
	failed := inState(payonce.Failed)
	stored.HTTPStatus, stored.ContentType, stored.Body = w.handler.(*api).Encoder.Answer(openOrder(), failed)
	w.answers(&engine.Result{Order: openOrder(), Payment: failed, Stored: stored, Converged: true}, nil)
	w.pay("k", goodBody).problem(402, "payment-declined")
}

// TestPreferences: preferences are handed to the engine and named when they were
// followed.
func TestPreferences(t *testing.T) {
	w := newWorld(t)
	w.answers(&engine.Result{Order: openOrder(), Payment: inState(payonce.Created), Async: true}, nil)
	a := w.pay("k", goodBody, "Prefer: respond-async, wait=99")
	a.ok(202)
	if a.header.Get("Preference-Applied") != "respond-async" {
		t.Errorf("applied %q", a.header.Get("Preference-Applied"))
	}
	if got := w.engine.calls[0].Prefer; !got.RespondAsync || got.Wait != 30*time.Second {
		t.Errorf("engine was asked for %+v", got)
	}
	w.answers(&engine.Result{Order: openOrder(), Payment: paid(), Replayed: true, Waited: true}, nil)
	if a := w.pay("k", goodBody, "Prefer: wait=5"); a.header.Get("Preference-Applied") != "wait" {
		t.Errorf("applied %q", a.header.Get("Preference-Applied"))
	}
}

// TestPayRequestReachesEngine: every member arrives where it belongs.
func TestPayRequestReachesEngine(t *testing.T) {
	w := newWorld(t)
	w.pay("k", `{"order_no":"o\u002d1","channel":"wechatpay","method":"jsapi","amount":9000000000000000,"currency":"CNY",
		"subject":"茶 \"1\"","account":"wx1","payer":{"openid":"o1","client_ip":"2001:db8::1","buyer_id":null},
		"return_url":"https://shop.example/back?x=1#y","part":"p1","payment_token":null,"capture":"automatic"}`).ok(201)
	got := w.engine.calls[0]
	scope := idempotency.Scope{Environment: "test", Tenant: "m1"}
	want := engine.PayRequest{Order: payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: "o-1"},
		Key: scope.Record("k"), Channel: "wechatpay", Method: "jsapi", Account: "wx1", Amount: payonce.MaxAmount, Currency: "CNY",
		Subject: "茶 \"1\"", ReturnURL: "https://shop.example/back?x=1#y", Part: "p1", Capture: "automatic"}
	want.Payer.OpenID, want.Payer.ClientIP = "o1", "2001:db8::1"
	want.Fingerprint = got.Fingerprint
	got.Same = nil
	if !equalRequests(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

func equalRequests(a, b engine.PayRequest) bool {
	return a.Order == b.Order && a.Key == b.Key && a.Channel == b.Channel && a.Method == b.Method && a.Account == b.Account &&
		a.Amount == b.Amount && a.Currency == b.Currency && a.Subject == b.Subject && a.Payer == b.Payer &&
		a.ReturnURL == b.ReturnURL && a.Part == b.Part && a.Capture == b.Capture && a.Fingerprint == b.Fingerprint
}

// TestR28ClientLeaves: a call that moves money does not end with its client.
func TestR28ClientLeaves(t *testing.T) {
	w := newWorld(t)
	w.engine.onPay = func(ctx context.Context, _ engine.PayRequest) (*engine.Result, error) {
		if ctx.Err() != nil || ctx.Done() != nil {
			t.Error("the engine's context can end with the client")
		}
		return &engine.Result{Order: openOrder(), Payment: paid()}, nil
	}
	r := httptest.NewRequest("POST", "/v1/payments", strings.NewReader(goodBody))
	r.Header.Set("Authorization", "Bearer "+apiKey)
	r.Header.Set("Content-Type", mediaJSON)
	r.Header.Set("Idempotency-Key", "k")
	w.call("GET", "/v1/payments", "") // the key is in the cache, so no read fails
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	if a := w.do(r.WithContext(ctx)); a.code != 201 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// TestRefusals: what the engine refuses becomes the problem of its code, with
// the payment that it is about.
func TestRefusals(t *testing.T) {
	live := withQR(inState(payonce.Pending))
	about := func(err error) *engine.Refusal { return &engine.Refusal{Err: err, Order: openOrder(), Payment: live} }
	unknown := about(payonce.Errorf(payonce.CodeOutcomeUnknown, "it may still take money"))
	unknown.ProvableAt, unknown.Why, unknown.RetryAfter = noon.Add(time.Hour), "the channel has not confirmed the close", 1500*time.Millisecond
	progress := about(idempotency.InProgress("", 3*time.Second))
	for _, c := range []struct {
		err    error
		status int
		code   string
		check  func(t *testing.T, a *answer, m map[string]any)
	}{
		{unknown, 409, "payment-outcome-unknown", func(t *testing.T, a *answer, m map[string]any) {
			if m["provable_at"] != "2030-01-02T13:00:00.123456Z" || m["why"] != unknown.Why || a.header.Get("Retry-After") != "2" || m["retry_after"] != 2.0 {
				t.Errorf("%s %v", a.body, a.header)
			}
			if at(m, "payment", "action", "qr_code") != "https://qr.example/1" || m["safe_new_key"] != false {
				t.Errorf("%s", a.body)
			}
		}},
		{progress, 409, "idempotency-in-progress", func(t *testing.T, a *answer, m map[string]any) {
			if m["operation"] != payID || at(m, "payment", "id") != payID || a.header.Get("Retry-After") != "3" || m["safe_new_key"] != false {
				t.Errorf("%s %v", a.body, a.header)
			}
		}},
		{about(payonce.Errorf(payonce.CodeOrderAlreadyPaid, "paid")), 409, "order-already-paid", func(t *testing.T, a *answer, m map[string]any) {
			if at(m, "payment", "id") != payID || a.header.Get("Location") != "/v1/payments/"+payID {
				t.Errorf("%s", a.body)
			}
		}},
		{payonce.Errorf(payonce.CodeOrderClosed, "closed"), 409, "order-closed", nil},
		{payonce.Errorf(payonce.CodeOrderMismatch, "other"), 409, "order-mismatch", nil},
		{payonce.Errorf(payonce.CodeChannelNotConfigured, "none"), 422, "channel-not-configured", nil},
		{payonce.Invalid("/subject", "Needed for a new order."), 400, "invalid-request", func(t *testing.T, a *answer, _ map[string]any) {
			if a.pointers() != "/subject" {
				t.Errorf("%s", a.body)
			}
		}},
		{idempotency.Reused(), 422, "idempotency-key-reused", nil},
		{idempotency.TooManyUnresolved(), 429, "too-many-unresolved", nil},
		{store.ErrUnavailable, 503, "idempotency-unavailable", func(t *testing.T, a *answer, _ map[string]any) {
			if s := a.header.Get("Retry-After"); s < "1" || s > "3" {
				t.Errorf("R63: Retry-After %q", s)
			}
		}},
		{store.ErrOutcomeUnknown, 503, "outcome-unknown", nil},
		{context.DeadlineExceeded, 503, "idempotency-unavailable", nil},
		{errors.New("pq: password of user canary"), 500, "internal", nil},
		{payonce.Errorf("made-up", "x"), 500, "internal", nil},
	} {
		t.Run(c.code, func(t *testing.T) {
			w := newWorld(t)
			w.answers(nil, c.err)
			a := w.pay("k", goodBody)
			m := a.problem(c.status, c.code)
			if c.check != nil {
				c.check(t, a, m)
			}
			if bytes.Contains(a.body, []byte("canary")) {
				t.Error("R71: a driver's message reached the client")
			}
		})
	}
}
