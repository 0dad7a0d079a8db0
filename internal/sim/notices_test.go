package sim_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/payonce/payonce/internal/sim"
)

// signedBy checks Stripe-Signature as the public description has it.
func (d delivered) signedBy(secret string) bool {
	t, v1, _ := strings.Cut(strings.TrimPrefix(d.header.Get("Stripe-Signature"), "t="), ",v1=")
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "." + string(d.raw)))
	return hex.EncodeToString(mac.Sum(nil)) == v1
}

// notice is a line of the books' notices.
func (r *rig) notice(number, kind string) map[string]any {
	for _, n := range pick(r.control("GET", "/_sim/books", "", 200), "notices", "number", number) {
		if n["type"] == kind {
			return n
		}
	}
	return map[string]any{}
}

func TestNoticesOfALife(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	secret := s.endpoint(r, "*")
	id := r.create("E1", "payment_method=pm_card_visa")
	r.api("POST", "payment_intents/"+id+"/confirm", "key-1", "", 200)
	r.api("POST", "refunds", "", "payment_intent="+id+"&amount=100", 200)
	want := map[string]bool{"payment_intent.created": true, "charge.succeeded": true, "payment_intent.succeeded": true, "refund.created": true, "charge.refunded": true}
	for len(want) > 0 {
		d := <-s.got
		if !d.signedBy(secret) {
			t.Fatalf("%s is wrongly signed", d.kind())
		}
		equal(t, "version", str(d.event, "api_version"), "2026-02-25.clover")
		if d.kind() == "payment_intent.succeeded" {
			equal(t, "object", str(d.event, "data", "object", "id"), id)
			equal(t, "key", str(d.event, "request", "idempotency_key"), "key-1")
		}
		delete(want, d.kind())
	}
	until(t, "acknowledged", func() bool { return r.notice("E1", "charge.refunded")["acknowledged"] == true })
	d := r.create("E2", "payment_method=pm_card_chargeDeclined&capture_method=manual")
	r.api("POST", "payment_intents/"+d+"/confirm", "", "", 402)
	s.next(t, "payment_intent.payment_failed")
	r.api("POST", "payment_intents/"+d+"/confirm", "", "payment_method=pm_card_visa", 200)
	s.next(t, "payment_intent.amount_capturable_updated")
	r.api("POST", "payment_intents/"+d+"/cancel", "", "", 200)
	s.next(t, "payment_intent.canceled")
	list := r.api("GET", "events?type=payment_intent.succeeded", "", "", 200).body["data"].([]any)
	equal(t, "events", len(list), 1)
	event := r.api("GET", "events/"+str(list[0].(map[string]any), "id"), "", "", 200).body
	equal(t, "event", str(event, "type"), "payment_intent.succeeded")
}

func TestNoticeAddresses(t *testing.T) {
	start, one := newShop(t, nil), newShop(t, nil)
	r := newRig(t, func(o *sim.Options) { o.StripeWebhook = start.srv.URL })
	secret := str(r.control("GET", "/_sim/credentials?channel=stripe", "", 200), "stripe", "webhook_secret")
	one.endpoint(r, "payment_intent.succeeded")
	r.paid("A1")
	if d := start.next(t, "charge.succeeded"); !d.signedBy(secret) {
		t.Fatal("the address of the start is not signed with webhook_secret")
	}
	one.next(t, "payment_intent.succeeded")
	equal(t, "only the wanted type", len(one.got), 0)
	list := r.api("GET", "webhook_endpoints", "", "", 200).body["data"].([]any)
	equal(t, "endpoints", len(list), 1)
	if _, shown := list[0].(map[string]any)["secret"]; shown {
		t.Fatal("the secret is shown twice")
	}
	r.api("DELETE", "webhook_endpoints/"+str(list[0].(map[string]any), "id"), "", "", 200)
	for range 16 {
		one.endpoint(r, "charge.failed")
	}
	r.api("POST", "webhook_endpoints", "", "url=http://127.0.0.1:1&enabled_events[]=*", 400)
	r.api("POST", "webhook_endpoints?strict=1", "", "url=http://127.0.0.1:1&enabled_events[]=*", 400)
}

func TestNoticeIsRepeatedOnTheVirtualClock(t *testing.T) {
	r := newRig(t)
	s := newShop(t, func(n int, _ delivered) int {
		if n < 2 {
			return 500 + n
		}
		return 204
	})
	s.endpoint(r, "payment_intent.succeeded")
	r.paid("W1")
	first := s.next(t, "payment_intent.succeeded")
	until(t, "first try booked", func() bool { return r.notice("W1", "payment_intent.succeeded")["deliveries"] == 1.0 })
	equal(t, "not acknowledged", r.notice("W1", "payment_intent.succeeded")["acknowledged"], any(false))
	r.reopen() // a pending notice survives
	r.control("POST", "/_sim/clock", `{"advance_s":3600}`, 200)
	equal(t, "same event", s.next(t, "payment_intent.succeeded").id(), first.id())
	until(t, "second try booked", func() bool { return r.notice("W1", "payment_intent.succeeded")["deliveries"] == 2.0 })
	r.control("POST", "/_sim/clock", `{"advance_s":3600}`, 200)
	s.next(t, "payment_intent.succeeded")
	until(t, "acknowledged", func() bool { return r.notice("W1", "payment_intent.succeeded")["acknowledged"] == true })
	r.control("POST", "/_sim/clock", `{"advance_s":864000}`, 200)
	equal(t, "no more", len(s.got), 0)
}

func TestNoticeFaults(t *testing.T) {
	r, s := newRig(t), newShop(t, func(_ int, d delivered) int {
		if d.event == nil {
			return 400
		}
		return 200
	})
	secret := s.endpoint(r, "payment_intent.succeeded")
	play := func(number, fault string) {
		t.Helper()
		r.fault("notice", fault, `,"number":"`+number+`"`)
		r.paid(number)
	}
	const kind = "payment_intent.succeeded"

	r.fault("notice", "delay", `,"number":"nobody"`) // matches nothing below
	play("duplicate", "duplicate:3")
	first := s.next(t, kind)
	for range 3 {
		equal(t, "same event", s.next(t, kind).id(), first.id())
	}
	until(t, "deliveries", func() bool { return r.notice("duplicate", kind)["deliveries"] == 4.0 })

	play("bad", "bad_signature")
	if s.next(t, kind).signedBy(secret) {
		t.Fatal("the signature is good")
	}

	play("wrong", "wrong_amount")
	d := s.next(t, kind)
	equal(t, "signed", d.signedBy(secret), true)
	equal(t, "amount", d.event["data"].(map[string]any)["object"].(map[string]any)["amount_received"], any(1.0))

	play("foreign", "foreign_account")
	d = s.next(t, kind)
	equal(t, "signed", d.signedBy(secret), true)
	equal(t, "account", strings.HasPrefix(str(d.event, "account"), "acct_"), true)

	play("late", "late")
	equal(t, "answered before", len(s.got), 0)
	equal(t, "late", str(s.next(t, kind).event, "data", "object", "metadata", "payonce_number"), "late")

	play("dropped", "drop")
	r.control("POST", "/_sim/clock", `{"advance_s":864000}`, 200)
	equal(t, "deliveries", r.notice("dropped", kind)["deliveries"], any(0.0))
	r.control("POST", "/_sim/notices/resend", `{"number":"dropped"}`, 200)
	equal(t, "resent", str(s.next(t, kind).event, "data", "object", "metadata", "payonce_number"), "dropped")

	play("cut", "truncated")
	d = <-s.got
	equal(t, "cut", d.event == nil && d.signedBy(secret), true)
	until(t, "booked", func() bool { return r.notice("cut", kind)["deliveries"] == 1.0 })
	r.control("POST", "/_sim/clock", `{"advance_s":60}`, 200)
	s.next(t, kind)

	play("delayed", "delay")
	s.next(t, kind)

	play("unheard", "lose_response")
	s.next(t, kind)
	until(t, "booked", func() bool { return r.notice("unheard", kind)["deliveries"] == 1.0 })
	equal(t, "not acknowledged", r.notice("unheard", kind)["acknowledged"], any(false))
	r.control("POST", "/_sim/clock", `{"advance_s":60}`, 200)
	s.next(t, kind)

	play("unsent", "lose_request")
	r.control("POST", "/_sim/clock", `{"advance_s":60}`, 200)
	until(t, "sent later", func() bool { return r.notice("unsent", kind)["acknowledged"] == true })
	s.next(t, kind)
	r.control("POST", "/_sim/notices/resend", `{"number":"nobody"}`, 404)
}

// TestOneFaultCoversAChange: what happens to "the notice" of a payment happens
// to all events of that change, and the event of the mere creation does not
// use a counted fault up.
func TestOneFaultCoversAChange(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	s.endpoint(r, "*")
	r.fault("notice", "drop", "")
	id := r.create("U1", "payment_method=pm_card_visa")
	s.next(t, "payment_intent.created")
	r.api("POST", "payment_intents/"+id+"/confirm", "", "", 200)
	r.api("POST", "refunds", "", "payment_intent="+id, 200)
	s.next(t, "refund.created")
	s.next(t, "charge.refunded", "refund.created")
	for _, kind := range []string{"charge.succeeded", "payment_intent.succeeded"} {
		equal(t, kind, r.notice("U1", kind)["deliveries"], any(0.0))
	}
	r.fault("notice", "drop", `,"times":-1`)
	r.create("U2", "")
	equal(t, "for ever", r.notice("U2", "payment_intent.created")["deliveries"], any(0.0))
}

func TestNoticeReorder(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	s.endpoint(r, "payment_intent.payment_failed", "payment_intent.succeeded")
	id := r.create("RO", "payment_method=pm_card_chargeDeclined")
	r.fault("notice", "reorder", `,"number":"RO"`)
	r.api("POST", "payment_intents/"+id+"/confirm", "", "", 402)
	r.api("POST", "payment_intents/"+id+"/confirm", "", "payment_method=pm_card_visa", 200)
	equal(t, "first", (<-s.got).kind(), "payment_intent.succeeded")
	equal(t, "second", (<-s.got).kind(), "payment_intent.payment_failed")
}

func TestNoticeBeforeTheAnswer(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	s.endpoint(r, "payment_intent.succeeded")
	for _, operation := range []string{"notice", "confirm"} {
		id := r.create("B-"+operation, "payment_method=pm_card_visa")
		r.fault(operation, "before_response", `,"number":"B-`+operation+`"`)
		r.api("POST", "payment_intents/"+id+"/confirm", "", "", 200)
		equal(t, "already there", len(s.got), 1)
		<-s.got
	}
}
