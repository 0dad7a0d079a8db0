package wechatpay

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// TestStoredBytes: the exact request of each method.
func TestStoredBytes(t *testing.T) {
	a := newAdapter(t, "", nil)
	common := func(appid string) string {
		return `{"appid":"` + appid + `","mchid":"1900000001","description":"Tea & cake 茶","out_trade_no":"0A1B2C3D4E5F6G7H8J9K",` +
			`"time_expire":"2026-01-02T11:04:06+08:00","attach":"test:m1:order-1:1","notify_url":"https://pay.example/webhooks/wechatpay/wx1",` +
			`"amount":{"total":1999,"currency":"CNY"}`
	}
	for method, want := range map[string]string{
		MethodNative: common("wx0000000000000001") + `}`,
		MethodJSAPI:  common("wx0000000000000001") + `,"payer":{"openid":"oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"}}`,
		MethodH5:     common("wx0000000000000001") + `,"scene_info":{"payer_client_ip":"203.0.113.7","h5_info":{"type":"Wap"}}}`,
		MethodApp:    common("wx0000000000000009") + `}`,
	} {
		got, err := a.Compose(testIntent(method))
		if err != nil || string(got) != "wechatpay/1 "+method+"\n"+want {
			t.Errorf("%s: %v\n%s\nwant\n%s", method, err, got, want)
		}
	}
}

// TestTextsFit: what WeChat Pay does not take is replaced or left out.
func TestTextsFit(t *testing.T) {
	a := newAdapter(t, "", nil)
	compose := func(change func(*channel.Intent)) string {
		in := testIntent(MethodNative)
		change(&in)
		b, err := a.Compose(in)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if s := compose(func(i *channel.Intent) { i.Subject = "a\u202eb\xffc" }); !strings.Contains(s, `"description":"a b c"`) {
		t.Error(s)
	}
	if s := compose(func(i *channel.Intent) { i.Subject = "\u200b" }); !strings.Contains(s, `"description":"order-1"`) {
		t.Error(s)
	}
	if s := compose(func(i *channel.Intent) { i.Subject = strings.Repeat("茶", 200) }); strings.Count(s, "茶") != 127 {
		t.Error(s)
	}
	if s := compose(func(i *channel.Intent) { i.Order.Merchant = strings.Repeat("m", 128) }); strings.Contains(s, "attach") {
		t.Error(s)
	}
}

// TestOwnHostDemands: towards WeChat Pay itself notices need https, and a payer is
// not on this machine.
func TestOwnHostDemands(t *testing.T) {
	own := newAdapter(t, "", func(c *Config) { c.Environment, c.BaseURL = payonce.Live, "" })
	other := newAdapter(t, "", nil)
	for name, change := range map[string]func(*channel.Intent){
		"notify_url": func(i *channel.Intent) { i.NotifyURL = "http://127.0.0.1/webhooks" },
		"client_ip":  func(i *channel.Intent) { i.Payer.ClientIP = "127.0.0.1" },
	} {
		in := testIntent(MethodH5)
		change(&in)
		if _, err := other.Compose(in); err != nil {
			t.Errorf("%s elsewhere: %v", name, err)
		}
		in.Order.Environment = payonce.Live
		if _, err := own.Compose(in); err == nil {
			t.Errorf("%s was taken for WeChat Pay itself", name)
		}
	}
}

// TestS13_RequestsAreSigned over the exact bytes and the target without the path
// of base_url, with the headers that WeChat Pay wants.
func TestS13_RequestsAreSigned(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL+"/wechatpay/?strict=1", nil)
	c := channel.Call{Payment: testPayment(t, a, testIntent(MethodNative)), KeyNo: 1}
	for target, call := range map[string]func(context.Context, channel.Call) channel.Answer{
		"POST /wechatpay/v3/pay/transactions/native?strict=1":                                               a.Begin,
		"GET /wechatpay/v3/pay/transactions/out-trade-no/" + testNumber + "?mchid=" + testMch + "&strict=1": a.Query,
		"POST /wechatpay/v3/pay/transactions/out-trade-no/" + testNumber + "/close?strict=1":                a.Close,
	} {
		call(context.Background(), c)
		r := w.Take()
		if len(r) != 1 || r[0].Method+" "+r[0].URI != target {
			t.Errorf("%s: sent %+v", target, r)
			continue
		}
		authorized(t, r[0], "/wechatpay")
		h := r[0].Header
		json := r[0].Method == "GET" || h.Get("Content-Type") == "application/json"
		if h.Get("Wechatpay-Serial") != testKeyID || h.Get("User-Agent") == "" || h.Get("Accept") == "" || !json || h.Get("Idempotency-Key") != "" {
			t.Errorf("%s: headers %v", target, h)
		}
	}
}

// begin makes one prepay call against one answer.
func begin(t *testing.T, method string, answer map[string]string, change func(*payonce.Payment)) (*Adapter, channel.Answer) {
	t.Helper()
	w := channeltest.NewWire(t, nil)
	w.Answer(func(channeltest.Request) channeltest.Reply { return signedReply(200, mustJSON(answer)) })
	a := newAdapter(t, w.URL, nil)
	p := testPayment(t, a, testIntent(method))
	if change != nil {
		change(&p)
	}
	return a, a.Begin(context.Background(), channel.Call{Payment: p, KeyNo: 1})
}

// TestClientParams: what the payer's page or app hands to WeChat is complete and
// signed with the merchant's key.
func TestClientParams(t *testing.T) {
	verify := func(text, sig string) bool {
		sum := sha256.Sum256([]byte(text))
		raw, err := base64.StdEncoding.DecodeString(sig)
		return err == nil && rsa.VerifyPKCS1v15(&keysOnce().merchant.PublicKey, crypto.SHA256, sum[:], raw) == nil
	}
	const id = "wx201410272009395522657a690389285100"
	_, ans := begin(t, MethodJSAPI, made[MethodJSAPI], nil)
	if ans.Kind != payonce.StateWaiting || ans.Action == nil || ans.Action.Type != "client_params" {
		t.Fatalf("jsapi: %+v %v", ans.Fact, ans.Err)
	}
	p := ans.Action.Params
	if len(p) != 6 || p["appId"] != testApp || p["package"] != "prepay_id="+id || p["signType"] != "RSA" || len(p["nonceStr"]) != 32 ||
		!verify(testApp+"\n"+p["timeStamp"]+"\n"+p["nonceStr"]+"\nprepay_id="+id+"\n", p["paySign"]) {
		t.Errorf("jsapi: %v", p)
	}
	_, ans = begin(t, MethodApp, made[MethodApp], nil)
	p = ans.Action.Params
	if len(p) != 7 || p["appid"] != "wx0000000000000009" || p["partnerid"] != testMch || p["prepayid"] != id || p["package"] != "Sign=WXPay" ||
		!verify("wx0000000000000009\n"+p["timestamp"]+"\n"+p["noncestr"]+"\n"+id+"\n", p["sign"]) {
		t.Errorf("app: %v", p)
	}
	if end := testIntent(MethodApp).DeadAt; !ans.Action.ExpiresAt.Equal(end) {
		t.Errorf("ends at %v, the payment at %v", ans.Action.ExpiresAt, end)
	}
}

// TestLinkOfH5: opens for five minutes at most, and only redirect_url is added.
func TestLinkOfH5(t *testing.T) {
	dead := testIntent(MethodH5).DeadAt
	link := made[MethodH5]["h5_url"]
	for name, c := range map[string]struct {
		change func(*payonce.Payment)
		url    string
		end    time.Time
	}{
		"five minutes": {func(p *payonce.Payment) { p.Permits = []payonce.Permit{{No: 1, GivenAt: dead.Add(-15 * time.Minute)}} },
			link + "&redirect_url=https%3A%2F%2Fshop.example%2Fback%3Forder%3D1%26x%3D%2520", dead.Add(-10 * time.Minute)},
		"near the end": {func(p *payonce.Payment) { p.CreatedAt = dead.Add(-time.Minute); p.ReturnURL = "" }, link, dead},
	} {
		_, ans := begin(t, MethodH5, made[MethodH5], c.change)
		if ans.Action == nil || ans.Action.Type != "redirect" || ans.Action.URL != c.url || !ans.Action.ExpiresAt.Equal(c.end) {
			t.Errorf("%s: %+v", name, ans.Action)
		}
	}
	_, ans := begin(t, MethodH5, map[string]string{"h5_url": "https://wx.tenpay.com/pay"}, nil)
	if ans.Action == nil || ans.Action.URL != "https://wx.tenpay.com/pay" {
		t.Errorf("a link without query was changed: %+v", ans.Action)
	}
}

// TestRepeatBegin: the same bytes go out again and may bring another code.
func TestRepeatBegin(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, nil)
	c := channel.Call{Payment: testPayment(t, a, testIntent(MethodNative)), KeyNo: 1}
	var bodies [][]byte
	for _, code := range []string{"weixin://wxpay/bizpayurl?pr=1", "weixin://wxpay/bizpayurl?pr=2"} {
		w.Answer(func(channeltest.Request) channeltest.Reply {
			return signedReply(200, mustJSON(map[string]string{"code_url": code}))
		})
		ans := a.Begin(context.Background(), c)
		if ans.Kind != payonce.StateWaiting || ans.Action.QRCode != code {
			t.Errorf("%+v", ans.Fact)
		}
		bodies = append(bodies, w.Take()[0].Body)
	}
	if !bytes.Equal(bodies[0], bodies[1]) {
		t.Errorf("other bytes:\n%s\n%s", bodies[0], bodies[1])
	}
	if !a.Methods()[MethodNative].RepeatBegin {
		t.Error("RepeatBegin is not declared")
	}
}

// TestR05_DamagedRequestsAreNotSent: bytes that name something else stay here.
func TestR05_DamagedRequestsAreNotSent(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, nil)
	for name, change := range map[string]func(*payonce.Payment){
		"number":    func(p *payonce.Payment) { p.Number = "0000000000000000000X" },
		"amount":    func(p *payonce.Payment) { p.Amount++ },
		"method":    func(p *payonce.Payment) { p.Method = MethodApp },
		"no_method": func(p *payonce.Payment) { p.Method = "" },
		"merchant": func(p *payonce.Payment) {
			p.Request = bytes.Replace(p.Request, []byte(testMch), []byte("1900000002"), 1)
		},
		"application": func(p *payonce.Payment) { p.Request = bytes.Replace(p.Request, []byte(testApp), []byte("wx2"), 1) },
		"cut":         func(p *payonce.Payment) { p.Request = p.Request[:len(p.Request)-1] },
		"twice": func(p *payonce.Payment) {
			p.Request = bytes.Replace(p.Request, []byte(`{"total"`), []byte(`{"total":1,"total"`), 1)
		},
		"empty": func(p *payonce.Payment) { p.Request = nil },
	} {
		p := testPayment(t, a, testIntent(MethodNative))
		change(&p)
		if ans := a.Begin(context.Background(), channel.Call{Payment: p, KeyNo: 1}); ans.Kind != payonce.StateNotSent || ans.Err == nil || len(w.Take()) != 0 {
			t.Errorf("%s: %+v", name, ans)
		}
	}
}

// TestPanicIsNoKnowledge: whatever panics below is caught and quoted nowhere.
func TestPanicIsNoKnowledge(t *testing.T) {
	a := newAdapter(t, "", nil)
	c := channel.Call{Payment: testPayment(t, a, testIntent(MethodNative)), KeyNo: 1}
	a.base = nil
	if ans := a.Query(context.Background(), c); ans.Kind != payonce.StateUnknown || ans.Reason != "panic" {
		t.Errorf("%+v", ans)
	}
	if ans := a.Begin(context.Background(), c); ans.Kind != payonce.StateNotSent || ans.Reason != "panic" {
		t.Errorf("no connection was there: %+v", ans)
	}
}
