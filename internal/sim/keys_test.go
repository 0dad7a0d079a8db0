package sim_test

import (
	"strings"
	"testing"
)

const pay = "amount=1000&currency=usd&payment_method=pm_card_visa&confirm=true&metadata[payonce_number]="

func TestKeyReplaysBytesAndMoney(t *testing.T) {
	r := newRig(t)
	first := r.api("POST", "payment_intents", "k", pay+"I1", 200)
	second := r.api("POST", "payment_intents", "k", pay+"I1", 200)
	bytesEqual(t, "answers", first.raw, second.raw)
	equal(t, "first is no replay", first.header.Get("Idempotent-Replayed"), "")
	equal(t, "marker", second.header.Get("Idempotent-Replayed"), "true")
	equal(t, "echo", second.header.Get("Idempotency-Key"), "k")
	equal(t, "lines", len(r.lines("I1")), 1)
	equal(t, "calls", r.calls("create", "I1"), 2)
	if a, b := first.header.Get("Request-Id"), second.header.Get("Request-Id"); a == b || !strings.HasPrefix(a, "req_") {
		t.Fatalf("request ids %q and %q", a, b)
	}
	// The same call without the prefix is the same request.
	bare := must(r.do("POST", "/v1/payment_intents", r.key, "application/x-www-form-urlencoded", "k", pay+"I1"))
	bytesEqual(t, "bare path", first.raw, bare.raw)
}

func TestKeyWithOtherParametersOrPath(t *testing.T) {
	r := newRig(t)
	id := str(r.api("POST", "payment_intents", "k", "amount=1000&currency=usd", 200).body, "id")
	for _, again := range []reply{
		r.api("POST", "payment_intents", "k", "amount=1001&currency=usd", 400),
		r.api("POST", "payment_intents/"+id+"/cancel", "k", "amount=1000&currency=usd", 400),
	} {
		equal(t, "type", str(again.body, "error", "type"), "idempotency_error")
	}
	equal(t, "untouched", str(r.api("GET", "payment_intents/"+id, "", "", 200).body, "status"), "requires_payment_method")
	r.api("GET", "payment_intents/"+id, "k", "", 200) // ignored on GET
}

func TestKeyStoresDeclinesAndStateErrors(t *testing.T) {
	r := newRig(t)
	id := r.create("I2", "payment_method=pm_card_chargeDeclined")
	first := r.api("POST", "payment_intents/"+id+"/confirm", "k", "payment_method=pm_card_chargeDeclined", 402)
	bytesEqual(t, "decline", first.raw, r.api("POST", "payment_intents/"+id+"/confirm", "k", "payment_method=pm_card_chargeDeclined", 402).raw)
	paid := r.paid("I3")
	state := r.api("POST", "payment_intents/"+paid+"/confirm", "k2", "", 400)
	equal(t, "replayed", r.api("POST", "payment_intents/"+paid+"/confirm", "k2", "", 400).header.Get("Idempotent-Replayed"), "true")
	equal(t, "code", str(state.body, "error", "code"), "payment_intent_unexpected_state")
}

func TestKeyDoesNotStoreRefusals(t *testing.T) {
	r := newRig(t)
	r.api("POST", "payment_intents", "k", "amount=1&currency=usd", 400)
	r.api("POST", "payment_intents", "k", "amount=1000&currency=usd", 200)

	form := pay + "I4"
	equal(t, "401", must(r.do("POST", "/v1/payment_intents", "sk_test_wrong", "application/x-www-form-urlencoded", "k4", form)).status, 401)
	for _, code := range []string{"rate_limit", "lock_timeout", "idempotency_key_in_use", "api_key_expired"} {
		r.fault("create", "error:"+code, `,"number":"I4"`)
	}
	limited := r.api("POST", "payment_intents", "k4", form, 429)
	equal(t, "reason", limited.header.Get("Stripe-Rate-Limited-Reason"), "global-rate")
	locked := r.api("POST", "payment_intents", "k4", form, 429)
	equal(t, "lock", locked.header.Get("Stripe-Rate-Limited-Reason"), "")
	equal(t, "lock retry", locked.header.Get("Stripe-Should-Retry"), "true")
	equal(t, "in use", r.api("POST", "payment_intents", "k4", form, 409).header.Get("Stripe-Should-Retry"), "true")
	r.api("POST", "payment_intents", "k4", form, 401)
	equal(t, "nothing happened", len(r.lines("I4")), 0)
	equal(t, "executes", r.api("POST", "payment_intents", "k4", form, 200).header.Get("Idempotent-Replayed"), "")
	r.api("POST", "payment_intents", strings.Repeat("k", 256), form, 400)
}

func TestKeyStores500(t *testing.T) {
	r := newRig(t)
	for fault, lines := range map[string]int{"http_500_before": 0, "http_500_after": 1} {
		r.fault("create", fault, `,"number":"`+fault+`"`)
		first := r.api("POST", "payment_intents", fault, pay+fault, 500)
		equal(t, "type", str(first.body, "error", "type"), "api_error")
		again := r.api("POST", "payment_intents", fault, pay+fault, 500)
		bytesEqual(t, fault, first.raw, again.raw)
		equal(t, "marker", again.header.Get("Idempotent-Replayed"), "true")
		equal(t, fault, len(r.lines(fault)), lines)
	}
}

func TestKeyInUseWhileTheFirstRuns(t *testing.T) {
	r := newRig(t)
	id := r.create("I5", "payment_method=pm_card_visa")
	r.fault("confirm", "delay", `,"delay_ms":800,"number":"I5"`)
	slow := make(chan reply, 1)
	go func() {
		out, _ := r.do("POST", "/v1/payment_intents/"+id+"/confirm", r.key, "application/x-www-form-urlencoded", "k5", "")
		slow <- out
	}()
	until(t, "the first call waits", func() bool {
		return len(r.control("GET", "/_sim/faults", "", 200)["faults"].([]any)) == 0
	})
	twin := must(r.do("POST", "/v1/payment_intents/"+id+"/confirm", r.key, "application/x-www-form-urlencoded", "k5", ""))
	equal(t, "twin", twin.status, 409)
	equal(t, "code", str(twin.body, "error", "code"), "idempotency_key_in_use")
	equal(t, "other parameters", str(r.api("POST", "payment_intents/"+id+"/confirm", "k5", "off_session=true", 400).body, "error", "type"), "idempotency_error")
	first := <-slow
	equal(t, "first", first.status, 200)
	bytesEqual(t, "replay", first.raw, r.api("POST", "payment_intents/"+id+"/confirm", "k5", "", 200).raw)
}

func TestKeyIsPrunedAfterAVirtualDay(t *testing.T) {
	r := newRig(t)
	first := r.api("POST", "payment_intents", "k", pay+"I6", 200)
	r.control("POST", "/_sim/clock", `{"advance_s":86390}`, 200)
	bytesEqual(t, "just before", first.raw, r.api("POST", "payment_intents", "k", pay+"I6", 200).raw)
	r.control("POST", "/_sim/clock", `{"advance_s":11}`, 200)
	second := r.api("POST", "payment_intents", "k", pay+"I6", 200)
	equal(t, "executed again", second.header.Get("Idempotent-Replayed"), "")
	equal(t, "two charges", len(r.lines("I6")), 2)
	r.api("POST", "payment_intents", "k2", pay+"I7", 200)
	r.control("POST", "/_sim/clock", `{"advance_s":86400}`, 200)
	r.reopen()
	r.api("POST", "payment_intents", "k2", "amount=2000&currency=usd", 200) // counts as new
}
