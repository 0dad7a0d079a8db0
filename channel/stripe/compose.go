package stripe

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// A stored request holds the bodies of both steps, because both must be the
// same on every repeat. One line each, in this order, every line ended by \n;
// form encoding has no line breaks:
//
//	stripe-card/1
//	create <form>
//	confirm <form>
const (
	frameHead    = "stripe-card/1\n"
	frameCreate  = "create "
	frameConfirm = "confirm "
)

// Names of the metadata that travel with the intent.
const (
	metaNumber      = "payonce_number"
	metaMerchant    = "merchant"
	metaOrder       = "order_no"
	metaSequence    = "sequence"
	metaEnvironment = "environment"
)

// maxURL bounds a return address; Stripe documents no figure.
const maxURL = 2048

// Compose makes the bodies of create and confirm. Members are in a fixed order.
func (a *Adapter) Compose(in channel.Intent) ([]byte, error) {
	amount, err := a.checkIntent(in)
	if err != nil {
		return nil, err
	}
	capture := in.Capture
	if capture == "" {
		capture = "automatic"
	}
	var create, confirm form
	create.add("amount", strconv.FormatInt(amount, 10))
	create.add("currency", strings.ToLower(string(in.Currency)))
	create.add("payment_method", in.Payer.PaymentMethod)
	create.add("payment_method_types[]", "card")
	create.add("confirm", "false")
	create.add("capture_method", capture)
	create.add("description", description(in.Subject))
	create.add("metadata["+metaNumber+"]", in.Number)
	create.add("metadata["+metaMerchant+"]", in.Order.Merchant)
	create.add("metadata["+metaOrder+"]", in.Order.OrderNo)
	create.add("metadata["+metaSequence+"]", strconv.Itoa(in.Sequence))
	create.add("metadata["+metaEnvironment+"]", string(in.Order.Environment))
	// The payment method is on the intent already. It is not repeated here: a
	// confirm that comes after a decline must find none and try nothing.
	if in.ReturnURL != "" {
		confirm.add("return_url", in.ReturnURL)
	}
	confirm.add("expand[]", "latest_charge")
	return []byte(frameHead + frameCreate + create.String() + "\n" + frameConfirm + confirm.String() + "\n"), nil
}

// checkIntent refuses what Stripe would refuse, and returns Stripe's amount.
func (a *Adapter) checkIntent(in channel.Intent) (int64, error) {
	if in.Method != MethodCard {
		return 0, payonce.Invalid("/method", "stripe has no method of this name")
	}
	if !validNumber(in.Number) {
		return 0, payonce.Invalid("/number", "the channel number is not one of ours")
	}
	if !validPaymentMethod(in.Payer.PaymentMethod) {
		return 0, payonce.Invalid("/payer/payment_method", "a Stripe payment method (pm_…) is required")
	}
	if in.Capture != "" && in.Capture != "automatic" && in.Capture != "manual" {
		return 0, payonce.Invalid("/capture", "must be automatic or manual")
	}
	if in.Order.Environment != a.cfg.Environment {
		return 0, payonce.Invalid("/account", "the account is of the other environment")
	}
	if !validURL(in.ReturnURL) {
		return 0, payonce.Invalid("/return_url", "must be an absolute http or https address of at most %d bytes", maxURL)
	}
	if _, _, ok := unitOf(in.Currency); !ok {
		return 0, payonce.Invalid("/currency", "stripe does not take this currency")
	}
	amount, ok := toStripe(in.Amount, in.Currency)
	if !ok {
		return 0, payonce.Invalid("/amount", "stripe takes %s in larger steps only", in.Currency)
	}
	if in.Amount < 1 || in.Amount > a.caps[MethodCard].Max || amount < minimum[in.Currency] {
		return 0, payonce.Invalid("/amount", "outside what stripe takes in %s", in.Currency)
	}
	return amount, nil
}

func validNumber(s string) bool {
	return len(s) == payonce.NumberLength && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// validID accepts an id of Stripe with the prefix. It keeps paths and keys
// clean of anything else.
func validID(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || rest == "" || len(s) > 200 {
		return false
	}
	for i := range len(rest) {
		c := rest[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') {
			return false
		}
	}
	return true
}

func validPaymentMethod(s string) bool { return validID("pm_", s) }

func validURL(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxURL && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// description puts a blank where a character is not fit for print: controls,
// invalid bytes, private and unassigned characters.
func description(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// form is a form-encoded body in the order of its adds. Bracket keys are sent
// as they are, the way Stripe documents them.
type form struct{ strings.Builder }

func (f *form) add(key, value string) {
	if f.Len() > 0 {
		f.WriteByte('&')
	}
	f.WriteString(key)
	f.WriteByte('=')
	f.WriteString(url.QueryEscape(value))
}

var errFrame = errors.New("stripe: the stored request is damaged")

// steps takes a stored request apart. Anything but the exact frame is an error:
// bytes that were changed are not sent.
func steps(request []byte) (create, confirm string, err error) {
	rest, ok := strings.CutPrefix(string(request), frameHead)
	if !ok {
		return "", "", errFrame
	}
	lines := strings.SplitAfter(rest, "\n")
	if len(lines) != 3 || lines[2] != "" {
		return "", "", errFrame
	}
	create, ok1 := strings.CutPrefix(strings.TrimSuffix(lines[0], "\n"), frameCreate)
	confirm, ok2 := strings.CutPrefix(strings.TrimSuffix(lines[1], "\n"), frameConfirm)
	if !ok1 || !ok2 || create == "" || confirm == "" {
		return "", "", errFrame
	}
	return create, confirm, nil
}
