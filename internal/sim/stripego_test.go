package sim_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stripe/stripe-go/v84"
	"github.com/stripe/stripe-go/v84/webhook"
)

// stripeClient is Stripe's own client, pointed at the simulator.
func stripeClient(r *rig) *stripe.Client {
	base := str(r.control("GET", "/_sim/credentials?channel=stripe", "", 200), "stripe", "base_url")
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL: stripe.String(base), HTTPClient: &http.Client{Transport: r.http.Transport},
		MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return stripe.NewClient(r.key, stripe.WithBackends(backends))
}

// TestForeignClient shows that the wire is Stripe's: a client that knows
// nothing of the simulator lives a whole payment on it.
func TestForeignClient(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	c, ctx := stripeClient(r), context.Background()
	endpoint, err := c.V1WebhookEndpoints.Create(ctx, &stripe.WebhookEndpointCreateParams{
		URL: stripe.String(s.srv.URL), EnabledEvents: []*string{stripe.String("*")}, APIVersion: stripe.String("2026-02-25.clover")})
	if err != nil {
		t.Fatal(err)
	}
	create := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(1999), Currency: stripe.String("cny"),
		PaymentMethod: stripe.String("pm_card_visa"), PaymentMethodTypes: []*string{stripe.String("card")}}
	create.AddMetadata("payonce_number", "GO1")
	create.SetIdempotencyKey("GO1-create")
	intent, err := c.V1PaymentIntents.Create(ctx, create)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "created", intent.Status, stripe.PaymentIntentStatusRequiresConfirmation)
	confirm := &stripe.PaymentIntentConfirmParams{ReturnURL: stripe.String("http://shop.example/")}
	confirm.SetIdempotencyKey("GO1-confirm")
	confirm.AddExpand("latest_charge")
	intent, err = c.V1PaymentIntents.Confirm(ctx, intent.ID, confirm)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "confirmed", intent.Status, stripe.PaymentIntentStatusSucceeded)
	equal(t, "charge", intent.LatestCharge.Status, stripe.ChargeStatusSucceeded)
	again, err := c.V1PaymentIntents.Confirm(ctx, intent.ID, confirm)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "replayed", again.LastResponse.Header.Get("Idempotent-Replayed"), "true")

	retrieve := &stripe.PaymentIntentRetrieveParams{}
	retrieve.AddExpand("latest_charge")
	intent, err = c.V1PaymentIntents.Retrieve(ctx, intent.ID, retrieve)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "received", intent.AmountReceived, int64(1999))
	equal(t, "captured", intent.LatestCharge.AmountCaptured, int64(1999))
	_, err = c.V1PaymentIntents.Cancel(ctx, intent.ID, nil)
	var e *stripe.Error
	if !errors.As(err, &e) || e.Code != stripe.ErrorCodePaymentIntentUnexpectedState || e.PaymentIntent.Status != stripe.PaymentIntentStatusSucceeded {
		t.Fatalf("cancel of a paid intent: %v", err)
	}
	refund, err := c.V1Refunds.Create(ctx, &stripe.RefundCreateParams{PaymentIntent: stripe.String(intent.ID), Amount: stripe.Int64(999)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "refund", refund.Status, stripe.RefundStatusSucceeded)

	declined := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(1999), Currency: stripe.String("usd"),
		PaymentMethod: stripe.String("pm_card_visa_chargeDeclinedLostCard"), Confirm: stripe.Bool(true)}
	if _, err = c.V1PaymentIntents.Create(ctx, declined); !errors.As(err, &e) || e.DeclineCode != stripe.DeclineCodeLostCard {
		t.Fatalf("decline: %v", err)
	}
	open, err := c.V1PaymentIntents.Cancel(ctx, e.PaymentIntent.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "canceled", open.Status, stripe.PaymentIntentStatusCanceled)
	foreignLists(t, c)
	foreignEvents(t, s, endpoint.Secret)
}

func foreignLists(t *testing.T, c *stripe.Client) {
	t.Helper()
	seen := 0
	for _, err := range c.V1PaymentIntents.List(context.Background(), &stripe.PaymentIntentListParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
	}
	equal(t, "listed", seen, 2)
	account, err := c.V1Accounts.Retrieve(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if account.ID == "" {
		t.Fatal("the account has no id")
	}
}

// foreignEvents verifies notices with Stripe's own code.
func foreignEvents(t *testing.T, s *shop, secret string) {
	t.Helper()
	d := s.next(t, "payment_intent.succeeded")
	event, err := webhook.ConstructEvent(d.raw, d.header.Get("Stripe-Signature"), secret)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "type", event.Type, stripe.EventTypePaymentIntentSucceeded)
	if _, err := webhook.ConstructEvent(append(d.raw, ' '), d.header.Get("Stripe-Signature"), secret); err == nil {
		t.Fatal("a changed body passes")
	}
}
