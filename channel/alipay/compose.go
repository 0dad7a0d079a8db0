package alipay

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// API methods.
const (
	methodPrecreate = "alipay.trade.precreate"
	methodPage      = "alipay.trade.page.pay"
	methodQuery     = "alipay.trade.query"
	methodClose     = "alipay.trade.close"
)

// A stored request holds the parameters that are equal on every repeat, sorted
// by name, one line each, every line ended by \n. No value has a line break:
//
//	alipay/1
//	app_id=…
//	biz_content={…}
//	charset=utf-8
//	…
//
// A server call adds timestamp, serial numbers and sign; a form only the last two.
const frameHead = "alipay/1\n"

// maxURL bounds notify_url and return_url.
const maxURL = 256

// order is biz_content. Members are in this order.
type order struct {
	OutTradeNo  string `json:"out_trade_no"`
	TotalAmount string `json:"total_amount"`
	Subject     string `json:"subject"`
	ProductCode string `json:"product_code"`
	TimeExpire  string `json:"time_expire"`
	// CodeTimeout ends a code that nobody has scanned, counted from when Alipay made
	// it. time_expire ends what becomes of it.
	CodeTimeout    string `json:"qr_code_timeout_express,omitempty"`
	PassbackParams string `json:"passback_params,omitempty"`
}

// Compose makes the stored request of a code or a form.
func (a *Adapter) Compose(in channel.Intent) ([]byte, error) {
	total, err := a.checkIntent(in)
	if err != nil {
		return nil, err
	}
	o := order{OutTradeNo: in.Number, TotalAmount: total, Subject: subject(in), TimeExpire: expiry(in.DeadAt), PassbackParams: passback(in)}
	params := a.common()
	if in.NotifyURL != "" {
		params["notify_url"] = in.NotifyURL
	}
	if in.Method == MethodQR {
		params["method"] = methodPrecreate
		o.ProductCode = "FACE_TO_FACE_PAYMENT"
		if a.cfg.QRProductCode != "" {
			o.ProductCode = a.cfg.QRProductCode
		}
		o.CodeTimeout = strconv.FormatInt(int64(life/time.Minute), 10) + "m"
	} else {
		params["method"] = methodPage
		o.ProductCode = "FAST_INSTANT_TRADE_PAY"
		params["timestamp"] = chinaTime(a.now())
		if in.ReturnURL != "" {
			params["return_url"] = in.ReturnURL
		}
	}
	if params["biz_content"], err = content(o); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(frameHead)
	for _, k := range slices.Sorted(maps.Keys(params)) {
		b.WriteString(k + "=" + params[k] + "\n")
	}
	return []byte(b.String()), nil
}

// common are the parameters that every request has, but timestamp.
func (a *Adapter) common() map[string]string {
	return map[string]string{"app_id": a.cfg.AppID, "format": "JSON", "charset": "utf-8", "sign_type": "RSA2", "version": "1.0"}
}

// question is the request of a query or a close.
func (a *Adapter) question(method, number string) map[string]string {
	params := a.common()
	params["method"], params["timestamp"] = method, chinaTime(a.now())
	params["biz_content"] = `{"out_trade_no":"` + number + `"}`
	return params
}

// content prints biz_content without the escapes that only HTML needs.
func content(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// checkIntent refuses what Alipay would refuse, and returns the amount in yuan.
func (a *Adapter) checkIntent(in channel.Intent) (string, error) {
	switch {
	case in.Method != MethodQR && in.Method != MethodPage:
		return "", payonce.Invalid("/method", "alipay has no method of this name here")
	case !validNumber(in.Number):
		return "", payonce.Invalid("/number", "the channel number is not one of ours")
	case in.Order.Environment != a.cfg.Environment:
		return "", payonce.Invalid("/account", "the account is of the other environment")
	case in.Capture != "" && in.Capture != "automatic":
		return "", payonce.Invalid("/capture", "alipay takes the money at once: only automatic")
	case in.Currency != cny:
		return "", payonce.Invalid("/currency", "alipay takes CNY")
	case in.Amount < minAmount || in.Amount > maxAmount:
		return "", payonce.Invalid("/amount", "alipay takes 0.01 to 100000000.00 CNY")
	case in.DeadAt.IsZero():
		return "", payonce.Invalid("/expires_at", "an expiry is required")
	case !validURL(in.NotifyURL):
		return "", payonce.Invalid("/notify_url", "must be an absolute http or https address of at most %d bytes", maxURL)
	case in.Method == MethodPage && !validURL(in.ReturnURL):
		return "", payonce.Invalid("/return_url", "must be an absolute http or https address of at most %d bytes", maxURL)
	}
	return yuan(in.Amount)
}

func validNumber(s string) bool {
	return len(s) == payonce.NumberLength && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func validURL(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxURL && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && !strings.ContainsFunc(s, unicode.IsControl)
}

// forbidden characters of a subject, in their wide form.
var wide = map[rune]rune{'/': '／', '=': '＝', '&': '＆'}

// subject is the order's text as Alipay takes it: /, = and & in their wide form,
// a blank for what is not fit for print, the order number where nothing is left.
func subject(in channel.Intent) string {
	s := strings.Map(func(r rune) rune {
		if w, ok := wide[r]; ok {
			return w
		}
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, in.Subject)
	if r := []rune(s); len(r) > 256 {
		s = string(r[:256])
	}
	if strings.TrimSpace(s) == "" {
		return in.Order.OrderNo
	}
	return s
}

// passback travels to the notice and back, for people who look at one. It is
// left out where it would be too long.
func passback(in channel.Intent) string {
	s := url.QueryEscape(strings.Join([]string{string(in.Order.Environment), in.Order.Merchant, in.Order.OrderNo, strconv.Itoa(in.Sequence)}, ":"))
	if len(s) > 512 {
		return ""
	}
	return s
}

var errFrame = errors.New("alipay: the stored request is damaged")

// stored takes a payment's request apart. Anything but what Compose makes, for
// this number and application, is an error: bytes that were changed are not sent.
func (a *Adapter) stored(p *payonce.Payment, method string) (map[string]string, error) {
	rest, ok := strings.CutPrefix(string(p.Request), frameHead)
	if !ok || !strings.HasSuffix(rest, "\n") {
		return nil, errFrame
	}
	params, last := map[string]string{}, ""
	for line := range strings.Lines(rest) {
		k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || v == "" || k <= last {
			return nil, errFrame
		}
		params[k], last = v, k
	}
	for k, v := range a.common() {
		if params[k] != v {
			return nil, errFrame
		}
	}
	allowed := []string{"biz_content", "method", "notify_url"}
	if method == methodPage {
		allowed = append(allowed, "return_url", "timestamp")
	}
	for k := range params {
		if _, common := a.common()[k]; !common && !slices.Contains(allowed, k) {
			return nil, errFrame
		}
	}
	var o order
	err := json.Unmarshal([]byte(params["biz_content"]), &o)
	if err != nil || params["method"] != method || o.OutTradeNo != p.Number || (method == methodPage) != (params["timestamp"] != "") {
		return nil, errFrame
	}
	return params, nil
}

// Sign makes the form of a page payment from its stored request. charset is in
// the address, as the gateway reads it there before the body; it is signed like
// every other parameter.
func (a *Adapter) Sign(p payonce.Payment) (*payonce.Action, error) {
	if p.Method != MethodPage {
		return nil, errors.New("alipay: only page is signed without a call")
	}
	params, err := a.stored(&p, methodPage)
	if err != nil {
		return nil, err
	}
	fields, err := a.signed(params)
	if err != nil {
		return nil, err
	}
	u := *a.gateway
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "charset=" + fields["charset"]
	delete(fields, "charset")
	return &payonce.Action{Type: "form", URL: u.String(), Method: "POST", Fields: fields, ExpiresAt: p.DeadAt}, nil
}
