package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// What the tests' own Stripe says. Nothing of it is shared with the adapter.
const (
	testKey    = "sk_test_51CanaryKeyDoNotLog"
	testHook   = "whsec_canaryHookSecret"
	testObject = "pi_3Pq8sZ2eZvKYlo2C1abcdefg"
	testSecret = testObject + "_secret_CanaryClientSecret"
	testNumber = "0A1B2C3D4E5F6G7H8J9K"
)

func testIntent() channel.Intent {
	return channel.Intent{
		Order:     payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: "order-1"},
		Sequence:  1,
		Number:    testNumber,
		Method:    MethodCard,
		Amount:    1999,
		Currency:  "EUR",
		Subject:   "Tea & cake 茶",
		Payer:     channel.Payer{PaymentMethod: "pm_card_visa"},
		ReturnURL: "https://shop.example/back?order=1&x=ä",
		DeadAt:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func newAdapter(t testing.TB, base string, change func(*Config)) *Adapter {
	t.Helper()
	cfg := Config{Account: "stripe1", Environment: payonce.Test, SecretKey: testKey, WebhookSecrets: []string{testHook}, BaseURL: base}
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// object makes a PaymentIntent as Stripe prints it.
func object(s channeltest.Statement) map[string]any {
	o := map[string]any{
		"id": s.Object, "object": "payment_intent", "amount": int64(s.Amount), "amount_received": 0, "amount_capturable": 0,
		"currency": strings.ToLower(string(s.Currency)), "livemode": s.Foreign, "client_secret": testSecret,
		"latest_charge": nil, "last_payment_error": nil, "next_action": nil, "created": 1700000000,
		"metadata": map[string]any{"payonce_number": s.Number, "merchant": "m1"},
	}
	switch s.Kind {
	case payonce.StateSettled:
		o["status"], o["amount_received"] = "succeeded", int64(s.Amount)
		o["latest_charge"] = map[string]any{"id": "ch_1", "object": "charge", "created": 1700000100}
	case payonce.StateDead:
		o["status"] = "canceled"
	case payonce.StateDeclined:
		o["status"], o["latest_charge"] = "requires_payment_method", "ch_1"
		o["last_payment_error"] = map[string]any{"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds"}
	case payonce.StateWaiting:
		o["status"] = "requires_action"
		o["next_action"] = map[string]any{"type": "redirect_to_url", "redirect_to_url": map[string]any{"url": "https://hooks.stripe.example/3ds?payment_intent_client_secret=" + testSecret}}
	case payonce.StateUnconfirmed:
		o["status"] = "requires_confirmation"
	}
	return o
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only maps of plain values are given
	}
	return b
}

// errorReply makes an error answer; inner may hold the intent.
func errorReply(status int, typ, code string, inner map[string]any, extra ...string) channeltest.Reply {
	e := map[string]any{"type": typ, "message": "Something with key " + testKey}
	if code != "" {
		e["code"] = code
	}
	if inner != nil {
		e["payment_intent"] = inner
	}
	h := http.Header{"Request-Id": {"req_123"}}
	for i := 0; i+1 < len(extra); i += 2 {
		if name, ok := strings.CutPrefix(extra[i], "header:"); ok {
			h.Set(name, extra[i+1])
		} else {
			e[extra[i]] = extra[i+1]
		}
	}
	return channeltest.Reply{Status: status, Header: h, Body: mustJSON(map[string]any{"error": e})}
}

// say is the tests' Stripe. A confirm that is declined answers 402, a cancel
// that comes too late answers 400 with the intent inside.
func say(step channeltest.Step, s channeltest.Statement, _ channeltest.Request) channeltest.Reply {
	o := object(s)
	switch {
	case step == channeltest.Begin && s.Kind == payonce.StateDeclined:
		return errorReply(402, "card_error", "card_declined", o, "decline_code", "insufficient_funds")
	case step == channeltest.Begin && s.Kind == payonce.StateRefused, step == channeltest.Prepare && s.Kind == payonce.StateRefused:
		return errorReply(400, "invalid_request_error", "parameter_missing", nil)
	case step == channeltest.Close && s.Kind == payonce.StateSettled:
		return errorReply(400, "invalid_request_error", "payment_intent_unexpected_state", o)
	}
	return channeltest.Reply{Body: mustJSON(o)}
}

// sign makes the header as the sheet describes it.
func sign(secret string, at time.Time, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(m, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(m.Sum(nil)))
}

// event wraps an object into an event body.
func event(id, typ string, live bool, obj map[string]any) []byte {
	return mustJSON(map[string]any{
		"id": id, "object": "event", "api_version": "2026-02-25.clover", "created": 1700000000, "type": typ,
		"livemode": live, "pending_webhooks": 1, "request": map[string]any{"id": "req_1", "idempotency_key": "k"},
		"data": map[string]any{"object": obj},
	})
}

func signed(at time.Time, body []byte) http.Header {
	return http.Header{"Stripe-Signature": {sign(testHook, at, body)}}
}
