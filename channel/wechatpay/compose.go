package wechatpay

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// A stored request is one line that names the method, then the exact JSON body
// of the prepay call:
//
//	wechatpay/1 native
//	{"appid":"wx…","mchid":"…",…}
const frameHead = "wechatpay/1 "

const (
	maxNotifyURL   = 255
	maxDescription = 127
	maxAttach      = 128
)

var pathOf = map[string]string{
	MethodNative: "/v3/pay/transactions/native",
	MethodJSAPI:  "/v3/pay/transactions/jsapi",
	MethodH5:     "/v3/pay/transactions/h5",
	MethodApp:    "/v3/pay/transactions/app",
}

// prepay is the body of the prepay call. Members are in this order.
type prepay struct {
	AppID       string `json:"appid"`
	MchID       string `json:"mchid"`
	Description string `json:"description"`
	OutTradeNo  string `json:"out_trade_no"`
	TimeExpire  string `json:"time_expire"`
	Attach      string `json:"attach,omitempty"`
	NotifyURL   string `json:"notify_url"`
	Amount      money  `json:"amount"`
	Payer       *payer `json:"payer,omitempty"`
	SceneInfo   *scene `json:"scene_info,omitempty"`
}

type money struct {
	Total    payonce.Amount `json:"total"`
	Currency string         `json:"currency"`
}

type payer struct {
	OpenID string `json:"openid"`
}

type scene struct {
	ClientIP string `json:"payer_client_ip"`
	H5       h5Info `json:"h5_info"`
}

type h5Info struct {
	Type string `json:"type"`
}

// Compose makes the stored request.
func (a *Adapter) Compose(in channel.Intent) ([]byte, error) {
	if err := a.checkIntent(in); err != nil {
		return nil, err
	}
	r := prepay{
		AppID: a.appID(in.Method), MchID: a.cfg.MchID, Description: description(in), OutTradeNo: in.Number,
		TimeExpire: expiry(in.DeadAt), Attach: attach(in), NotifyURL: in.NotifyURL,
		Amount: money{Total: in.Amount, Currency: string(in.Currency)},
	}
	switch in.Method {
	case MethodJSAPI:
		r.Payer = &payer{OpenID: in.Payer.OpenID}
	case MethodH5:
		r.SceneInfo = &scene{ClientIP: in.Payer.ClientIP, H5: h5Info{Type: "Wap"}}
	}
	var b bytes.Buffer
	b.WriteString(frameHead + in.Method + "\n")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the address of notices is sent as it is
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func (a *Adapter) appID(method string) string {
	if method == MethodApp {
		return a.cfg.MobileAppID
	}
	return a.cfg.AppID
}

// checkIntent refuses what WeChat Pay would refuse.
func (a *Adapter) checkIntent(in channel.Intent) error {
	switch {
	case pathOf[in.Method] == "":
		return payonce.Invalid("/method", "wechatpay has no method of this name")
	case !validNumber(in.Number):
		return payonce.Invalid("/number", "the channel number is not one of ours")
	case in.Order.Environment != a.cfg.Environment:
		return payonce.Invalid("/account", "the account is of the other environment")
	case in.Capture != "" && in.Capture != "automatic":
		return payonce.Invalid("/capture", "wechatpay takes the money at once: only automatic")
	case in.Currency != cny:
		return payonce.Invalid("/currency", "wechatpay takes CNY")
	case in.Amount < minAmount || in.Amount > maxAmount:
		return payonce.Invalid("/amount", "wechatpay takes 0.01 to 100000000.00 CNY")
	case in.DeadAt.IsZero():
		return payonce.Invalid("/expires_at", "an expiry is required")
	case !a.validNotifyURL(in.NotifyURL):
		return payonce.Invalid("/notify_url", "must be an absolute address (WeChat Pay itself: https) of at most %d bytes without query", maxNotifyURL)
	case in.Method == MethodJSAPI && !printable(in.Payer.OpenID, 128):
		return payonce.Invalid("/payer/openid", "jsapi needs the payer's openid at this application, up to 128 characters")
	case in.Method == MethodH5 && !a.validClientIP(in.Payer.ClientIP):
		return payonce.Invalid("/payer/client_ip", "h5 needs the payer's own address (IPv4 or IPv6)")
	case in.Method == MethodH5 && !validReturnURL(in.ReturnURL):
		return payonce.Invalid("/return_url", "must be an absolute http or https address")
	}
	return nil
}

func validNumber(s string) bool {
	return len(s) == payonce.NumberLength && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func (a *Adapter) validNotifyURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && printable(s, maxNotifyURL) && u.Host != "" && u.User == nil && !strings.ContainsAny(s, "?#") &&
		(u.Scheme == "https" || u.Scheme == "http" && !a.own)
}

func validReturnURL(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && !strings.ContainsFunc(s, unicode.IsControl)
}

func (a *Adapter) validClientIP(s string) bool {
	ip := net.ParseIP(s)
	return ip != nil && !ip.IsUnspecified() && !(a.own && ip.IsLoopback())
}

// description is the order's text: a blank for what is not fit for print, the
// order number where nothing is left.
func description(in channel.Intent) string {
	s := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, in.Subject)
	if r := []rune(s); len(r) > maxDescription {
		s = string(r[:maxDescription])
	}
	if strings.TrimSpace(s) == "" {
		return in.Order.OrderNo
	}
	return s
}

// attach travels to queries, notices and bills, for people who look at one. It is
// left out where it would be too long.
func attach(in channel.Intent) string {
	s := strings.Join([]string{string(in.Order.Environment), in.Order.Merchant, in.Order.OrderNo, strconv.Itoa(in.Sequence)}, ":")
	if !printable(s, maxAttach) {
		return ""
	}
	return s
}

// china is the zone that the documents write times in.
var china = time.FixedZone("UTC+8", 8*60*60)

// expiry prints an end, rounded up: what WeChat Pay is told never ends before our
// own end.
func expiry(t time.Time) string {
	if s := t.Truncate(time.Second); s.Before(t) {
		t = s.Add(time.Second)
	}
	return t.In(china).Format("2006-01-02T15:04:05-07:00")
}

var errFrame = errors.New("wechatpay: the stored request is damaged")

// stored takes a payment's request apart. Bytes that do not name this method,
// merchant, application, number and amount were changed and are not sent.
func (a *Adapter) stored(p *payonce.Payment) ([]byte, error) {
	head, body, ok := bytes.Cut(p.Request, []byte("\n"))
	if !ok || pathOf[p.Method] == "" || string(head) != frameHead+p.Method {
		return nil, errFrame
	}
	m, err := object(body)
	if err != nil {
		return nil, errFrame
	}
	amount, err := m.object("amount")
	if err != nil {
		return nil, errFrame
	}
	total, ok := amount.fen("total")
	if !ok || total != p.Amount || m.text("out_trade_no") != p.Number || m.text("mchid") != a.cfg.MchID || m.text("appid") != a.appID(p.Method) {
		return nil, errFrame
	}
	return body, nil
}
