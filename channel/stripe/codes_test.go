package stripe

import (
	"strings"
	"testing"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// declineCodes are the codes that Stripe documents for declines. All come with
// 402 and took no money.
const declineCodes = `authentication_required approve_with_id call_issuer card_not_supported card_velocity_exceeded
currency_not_supported do_not_honor do_not_try_again duplicate_transaction expired_card fraudulent generic_decline
incorrect_number incorrect_cvc incorrect_pin incorrect_zip insufficient_funds invalid_account invalid_amount invalid_cvc
invalid_expiry_month invalid_expiry_year invalid_number invalid_pin issuer_not_available lost_card merchant_blacklist
new_account_information_available no_action_taken not_permitted offline_pin_required online_or_offline_pin_required
pickup_card pin_try_exceeded processing_error reenter_transaction restricted_card revocation_of_all_authorizations
revocation_of_authorization security_violation service_not_allowed stolen_card stop_payment_order testmode_decline
transaction_not_allowed try_again_later withdrawal_count_limit_exceeded`

// refusedCodes are requests that Stripe did not execute because they are wrong.
const refusedCodes = `amount_too_small amount_too_large livemode_mismatch testmode_charges_only account_invalid
payment_method_unactivated parameter_invalid_empty parameter_invalid_integer parameter_invalid_string_blank
parameter_invalid_string_empty parameter_missing parameter_unknown parameters_exclusive
payment_intent_incompatible_payment_method`

const (
	prepare = channeltest.Prepare
	begin   = channeltest.Begin
	query   = channeltest.Query
	closing = channeltest.Close
)

func reply(r channeltest.Reply) func(channeltest.Request) channeltest.Reply {
	return func(channeltest.Request) channeltest.Reply { return r }
}

// want checks the reason, the spent key and the channel's code.
func want(reason string, spent bool, code string) func(*testing.T, channel.Answer) {
	return func(t *testing.T, a channel.Answer) {
		t.Helper()
		if a.Reason != reason || a.KeySpent != spent {
			t.Errorf("reason %q, key spent %t; want %q, %t", a.Reason, a.KeySpent, reason, spent)
		}
		if code != "" && (a.Failure == nil || a.Failure.ChannelCode != code) {
			t.Errorf("failure %+v, want channel code %s", a.Failure, code)
		}
	}
}

func documentedCodes() []channeltest.Case {
	var cs []channeltest.Case
	for _, c := range strings.Fields(declineCodes) {
		cs = append(cs, channeltest.Case{Name: "402_" + c, Step: begin, Want: payonce.StateDeclined,
			Reply: reply(errorReply(402, "card_error", "card_declined", nil, "decline_code", c)), Check: want("", false, c)})
	}
	for _, c := range strings.Fields(refusedCodes) {
		for _, s := range []channeltest.Step{prepare, begin} {
			cs = append(cs, channeltest.Case{Name: "400_" + c, Step: s, Want: payonce.StateRefused,
				Reply: reply(errorReply(400, "invalid_request_error", c, nil)), Check: want("", false, c)})
		}
		for _, s := range []channeltest.Step{query, closing} {
			cs = append(cs, channeltest.Case{Name: "400_" + c, Step: s, Want: payonce.StateUnknown,
				Reply: reply(errorReply(400, "invalid_request_error", c, nil)), Check: want("configuration", false, "")})
		}
	}
	return append(append(cs, statusCodes()...), intentCodes()...)
}

// statusCodes: answers whose class follows from the status or from one code.
func statusCodes() []channeltest.Case {
	var cs []channeltest.Case
	add := func(name string, r channeltest.Reply, written, asked payonce.FactKind, reason, askedReason string, spent bool) {
		for _, s := range []channeltest.Step{prepare, begin, query, closing} {
			c := channeltest.Case{Name: name, Step: s, Want: written, Reply: reply(r), Check: want(reason, spent, "")}
			if s == query || s == closing {
				c.Want, c.Check = asked, want(askedReason, spent && s == closing, "")
			}
			cs = append(cs, c)
		}
	}
	const inv = "invalid_request_error"
	no, not := payonce.StateUnknown, payonce.StateNotSent
	add("401", errorReply(401, inv, "", nil), not, no, "unauthorized", "configuration", false)
	add("401_api_key_expired", errorReply(401, inv, "api_key_expired", nil), not, no, "unauthorized", "configuration", false)
	add("429_rate_limit", errorReply(429, inv, "rate_limit", nil), not, no, "rate-limited", "rate-limited", false)
	add("429_reason_header", errorReply(429, inv, "", nil, "header:Stripe-Rate-Limited-Reason", "global-rate"), not, no, "rate-limited", "rate-limited", false)
	add("429_lock_timeout", errorReply(429, inv, "lock_timeout", nil), not, no, "lock-timeout", "lock-timeout", false)
	add("R06_409_key_in_use", errorReply(409, inv, "idempotency_key_in_use", nil, "header:Stripe-Should-Retry", "true"), no, no, "key-in-use", "key-in-use", false)
	add("I02_400_idempotency_error", errorReply(400, "idempotency_error", "", nil), no, no, "key-mismatch", "key-mismatch", false)
	add("409_idempotency_error", errorReply(409, "idempotency_error", "idempotency_key_in_use", nil), no, no, "key-mismatch", "key-mismatch", false)
	add("403", errorReply(403, inv, "", nil), no, no, "configuration", "configuration", false)
	for i := range cs { // a permission fault is stored under the key of a write
		if cs[i].Name == "403" && (cs[i].Step == prepare || cs[i].Step == begin) {
			cs[i].Check = want("configuration", true, "")
		}
	}
	add("424", errorReply(424, inv, "", nil), no, no, "http-424", "http-424", true)
	add("400_api_error", errorReply(400, "api_error", "", nil), no, no, "api-error", "api-error", true)
	add("402_api_error", errorReply(402, "api_error", "", nil), no, no, "api-error", "api-error", true)
	add("402_provider_timeout", errorReply(402, "card_error", "payment_method_provider_timeout", nil), no, no, "provider-timeout", "provider-timeout", true)
	for _, status := range []int{500, 502, 503, 504} {
		add("5xx_json", errorReply(status, "api_error", "", nil), no, no, "http-5xx", "http-5xx", true)
		add("5xx_card_error", errorReply(status, "card_error", "card_declined", nil), no, no, "http-5xx", "http-5xx", true)
		add("5xx_html", channeltest.Reply{Status: status, Body: []byte("<html>")}, no, no, "http-5xx", "http-5xx", false)
	}
	add("400_html", channeltest.Reply{Status: 400, Body: []byte("<html>")}, no, no, "undecodable", "undecodable", false)
	return cs
}

// intentCodes: answers whose meaning lies in an object or a parameter.
func intentCodes() []channeltest.Case {
	const inv, state, missing = "invalid_request_error", "payment_intent_unexpected_state", "resource_missing"
	in := func(k payonce.FactKind) map[string]any {
		return object(channeltest.Statement{Kind: k, Number: testNumber, Object: testObject, Amount: 1999, Currency: "EUR"})
	}
	processing, capture := in(payonce.StateWaiting), in(payonce.StateWaiting)
	processing["status"], processing["next_action"] = "processing", nil
	capture["status"], capture["amount_capturable"] = "requires_capture", 1999
	cs := []channeltest.Case{
		{Name: "404_missing_intent", Step: begin, Reply: reply(errorReply(404, inv, missing, nil, "param", "intent")), Want: payonce.StateUnknown, Check: want("configuration", false, "")},
		{Name: "404_missing_method", Step: begin, Reply: reply(errorReply(404, inv, missing, nil, "param", "payment_method")), Want: payonce.StateRefused, Check: want("", false, missing)},
		{Name: "400_missing_method", Step: prepare, Reply: reply(errorReply(400, inv, missing, nil, "param", "payment_method")), Want: payonce.StateRefused, Check: want("", false, missing)},
		{Name: "404_missing", Step: query, Reply: reply(errorReply(404, inv, missing, nil, "param", "intent")), Want: payonce.StateUnknown, Check: want("configuration", false, "")},
		{Name: "404_missing", Step: closing, Reply: reply(errorReply(404, inv, missing, nil, "param", "intent")), Want: payonce.StateUnknown, Check: want("configuration", false, "")},
		{Name: "400_param_without_code", Step: prepare, Reply: reply(errorReply(400, inv, "", nil, "param", "amount")), Want: payonce.StateRefused, Check: want("", false, inv)},
		{Name: "402_at_create", Step: prepare, Reply: reply(errorReply(402, "card_error", "card_declined", nil)), Want: payonce.StateRefused, Check: want("", false, "card_declined")},
		{Name: "402_new_decline_code", Step: begin, Reply: reply(errorReply(402, "card_error", "card_declined", nil, "decline_code", "moon_phase")), Want: payonce.StateDeclined, Check: want("", false, "moon_phase")},
		{Name: "402_only_code", Step: begin, Reply: reply(errorReply(402, "card_error", "expired_card", in(payonce.StateDeclined))), Want: payonce.StateDeclined, Check: want("", false, "expired_card")},
		{Name: "402_canceled_inside", Step: begin, Reply: reply(errorReply(402, "card_error", "card_declined", in(payonce.StateDead))), Want: payonce.StateDeclined, Check: want("", false, "card_declined")},
		{Name: "402_succeeded_inside", Step: begin, Reply: reply(errorReply(402, "card_error", "card_declined", in(payonce.StateSettled))), Want: payonce.StateSettled, Check: want("", false, "")},
		{Name: "402_processing_inside", Step: begin, Reply: reply(errorReply(402, "card_error", "card_declined", processing)), Want: payonce.StateUnknown, Check: want("contradiction", true, "")},
		{Name: "processing", Step: query, Reply: reply(channeltest.Reply{Body: mustJSON(processing)}), Want: payonce.StateWaiting},
		{Name: "requires_capture", Step: query, Reply: reply(channeltest.Reply{Body: mustJSON(capture)}), Want: payonce.StateWaiting, Check: func(t *testing.T, a channel.Answer) {
			if a.Authorized != 1999 || a.Amount != 0 || a.Currency != "EUR" || a.PaymentRef != "" {
				t.Errorf("authorized %d, amount %d %s, ref %q", a.Authorized, a.Amount, a.Currency, a.PaymentRef)
			}
		}},
		{Name: "still_open", Step: closing, Reply: reply(channeltest.Reply{Body: mustJSON(processing)}), Want: payonce.StateUnknown, Check: want("not-closed", true, "")},
		{Name: "unconfirmed_after_confirm", Step: begin, Reply: reply(channeltest.Reply{Body: mustJSON(in(payonce.StateUnconfirmed))}), Want: payonce.StateUnconfirmed, Check: want("", true, "")},
	}
	for _, s := range []channeltest.Step{begin, closing} {
		cs = append(cs,
			channeltest.Case{Name: "400_unexpected_succeeded", Step: s, Reply: reply(errorReply(400, inv, state, in(payonce.StateSettled))), Want: payonce.StateSettled, Check: want("", false, "")},
			channeltest.Case{Name: "400_unexpected_canceled", Step: s, Reply: reply(errorReply(400, inv, state, in(payonce.StateDead))), Want: payonce.StateDead, Check: want("", false, "")},
			channeltest.Case{Name: "400_unexpected_processing", Step: s, Reply: reply(errorReply(400, inv, state, processing)), Want: payonce.StateUnknown, Check: want("unexpected-state", true, "")},
			channeltest.Case{Name: "400_unexpected_bare", Step: s, Reply: reply(errorReply(400, inv, state, nil)), Want: payonce.StateUnknown, Check: want("unexpected-state", true, "")},
		)
	}
	return cs
}

// unlistedCodes: what no table has is no knowledge.
func unlistedCodes() []channeltest.Case {
	var cs []channeltest.Case
	for _, s := range []channeltest.Step{prepare, begin, query, closing} {
		for name, r := range map[string]channeltest.Reply{
			"400_new_code":        errorReply(400, "invalid_request_error", "moon_phase", nil),
			"400_bare":            errorReply(400, "invalid_request_error", "", nil),
			"402_invalid_request": errorReply(402, "invalid_request_error", "payment_intent_authentication_failure", nil),
			"403_new_code":        errorReply(403, "invalid_request_error", "moon_phase", nil),
			"404_bare":            errorReply(404, "invalid_request_error", "", nil),
			"409_bare":            errorReply(409, "invalid_request_error", "", nil),
			"410":                 errorReply(410, "invalid_request_error", "parameter_missing", nil),
			"418_card_error":      errorReply(418, "card_error", "card_declined", nil),
			"429_bare":            errorReply(429, "invalid_request_error", "", nil),
			"429_decline_limit":   errorReply(429, "card_error", "card_decline_rate_limit_exceeded", nil),
			"error_without_type":  {Status: 400, Body: []byte(`{"error":{"code":"parameter_missing"}}`)},
			"201":                 {Status: 201, Body: mustJSON(object(channeltest.Statement{Kind: payonce.StateSettled, Object: testObject, Number: testNumber, Amount: 1999, Currency: "EUR"}))},
			"202_empty":           {Status: 202},
			"200_error_object":    {Body: []byte(`{"error":{"type":"card_error","code":"card_declined"}}`)},
			"200_other_object":    {Body: []byte(`{"id":"` + testObject + `","object":"charge","status":"succeeded"}`)},
			"200_new_status":      {Body: []byte(`{"id":"` + testObject + `","object":"payment_intent","status":"blessed"}`)},
			"A13_fraction":        {Body: []byte(`{"id":"` + testObject + `","object":"payment_intent","status":"succeeded","currency":"eur","amount_received":1999.0}`)},
			"A13_text_amount":     {Body: []byte(`{"id":"` + testObject + `","object":"payment_intent","status":"succeeded","currency":"eur","amount_received":"1999"}`)},
			"A13_exponent":        {Body: []byte(`{"id":"` + testObject + `","object":"payment_intent","status":"succeeded","currency":"eur","amount_received":1e3}`)},
			"no_amount":           {Body: []byte(`{"id":"` + testObject + `","object":"payment_intent","status":"succeeded","currency":"eur","amount":1999}`)},
			"negative_amount":     {Body: []byte(`{"id":"` + testObject + `","object":"payment_intent","status":"succeeded","currency":"eur","amount_received":-1999}`)},
			"half_krona":          {Body: []byte(`{"id":"` + testObject + `","object":"payment_intent","status":"succeeded","currency":"isk","amount_received":150}`)},
			"trailing_garbage":    {Body: []byte(`{"id":"` + testObject + `","object":"payment_intent","status":"canceled"} x`)},
			"path_as_id":          {Body: []byte(`{"id":"pi_../x","object":"payment_intent","status":"canceled"}`)},
		} {
			cs = append(cs, channeltest.Case{Name: name, Step: s, Reply: reply(r)})
		}
	}
	return cs
}
