package stripe

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// TestConformance runs the suite of package channeltest.
func TestConformance(t *testing.T) {
	channeltest.Run(t, channeltest.Suite{
		Secrets: []string{testKey, testHook, testSecret, "_secret_CanaryClientSecret"},
		New: func(t testing.TB, e channeltest.Env) channel.Adapter {
			return newAdapter(t, e.BaseURL, func(c *Config) {
				c.Now = e.Now
				if e.Roots != nil {
					c.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: e.Roots}}
				}
			})
		},
		Methods: []channeltest.Method{{
			Intent:  testIntent(),
			Object:  testObject,
			Say:     say,
			Foreign: true,
			Says: map[channeltest.Step][]payonce.FactKind{
				channeltest.Prepare: {payonce.StateUnconfirmed, payonce.StateRefused},
				channeltest.Begin:   {payonce.StateSettled, payonce.StateWaiting, payonce.StateDeclined, payonce.StateRefused},
				channeltest.Query:   {payonce.StateSettled, payonce.StateWaiting, payonce.StateDeclined, payonce.StateDead, payonce.StateUnconfirmed},
				channeltest.Close:   {payonce.StateDead, payonce.StateSettled},
			},
			Codes:    documentedCodes(),
			Unlisted: unlistedCodes(),
			Bad:      badIntents(),
			Key:      func(r channeltest.Request) string { return r.Header.Get("Idempotency-Key") },
			Number: func(r channeltest.Request) string {
				if _, rest, ok := strings.Cut(r.URI, "/payment_intents/"); ok {
					id, _, _ := strings.Cut(rest, "/")
					id, _, _ = strings.Cut(id, "?")
					return id
				}
				for pair := range strings.SplitSeq(string(r.Body), "&") {
					if v, ok := strings.CutPrefix(pair, "metadata[payonce_number]="); ok {
						return v
					}
				}
				return ""
			},
			Bytes: func(s channeltest.Step, stored []byte) []byte {
				lines := strings.Split(string(stored), "\n")
				if s == channeltest.Prepare {
					return []byte(strings.TrimPrefix(lines[1], "create "))
				}
				return []byte(strings.TrimPrefix(lines[2], "confirm "))
			},
		}},
		Notices: &channeltest.Notices{
			Kinds: []payonce.FactKind{payonce.StateSettled, payonce.StateWaiting, payonce.StateDeclined, payonce.StateDead, payonce.StateUnconfirmed},
			Make: func(_ testing.TB, s channeltest.Statement, at time.Time) (http.Header, []byte) {
				body := event("evt_1", eventTypes[s.Kind], s.Foreign, object(s))
				return signed(at, body), body
			},
			Signed:    []string{"Stripe-Signature"},
			Tolerance: 300 * time.Second,
			Forged:    forgedNotices,
		},
	})
}

var eventTypes = map[payonce.FactKind]string{
	payonce.StateSettled:     "payment_intent.succeeded",
	payonce.StateWaiting:     "payment_intent.requires_action",
	payonce.StateDeclined:    "payment_intent.payment_failed",
	payonce.StateDead:        "payment_intent.canceled",
	payonce.StateUnconfirmed: "payment_intent.created",
}

func badIntents() []channeltest.BadIntent {
	return []channeltest.BadIntent{
		{Name: "method", Pointer: "/method", Change: func(i *channel.Intent) { i.Method = "checkout" }},
		{Name: "no_payment_method", Pointer: "/payer/payment_method", Change: func(i *channel.Intent) { i.Payer.PaymentMethod = "" }},
		{Name: "X10_card_number", Pointer: "/payer/payment_method", Change: func(i *channel.Intent) { i.Payer.PaymentMethod = "4242424242424242" }},
		{Name: "payment_method_path", Pointer: "/payer/payment_method", Change: func(i *channel.Intent) { i.Payer.PaymentMethod = "pm_a/../b" }},
		{Name: "capture", Pointer: "/capture", Change: func(i *channel.Intent) { i.Capture = "later" }},
		{Name: "environment", Pointer: "/account", Change: func(i *channel.Intent) { i.Order.Environment = payonce.Live }},
		{Name: "return_url", Pointer: "/return_url", Change: func(i *channel.Intent) { i.ReturnURL = "javascript:alert(1)" }},
		{Name: "return_url_long", Pointer: "/return_url", Change: func(i *channel.Intent) { i.ReturnURL = "https://a.example/" + strings.Repeat("x", 2048) }},
		{Name: "no_currency", Pointer: "/currency", Change: func(i *channel.Intent) { i.Currency = "XXX" }},
		{Name: "uncertain_unit", Pointer: "/currency", Change: func(i *channel.Intent) { i.Currency = "IQD" }},
		{Name: "too_small", Pointer: "/amount", Change: func(i *channel.Intent) { i.Amount = 49 }},
		{Name: "zero", Pointer: "/amount", Change: func(i *channel.Intent) { i.Amount = 0 }},
		{Name: "too_large", Pointer: "/amount", Change: func(i *channel.Intent) { i.Amount = 1_000_000_000_000 }},
		{Name: "A01_third_decimal", Pointer: "/amount", Change: func(i *channel.Intent) { i.Currency, i.Amount = "KWD", 1001 }},
		{Name: "A01_half_ariary", Pointer: "/amount", Change: func(i *channel.Intent) { i.Currency, i.Amount = "MGA", 150 }},
		{Name: "number", Pointer: "/number", Change: func(i *channel.Intent) { i.Number = "short" }},
	}
}
