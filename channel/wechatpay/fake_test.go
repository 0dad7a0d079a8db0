package wechatpay

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// What the tests' own WeChat Pay says and how it signs. Nothing of it is shared
// with the adapter.
const (
	testApp    = "wx0000000000000001"
	testMch    = "1900000001"
	testSerial = "5157F09EFDC096DE15EBE81A47057A7232F1B8E1"
	testKeyID  = "PUB_KEY_ID_0112345678900000000000000001"
	testAPIKey = "0123456789abcdef0123456789ABCDEF"
	testNumber = "0A1B2C3D4E5F6G7H8J9K"
	testTrade  = "4200001234202612010000000001"
)

type testKeys struct{ merchant, wechat, platform, stranger *rsa.PrivateKey }

// keysOnce makes the keys of all tests, once.
var keysOnce = sync.OnceValue(func() testKeys {
	var k testKeys
	for _, p := range []**rsa.PrivateKey{&k.merchant, &k.wechat, &k.platform, &k.stranger} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err) // no randomness: no test can run
		}
		*p = key
	}
	return k
})

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // values of the tests' own
	}
	return v
}

func privatePEM(k *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(k))}))
}

func publicPEM(k *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(&k.PublicKey))}))
}

// certPEM makes a certificate of 40 hex digits, and returns its serial too.
func certPEM(k *rsa.PrivateKey, last byte, end time.Time) (text, serial string) {
	no := new(big.Int).SetBytes(append([]byte{0x7B}, append(make([]byte, 18), last)...))
	tmpl := &x509.Certificate{SerialNumber: no, Subject: pkix.Name{CommonName: "Tenpay.com sign"},
		NotBefore: end.Add(-5 * 365 * 24 * time.Hour), NotAfter: end}
	der := must(x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), fmt.Sprintf("%X", no)
}

func testConfig(base string) Config {
	k := keysOnce()
	return Config{
		Account: "wx1", Environment: payonce.Test, AppID: testApp, MobileAppID: "wx0000000000000009", MchID: testMch, BaseURL: base,
		MerchantSerial: testSerial, MerchantPrivateKey: privatePEM(k.merchant), PublicKeyID: testKeyID, PublicKey: publicPEM(k.wechat),
		APIv3Key: testAPIKey,
	}
}

func newAdapter(t testing.TB, base string, change func(*Config)) *Adapter {
	t.Helper()
	if base == "" {
		base = "http://127.0.0.1:1"
	}
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
	in := channel.Intent{
		Order:     payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: "order-1"},
		Sequence:  1,
		Number:    testNumber,
		Method:    method,
		Amount:    1999,
		Currency:  "CNY",
		Subject:   "Tea & cake 茶",
		ReturnURL: "https://shop.example/back?order=1&x=%20",
		NotifyURL: "https://pay.example/webhooks/wechatpay/wx1",
		DeadAt:    time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC),
	}
	switch method {
	case MethodJSAPI:
		in.Payer.OpenID = "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"
	case MethodH5:
		in.Payer.ClientIP = "203.0.113.7"
	}
	return in
}

func testPayment(t testing.TB, a *Adapter, in channel.Intent) payonce.Payment {
	t.Helper()
	request, err := a.Compose(in)
	if err != nil {
		t.Fatal(err)
	}
	return payonce.Payment{ID: "pay_1", Key: in.Order, Amount: in.Amount, Currency: in.Currency, Account: a.Account(), Seen: true,
		Method: in.Method, Number: in.Number, Request: request, DeadAt: in.DeadAt, ReturnURL: in.ReturnURL}
}

// signTexts remembers signatures, which take most of the time of these tests.
var signTexts sync.Map

type textUnder struct {
	key  *rsa.PrivateKey
	text string
}

func signText(k *rsa.PrivateKey, text string) string {
	id := textUnder{k, text}
	if s, ok := signTexts.Load(id); ok {
		return s.(string)
	}
	sum := sha256.Sum256([]byte(text))
	s := base64.StdEncoding.EncodeToString(must(rsa.SignPKCS1v15(nil, k, crypto.SHA256, sum[:])))
	signTexts.Store(id, s)
	return s
}

// signed makes the four headers of WeChat Pay's signature.
func signed(k *rsa.PrivateKey, serial string, at time.Time, nonce string, body []byte) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return http.Header{
		"Wechatpay-Timestamp": {stamp}, "Wechatpay-Nonce": {nonce}, "Wechatpay-Serial": {serial},
		"Wechatpay-Signature": {signText(k, stamp+"\n"+nonce+"\n"+string(body)+"\n")}, "Wechatpay-Signature-Type": {"WECHATPAY2-SHA256-RSA2048"},
	}
}

// signedReply is a signed answer, made now.
func signedReply(status int, body []byte) channeltest.Reply {
	return channeltest.Reply{Status: status, Header: signed(keysOnce().wechat, testKeyID, time.Now(), "nonce-0001", body), Body: body}
}

// refusal is an answer without signature, as refusals are.
func refusal(status int, code string) channeltest.Reply {
	return channeltest.Reply{Status: status, Header: http.Header{"Request-Id": {"08F78BB5AF0610D302-268498688"}},
		Body: mustJSON(map[string]any{"code": code, "message": "订单 {\"}", "detail": map[string]any{"field": "/amount/total"}})}
}

func mustJSON(v any) []byte { return must(json.Marshal(v)) }

// order is what a query answers, and what a notice has inside.
func order(s channeltest.Statement) map[string]any {
	m := map[string]any{"appid": testApp, "mchid": testMch, "out_trade_no": s.Number, "attach": "test:m1:order-1:1", "trade_state_desc": "支付"}
	if s.Foreign {
		m["mchid"] = "1900000002"
	}
	switch s.Kind {
	case payonce.StateSettled:
		m["trade_state"], m["transaction_id"], m["trade_type"], m["success_time"] = "SUCCESS", testTrade, "NATIVE", "2026-12-01T10:00:05+08:00"
		m["payer"] = map[string]any{"openid": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"}
		// A coupon paid a part.
		m["amount"] = map[string]any{"total": s.Amount, "payer_total": 1500, "currency": s.Currency, "payer_currency": "CNY"}
	case payonce.StateWaiting:
		m["trade_state"] = "NOTPAY"
	case payonce.StateDead:
		m["trade_state"] = "CLOSED"
	case payonce.StateDeclined:
		m["trade_state"] = "PAYERROR"
	}
	return m
}

var made = map[string]map[string]string{
	MethodNative: {"code_url": "weixin://wxpay/bizpayurl?pr=test"},
	MethodJSAPI:  {"prepay_id": "wx201410272009395522657a690389285100"},
	MethodApp:    {"prepay_id": "wx201410272009395522657a690389285100"},
	MethodH5:     {"h5_url": "https://wx.tenpay.com/cgi-bin/mmpayweb-bin/checkmweb?prepay_id=wx20&package=4255"},
}

// say is the tests' WeChat Pay for one method.
func say(method string) func(channeltest.Step, channeltest.Statement, channeltest.Request) channeltest.Reply {
	return func(step channeltest.Step, s channeltest.Statement, _ channeltest.Request) channeltest.Reply {
		switch {
		case s.Kind == payonce.StateRefused:
			return refusal(400, "PARAM_ERROR")
		case s.Kind == payonce.StateAbsent:
			return refusal(404, "ORDER_NOT_EXIST")
		case step == channeltest.Begin:
			return signedReply(200, mustJSON(made[method]))
		case step == channeltest.Close:
			return signedReply(204, nil)
		}
		return signedReply(200, mustJSON(order(s)))
	}
}

// seal encrypts as WeChat Pay does.
func seal(key, nonce, data string, plain []byte) string {
	g := must(cipher.NewGCM(must(aes.NewCipher([]byte(key)))))
	return base64.StdEncoding.EncodeToString(g.Seal(nil, []byte(nonce), plain, []byte(data)))
}

// envelope is the body of a notice about this content.
func envelope(event, kind string, content any) []byte {
	return mustJSON(map[string]any{
		"id": "EV-2018022511223320873", "create_time": "2026-12-01T10:00:06+08:00", "resource_type": "encrypt-resource", "event_type": event,
		"summary": "支付成功", "resource": map[string]any{"original_type": kind, "algorithm": "AEAD_AES_256_GCM", "associated_data": "transaction",
			"nonce": "abcdefghijkl", "ciphertext": seal(testAPIKey, "abcdefghijkl", "transaction", mustJSON(content))},
	})
}

// makeNotice is a genuine notice of a payment.
func makeNotice(s channeltest.Statement, at time.Time) (http.Header, []byte) {
	body := envelope("TRANSACTION.SUCCESS", "transaction", order(s))
	return signed(keysOnce().wechat, testKeyID, at, "nonce-n1", body), body
}

func paid() channeltest.Statement {
	return channeltest.Statement{Kind: payonce.StateSettled, Number: testNumber, Amount: 1999, Currency: "CNY"}
}

func with(m map[string]any, pairs ...any) map[string]any {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == nil {
			delete(m, pairs[i].(string))
		} else {
			m[pairs[i].(string)] = pairs[i+1]
		}
	}
	return m
}

// authorized checks a request's signature by the published rule, over the target
// without the prefix of the simulated host.
func authorized(t testing.TB, r channeltest.Request, prefix string) {
	t.Helper()
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "WECHATPAY2-SHA256-RSA2048 ")
	f := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		k, v, _ := strings.Cut(part, "=")
		f[k] = strings.Trim(v, `"`)
	}
	text := r.Method + "\n" + strings.TrimPrefix(r.URI, prefix) + "\n" + f["timestamp"] + "\n" + f["nonce_str"] + "\n" + string(r.Body) + "\n"
	sum := sha256.Sum256([]byte(text))
	sig, err := base64.StdEncoding.DecodeString(f["signature"])
	if !ok || err != nil || rsa.VerifyPKCS1v15(&keysOnce().merchant.PublicKey, crypto.SHA256, sum[:], sig) != nil {
		t.Errorf("the signature of %s %s does not verify: %q", r.Method, r.URI, r.Header.Get("Authorization"))
	}
	if f["mchid"] != testMch || f["serial_no"] != testSerial || len(f["nonce_str"]) != 32 {
		t.Errorf("Authorization is %v", f)
	}
	stamp, _ := strconv.ParseInt(f["timestamp"], 10, 64)
	if d := time.Since(time.Unix(stamp, 0)); d > time.Minute || d < -time.Minute {
		t.Errorf("timestamp is %s", f["timestamp"])
	}
}
