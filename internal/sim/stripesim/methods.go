package stripesim

import "strings"

// method is how a test payment method behaves when it is confirmed.
type method struct {
	decline     string // error code; "" is success
	declineCode string
	message     string
	action      bool // the payer must authenticate first
	processing  bool // an answer comes later
	refund      string
	dispute     bool
	last4       string
	brand       string
}

// Refund behaviours of test methods.
const (
	refundPends = "pending"
	refundFails = "fail"
)

func declined(code, declineCode, message, last4 string) method {
	return method{decline: code, declineCode: declineCode, message: message, last4: last4, brand: "visa"}
}

const plainDecline = "Your card was declined."

// methods are Stripe's published test methods, and pm_sim_processing, which is
// the simulator's own: it stays in processing until /_sim/pay.
var methods = map[string]method{
	"pm_card_visa":       {last4: "4242", brand: "visa"},
	"pm_card_mastercard": {last4: "4444", brand: "mastercard"},

	"pm_card_visa_chargeDeclined":                      declined("card_declined", "generic_decline", plainDecline, "0002"),
	"pm_card_chargeDeclined":                           declined("card_declined", "generic_decline", plainDecline, "0002"),
	"pm_card_visa_chargeDeclinedInsufficientFunds":     declined("card_declined", "insufficient_funds", "Your card has insufficient funds.", "9995"),
	"pm_card_visa_chargeDeclinedLostCard":              declined("card_declined", "lost_card", plainDecline, "9987"),
	"pm_card_visa_chargeDeclinedStolenCard":            declined("card_declined", "stolen_card", plainDecline, "9979"),
	"pm_card_visa_chargeDeclinedVelocityLimitExceeded": declined("card_declined", "card_velocity_exceeded", plainDecline, "6975"),
	"pm_card_chargeDeclinedExpiredCard":                declined("expired_card", "expired_card", "Your card has expired.", "0069"),
	"pm_card_chargeDeclinedIncorrectCvc":               declined("incorrect_cvc", "incorrect_cvc", "Your card's security code is incorrect.", "0127"),
	"pm_card_chargeDeclinedProcessingError":            declined("processing_error", "processing_error", "An error occurred while processing your card.", "0119"),
	"pm_card_chargeCustomerFail":                       declined("card_declined", "generic_decline", plainDecline, "0341"),
	"pm_card_radarBlock":                               declined("card_declined", "fraudulent", plainDecline, "9235"),

	"pm_card_authenticationRequired":             {action: true, last4: "3184", brand: "visa"},
	"pm_card_authenticationRequiredOnSetup":      {action: true, last4: "3155", brand: "visa"},
	"pm_card_threeDSecure2Required":              {action: true, last4: "3220", brand: "visa"},
	"pm_card_threeDSecureRequired":               {action: true, last4: "3063", brand: "visa"},
	"pm_card_threeDSecureRequiredChargeDeclined": {action: true, decline: "card_declined", declineCode: "generic_decline", message: plainDecline, last4: "8404", brand: "visa"},
	"pm_card_createDispute":                      {dispute: true, last4: "0259", brand: "visa"},
	"pm_card_createDisputeInquiry":               {dispute: true, last4: "1976", brand: "visa"},
	"pm_card_pendingRefund":                      {refund: refundPends, last4: "7726", brand: "visa"},
	"pm_card_refundFail":                         {refund: refundFails, last4: "5126", brand: "visa"},
	"pm_sim_processing":                          {processing: true, last4: "4242", brand: "visa"},
	"pm_card_visa_debit":                         {last4: "5556", brand: "visa"},
	"pm_card_amex":                               {last4: "8431", brand: "amex"},
	"pm_card_chargeDeclinedInsufficientFunds":    declined("card_declined", "insufficient_funds", "Your card has insufficient funds.", "9995"),
	"pm_card_visa_chargeDeclinedExpiredCard":     declined("expired_card", "expired_card", "Your card has expired.", "0069"),
	"pm_card_visa_chargeDeclinedIncorrectCvc":    declined("incorrect_cvc", "incorrect_cvc", "Your card's security code is incorrect.", "0127"),
	"pm_card_visa_chargeDeclinedProcessingError": declined("processing_error", "processing_error", "An error occurred while processing your card.", "0119"),
}

// findMethod knows the test methods; any other id is missing.
func findMethod(id string) (method, *apiError) {
	m, ok := methods[id]
	if !ok {
		return method{}, missing("PaymentMethod", id, "payment_method")
	}
	return m, nil
}

// cardMethod is the payment method object of an error or a charge.
func cardMethod(id string, created int64) map[string]any {
	m := methods[id]
	return map[string]any{
		"id": id, "object": "payment_method", "type": "card", "created": created, "customer": nil,
		"livemode": false, "metadata": map[string]string{}, "allow_redisplay": "unspecified",
		"billing_details": map[string]any{"address": nil, "email": nil, "name": nil, "phone": nil},
		"card":            cardDetails(m),
	}
}

func cardDetails(m method) map[string]any {
	return map[string]any{
		"brand": m.brand, "country": "US", "exp_month": 12, "exp_year": 2034, "funding": "credit",
		"last4": m.last4, "network": m.brand, "fingerprint": strings.Repeat(m.last4, 4),
	}
}
