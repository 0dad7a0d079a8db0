package sim_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestStripeStates(t *testing.T) {
	r := newRig(t)
	t.Run("create, confirm, succeeded", func(t *testing.T) {
		r.t = t
		id := r.create("N1", "payment_method=pm_card_visa")
		equal(t, "books", r.line("N1")["status"], any("created"))
		got := r.api("POST", "payment_intents/"+id+"/confirm", "", "", 200).body
		equal(t, "status", str(got, "status"), "succeeded")
		equal(t, "received", got["amount_received"], any(1000.0))
		equal(t, "books", r.line("N1")["status"], any("paid"))
		if r.line("N1")["paid_at"] == nil {
			t.Fatal("paid_at is null")
		}
		expanded := r.api("GET", "payment_intents/"+id+"?expand[]=latest_charge", "", "", 200).body
		equal(t, "charge", str(expanded, "latest_charge", "status"), "succeeded")
	})
	t.Run("confirm of a succeeded one carries the intent", func(t *testing.T) {
		r.t = t
		id := r.paid("N2")
		e := r.api("POST", "payment_intents/"+id+"/confirm", "", "payment_method=pm_card_visa", 400).body
		equal(t, "code", str(e, "error", "code"), "payment_intent_unexpected_state")
		equal(t, "intent", str(e, "error", "payment_intent", "status"), "succeeded")
		equal(t, "charges", len(r.lines("N2")), 1)
	})
	t.Run("a decline leaves a failed charge and the intent open", func(t *testing.T) {
		r.t = t
		for _, pm := range []string{"pm_card_chargeDeclined", "pm_card_visa_chargeDeclined"} {
			id := r.create("N3"+pm, "payment_method="+pm)
			e := r.api("POST", "payment_intents/"+id+"/confirm", "", "", 402).body["error"].(map[string]any)
			equal(t, "type", str(e, "type"), "card_error")
			equal(t, "decline", str(e, "decline_code"), "generic_decline")
			equal(t, "intent", str(e, "payment_intent", "status"), "requires_payment_method")
			equal(t, "reason", str(e, "payment_intent", "last_payment_error", "code"), "card_declined")
			equal(t, "charge", str(r.api("GET", "charges/"+str(e, "charge"), "", "", 200).body, "status"), "failed")
			equal(t, "books", r.line("N3" + pm)["status"], any("declined"))
			again := r.api("POST", "payment_intents/"+id+"/confirm", "", "payment_method=pm_card_visa", 200).body
			equal(t, "second try", str(again, "status"), "succeeded")
			equal(t, "error", again["last_payment_error"], nil)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		r.t = t
		id := r.create("N4", "")
		got := r.api("POST", "payment_intents/"+id+"/cancel", "", "cancellation_reason=abandoned", 200).body
		equal(t, "status", str(got, "status"), "canceled")
		equal(t, "books", r.line("N4")["status"], any("closed"))
		for _, call := range []string{"/cancel", "/confirm", "/capture", ""} {
			e := r.api("POST", "payment_intents/"+id+call, "", "", 400).body
			equal(t, call, str(e, "error", "code"), "payment_intent_unexpected_state")
		}
		r.api("POST", "payment_intents/"+r.paid("N4b")+"/cancel", "", "", 400)
	})
	t.Run("manual capture, in part", func(t *testing.T) {
		r.t = t
		id := r.create("N5", "payment_method=pm_card_visa&confirm=true&capture_method=manual")
		equal(t, "books", r.line("N5")["status"], any("authorized"))
		r.api("POST", "payment_intents/"+id+"/capture", "", "amount_to_capture=1001", 400)
		got := r.api("POST", "payment_intents/"+id+"/capture", "", "amount_to_capture=400", 200).body
		equal(t, "received", got["amount_received"], any(400.0))
		equal(t, "books", r.line("N5")["amount"], any(400.0))
		r.api("POST", "payment_intents/"+id+"/capture", "", "", 400)
	})
}

func TestAuthorizationLapsesAfterSevenVirtualDays(t *testing.T) {
	r := newRig(t)
	id := r.create("N6", "payment_method=pm_card_visa&confirm=true&capture_method=manual")
	r.control("POST", "/_sim/clock", `{"advance_s":604790}`, 200)
	equal(t, "before", r.line("N6")["status"], any("authorized"))
	r.control("POST", "/_sim/clock", `{"advance_s":11}`, 200)
	got := r.api("GET", "payment_intents/"+id, "", "", 200).body
	equal(t, "status", str(got, "status"), "canceled")
	equal(t, "reason", str(got, "cancellation_reason"), "automatic")
}

func TestStripeAuthentication(t *testing.T) {
	r := newRig(t)
	for _, pm := range []string{"pm_card_authenticationRequired", "pm_card_threeDSecure2Required"} {
		id := r.create(pm, "payment_method="+pm)
		got := r.api("POST", "payment_intents/"+id+"/confirm", "", "return_url="+url.QueryEscape("http://shop.example/back?a=1"), 200).body
		equal(t, "status", str(got, "status"), "requires_action")
		equal(t, "charge", got["latest_charge"], nil)
		equal(t, "books", r.line(pm)["status"], any("unpaid"))
		page := str(got, "next_action", "redirect_to_url", "url")
		html, err := r.http.Get(page)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(html.Body)
		html.Body.Close()
		if !strings.Contains(string(b), "USD 10.00") || !strings.Contains(string(b), `<form method="post">`) {
			t.Fatalf("page: %s", b)
		}
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: r.http.Transport}
		res, err := client.PostForm(page, url.Values{"outcome": {"paid"}})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		back, _ := res.Location()
		equal(t, "redirect", back.Query().Get("redirect_status"), "succeeded")
		equal(t, "kept query", back.Query().Get("a"), "1")
		equal(t, "books", r.line(pm)["status"], any("paid"))
	}
	t.Run("outcomes", func(t *testing.T) {
		r.t = t
		r.create("D1", "payment_method=pm_card_authenticationRequired&confirm=true")
		equal(t, "abandoned", r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"D1","outcome":"abandoned"}`, 200)["status"], any("unpaid"))
		equal(t, "declined", r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"D1","outcome":"declined"}`, 200)["status"], any("declined"))
		r.create("D2", "payment_method=pm_card_threeDSecureRequiredChargeDeclined&confirm=true")
		equal(t, "declined by the bank", r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"D2"}`, 200)["status"], any("declined"))
		e := r.api("POST", "payment_intents", "", "amount=1000&currency=usd&confirm=true&off_session=true&payment_method=pm_card_authenticationRequired", 402)
		equal(t, "off session", str(e.body, "error", "code"), "authentication_required")
	})
	t.Run("manual confirmation", func(t *testing.T) {
		r.t = t
		id := r.create("D3", "payment_method=pm_card_authenticationRequired&confirm=true&confirmation_method=manual")
		r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"D3"}`, 200)
		equal(t, "after the payer", str(r.api("GET", "payment_intents/"+id, "", "", 200).body, "status"), "requires_confirmation")
		equal(t, "after the server", str(r.api("POST", "payment_intents/"+id+"/confirm", "", "", 200).body, "status"), "succeeded")
	})
	t.Run("processing", func(t *testing.T) {
		r.t = t
		id := r.create("D4", "payment_method=pm_sim_processing&confirm=true")
		equal(t, "status", str(r.api("GET", "payment_intents/"+id, "", "", 200).body, "status"), "processing")
		r.api("POST", "payment_intents/"+id+"/cancel", "", "", 400)
		equal(t, "books", r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"D4"}`, 200)["status"], any("paid"))
	})
}

func TestStripeAmounts(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		amount   int64
		currency string
		code     string
	}{
		{50, "usd", ""}, {49, "USD", "amount_too_small"}, {1, "cny", ""}, {399, "hkd", "amount_too_small"}, {49, "jpy", "amount_too_small"},
		{99999999, "usd", ""}, {100000000, "usd", "amount_too_large"}, {0, "usd", "parameter_invalid_integer"}, {-5, "usd", "parameter_invalid_integer"},
		{1000, "xxx", "parameter_invalid"}, {1005, "kwd", "parameter_invalid_integer"}, {1010, "kwd", ""}, {150, "isk", "parameter_invalid_integer"},
		{17499, "huf", "amount_too_small"}, {50, "twd", ""},
	} {
		want := 400
		if c.code == "" {
			want = 200
		}
		got := r.api("POST", "payment_intents", "", fmt.Sprintf("amount=%d&currency=%s", c.amount, c.currency), want)
		equal(t, fmt.Sprint(c), str(got.body, "error", "code"), c.code)
	}
	for form, code := range map[string]string{
		"currency=usd": "parameter_missing", "amount=10.5&currency=usd": "parameter_invalid_integer",
		"amount=1000&currency=usd&colour=red": "parameter_unknown", "amount=1000&currency=usd&payment_method=pm_nobody": "resource_missing",
		"amount=1000&currency=usd&capture_method=later": "parameter_invalid",
	} {
		res, err := r.do("POST", "/v1/payment_intents", r.key, "application/x-www-form-urlencoded", "", form)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, form, str(res.body, "error", "code"), code)
	}
}

func TestStripeRefunds(t *testing.T) {
	r := newRig(t)
	id := r.paid("R1")
	ref := r.api("POST", "refunds", "k1", "payment_intent="+id+"&amount=300&metadata[payonce_refund_number]=RF1", 200)
	again := r.api("POST", "refunds", "k1", "payment_intent="+id+"&amount=300&metadata[payonce_refund_number]=RF1", 200)
	bytesEqual(t, "replay", ref.raw, again.raw)
	equal(t, "refunded", r.line("R1")["refunded"], any(300.0))
	equal(t, "status", r.line("R1")["status"], any("partially_refunded"))
	equal(t, "number", r.line("R1")["refunds"].([]any)[0].(map[string]any)["refund_number"], any("RF1"))
	r.api("POST", "refunds", "", "payment_intent="+id+"&amount=701", 400)
	r.api("POST", "refunds", "", "payment_intent="+id+"&amount=0", 400)
	rest := r.api("POST", "refunds", "", "payment_intent="+id, 200)
	equal(t, "rest", rest.body["amount"], any(700.0))
	equal(t, "status", r.line("R1")["status"], any("refunded"))
	e := r.api("POST", "refunds", "", "payment_intent="+id, 400)
	equal(t, "code", str(e.body, "error", "code"), "charge_already_refunded")
	list := r.api("GET", "refunds?payment_intent="+id, "", "", 200)
	equal(t, "list", len(list.body["data"].([]any)), 2)
	equal(t, "calls", r.calls("refund", "R1"), 6)

	t.Run("late ends", func(t *testing.T) {
		r.t = t
		fails := r.create("R2", "payment_method=pm_card_refundFail&confirm=true")
		pends := r.create("R3", "payment_method=pm_card_pendingRefund&confirm=true")
		equal(t, "fails later", str(r.api("POST", "refunds", "", "payment_intent="+fails, 200).body, "status"), "succeeded")
		p := r.api("POST", "refunds", "", "payment_intent="+pends, 200).body
		equal(t, "pending", str(p, "status"), "pending")
		r.control("POST", "/_sim/clock", `{"advance_s":61}`, 200)
		equal(t, "failed", r.line("R2")["refunded"], any(0.0))
		equal(t, "paid again", r.line("R2")["status"], any("paid"))
		equal(t, "succeeded", str(r.api("GET", "refunds/"+str(p, "id"), "", "", 200).body, "status"), "succeeded")
	})
	t.Run("disputed", func(t *testing.T) {
		r.t = t
		id := r.create("R4", "payment_method=pm_card_createDispute&confirm=true")
		equal(t, "code", str(r.api("POST", "refunds", "", "payment_intent="+id, 400).body, "error", "code"), "charge_disputed")
	})
}

func TestStripeLists(t *testing.T) {
	r := newRig(t)
	var ids []string
	for n := range 5 {
		ids = append(ids, r.create(fmt.Sprint("L", n), ""))
		if n == 2 {
			r.control("POST", "/_sim/clock", `{"advance_s":100}`, 200)
		}
	}
	page := r.api("GET", "payment_intents?limit=2", "", "", 200).body
	equal(t, "newest", str(page["data"].([]any)[0].(map[string]any), "id"), ids[4])
	equal(t, "more", page["has_more"], any(true))
	page = r.api("GET", "payment_intents?limit=10&starting_after="+ids[3], "", "", 200).body
	equal(t, "rest", len(page["data"].([]any)), 3)
	equal(t, "more", page["has_more"], any(false))
	page = r.api("GET", "payment_intents?limit=2&ending_before="+ids[0], "", "", 200).body
	equal(t, "just before", str(page["data"].([]any)[1].(map[string]any), "id"), ids[1])
	created := r.api("GET", "payment_intents/"+ids[3], "", "", 200).body["created"].(float64)
	page = r.api("GET", fmt.Sprintf("payment_intents?created[gte]=%d", int64(created)), "", "", 200).body
	equal(t, "window", len(page["data"].([]any)), 2)
	r.api("GET", "payment_intents?limit=101", "", "", 400)
	r.paid("L9")
	equal(t, "bill", len(r.api("GET", "balance_transactions", "", "", 200).body["data"].([]any)), 1)
	equal(t, "account", str(r.api("GET", "account", "", "", 200).body, "object"), "account")
	equal(t, "foreign key", must(r.do("GET", "/stripe/v1/account", "sk_test_other", "", "", "")).status, 401)
	equal(t, "basic", r.api("GET", "events", "", "", 200).body["object"], any("list"))
}

func must(r reply, err error) reply {
	if err != nil {
		panic(err)
	}
	return r
}
