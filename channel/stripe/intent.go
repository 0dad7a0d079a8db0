package stripe

import (
	"fmt"
	"strings"

	"github.com/payonce/payonce"
)

// state reads an intent into a fact. What it cannot read for certain is
// unknown, with a reason.
func (a *Adapter) state(f *payonce.Fact, in *intent) {
	a.identify(f, in)
	if p := in.AmountReceived; p != nil && *p < 0 {
		f.Kind, f.Reason = payonce.StateUnknown, "undecodable"
		return
	}
	switch in.Status {
	case "succeeded":
		a.settled(f, in)
	case "requires_capture":
		authorized(f, in)
	case "processing":
		f.Kind = payonce.StateWaiting
	case "requires_action":
		f.Kind = payonce.StateWaiting
		f.Action = a.action(in)
	case "requires_confirmation":
		f.Kind = payonce.StateUnconfirmed
	case "requires_payment_method":
		untried(f, in)
	case "canceled":
		f.Kind = payonce.StateDead
	default:
		f.Kind, f.Reason = payonce.StateUnknown, "status"
	}
}

// identify copies what the intent says it is, without comparing or repairing.
func (a *Adapter) identify(f *payonce.Fact, in *intent) {
	f.Object = in.ID
	f.Number = in.Metadata[metaNumber]
	f.Currency = payonce.Currency(strings.ToUpper(in.Currency))
	if in.Livemode != nil && *in.Livemode != a.live() {
		f.Account = fmt.Sprintf("%s (livemode %t)", a.cfg.Account, *in.Livemode)
	}
}

func (a *Adapter) settled(f *payonce.Fact, in *intent) {
	if in.AmountReceived == nil || in.Currency == "" {
		f.Kind, f.Reason = payonce.StateUnknown, "undecodable"
		return
	}
	amount, ok := fromStripe(*in.AmountReceived, f.Currency)
	if !ok {
		f.Kind, f.Reason = payonce.StateUnknown, "amount-unit"
		return
	}
	f.Kind = payonce.StateSettled
	f.Amount = amount
	f.PaymentRef = in.ID
	f.At = in.LatestCharge.Created
}

func authorized(f *payonce.Fact, in *intent) {
	v := in.AmountCapturable
	if v == nil {
		v = in.Amount
	}
	if v == nil {
		f.Kind, f.Reason = payonce.StateUnknown, "undecodable"
		return
	}
	amount, ok := fromStripe(*v, f.Currency)
	if !ok {
		f.Kind, f.Reason = payonce.StateUnknown, "amount-unit"
		return
	}
	f.Kind = payonce.StateWaiting
	f.Authorized = amount
	f.At = in.LatestCharge.Created
}

// untried tells an intent that nobody confirmed from one whose last try failed.
// The error of that try can be wiped by an update; the charge stays named.
func untried(f *payonce.Fact, in *intent) {
	if in.LastPaymentError == nil && in.LatestCharge.ID == "" {
		f.Kind = payonce.StateUnconfirmed
		return
	}
	f.Kind = payonce.StateDeclined
	f.Failure = failure("declined", in.LastPaymentError)
}

// action is what the payer has to do: follow an address, or finish with the
// channel's own script.
func (a *Adapter) action(in *intent) *payonce.Action {
	if n := in.NextAction; n != nil && n.RedirectToURL != nil && n.RedirectToURL.URL != "" {
		return &payonce.Action{Type: "redirect", URL: n.RedirectToURL.URL}
	}
	if in.ClientSecret == "" {
		return nil
	}
	params := map[string]string{"client_secret": in.ClientSecret}
	if a.cfg.PublishableKey != "" {
		params["publishable_key"] = a.cfg.PublishableKey
	}
	return &payonce.Action{Type: "client_params", Params: params}
}
