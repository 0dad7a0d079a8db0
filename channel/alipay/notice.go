package alipay

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// Errors of ReadNotice, for the log and the doctor.
var (
	ErrForm      = errors.New("alipay notice: the body is not a form of single, complete fields")
	ErrNotSigned = errors.New("alipay notice: sign is missing, or sign_type is not RSA2")
	ErrSignature = errors.New("alipay notice: the signature does not fit the fields (is alipay_public_key Alipay's, not the application's?)")
	ErrFields    = errors.New("alipay notice: a field that every trade notice has is missing or empty")
	ErrAccount   = errors.New("alipay notice: it is for another application or seller")
)

const (
	maxNotice = 256 << 10
	maxFields = 256
)

// field is one field of a form, decoded once, byte for byte. Its bytes are in
// the sender's charset; what this package reads of a notice is ASCII in all of
// them, so nothing has to be converted.
type field struct{ name, value string }

// ReadNotice verifies the signature over the fields of the raw body and reads a
// notice about a trade. One about a refund names its trade and leaves the state
// to a query: the trade's status in it is no new payment. Parameters of the
// address that the notice came to play no part.
func (a *Adapter) ReadNotice(_ http.Header, body []byte) (channel.Notice, error) {
	fields, err := parseForm(body)
	if err != nil {
		return channel.Notice{}, err
	}
	get := func(name string) string { return valueOf(fields, name) }
	// A + that a sender or proxy did not encode arrives as a blank, and base64 has
	// no blanks.
	sig, err := signature(strings.ReplaceAll(get("sign"), " ", "+"))
	if err != nil || get("sign_type") != "RSA2" {
		return channel.Notice{}, ErrNotSigned
	}
	if !a.genuine(fields, sig) {
		return channel.Notice{}, ErrSignature
	}
	if get("app_id") != a.cfg.AppID {
		return channel.Notice{}, ErrAccount
	}
	n := channel.Notice{EventID: get("notify_id"), Type: get("notify_type")}
	n.Fact = payonce.Fact{Source: "notice", Account: a.cfg.Account}
	if !printable(n.EventID, 128) || !printable(n.Type, 64) {
		return channel.Notice{}, ErrFields
	}
	if n.Type != "trade_status_sync" {
		n.Fact.Reason = "other-event"
		return n, nil
	}
	if err := a.tradeNotice(&n, get); err != nil {
		return channel.Notice{}, err
	}
	return n, nil
}

func (a *Adapter) tradeNotice(n *channel.Notice, get func(string) string) error {
	t := trade{status: get("trade_status"), no: get("trade_no"), total: get("total_amount"), paidAt: get("gmt_payment")}
	n.Number, n.Type = get("out_trade_no"), t.status
	if !printable(n.Number, 64) || !printable(t.no, 64) || !printable(t.status, 64) || t.total == "" || get("seller_id") == "" {
		return ErrFields
	}
	if get("seller_id") != a.cfg.SellerID {
		return ErrAccount
	}
	f := &n.Fact
	f.Number = n.Number
	refunded := get("gmt_refund") != ""
	for _, name := range [...]string{"refund_fee", "send_back_fee"} {
		amount, ok := fen(get(name))
		refunded = refunded || get(name) != "" && !(ok && amount == 0)
	}
	switch {
	case refunded:
		f.Reason = "refund"
	case t.status == "TRADE_CLOSED" && t.paidAt != "":
		f.Reason = "closed-after-payment"
	default:
		t.state(f)
	}
	return nil
}

// parseForm splits first and decodes then, so that an encoded & or = stays part
// of its value. Whatever could be read in two ways is refused.
func parseForm(body []byte) ([]field, error) {
	if len(body) == 0 || len(body) > maxNotice {
		return nil, ErrForm
	}
	var out []field
	for pair := range strings.SplitSeq(string(body), "&") {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" || len(out) == maxFields {
			return nil, ErrForm
		}
		name, err1 := url.QueryUnescape(k)
		value, err2 := url.QueryUnescape(v)
		if err1 != nil || err2 != nil || slices.ContainsFunc(out, func(f field) bool { return f.name == name }) {
			return nil, ErrForm
		}
		out = append(out, field{name, value})
	}
	slices.SortFunc(out, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

func valueOf(fields []field, name string) string {
	for _, f := range fields {
		if f.name == name {
			return f.value
		}
	}
	return ""
}

// genuine verifies over all fields but sign and sign_type. Sources disagree on
// whether empty fields are signed, so both are tried; an empty field is read as
// one that is missing, so that the choice cannot change what the notice says. The
// same holds for alipay_cert_sn in certificate mode.
//
// The signed text does not say where a value with & in it ends: one set of fields
// can be sent as another that gives the same text. So each field that decides
// anything must stand in the text as often as among the fields, and its value
// must have no & itself.
func (a *Adapter) genuine(fields []field, sig []byte) bool {
	sn := valueOf(fields, "alipay_cert_sn")
	var texts []string
	for _, dropSN := range [...]bool{false, true} {
		for _, dropEmpty := range [...]bool{false, true} {
			if dropSN && !a.alipay.bySerial {
				continue
			}
			if text := noticeText(fields, dropEmpty, dropSN); !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return slices.ContainsFunc(texts, func(text string) bool { return a.alipay.verify([]byte(text), sig, sn) && plain(fields, text) })
}

// decisive are the fields that this package reads.
var decisive = []string{"app_id", "gmt_payment", "gmt_refund", "notify_id", "notify_type", "out_trade_no", "refund_fee", "seller_id",
	"send_back_fee", "total_amount", "trade_no", "trade_status"}

// plain reports whether no value hides, repeats or swallows a field.
func plain(fields []field, text string) bool {
	for _, name := range decisive {
		want, value := 0, valueOf(fields, name)
		if strings.Contains(value, "&") {
			return false
		}
		if value != "" {
			want = 1
		}
		full := strings.Count("&"+text, "&"+name+"=")
		empty := strings.Count("&"+text+"&", "&"+name+"=&")
		if full-empty != want {
			return false
		}
	}
	return true
}

// noticeText is what a notice's signature covers, from fields sorted by name.
func noticeText(fields []field, dropEmpty, dropSN bool) string {
	var b strings.Builder
	for _, f := range fields {
		if f.name == "sign" || f.name == "sign_type" || dropEmpty && f.value == "" || dropSN && f.name == "alipay_cert_sn" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(f.name + "=" + f.value)
	}
	return b.String()
}
