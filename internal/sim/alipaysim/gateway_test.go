package alipaysim_test

import (
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/simplifiedchinese"
)

func TestAnswersAreSignedOverTheRawNode(t *testing.T) {
	r := newRig(t)
	a := r.api("precreate", order("S1", ""), "10000")
	equal(t, "signed", a.signed, true)
	equal(t, "content type", a.header.Get("Content-Type"), "text/html;charset=utf-8")
	equal(t, "slashes are escaped", strings.Contains(a.node, `http:\/\/`), true)
	equal(t, "but not in the signature", strings.Contains(a.raw[strings.Index(a.raw, `"sign"`):], `\`), false)
	equal(t, "qr text", strings.HasPrefix(a.str("qr_code"), r.srv.URL+"/_sim/alipay/"), true)
	if r.genuine(strings.ReplaceAll(a.node, `\/`, "/"), a.sign) {
		t.Fatal("the signature covers other bytes than were sent")
	}
	r.turn("slashes", "plain")
	equal(t, "plain", strings.Contains(r.api("precreate", order("S1", ""), "10000").node, `\/`), false)
	equal(t, "business refusals are signed", r.api("query", about("nobody"), "ACQ.TRADE_NOT_EXIST").signed, true)
	// Without the prefix, as clients with a fixed path send it.
	res, err := r.http.PostForm(r.srv.URL+"/gateway.do", r.params("alipay.trade.query", about("nobody")))
	r.ok(err)
	res.Body.Close()
	equal(t, "bare path", res.StatusCode, 200)
}

func TestGatewayRefusalsAreUnsigned(t *testing.T) {
	r := newRig(t)
	old := time.Now().Add(-11 * time.Minute).In(beijing).Format(layout)
	ahead := time.Now().Add(11 * time.Minute).In(beijing).Format(layout)
	for _, c := range []struct{ want, code, name, value string }{
		{"isv.missing-method", "40001", "method", "-"},
		{"isv.missing-app-id", "40001", "app_id", "-"},
		{"isv.missing-signature", "40001", "sign", "-"},
		{"isv.missing-signature-type", "40001", "sign_type", "-"},
		{"isv.missing-timestamp", "40001", "timestamp", "-"},
		{"isv.missing-version", "40001", "version", "-"},
		{"isv.invalid-app-id", "40002", "app_id", "2021000000000001"},
		{"isv.invalid-method", "40002", "method", "alipay.trade.nothing"},
		{"isv.invalid-signature-type", "40002", "sign_type", "RSA"},
		{"isv.invalid-charset", "40002", "charset", "latin1"},
		{"isv.invalid-format", "40002", "format", "XML"},
		{"isv.invalid-timestamp", "40002", "timestamp", old},
		{"isv.invalid-timestamp", "40002", "timestamp", ahead},
		{"isv.invalid-timestamp", "40002", "timestamp", "2026-12-01T10:00:00"},
		{"isv.invalid-signature", "40002", "sign", "AAAA"},
		{"isv.illegal-json", "40002", "biz_content", "{"},
	} {
		v := r.params("alipay.trade.query", about("N1"), c.name, c.value)
		if c.name == "sign" && c.value == "-" {
			v.Del("sign")
		}
		a, err := r.send(v)
		r.ok(err)
		if a.code() != c.want || a.str("code") != c.code || a.sign != "" || a.status != 200 {
			t.Errorf("%s=%s: %s, want %s", c.name, c.value, a.raw, c.want)
		}
	}
	// The application is looked for before the signature.
	equal(t, "app first", r.api("query", about("N1"), "isv.invalid-app-id", "app_id", "2021000000000001", "sign", "AAAA").sign, "")
	// The check of the time stays real when the virtual clock moves.
	r.advance("864000")
	r.api("query", about("N1"), "ACQ.TRADE_NOT_EXIST")
	equal(t, "refused calls are counted", r.calls("query", "N1") > 10, true)
}

func TestSignatureCoversAllParametersButSign(t *testing.T) {
	r := newRig(t)
	for name, change := range map[string]func(url.Values){
		"changed":         func(v url.Values) { v.Set("biz_content", about("other")) },
		"added":           func(v url.Values) { v.Set("notify_url", "http://127.0.0.1/") },
		"removed":         func(v url.Values) { v.Del("format") },
		"plus as a space": func(v url.Values) { v.Set("sign", strings.NewReplacer("+", " ", "/", "_").Replace(v.Get("sign"))) },
		"type left out of the text": func(v url.Values) {
			v.Del("sign_type")
			v.Set("sign", r.signature(v))
			v.Set("sign_type", "RSA2")
		},
	} {
		v := r.params("alipay.trade.query", about("N1"))
		change(v)
		a, err := r.send(v)
		r.ok(err)
		equal(t, name, a.code(), "isv.invalid-signature")
	}
	// Parameters without a value may be in the text or not.
	v := r.params("alipay.trade.query", about("N1"), "app_auth_token", "")
	a, err := r.send(v)
	r.ok(err)
	equal(t, "empty, signed", a.code(), "ACQ.TRADE_NOT_EXIST")
	v = r.params("alipay.trade.query", about("N1"))
	v.Set("app_auth_token", "")
	a, err = r.send(v)
	r.ok(err)
	equal(t, "empty, not signed", a.code(), "ACQ.TRADE_NOT_EXIST")
}

func TestQueryAndBodyAreMerged(t *testing.T) {
	r := newRig(t)
	v := r.params("alipay.trade.query", about("N1"))
	body := url.Values{"biz_content": v["biz_content"]}
	v.Del("biz_content")
	post := func(path, kind string, body io.Reader) string {
		t.Helper()
		res, err := r.http.Post(r.srv.URL+path, kind, body)
		r.ok(err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		r.ok(err)
		return string(b)
	}
	got := post("/alipay/gateway.do?strict=1&"+v.Encode(), "application/x-www-form-urlencoded", strings.NewReader(body.Encode()))
	equal(t, "split", strings.Contains(got, "ACQ.TRADE_NOT_EXIST"), true)
	both := post("/alipay/gateway.do?"+v.Encode(), "application/x-www-form-urlencoded", strings.NewReader(body.Encode()+"&method=alipay.trade.close"))
	equal(t, "twice, differently", strings.Contains(both, "isv.invalid-parameter"), true)
	var b strings.Builder
	m := multipart.NewWriter(&b)
	for name := range v {
		r.ok(m.WriteField(name, v.Get(name)))
	}
	r.ok(m.WriteField("biz_content", about("N1")))
	r.ok(m.Close())
	equal(t, "multipart", strings.Contains(post("/alipay/gateway.do", m.FormDataContentType(), strings.NewReader(b.String())), "ACQ.TRADE_NOT_EXIST"), true)
}

func TestCharsets(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	gbk := func(text string) string {
		out, err := simplifiedchinese.GBK.NewEncoder().String(text)
		r.ok(err)
		return out
	}
	r.api("precreate", gbk(order("G1", "")), "10000", "charset", "gbk", "notify_url", s.srv.URL)
	a := r.api("query", about("nobody"), "ACQ.TRADE_NOT_EXIST", "charset", "gbk")
	equal(t, "signed in GBK", a.signed, true)
	equal(t, "text", a.str("sub_msg"), "交易不存在")
	equal(t, "bytes", strings.Contains(a.raw, gbk("交易不存在")), true)
	r.pay("G1", "", 200)
	d := s.next(t)
	equal(t, "notice charset", d.form.Get("charset"), "gbk")
	equal(t, "notice subject", d.form.Get("subject"), gbk("测试"))
	equal(t, "notice", r.genuineNotice(d), true)
	r.api("precreate", gbk(order("G2", "")), "isv.illegal-json") // GBK bytes called UTF-8
}

func TestCertificateMode(t *testing.T) {
	r := newRig(t)
	r.api("query", about("N1"), "isv.missing-alipay-root-cert-sn", "app_cert_sn", "a")
	r.api("query", about("N1"), "isv.missing-app-cert-sn", "alipay_root_cert_sn", "a")
	a := r.api("query", about("N1"), "isv.missing-signature-config", "app_cert_sn", "a", "alipay_root_cert_sn", "b")
	equal(t, "code", a.str("code"), "40003")
}

func TestOtherPathsAndMethods(t *testing.T) {
	r := newRig(t)
	for path, want := range map[string]int{"/alipay/other": http.StatusNotFound, "/_sim/alipay/nothing": http.StatusFound, "/_sim/pages/alipay/nothing": http.StatusNotFound} {
		status, _, _ := r.get(r.srv.URL + path)
		equal(t, path, status, want)
	}
}

// TestStrict plays what the real channel demands of an address.
func TestStrict(t *testing.T) {
	r := newRig(t)
	for address, want := range map[string]string{"http://127.0.0.1:8080/n": "ACQ.INVALID_PARAMETER", "http://localhost/n": "ACQ.INVALID_PARAMETER",
		"http://10.0.0.1/n": "ACQ.INVALID_PARAMETER", "https://shop.example/n": `"code":"10000"`} {
		v := r.params("alipay.trade.precreate", order("S1", ""), "notify_url", address)
		res, err := r.http.PostForm(r.srv.URL+"/alipay/gateway.do?strict=1", v)
		r.ok(err)
		b, err := io.ReadAll(res.Body)
		r.ok(err)
		res.Body.Close()
		equal(t, address, strings.Contains(string(b), want), true)
	}
}

// TestSameSeedSameIds: two simulators of one seed give the same ids and, where
// no time is inside, the same signatures.
func TestSameSeedSameIds(t *testing.T) {
	var ids [2]string
	for n := range ids {
		r := newRig(t)
		code := r.qr("D1")
		r.pay("D1", "", 200)
		no := r.line("D1")["payment_id"].(string)
		ids[n] = code[strings.LastIndexByte(code, '/'):] + " " + no[8:] + " " + r.api("query", about("nobody"), "ACQ.TRADE_NOT_EXIST").sign
	}
	equal(t, "ids", ids[0], ids[1])
}
