package alipaysim

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const invalid = "ACQ.INVALID_PARAMETER"

// productCodes are what each API takes; the first is meant where none is
// named. The page API demands its own.
var productCodes = map[string][]string{
	"alipay.trade.precreate": {"FACE_TO_FACE_PAYMENT", "QR_CODE_OFFLINE"},
	"alipay.trade.create":    {"FACE_TO_FACE_PAYMENT", "QR_CODE_OFFLINE", "JSAPI_PAY"},
	"alipay.trade.page.pay":  {"FAST_INSTANT_TRADE_PAY"},
	"alipay.trade.wap.pay":   {"QUICK_WAP_WAY"},
	"alipay.trade.app.pay":   {"QUICK_MSECURITY_PAY"},
}

var numberShape = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// order reads the common order fields, or gives the sub_code of what is wrong
// with them.
func (a *Alipay) order(c *call) (terms, string) {
	o := terms{Number: c.biz.text("out_trade_no"), Subject: c.biz.text("subject"), Body: c.biz.text("body"),
		Method: c.method, Passback: c.biz.text("passback_params"), NotifyURL: c.params["notify_url"],
		ReturnURL: c.params["return_url"], Charset: c.charset}
	for _, name := range textFields {
		if _, err := c.biz.field(name); err != nil {
			return o, invalid
		}
	}
	seller := c.biz.text("seller_id")
	account, err := a.keys.Account()
	switch {
	case !numberShape.MatchString(o.Number),
		o.Subject == "", utf8.RuneCountInString(o.Subject) > 256, strings.ContainsAny(o.Subject, "/=&"),
		strings.ContainsFunc(o.Subject+o.Body, unicode.IsControl),
		utf8.RuneCountInString(o.Body) > 128, len(o.Passback) > 512,
		!addressable(o.NotifyURL, c.strict), !addressable(o.ReturnURL, false):
		return o, invalid
	case seller != "" && (err != nil || seller != account.SellerID):
		return o, "ACQ.SELLER_NOT_EXIST"
	}
	var ok bool
	if o.Code, ok = productCode(c); !ok {
		return o, invalid
	}
	if o.Amount, ok = parseYuan(c.biz.text("total_amount")); !ok {
		return o, invalid
	}
	if c.spoiled {
		o.Amount = wrongFen(o.Amount)
	}
	return o, a.expiry(c, &o)
}

// textFields are the fields that are read; each is a text, or a number.
var textFields = []string{"out_trade_no", "total_amount", "subject", "body", "product_code", "seller_id", "time_expire",
	"timeout_express", "qr_code_timeout_express", "passback_params", "buyer_id", "buyer_open_id", "buyer_logon_id"}

func productCode(c *call) (string, bool) {
	code, taken := c.biz.text("product_code"), productCodes[c.method]
	if code == "" {
		return taken[0], c.method != "alipay.trade.page.pay"
	}
	for _, t := range taken {
		if t == code {
			return code, true
		}
	}
	return "", false
}

// addressable tells whether an address can be taken; strict demands what the
// real channel can reach.
func addressable(address string, strict bool) bool {
	if address == "" {
		return true
	}
	u, err := url.Parse(address)
	if err != nil || len(address) > 256 || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if !strict {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return u.Hostname() != "localhost"
	}
	return ip.IsGlobalUnicast() && !ip.IsPrivate()
}

// expiry sets when an unpaid trade closes. time_expire is absolute and wins;
// timeout_express counts from when Alipay first sees the order, which for a
// form is when it is opened.
func (a *Alipay) expiry(c *call, o *terms) string {
	now := a.w.Now()
	life := longestLife
	if !browser(c.method) {
		life = counterLife
	}
	until := now.Add(life)
	if text := c.biz.text("timeout_express"); text != "" {
		var ok bool
		if until, ok = parseTimeout(text, now); !ok {
			return invalid
		}
	}
	if text := c.biz.text("time_expire"); text != "" {
		at, err := parseTime(text)
		switch {
		case err != nil, at.After(now.Add(longestLife)):
			return invalid
		case !at.After(now):
			return "ACQ.NOW_TIME_AFTER_EXPIRE_TIME_ERROR"
		case !browser(c.method) && at.Before(now.Truncate(time.Second).Add(shortestLife)) && a.standing(*o) == nil:
			return invalid // a form is opened whenever the payer comes
		}
		until = at
	}
	o.Until = until.Unix()
	return ""
}
