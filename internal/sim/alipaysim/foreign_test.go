package alipaysim_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-pay/gopay"
	gopayalipay "github.com/go-pay/gopay/alipay"
	"github.com/smartwalle/alipay/v3"
)

// TestForeignClientSmartwalle shows that the wire is Alipay's: a client that
// knows nothing of the simulator lives a whole payment on it.
func TestForeignClientSmartwalle(t *testing.T) {
	for _, mode := range []string{"key", "certificate"} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t)
			smartwalleLife(t, r, smartwalle(r, mode))
		})
	}
}

func smartwalle(r *rig, mode string) *alipay.Client {
	r.t.Helper()
	creds := r.control("GET", "/_sim/credentials?channel=alipay&certificates=1", "", 200)["alipay"].(map[string]any)
	text := func(name string) string { return creds[name].(string) }
	block, _ := pem.Decode([]byte(text("app_private_key")))
	c, err := alipay.New(r.app, base64.StdEncoding.EncodeToString(block.Bytes), true,
		alipay.WithProductionGateway(text("base_url")), alipay.WithHTTPClient(r.http), alipay.WithTimeLocation(beijing))
	r.ok(err)
	if mode == "key" {
		block, _ = pem.Decode([]byte(text("alipay_public_key")))
		r.ok(c.LoadAliPayPublicKey(base64.StdEncoding.EncodeToString(block.Bytes)))
		return c
	}
	r.ok(c.LoadAppCertPublicKey(text("app_certificate")))
	r.ok(c.LoadAliPayRootCert(text("alipay_root_certificate")))
	r.ok(c.LoadAlipayCertPublicKey(text("alipay_certificate")))
	return c
}

func smartwalleLife(t *testing.T, r *rig, c *alipay.Client) {
	t.Helper()
	s, ctx := newShop(t, nil), context.Background()
	var order alipay.TradePreCreate
	order.OutTradeNo, order.TotalAmount, order.Subject, order.NotifyURL = "SW1", "88.88", "测试 + 商品", s.srv.URL
	made, err := c.TradePreCreate(ctx, order)
	r.ok(err)
	equal(t, "code", made.QRCode != "" && made.IsSuccess(), true)
	missing, err := c.TradeQuery(ctx, alipay.TradeQuery{OutTradeNo: "SW1"})
	r.ok(err)
	equal(t, "before the scan", missing.SubCode, "ACQ.TRADE_NOT_EXIST")
	r.get(made.QRCode)
	waits, err := c.TradeQuery(ctx, alipay.TradeQuery{OutTradeNo: "SW1"})
	r.ok(err)
	equal(t, "after it", waits.TradeStatus, alipay.TradeStatusWaitBuyerPay)
	r.pay("SW1", "", 200)
	d := s.next(t)
	told, err := c.DecodeNotification(d.form)
	r.ok(err)
	equal(t, "notice", told.TradeStatus, alipay.TradeStatusSuccess)
	equal(t, "amount", told.TotalAmount, "88.88")
	d.form.Set("total_amount", "88.89")
	if c.VerifySign(d.form) == nil {
		t.Fatal("a changed notice passes")
	}
	paid, err := c.TradeQuery(ctx, alipay.TradeQuery{OutTradeNo: "SW1"})
	r.ok(err)
	equal(t, "paid", paid.TradeStatus, alipay.TradeStatusSuccess)
	refused, err := c.TradeClose(ctx, alipay.TradeClose{OutTradeNo: "SW1"})
	r.ok(err)
	equal(t, "close of a paid one", refused.SubCode, "ACQ.TRADE_STATUS_ERROR")
	refund, err := c.TradeRefund(ctx, alipay.TradeRefund{OutTradeNo: "SW1", OutRequestNo: "RF1", RefundAmount: "8.88"})
	r.ok(err)
	equal(t, "refund", refund.FundChange, "Y")
	_, err = c.DecodeNotification(s.next(t).form)
	r.ok(err)
	asked, err := c.TradeFastPayRefundQuery(ctx, alipay.TradeFastPayRefundQuery{OutTradeNo: "SW1", OutRequestNo: "RF1"})
	r.ok(err)
	equal(t, "refund query", asked.RefundStatus+" "+asked.RefundAmount, "REFUND_SUCCESS 8.88")

	order.OutTradeNo = "SW2"
	made, err = c.TradePreCreate(ctx, order)
	r.ok(err)
	r.get(made.QRCode)
	closing, err := c.TradeClose(ctx, alipay.TradeClose{OutTradeNo: "SW2"})
	r.ok(err)
	equal(t, "close", closing.IsSuccess(), true)
	cancelled, err := c.TradeCancel(ctx, alipay.TradeCancel{OutTradeNo: "SW2"})
	r.ok(err)
	equal(t, "cancel", cancelled.Action, "close")

	var page alipay.TradePagePay
	page.OutTradeNo, page.TotalAmount, page.Subject, page.ProductCode = "SW3", "1.00", "页面", "FAST_INSTANT_TRADE_PAY"
	link, err := c.TradePagePay(page)
	r.ok(err)
	status, _, _ := r.get(link.String())
	equal(t, "page opened", status, http.StatusFound)
	var app alipay.TradeAppPay
	app.OutTradeNo, app.TotalAmount, app.Subject, app.ProductCode = "SW4", "1.00", "应用", "QUICK_MSECURITY_PAY"
	text, err := c.TradeAppPay(app)
	r.ok(err)
	status, _, _ = r.get(r.srv.URL + "/alipay/gateway.do?" + text)
	equal(t, "order string opened", status, http.StatusFound)
}

// redirected sends gopay's fixed addresses to the simulator.
type redirected struct {
	host string
	next http.RoundTripper
}

func (t redirected) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "http", t.host, t.host
	return t.next.RoundTrip(r)
}

// TestForeignClientGopay is the same with another client, which has fixed
// paths without our prefix.
func TestForeignClientGopay(t *testing.T) {
	for _, mode := range []string{"key", "certificate"} {
		t.Run(mode, func(t *testing.T) {
			r, s, ctx := newRig(t), newShop(t, nil), context.Background()
			creds := r.control("GET", "/_sim/credentials?channel=alipay&certificates=1", "", 200)["alipay"].(map[string]any)
			text := func(name string) string { return creds[name].(string) }
			block, _ := pem.Decode([]byte(text("app_private_key")))
			c, err := gopayalipay.NewClient(r.app, base64.StdEncoding.EncodeToString(block.Bytes), true)
			r.ok(err)
			u, err := url.Parse(r.srv.URL)
			r.ok(err)
			c.GetHttpClient().SetTransport(redirected{u.Host, r.http.Transport})
			c.SetNotifyUrl(s.srv.URL).SetLocation(gopayalipay.LocationShanghai)
			verified := text("alipay_public_key")
			if mode == "certificate" {
				verified = text("alipay_certificate")
				r.ok(c.SetCertSnByContent([]byte(text("app_certificate")), []byte(text("alipay_root_certificate")), []byte(verified)))
			}
			c.AutoVerifySign([]byte(verified))
			gopayLife(t, r, s, ctx, c, mode, verified)
		})
	}
}

func gopayLife(t *testing.T, r *rig, s *shop, ctx context.Context, c *gopayalipay.Client, mode, verified string) {
	t.Helper()
	made, err := c.TradePrecreate(ctx, gopay.BodyMap{"out_trade_no": "GP1", "total_amount": "88.88", "subject": "测试"})
	r.ok(err)
	_, err = c.TradeQuery(ctx, gopay.BodyMap{"out_trade_no": "GP1"})
	if e, is := gopayalipay.IsBizError(err); !is || e.SubCode != "ACQ.TRADE_NOT_EXIST" {
		t.Fatalf("before the scan: %v", err)
	}
	r.get(made.Response.QrCode)
	r.pay("GP1", "", 200)
	paid, err := c.TradeQuery(ctx, gopay.BodyMap{"out_trade_no": "GP1"})
	r.ok(err)
	equal(t, "paid", paid.Response.TradeStatus+" "+paid.Response.TotalAmount, "TRADE_SUCCESS 88.88")
	genuine := func() {
		t.Helper()
		told, err := gopayalipay.ParseNotifyByURLValues(s.next(t).form)
		r.ok(err)
		check := func(n gopay.BodyMap) (bool, error) {
			if mode == "certificate" {
				return gopayalipay.VerifySignWithCert([]byte(verified), n)
			}
			block, _ := pem.Decode([]byte(verified))
			return gopayalipay.VerifySign(base64.StdEncoding.EncodeToString(block.Bytes), n)
		}
		ok, err := check(told)
		equal(t, "notice verified", ok && err == nil, true)
	}
	genuine()
	refund, err := c.TradeRefund(ctx, gopay.BodyMap{"out_trade_no": "GP1", "refund_amount": "8.88", "out_request_no": "RF1"})
	r.ok(err)
	equal(t, "refund", refund.Response.FundChange, "Y")
	genuine()
	asked, err := c.TradeFastPayRefundQuery(ctx, gopay.BodyMap{"out_trade_no": "GP1", "out_request_no": "RF1"})
	r.ok(err)
	equal(t, "refund query", asked.Response.RefundStatus, "REFUND_SUCCESS")

	r.qr("GP2")
	r.pay("GP2", `,"outcome":"scanned"`, 200)
	_, err = c.TradeClose(ctx, gopay.BodyMap{"out_trade_no": "GP2"})
	r.ok(err)
	equal(t, "closed", r.line("GP2")["status"], any("closed"))
	link, err := c.TradePagePay(ctx, gopay.BodyMap{"out_trade_no": "GP3", "total_amount": "1.00", "subject": "页面", "product_code": "FAST_INSTANT_TRADE_PAY"})
	r.ok(err)
	status, _, _ := r.get(strings.Replace(link, "https://openapi.alipay.com", r.srv.URL, 1))
	equal(t, "page opened", status, http.StatusFound)

	// It verifies over raw bytes, so that a bad signature must fail.
	r.fault("query", "bad_signature", "")
	if _, err := c.TradeQuery(ctx, gopay.BodyMap{"out_trade_no": "GP1"}); err == nil {
		t.Fatal("a wrong signature passes")
	}
}
