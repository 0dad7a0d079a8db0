package alipay

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-pay/gopay"
	gopayali "github.com/go-pay/gopay/alipay"
	smart "github.com/smartwalle/alipay/v3"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// The oracles are two independent clients of Alipay. Their traps are respected:
// smartwalle believes a reply of any number and any HTTP status, gopay verifies
// nothing unless told to; so only signatures and texts are compared with them.

func smartClient(t *testing.T, gateway string) *smart.Client {
	t.Helper()
	c, err := smart.New(testApp, bareKey(keysOnce().app), true, smart.WithProductionGateway(gateway), smart.WithTimeLocation(china))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.LoadAliPayPublicKey(barePublic(keysOnce().alipay)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOracle_Requests: our signatures are those that gopay makes of the same
// parameters, and what smartwalle sends verifies by our rule.
func TestOracle_Requests(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, nil)
	p := testPayment(t, a, testIntent(MethodQR))
	ctx := context.Background()
	a.Begin(ctx, channel.Call{Payment: p})
	a.Query(ctx, channel.Call{Payment: p})
	a.Close(ctx, channel.Call{Payment: p})
	act, err := a.Sign(testPayment(t, a, testIntent(MethodPage)))
	if err != nil {
		t.Fatal(err)
	}
	act.Fields["charset"] = "utf-8"
	all := []map[string]string{act.Fields}
	for _, r := range w.Take() {
		all = append(all, params(t, r))
	}
	if len(all) != 4 {
		t.Fatalf("%d requests", len(all))
	}
	for _, f := range all {
		bm := gopay.BodyMap{}
		for k, v := range f {
			if k != "sign" {
				bm.Set(k, v)
			}
		}
		want, err := gopayali.GetRsaSign(bm, gopayali.RSA2, keysOnce().app)
		if err != nil || f["sign"] != want {
			t.Errorf("%s: gopay signs otherwise (%v)", f["method"], err)
		}
	}

	var got map[string]string
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		got = map[string]string{}
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		for k := range r.Form {
			got[k] = r.Form.Get(k)
		}
		_, _ = rw.Write(say(channeltest.Begin, channeltest.Statement{Number: testNumber}, channeltest.Request{}).Body) // the client may be gone
	}))
	defer srv.Close()
	c := smartClient(t, srv.URL)
	res, err := c.TradePreCreate(ctx, smart.TradePreCreate{Trade: smart.Trade{Subject: "茶", OutTradeNo: testNumber, TotalAmount: "19.99", NotifyURL: "https://a.example/n"}})
	if err != nil || res.QRCode != "https://qr.alipay.com/bax00000" {
		t.Fatalf("smartwalle reads our fake's answer otherwise: %v %+v", err, res)
	}
	if sign := signText(keysOnce().app, []byte(canonical(got))); sign != got["sign"] {
		t.Error("smartwalle's request does not verify by our rule")
	}
	u, err := c.TradePagePay(smart.TradePagePay{Trade: smart.Trade{Subject: "茶", OutTradeNo: testNumber, TotalAmount: "19.99", ProductCode: "FAST_INSTANT_TRADE_PAY", ReturnURL: "https://a.example/?x=1&y=2"}})
	if err != nil {
		t.Fatal(err)
	}
	got = map[string]string{}
	for k := range u.Query() {
		got[k] = u.Query().Get(k)
	}
	if sign := signText(keysOnce().app, []byte(canonical(got))); sign != got["sign"] {
		t.Error("smartwalle's page link does not verify by our rule")
	}
}

// TestOracle_Replies: a node that we believe, smartwalle and gopay believe too,
// and read alike; one that is altered none of them believes.
func TestOracle_Replies(t *testing.T) {
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(body) })) // the client may be gone
	defer srv.Close()
	c, a := smartClient(t, srv.URL), newAdapter(t, srv.URL, nil)
	p := testPayment(t, a, testIntent(MethodQR))
	ctx := context.Background()
	for _, kind := range []payonce.FactKind{payonce.StateSettled, payonce.StateWaiting, payonce.StateDead, payonce.StateAbsent} {
		reply := say(channeltest.Query, channeltest.Statement{Kind: kind, Number: testNumber, Amount: 1999}, channeltest.Request{})
		body = reply.Body
		ours := a.Query(ctx, channel.Call{Payment: p})
		theirs, err := c.TradeQuery(ctx, smart.TradeQuery{OutTradeNo: testNumber})
		if err != nil || ours.Kind != kind {
			t.Fatalf("%s: ours %s, theirs %v", kind, ours.Kind, err)
		}
		if kind == payonce.StateSettled && (theirs.TotalAmount != "19.99" || ours.Amount != 1999 || theirs.TradeNo != ours.PaymentRef) {
			t.Errorf("read %d %s and %s %s", ours.Amount, ours.PaymentRef, theirs.TotalAmount, theirs.TradeNo)
		}
		e, err := cut(body, methodQuery)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := gopayali.VerifySyncSign(barePublic(keysOnce().alipay), string(e.node), e.sign); !ok {
			t.Errorf("gopay does not verify what we cut: %v", err)
		}
		altered := append([]byte{}, body...)
		altered[len(`{"alipay_trade_query_response":{"`)+2] ^= 1
		body = altered
		if ans := a.Query(ctx, channel.Call{Payment: p}); ans.Kind != payonce.StateUnknown {
			t.Errorf("altered: %s", ans.Kind)
		}
		if _, err := c.TradeQuery(ctx, smart.TradeQuery{OutTradeNo: testNumber}); err == nil {
			t.Error("the oracle believes an altered reply")
		}
	}
}

// TestOracle_Notices: in both directions, over values that are hard to encode.
func TestOracle_Notices(t *testing.T) {
	a, c := newAdapter(t, "", nil), smartClient(t, "http://127.0.0.1:1")
	for _, subject := range []string{"茶", " a ", "a&b=c+d%25", `[{"x":"\\\"/"}]`, "🍵", "a\r\nb"} {
		f := with(paidNotice(), "subject", subject)
		bm := gopay.BodyMap{}
		for k, v := range f {
			if k != "sign_type" {
				bm.Set(k, v)
			}
		}
		sign, err := gopayali.GetRsaSign(bm, gopayali.RSA2, keysOnce().alipay)
		if err != nil {
			t.Fatal(err)
		}
		v := url.Values{"sign": {sign}}
		for k, s := range f {
			v.Set(k, s)
		}
		n, err := a.ReadNotice(nil, []byte(v.Encode()))
		if err != nil || n.Fact.Amount != 1999 {
			t.Errorf("%q signed by gopay: %v", subject, err)
		}
		theirs, err := c.DecodeNotification(v)
		if err != nil || theirs.OutTradeNo != n.Number || theirs.TradeNo != n.Fact.PaymentRef || theirs.NotifyId != n.EventID {
			t.Errorf("%q read by smartwalle: %v %+v", subject, err, theirs)
		}
		ours, err := url.ParseQuery(string(signNotice(keysOnce().alipay, f)))
		if err != nil {
			t.Fatal(err)
		}
		all, err := gopayali.ParseNotifyByURLValues(ours)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := gopayali.VerifySign(barePublic(keysOnce().alipay), all); !ok {
			t.Errorf("%q verified by gopay: %v", subject, err)
		}
	}
}

// TestOracle_Certificates: the serial numbers are those of both libraries.
func TestOracle_Certificates(t *testing.T) {
	app, alipay, root := testCerts(t)
	a := newAdapter(t, "", certMode(app, alipay, root))
	for _, c := range []struct{ pem, ours string }{{app, a.certSNs["app_cert_sn"]}, {alipay, a.alipay.keys[0].sn}} {
		if want, err := gopayali.GetCertSN([]byte(c.pem)); err != nil || want != c.ours {
			t.Errorf("serial %s, gopay has %s (%v)", c.ours, want, err)
		}
	}
	if want, err := gopayali.GetRootCertSN([]byte(root)); err != nil || want != a.certSNs["alipay_root_cert_sn"] {
		t.Errorf("root serial %s, gopay has %s (%v)", a.certSNs["alipay_root_cert_sn"], want, err)
	}
	c := smartClient(t, "http://127.0.0.1:1")
	if err := c.LoadAppCertPublicKey(app); err != nil {
		t.Fatal(err)
	}
	if err := c.LoadAliPayRootCert(root); err != nil {
		t.Fatal(err)
	}
	v, err := c.URLValues(smart.TradeQuery{OutTradeNo: testNumber})
	if err != nil || v.Get("app_cert_sn") != a.certSNs["app_cert_sn"] || v.Get("alipay_root_cert_sn") != a.certSNs["alipay_root_cert_sn"] {
		t.Errorf("smartwalle sends %s and %s (%v)", v.Get("app_cert_sn"), v.Get("alipay_root_cert_sn"), err)
	}
}
