package sim_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

// confirm sends one confirm under key "k" and returns what came back.
func (r *rig) confirm(id string) (reply, error) {
	return r.do("POST", "/v1/payment_intents/"+id+"/confirm", r.key, "application/x-www-form-urlencoded", "k-"+id, "")
}

func TestFaultsOnCalls(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		fault  string
		effect bool
		check  func(reply, error) bool
	}{
		{"lose_request", false, func(_ reply, err error) bool { return err != nil }},
		{"lose_response", true, func(_ reply, err error) bool { return err != nil }},
		{"reset_mid_body", true, func(a reply, err error) bool {
			return errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), "EOF") && a.status == 200
		}},
		{"http_500_before", false, func(a reply, err error) bool { return err == nil && a.status == 500 && a.body != nil }},
		{"http_500_after", true, func(a reply, err error) bool { return err == nil && a.status == 500 && a.body != nil }},
		{"html_502", false, func(a reply, err error) bool {
			return err == nil && a.status == 502 && strings.Contains(a.raw, "<html>") && a.header.Get("Content-Type") == "text/html"
		}},
		{"truncated", true, func(a reply, err error) bool { return err == nil && a.status == 200 && a.body == nil && a.raw != "" }},
		{"error:card_declined", false, func(a reply, err error) bool {
			return a.status == 402 && str(a.body, "error", "decline_code") == "generic_decline"
		}},
		{"error:insufficient_funds", false, func(a reply, err error) bool {
			return a.status == 402 && str(a.body, "error", "decline_code") == "insufficient_funds"
		}},
		{"error:payment_intent_unexpected_state", false, func(a reply, err error) bool {
			return a.status == 400 && str(a.body, "error", "payment_intent", "id") != ""
		}},
		{"error:resource_missing", false, func(a reply, err error) bool { return a.status == 404 }},
		{"wrong_amount", true, func(a reply, err error) bool { return a.body["amount"] == 1.0 && a.body["amount_received"] == 1.0 }},
		{"foreign_account", true, func(a reply, err error) bool { return a.body["livemode"] == true }},
		{"duplicate:2", true, func(a reply, err error) bool { return a.header.Get("Idempotent-Replayed") == "true" }},
		{"before_response", true, func(a reply, err error) bool { return a.status == 200 }},
	} {
		number := "F-" + c.fault
		id := r.create(number, "payment_method=pm_card_visa")
		r.fault("confirm", c.fault, `,"number":"`+number+`"`)
		a, err := r.confirm(id)
		if !c.check(a, err) {
			t.Errorf("%s: %v %d %s", c.fault, err, a.status, a.raw)
		}
		want := "created"
		if c.effect {
			want = "paid"
		}
		equal(t, c.fault, r.line(number)["status"], any(want))
		if c.fault == "duplicate:2" {
			equal(t, "calls", r.calls("confirm", number), 3)
			continue
		}
		equal(t, "calls", r.calls("confirm", number), 1)
		if c.effect && c.fault != "http_500_after" {
			again, err := r.confirm(id)
			if err != nil || again.status != 200 || again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: the key does not replay: %v %d", c.fault, err, again.status)
			}
		}
	}
	equal(t, "all used up", len(r.control("GET", "/_sim/faults", "", 200)["faults"].([]any)), 0)
}

func TestFaultsOnOtherOperations(t *testing.T) {
	r := newRig(t)
	id := r.create("O1", "payment_method=pm_card_visa&capture_method=manual&confirm=true")
	r.fault("capture", "lose_response", "")
	if _, err := r.do("POST", "/v1/payment_intents/"+id+"/capture", r.key, "application/x-www-form-urlencoded", "", ""); err == nil {
		t.Fatal("the answer was not lost")
	}
	equal(t, "captured", r.line("O1")["status"], any("paid"))
	r.fault("query", "wrong_amount", "")
	got := r.api("GET", "payment_intents/"+id+"?expand[]=latest_charge", "", "", 200).body
	equal(t, "inside too", got["latest_charge"].(map[string]any)["amount"], any(1.0))
	equal(t, "only once", r.api("GET", "payment_intents/"+id, "", "", 200).body["amount"], any(1000.0))
	r.fault("refund", "http_500_after", "")
	r.api("POST", "refunds", "", "payment_intent="+id+"&amount=10", 500)
	equal(t, "refunded", r.line("O1")["refunded"], any(10.0))
	for _, op := range []struct{ operation, path string }{{"refund_query", "refunds?payment_intent=" + id}, {"bill", "balance_transactions"}, {"query", "charges"}} {
		r.fault(op.operation, "http_500_before", "")
		r.api("GET", op.path, "", "", 500)
		r.api("GET", op.path, "", "", 200)
	}
	other := r.create("O2", "")
	r.fault("close", "lose_request", "")
	if _, err := r.do("POST", "/v1/payment_intents/"+other+"/cancel", r.key, "", "", ""); err == nil {
		t.Fatal("the request was not lost")
	}
	equal(t, "still open", r.line("O2")["status"], any("created"))
	r.fault("create", "lose_request", "")
	if _, err := r.do("POST", "/v1/payment_intents", r.key, "application/x-www-form-urlencoded", "", "amount=1000&currency=usd"); err == nil {
		t.Fatal("a call without a number was not lost")
	}
}

func TestFaultMatching(t *testing.T) {
	r := newRig(t)
	r.fault("query", "error:rate_limit", `,"times":2`)
	r.fault("query", "error:lock_timeout", `,"number":"M1"`)
	r.fault("query", "http_500_before", `,"times":-1`)
	id := r.create("M1", "")
	codes := []string{"rate_limit", "rate_limit", "lock_timeout"}
	for _, want := range codes {
		equal(t, "oldest first", str(r.api("GET", "payment_intents/"+id, "", "", 429).body, "error", "code"), want)
	}
	for range 3 {
		r.api("GET", "payment_intents/"+id, "", "", 500)
	}
	left := r.control("GET", "/_sim/faults", "", 200)["faults"].([]any)
	equal(t, "left", len(left), 1)
	equal(t, "used", left[0].(map[string]any)["used"], any(3.0))
	r.control("DELETE", "/_sim/faults", "", 200)
	r.api("GET", "payment_intents/"+id, "", "", 200)
}

func TestFaultDelayIsRealTime(t *testing.T) {
	r := newRig(t)
	id := r.create("T1", "")
	r.fault("query", "delay", `,"delay_ms":150`)
	begin := time.Now()
	r.api("GET", "payment_intents/"+id, "", "", 200)
	if d := time.Since(begin); d < 150*time.Millisecond {
		t.Fatalf("answered after %v", d)
	}
}

func TestFaultsThatMakeNoSense(t *testing.T) {
	r := newRig(t)
	for _, body := range []string{
		`{"channel":"stripe","operation":"confirm","fault":"explode"}`,
		`{"channel":"stripe","operation":"confirm","fault":"delay:3"}`,
		`{"channel":"stripe","operation":"confirm","fault":"error"}`,
		`{"channel":"stripe","operation":"confirm","fault":"error:no_such_code"}`,
		`{"channel":"stripe","operation":"confirm","fault":"bad_signature"}`,
		`{"channel":"stripe","operation":"confirm","fault":"drop"}`,
		`{"channel":"stripe","operation":"confirm","fault":"late"}`,
		`{"channel":"stripe","operation":"query","fault":"before_response"}`,
		`{"channel":"stripe","operation":"query","fault":"duplicate:2"}`,
		`{"channel":"stripe","operation":"notice","fault":"http_500_before"}`,
		`{"channel":"stripe","operation":"notice","fault":"error:rate_limit"}`,
		`{"channel":"stripe","operation":"notice","fault":"duplicate:0"}`,
		`{"channel":"stripe","operation":"other","fault":"delay"}`,
		`{"channel":"stripe","operation":"pay","fault":"delay"}`,
		`{"channel":"paypal","operation":"confirm","fault":"delay"}`,
		`{"channel":"stripe","operation":"confirm","fault":"delay","times":0}`,
		`{"channel":"stripe","operation":"confirm","fault":"delay","colour":1}`,
		`{"channel":"stripe","operation":"confirm","fault":"delay"} {}`,
	} {
		if e := r.control("POST", "/_sim/faults", body, 400)["error"]; e == nil || e == "" {
			t.Errorf("%s: no error text", body)
		}
	}
}
