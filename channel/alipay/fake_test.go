package alipay

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// What the tests' own Alipay says and how it signs. Nothing of it is shared with
// the adapter.
const (
	testApp    = "2021000000000001"
	testSeller = "2088000000000001"
	testNumber = "0A1B2C3D4E5F6G7H8J9K"
	testTrade  = "2026120122001400000000000001"
)

type testKeys struct{ app, alipay, stranger *rsa.PrivateKey }

// keysOnce makes the keys of all tests, once.
var keysOnce = sync.OnceValue(func() testKeys {
	var k testKeys
	for _, p := range []**rsa.PrivateKey{&k.app, &k.alipay, &k.stranger} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err) // no randomness: no test can run
		}
		*p = key
	}
	return k
})

func bareKey(k *rsa.PrivateKey) string {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		panic(err) // an RSA key made above
	}
	return base64.StdEncoding.EncodeToString(der)
}

func barePublic(k *rsa.PrivateKey) string {
	der, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
	if err != nil {
		panic(err) // an RSA key made above
	}
	return base64.StdEncoding.EncodeToString(der)
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func testConfig(base string) Config {
	k := keysOnce()
	der, _ := base64.StdEncoding.DecodeString(bareKey(k.app)) // made one line above
	return Config{
		Account: "ali1", Environment: payonce.Test, AppID: testApp, SellerID: testSeller, BaseURL: base,
		AppPrivateKey: pemOf("PRIVATE KEY", der), AlipayPublicKey: barePublic(k.alipay),
	}
}

func newAdapter(t testing.TB, base string, change func(*Config)) *Adapter {
	t.Helper()
	cfg := testConfig(base)
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.CloseIdleConnections)
	return a
}

func testIntent(method string) channel.Intent {
	return channel.Intent{
		Order:     payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: "order-1"},
		Sequence:  1,
		Number:    testNumber,
		Method:    method,
		Amount:    1999,
		Currency:  "CNY",
		Subject:   "Tea & cake 茶",
		ReturnURL: "https://shop.example/back?order=1&x=%20",
		NotifyURL: "https://pay.example/webhooks/alipay/ali1",
		DeadAt:    time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC),
	}
}

func testPayment(t testing.TB, a *Adapter, in channel.Intent) payonce.Payment {
	t.Helper()
	request, err := a.Compose(in)
	if err != nil {
		t.Fatal(err)
	}
	return payonce.Payment{ID: "pay_1", Key: in.Order, Amount: in.Amount, Currency: in.Currency, Account: a.Account(),
		Method: in.Method, Number: in.Number, Request: request, DeadAt: in.DeadAt}
}

// signTexts remembers signatures, which take most of the time of these tests.
var signTexts sync.Map

type signedText struct {
	key  *rsa.PrivateKey
	text string
}

// signText is Alipay's signature.
func signText(k *rsa.PrivateKey, text []byte) string {
	id := signedText{k, string(text)}
	if s, ok := signTexts.Load(id); ok {
		return s.(string)
	}
	sum := sha256.Sum256(text)
	sig, err := rsa.SignPKCS1v15(nil, k, crypto.SHA256, sum[:])
	if err != nil {
		panic(err) // a key of 2048 bits signs 32 bytes
	}
	s := base64.StdEncoding.EncodeToString(sig)
	signTexts.Store(id, s)
	return s
}

// answerOf wraps a node as the gateway does.
func answerOf(name string, node []byte, sign string) channeltest.Reply {
	body := `{"` + name + `":` + string(node)
	if sign != "" {
		body += `,"sign":"` + sign + `"`
	}
	return channeltest.Reply{Header: map[string][]string{"Content-Type": {"text/html;charset=utf-8"}}, Body: []byte(body + "}")}
}

func signedAnswer(step channeltest.Step, fields map[string]any) channeltest.Reply {
	node := mustJSON(fields)
	node = bytes.ReplaceAll(node, []byte("/"), []byte(`\/`)) // as Alipay often does
	return answerOf(nodeNames[step], node, signText(keysOnce().alipay, node))
}

var nodeNames = map[channeltest.Step]string{
	channeltest.Begin: "alipay_trade_precreate_response",
	channeltest.Query: "alipay_trade_query_response",
	channeltest.Close: "alipay_trade_close_response",
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only maps of plain values are given
	}
	return b
}

func yuanOf(a payonce.Amount) string { return fmt.Sprintf("%d.%02d", int64(a)/100, int64(a)%100) }

// tradeFields is the answer to a query as the sheet describes it.
func tradeFields(s channeltest.Statement) map[string]any {
	f := map[string]any{
		"code": "10000", "msg": "Success", "out_trade_no": s.Number, "trade_no": testTrade, "total_amount": yuanOf(s.Amount),
		"buyer_logon_id": "159****5620", "buyer_user_id": "2088101117955611",
		"receipt_amount": "0.00", "buyer_pay_amount": "0.00", "point_amount": "0.00", "invoice_amount": "0.00",
	}
	switch s.Kind {
	case payonce.StateSettled:
		f["trade_status"], f["send_pay_date"] = "TRADE_SUCCESS", "2026-12-01 10:00:05"
		f["receipt_amount"], f["buyer_pay_amount"] = "15.00", "15.00" // a coupon paid the rest
		f["fund_bill_list"] = []any{map[string]any{"amount": "15.00", "fund_channel": "ALIPAYACCOUNT"}}
	case payonce.StateWaiting:
		f["trade_status"] = "WAIT_BUYER_PAY"
	case payonce.StateDead:
		f["trade_status"] = "TRADE_CLOSED"
	}
	return f
}

func failed(subCode string) map[string]any {
	return map[string]any{"code": "40004", "msg": "Business Failed", "sub_code": subCode, "sub_msg": "失败 {\"sign\":\"}"}
}

// say is the tests' Alipay.
func say(step channeltest.Step, s channeltest.Statement, _ channeltest.Request) channeltest.Reply {
	switch {
	case s.Kind == payonce.StateRefused:
		return signedAnswer(step, failed("ACQ.TOTAL_FEE_EXCEED"))
	case s.Kind == payonce.StateAbsent:
		return signedAnswer(step, failed("ACQ.TRADE_NOT_EXIST"))
	case step == channeltest.Begin:
		return signedAnswer(step, map[string]any{"code": "10000", "msg": "Success", "out_trade_no": s.Number, "qr_code": "https://qr.alipay.com/bax00000"})
	case step == channeltest.Close:
		return signedAnswer(step, map[string]any{"code": "10000", "msg": "Success", "out_trade_no": s.Number, "trade_no": testTrade})
	}
	return signedAnswer(step, tradeFields(s))
}

// params reads a request's form.
func params(t testing.TB, r channeltest.Request) map[string]string {
	t.Helper()
	v, err := url.ParseQuery(string(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for k, list := range v {
		if len(list) != 1 || list[0] == "" {
			t.Fatalf("parameter %s is %q", k, list)
		}
		out[k] = list[0]
	}
	return out
}

// published is the text that the documents say is signed, made without the
// adapter's code.
func published(fields map[string]string, without ...string) string {
	var names []string
	for k := range fields {
		names = append(names, k)
	}
	sort.Strings(names)
	var parts []string
	for _, k := range names {
		skip := false
		for _, w := range without {
			skip = skip || w == k
		}
		if !skip {
			parts = append(parts, k+"="+fields[k])
		}
	}
	return strings.Join(parts, "&")
}

// noticeFields is a notice as the sheet describes it.
func noticeFields(s channeltest.Statement, at time.Time) map[string]string {
	f := map[string]string{
		"notify_time": at.In(time.FixedZone("", 8*3600)).Format("2006-01-02 15:04:05"), "notify_type": "trade_status_sync",
		"notify_id": "2026120100222100005000000001", "app_id": testApp, "auth_app_id": testApp, "charset": "utf-8", "version": "1.0",
		"sign_type": "RSA2", "trade_no": testTrade, "out_trade_no": s.Number, "buyer_id": "2088101117955611", "buyer_logon_id": "159****5620",
		"seller_id": testSeller, "seller_email": "shop@example.com", "total_amount": yuanOf(s.Amount), "subject": "Tea ＆ cake 茶",
		"gmt_create": "2026-12-01 10:00:00", "trade_status": "WAIT_BUYER_PAY", "point_amount": "0.00",
	}
	switch s.Kind {
	case payonce.StateSettled:
		f["trade_status"], f["gmt_payment"] = "TRADE_SUCCESS", "2026-12-01 10:00:05"
		f["receipt_amount"], f["buyer_pay_amount"] = "15.00", "15.00"
		f["fund_bill_list"] = `[{"amount":"15.00","fundChannel":"ALIPAYACCOUNT"}]`
	case payonce.StateDead:
		f["trade_status"], f["gmt_close"] = "TRADE_CLOSED", "2026-12-01 10:15:00"
	}
	if s.Foreign {
		f["app_id"] = "2021000000000002"
	}
	return f
}

// signNotice adds Alipay's signature and encodes the form.
func signNotice(k *rsa.PrivateKey, f map[string]string) []byte {
	v := url.Values{}
	for name, value := range f {
		v.Set(name, value)
	}
	v.Set("sign", signText(k, []byte(published(f, "sign", "sign_type"))))
	return []byte(v.Encode())
}
