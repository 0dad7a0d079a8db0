package alipay

import (
	"crypto/tls"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// TestConformance runs the suite of package channeltest.
func TestConformance(t *testing.T) {
	bare := bareKey(keysOnce().app)
	query := []payonce.FactKind{payonce.StateSettled, payonce.StateWaiting, payonce.StateDead, payonce.StateAbsent}
	closing := []payonce.FactKind{payonce.StateDead}
	channeltest.Run(t, channeltest.Suite{
		Secrets: []string{bare, bare[:64]},
		New: func(t testing.TB, e channeltest.Env) channel.Adapter {
			return newAdapter(t, e.BaseURL, func(c *Config) {
				c.Now = e.Now
				if e.Roots != nil {
					c.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: e.Roots}}
				}
			})
		},
		Methods: []channeltest.Method{{
			Intent: testIntent(MethodQR),
			Say:    say,
			Says: map[channeltest.Step][]payonce.FactKind{
				channeltest.Begin: {payonce.StateWaiting, payonce.StateRefused},
				channeltest.Query: query,
				channeltest.Close: closing,
			},
			Codes:    documentedCodes(channeltest.Begin, channeltest.Query, channeltest.Close),
			Unlisted: unlistedCodes(channeltest.Begin, channeltest.Query, channeltest.Close),
			Bad:      append(badIntents(), channeltest.BadIntent{Name: "method", Pointer: "/method", Change: func(i *channel.Intent) { i.Method = "wap" }}),
			Number:   numberIn, Sent: storedIn, OneCurrency: true,
		}, {
			Intent:   testIntent(MethodPage),
			Say:      say,
			Says:     map[channeltest.Step][]payonce.FactKind{channeltest.Query: query, channeltest.Close: closing},
			Codes:    documentedCodes(channeltest.Query, channeltest.Close),
			Unlisted: unlistedCodes(channeltest.Query, channeltest.Close),
			Bad: append(badIntents(),
				channeltest.BadIntent{Name: "return_url", Pointer: "/return_url", Change: func(i *channel.Intent) { i.ReturnURL = "javascript:alert(1)" }},
				channeltest.BadIntent{Name: "return_url_line", Pointer: "/return_url", Change: func(i *channel.Intent) { i.ReturnURL = "https://a.example/\nsign=1" }},
				channeltest.BadIntent{Name: "return_url_long", Pointer: "/return_url", Change: func(i *channel.Intent) { i.ReturnURL = "https://a.example/" + strings.Repeat("x", 256) }}),
			Number: numberIn, OneCurrency: true,
		}},
		Notices: &channeltest.Notices{
			Kinds: []payonce.FactKind{payonce.StateSettled, payonce.StateWaiting, payonce.StateDead},
			Make: func(_ testing.TB, s channeltest.Statement, at time.Time) (http.Header, []byte) {
				return http.Header{}, signNotice(keysOnce().alipay, noticeFields(s, at))
			},
			Forged: forgedNotices,
		},
	})
}

// numberIn reads the number that a request names.
func numberIn(r channeltest.Request) string {
	for pair := range strings.SplitSeq(string(r.Body), "&") {
		if v, ok := strings.CutPrefix(pair, "biz_content="); ok {
			_, rest, _ := strings.Cut(v, "out_trade_no%22%3A%22")
			number, _, _ := strings.Cut(rest, "%22")
			return number
		}
	}
	return ""
}

// storedIn rebuilds the stored request from a request: all but what is fresh in
// each.
func storedIn(r channeltest.Request) []byte {
	p := params(discard{}, r)
	delete(p, "timestamp")
	delete(p, "sign")
	text := "alipay/1\n"
	for _, k := range slices.Sorted(maps.Keys(p)) {
		text += k + "=" + p[k] + "\n"
	}
	return []byte(text)
}

// discard is a testing.TB for helpers that are called without one.
type discard struct{ testing.TB }

func (discard) Helper()                      {}
func (discard) Fatal(args ...any)            { panic(args) }
func (discard) Fatalf(f string, args ...any) { panic(args) }

func badIntents() []channeltest.BadIntent {
	return []channeltest.BadIntent{
		{Name: "environment", Pointer: "/account", Change: func(i *channel.Intent) { i.Order.Environment = payonce.Live }},
		{Name: "capture", Pointer: "/capture", Change: func(i *channel.Intent) { i.Capture = "manual" }},
		{Name: "currency", Pointer: "/currency", Change: func(i *channel.Intent) { i.Currency = "USD" }},
		{Name: "A01_currency_JPY", Pointer: "/currency", Change: func(i *channel.Intent) { i.Currency = "JPY" }},
		{Name: "zero", Pointer: "/amount", Change: func(i *channel.Intent) { i.Amount = 0 }},
		{Name: "negative", Pointer: "/amount", Change: func(i *channel.Intent) { i.Amount = -1 }},
		{Name: "too_large", Pointer: "/amount", Change: func(i *channel.Intent) { i.Amount = 10_000_000_001 }},
		{Name: "number", Pointer: "/number", Change: func(i *channel.Intent) { i.Number = "short" }},
		{Name: "number_json", Pointer: "/number", Change: func(i *channel.Intent) { i.Number = `A","trade_no":"00000` }},
		{Name: "no_expiry", Pointer: "/expires_at", Change: func(i *channel.Intent) { i.DeadAt = time.Time{} }},
		{Name: "notify_url_long", Pointer: "/notify_url", Change: func(i *channel.Intent) { i.NotifyURL = "https://a.example/" + strings.Repeat("x", 256) }},
	}
}

// TestZ09_FormOfPage: the form of page says what the stored request says, is signed over
// all of it with the charset of its address, and holds nothing empty.
func TestZ09_FormOfPage(t *testing.T) {
	a := newAdapter(t, "http://127.0.0.1:1/alipay?strict=1", func(c *Config) {
		c.Now = func() time.Time { return time.Date(2026, 1, 1, 16, 0, 0, 999, time.UTC) }
	})
	p := testPayment(t, a, testIntent(MethodPage))
	act, err := a.Sign(p)
	if err != nil {
		t.Fatal(err)
	}
	if act.Type != "form" || act.Method != "POST" || act.URL != "http://127.0.0.1:1/alipay/gateway.do?strict=1&charset=utf-8" || !act.ExpiresAt.Equal(p.DeadAt) {
		t.Errorf("action is %+v", act)
	}
	f := maps.Clone(act.Fields)
	f["charset"] = "utf-8"
	if f["sign"] != signText(keysOnce().app, []byte(published(f, "sign"))) {
		t.Error("the form's signature is not that of the published rule")
	}
	want := map[string]string{"app_id": testApp, "method": "alipay.trade.page.pay", "format": "JSON", "sign_type": "RSA2", "version": "1.0",
		"timestamp": "2026-01-02 00:00:00", "return_url": "https://shop.example/back?order=1&x=%20", "notify_url": "https://pay.example/webhooks/alipay/ali1"}
	for k, v := range want {
		if f[k] != v {
			t.Errorf("%s is %q, want %q", k, f[k], v)
		}
	}
	var biz map[string]string
	if err := json.Unmarshal([]byte(f["biz_content"]), &biz); err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"out_trade_no": testNumber, "total_amount": "19.99", "subject": "Tea ＆ cake 茶", "product_code": "FAST_INSTANT_TRADE_PAY",
		"time_expire": "2026-01-02 11:04:06", "passback_params": "test%3Am1%3Aorder-1%3A1"}
	if !maps.Equal(biz, want) {
		t.Errorf("biz_content is %v, want %v", biz, want)
	}
}
