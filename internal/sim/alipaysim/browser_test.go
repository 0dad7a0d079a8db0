package alipaysim_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// link is a signed page.pay link of 10.00.
func (r *rig) link(method, number, more string, params ...string) string {
	r.t.Helper()
	code := map[string]string{"page": "FAST_INSTANT_TRADE_PAY", "wap": "QUICK_WAP_WAY", "app": "QUICK_MSECURITY_PAY"}[method]
	v := r.params("alipay.trade."+method+".pay", order(number, `,"product_code":"`+code+`"`+more), params...)
	return r.srv.URL + "/alipay/gateway.do?" + v.Encode()
}

func gbkPage(raw string) string {
	text, _ := simplifiedchinese.GBK.NewDecoder().String(raw)
	return text
}

// TestPagePay: a form makes nothing until a browser opens it, and no trade
// until the payer has logged in.
func TestPagePay(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	link := r.link("page", "P1", "", "notify_url", s.srv.URL, "return_url", "http://shop.example/back?a=1")
	r.pay("P1", "", 404)
	status, header, _ := r.get(link)
	equal(t, "opened", status, 302)
	page := r.srv.URL + header.Get("Location")
	r.api("query", about("P1"), "ACQ.TRADE_NOT_EXIST")
	equal(t, "books", r.line("P1")["status"], any("created"))
	_, header, _ = r.get(link)
	equal(t, "the same cashier again", r.srv.URL+header.Get("Location"), page)
	equal(t, "calls", r.calls("create", "P1"), 2)
	_, _, text := r.get(page)
	equal(t, "log in", strings.Contains(text, `value="scanned"`), true)
	press := func(outcome string) string {
		t.Helper()
		res, err := r.http.PostForm(page, url.Values{"outcome": {outcome}})
		r.ok(err)
		res.Body.Close()
		equal(t, "pressed", res.StatusCode, 303)
		return res.Header.Get("Location")
	}
	press("scanned")
	equal(t, "logged in", r.api("query", about("P1"), "10000").str("trade_status"), "WAIT_BUYER_PAY")
	back, err := url.Parse(press("paid"))
	r.ok(err)
	q := back.Query()
	equal(t, "back", back.Host+" "+q.Get("a")+" "+q.Get("out_trade_no")+" "+q.Get("total_amount"), "shop.example 1 P1 10.00")
	q.Del("a")
	equal(t, "signed", r.genuineNotice(notice{form: q}), true)
	equal(t, "notice", s.next(t).form.Get("trade_status"), "TRADE_SUCCESS")
	_, header, _ = r.get(link)
	_, _, text = r.get(r.srv.URL + header.Get("Location"))
	equal(t, "others show that it is paid", strings.Contains(text, "<form"), false)
	press("paid")
	equal(t, "one trade", r.line("P1")["amount"], any(1000.0))
}

func TestFormsThatCannotBeOpened(t *testing.T) {
	r := newRig(t)
	show := func(link string) string {
		t.Helper()
		status, header, raw := r.get(link)
		equal(t, "status", status, 200)
		equal(t, "type", header.Get("Content-Type"), "text/html;charset=GBK")
		return gbkPage(raw)
	}
	for link, want := range map[string]string{
		r.link("page", "B1", "") + "&extra=1":                                "isv.invalid-signature",
		r.link("page", "B1", `,"time_expire":"`+r.virtual(-time.Minute)+`"`): "ACQ.NOW_TIME_AFTER_EXPIRE_TIME_ERROR",
		r.link("wap", "B1", "", "app_id", "1"):                               "isv.invalid-app-id",
	} {
		if got := show(link); !strings.Contains(got, want) {
			t.Errorf("%s shows %s", link, got)
		}
	}
	r.get(r.link("wap", "B2", ""))
	r.pay("B2", `,"outcome":"scanned"`, 200)
	other := strings.Replace(order("B2", `,"product_code":"QUICK_WAP_WAY"`), "10.00", "11.00", 1)
	v := r.params("alipay.trade.wap.pay", other)
	equal(t, "other amount", strings.Contains(show(r.srv.URL+"/alipay/gateway.do?"+v.Encode()), "ACQ.CONTEXT_INCONSISTENT"), true)
	equal(t, "other product", strings.Contains(show(r.link("page", "B2", "")), "ACQ.CONTEXT_INCONSISTENT"), true)
	r.api("close", about("B2"), "10000")
	equal(t, "closed", strings.Contains(show(r.link("wap", "B2", "")), "ACQ.TRADE_HAS_CLOSE"), true)
}

// TestFormLivesAsLongAsItSays: a signed form is opened long after it was
// signed; only time_expire bounds it.
func TestFormLivesAsLongAsItSays(t *testing.T) {
	r := newRig(t)
	old := "2026-01-01 00:00:00"
	bounded := r.link("page", "L1", `,"time_expire":"`+r.virtual(time.Hour)+`"`, "timestamp", old)
	relative := r.link("page", "L2", `,"timeout_express":"5m"`, "timestamp", old)
	r.advance("3601")
	_, _, text := r.get(bounded)
	equal(t, "dead", strings.Contains(gbkPage(text), "EXPIRE_TIME"), true)
	status, _, _ := r.get(relative)
	equal(t, "counts from the opening", status, 302)
	r.pay("L2", `,"outcome":"scanned"`, 200)
	r.advance("301")
	equal(t, "closed", r.line("L2")["status"], any("closed"))
}

func TestWapAndAppPay(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	for _, method := range []string{"wap", "app"} {
		number := "W_" + method
		v, err := url.Parse(r.link(method, number, "", "notify_url", s.srv.URL))
		r.ok(err)
		res, err := r.http.PostForm(r.srv.URL+"/alipay/gateway.do", v.Query())
		r.ok(err)
		res.Body.Close()
		equal(t, "opened", res.StatusCode, 302)
		r.pay(number, "", 200)
		equal(t, "paid", s.next(t).form.Get("trade_status"), "TRADE_SUCCESS")
		// These products also tell of an end without money.
		r.get(r.link(method, number+"2", "", "notify_url", s.srv.URL))
		r.pay(number+"2", `,"outcome":"scanned"`, 200)
		r.advance("1296001")
		d := s.next(t)
		equal(t, "closed", d.form.Get("trade_status"), "TRADE_CLOSED")
		equal(t, "nothing was paid", d.form.Get("gmt_payment"), "")
	}
	r.pay("W_app", "", 409)
}
