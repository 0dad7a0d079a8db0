package wechatpay

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// TestConformance runs the suite of package channeltest.
func TestConformance(t *testing.T) {
	lines := strings.Split(privatePEM(keysOnce().merchant), "\n")
	suite := channeltest.Suite{
		Secrets: []string{testAPIKey, lines[1], strings.Join(lines[1:len(lines)-2], "")},
		New: func(t testing.TB, e channeltest.Env) channel.Adapter {
			return newAdapter(t, e.BaseURL, func(c *Config) {
				c.Now = e.Now
				if e.Roots != nil {
					c.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: e.Roots}}
				}
			})
		},
		Notices: &channeltest.Notices{
			Kinds: []payonce.FactKind{payonce.StateSettled},
			Make: func(_ testing.TB, s channeltest.Statement, at time.Time) (http.Header, []byte) {
				return makeNotice(s, at)
			},
			Signed:    []string{"Wechatpay-Timestamp", "Wechatpay-Nonce", "Wechatpay-Signature", "Wechatpay-Serial"},
			Tolerance: 300 * time.Second,
			Forged:    forgedNotices,
		},
	}
	for _, method := range []string{MethodNative, MethodJSAPI, MethodH5, MethodApp} {
		m := channeltest.Method{
			Intent: testIntent(method), Say: say(method), Foreign: true,
			Says: map[channeltest.Step][]payonce.FactKind{
				channeltest.Begin: {payonce.StateWaiting, payonce.StateRefused},
				channeltest.Query: {payonce.StateSettled, payonce.StateWaiting, payonce.StateDead, payonce.StateAbsent, payonce.StateDeclined},
				channeltest.Close: {payonce.StateDead},
			},
			NoBody: map[channeltest.Step]bool{channeltest.Close: true},
			Codes:  documentedCodes(), Unlisted: unlistedCodes(method), Bad: badIntents(method), Number: numberIn,
			Bytes: func(_ channeltest.Step, stored []byte) []byte {
				_, body, _ := strings.Cut(string(stored), "\n")
				return []byte(body)
			},
		}
		suite.Methods = append(suite.Methods, m)
	}
	channeltest.Run(t, suite)
}

// numberIn reads the number that a request names.
func numberIn(r channeltest.Request) string {
	if _, rest, ok := strings.Cut(r.URI, "/out-trade-no/"); ok {
		return rest[:min(len(rest), 20)]
	}
	_, rest, _ := strings.Cut(string(r.Body), `"out_trade_no":"`)
	number, _, _ := strings.Cut(rest, `"`)
	return number
}

func badIntents(method string) []channeltest.BadIntent {
	bad := []channeltest.BadIntent{
		{Name: "method", Pointer: "/method", Change: func(i *channel.Intent) { i.Method = "micropay" }},
		{Name: "environment", Pointer: "/account", Change: func(i *channel.Intent) { i.Order.Environment = payonce.Live }},
		{Name: "capture", Pointer: "/capture", Change: func(i *channel.Intent) { i.Capture = "manual" }},
		{Name: "currency", Pointer: "/currency", Change: func(i *channel.Intent) { i.Currency = "USD" }},
		{Name: "A01_currency_JPY", Pointer: "/currency", Change: func(i *channel.Intent) { i.Currency = "JPY" }},
		{Name: "zero", Pointer: "/amount", Change: func(i *channel.Intent) { i.Amount = 0 }},
		{Name: "negative", Pointer: "/amount", Change: func(i *channel.Intent) { i.Amount = -1 }},
		{Name: "too_large", Pointer: "/amount", Change: func(i *channel.Intent) { i.Amount = 10_000_000_001 }},
		{Name: "number", Pointer: "/number", Change: func(i *channel.Intent) { i.Number = "short" }},
		{Name: "number_lower_case", Pointer: "/number", Change: func(i *channel.Intent) { i.Number = strings.ToLower(i.Number) }},
		{Name: "number_path", Pointer: "/number", Change: func(i *channel.Intent) { i.Number = "../../../../x/y/z/00" }},
		{Name: "no_expiry", Pointer: "/expires_at", Change: func(i *channel.Intent) { i.DeadAt = time.Time{} }},
		{Name: "no_notify_url", Pointer: "/notify_url", Change: func(i *channel.Intent) { i.NotifyURL = "" }},
		{Name: "notify_url_query", Pointer: "/notify_url", Change: func(i *channel.Intent) { i.NotifyURL += "?x=1" }},
		{Name: "notify_url_long", Pointer: "/notify_url", Change: func(i *channel.Intent) { i.NotifyURL = "https://a.example/" + strings.Repeat("x", 256) }},
	}
	switch method {
	case MethodJSAPI:
		bad = append(bad,
			channeltest.BadIntent{Name: "no_openid", Pointer: "/payer/openid", Change: func(i *channel.Intent) { i.Payer.OpenID = "" }},
			channeltest.BadIntent{Name: "openid_long", Pointer: "/payer/openid", Change: func(i *channel.Intent) { i.Payer.OpenID = strings.Repeat("o", 129) }},
			channeltest.BadIntent{Name: "openid_line", Pointer: "/payer/openid", Change: func(i *channel.Intent) { i.Payer.OpenID = "o\n" }})
	case MethodH5:
		bad = append(bad,
			channeltest.BadIntent{Name: "no_client_ip", Pointer: "/payer/client_ip", Change: func(i *channel.Intent) { i.Payer.ClientIP = "" }},
			channeltest.BadIntent{Name: "client_ip_name", Pointer: "/payer/client_ip", Change: func(i *channel.Intent) { i.Payer.ClientIP = "shop.example" }},
			channeltest.BadIntent{Name: "client_ip_unspecified", Pointer: "/payer/client_ip", Change: func(i *channel.Intent) { i.Payer.ClientIP = "0.0.0.0" }},
			channeltest.BadIntent{Name: "return_url", Pointer: "/return_url", Change: func(i *channel.Intent) { i.ReturnURL = "javascript:alert(1)" }})
	}
	return bad
}
