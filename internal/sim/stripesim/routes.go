package stripesim

import (
	"slices"
	"strings"

	"github.com/payonce/payonce/internal/sim/core"
)

// route is one call of the API. pattern's segments are literal or {id}.
type route struct {
	method    string
	pattern   []string
	operation string
	allowed   []string // top-level parameters
	run       func(*Stripe, *call) *result
}

var (
	intentParams = append([]string{"amount", "currency", "payment_method", "metadata", "capture_method",
		"payment_method_types", "payment_method_options", "payment_method_data", "shipping", "application_fee_amount",
		"amount_details", "payment_details", "transfer_data", "payment_method_configuration", "hooks"}, echoed...)
	confirmParams = []string{"payment_method", "return_url", "off_session", "error_on_requires_action", "capture_method",
		"receipt_email", "setup_future_usage", "payment_method_options", "payment_method_data", "payment_method_types",
		"mandate", "mandate_data", "shipping", "use_stripe_sdk", "radar_options", "amount_details", "payment_details",
		"confirmation_token", "client_secret"}
	createParams = append(append([]string{"automatic_payment_methods", "confirm", "confirmation_method",
		"excluded_payment_method_types", "on_behalf_of", "customer_account"}, confirmParams...), intentParams...)
	pageParams = []string{"limit", "starting_after", "ending_before", "created"}
)

func withPage(names ...string) []string { return append(names, pageParams...) }

var routes = []route{
	at("POST", "payment_intents", core.OpCreate, createParams, (*Stripe).createIntent),
	at("GET", "payment_intents", core.OpQuery, withPage("customer", "customer_account"), (*Stripe).listIntents),
	at("GET", "payment_intents/{id}", core.OpQuery, []string{"client_secret"}, (*Stripe).getIntent),
	at("POST", "payment_intents/{id}", core.OpOther, intentParams, (*Stripe).updateIntent),
	at("POST", "payment_intents/{id}/confirm", core.OpConfirm, confirmParams, (*Stripe).confirmIntent),
	at("POST", "payment_intents/{id}/capture", core.OpCapture, []string{"amount_to_capture", "final_capture", "metadata",
		"application_fee_amount", "statement_descriptor", "statement_descriptor_suffix", "transfer_data", "amount_details",
		"payment_details", "hooks"}, (*Stripe).captureIntent),
	at("POST", "payment_intents/{id}/cancel", core.OpClose, []string{"cancellation_reason"}, (*Stripe).cancelCall),
	at("GET", "charges", core.OpQuery, withPage("payment_intent", "customer", "transfer_group"), (*Stripe).listCharges),
	at("GET", "charges/{id}", core.OpQuery, nil, (*Stripe).getCharge),
	at("POST", "refunds", core.OpRefund, []string{"payment_intent", "charge", "amount", "reason", "metadata", "currency",
		"instructions_email", "origin", "refund_application_fee", "reverse_transfer", "customer"}, (*Stripe).createRefund),
	at("GET", "refunds", core.OpRefundQuery, withPage("charge", "payment_intent"), (*Stripe).listRefunds),
	at("GET", "refunds/{id}", core.OpRefundQuery, nil, (*Stripe).getRefund),
	at("GET", "balance_transactions", core.OpBill, withPage("source", "type", "payout", "currency"), (*Stripe).listBalance),
	at("POST", "webhook_endpoints", core.OpOther, []string{"url", "enabled_events", "api_version", "description", "metadata",
		"connect"}, (*Stripe).createEndpoint),
	at("GET", "webhook_endpoints", core.OpOther, withPage(), (*Stripe).listEndpoints),
	at("GET", "webhook_endpoints/{id}", core.OpOther, nil, (*Stripe).getEndpoint),
	at("DELETE", "webhook_endpoints/{id}", core.OpOther, nil, (*Stripe).deleteEndpoint),
	at("GET", "events", core.OpOther, withPage("type", "types", "delivery_success"), (*Stripe).listEvents),
	at("GET", "events/{id}", core.OpOther, nil, (*Stripe).getEvent),
	at("GET", "account", core.OpOther, nil, (*Stripe).getAccount),
	at("GET", "accounts/{id}", core.OpOther, nil, (*Stripe).getAccount),
}

func at(method, pattern, operation string, allowed []string, run func(*Stripe, *call) *result) route {
	return route{method: method, pattern: strings.Split(pattern, "/"), operation: operation, allowed: allowed, run: run}
}

// find returns the route of a path below /v1/ and the id in it, or nil.
func find(method, path string) (*route, string) {
	segments := strings.Split(path, "/")
	for n := range routes {
		r := &routes[n]
		if r.method != method || len(r.pattern) != len(segments) {
			continue
		}
		id := ""
		if slices.EqualFunc(r.pattern, segments, func(want, got string) bool {
			if want == "{id}" {
				id = got
				return got != ""
			}
			return want == got
		}) {
			return r, id
		}
	}
	return nil, ""
}
