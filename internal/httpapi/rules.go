package httpapi

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/payonce/payonce"
)

// Rules for values. Each returns a sentence that says what is allowed, "" when
// the value is; none quotes the value, which may be personal or secret.

// channelMethods lists the channels with their methods.
var channelMethods = map[string][]string{
	"alipay":    {"qr", "page", "wap", "app"},
	"wechatpay": {"native", "jsapi", "h5", "app"},
	"stripe":    {"card", "checkout"},
	"2c2p":      {"redirect"},
}

func orderNoRule(s string) string {
	if !payonce.ValidOrderNo(s) {
		return "1 to 64 of the characters A-Z a-z 0-9 _ - are needed."
	}
	return ""
}

func partRule(s string) string {
	if !payonce.ValidPart(s) {
		return "1 to 64 of the characters A-Z a-z 0-9 _ - are needed."
	}
	return ""
}

func subjectRule(s string) string {
	if !payonce.ValidSubject(s) {
		return "1 to 127 characters without control characters are needed."
	}
	return ""
}

func currencyRule(s string) string {
	if _, ok := payonce.Currency(s).Exponent(); !ok {
		return "A current ISO 4217 currency code in upper case is needed."
	}
	return ""
}

func channelRule(s string) string {
	if _, ok := channelMethods[s]; !ok {
		return "One of alipay, wechatpay, stripe, 2c2p is needed."
	}
	return ""
}

// methodRule says whether the channel has the method; about an unknown channel
// it says nothing more.
func methodRule(channel, method string) string {
	methods, ok := channelMethods[channel]
	if ok && !slices.Contains(methods, method) {
		return "For this channel one of " + strings.Join(methods, ", ") + " is needed."
	}
	return ""
}

func accountRule(s string) string {
	if len(s) < 1 || len(s) > 64 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" {
		return "1 to 64 of the characters A-Z a-z 0-9 _ . - are needed."
	}
	return ""
}

func policyRule(s string) string {
	if p := payonce.Policy(s); p != payonce.PolicySingle && p != payonce.PolicySplit {
		return "One of single, split is needed."
	}
	return ""
}

// captureRule: a capture by a second call is not offered yet.
func captureRule(s string) string {
	if s != "automatic" {
		return "Only automatic is supported."
	}
	return ""
}

func tokenRule(s string) string { return plainRule(s, 64) }

func payerRule(s string) string { return plainRule(s, 255) }

// plainRule wants visible ASCII characters: ids of other systems.
func plainRule(s string, limit int) string {
	ok := len(s) >= 1 && len(s) <= limit
	for i := 0; ok && i < len(s); i++ {
		ok = s[i] > 0x20 && s[i] < 0x7f
	}
	if !ok {
		return "Visible ASCII characters without spaces are needed, not more than the documented number."
	}
	return ""
}

func clientIPRule(s string) string {
	if a, err := netip.ParseAddr(s); err != nil || a.Zone() != "" {
		return "An IPv4 or IPv6 address is needed."
	}
	return ""
}

const maxURL = 2048

// returnURLRule wants an address that a browser can be sent to.
func returnURLRule(s string) string {
	const says = "An absolute http or https address of at most 2048 characters is needed, without user and password."
	if len(s) > maxURL || hasControl(s) || strings.ContainsAny(s, " \\") {
		return says
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return says
	}
	return ""
}

// timeRule wants RFC 3339. Whether the time lies ahead is asked where the order
// may be known already.
func timeRule(s string) string {
	if t, err := time.Parse(time.RFC3339, s); err != nil || strings.Contains(s, ",") || t.Year() < 1970 {
		return "A time of RFC 3339 is needed, for example 2030-01-31T12:00:00Z."
	}
	return ""
}

// Limits of metadata.
const (
	maxMetadata      = 50
	maxMetadataName  = 64  // characters
	maxMetadataValue = 500 // characters
)

// metadata reads an object of strings and returns it as the decoder found it.
func (d *decoder) metadata() string {
	d.peek()
	start, n, before := d.pos, 0, len(d.wrong)
	d.each(func(name string) {
		n++
		if c := utf8.RuneCountInString(name); c < 1 || c > maxMetadataName || hasControl(name) {
			d.fail("A name needs 1 to 64 characters without control characters.")
		}
		d.text(metadataRule)
	})
	if n > maxMetadata {
		d.fail("At most 50 members are allowed.")
	}
	if len(d.wrong) > before {
		return ""
	}
	return string(d.in[start:d.pos])
}

func metadataRule(s string) string {
	lines := strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(s)
	if utf8.RuneCountInString(s) > maxMetadataValue || hasControl(lines) {
		return "At most 500 characters are allowed, and no control characters except tab and line ends."
	}
	return ""
}

func hasControl(s string) bool { return strings.IndexFunc(s, unicode.IsControl) >= 0 }
