package wechatpay

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// forgedNotices are signed by WeChat Pay or somebody else, and must be refused.
func forgedNotices(_ testing.TB, s channeltest.Statement, at time.Time) []channeltest.Forgery {
	k := keysOnce()
	var out []channeltest.Forgery
	add := func(name string, h http.Header, body []byte) {
		out = append(out, channeltest.Forgery{Name: name, Header: h, Body: body})
	}
	genuine := func(body []byte) http.Header { return signed(k.wechat, testKeyID, at, "n", body) }
	_, body := makeNotice(s, at)
	add("X02_signed_by_us", signed(k.merchant, testKeyID, at, "n", body), body)
	add("X02_signed_by_stranger", signed(k.stranger, testKeyID, at, "n", body), body)
	add("S10_unknown_serial", signed(k.wechat, testKeyID+"2", at, "n", body), body)
	add("merchant_serial", signed(k.merchant, testSerial, at, "n", body), body)
	h := genuine(body)
	h.Set("Wechatpay-Signature", "WECHATPAY/SIGNTEST/"+h.Get("Wechatpay-Signature")[19:])
	add("signtest", h, body)
	h = genuine(body)
	h.Set("Wechatpay-Signature-Type", "WECHATPAY2-SM2-WITH-SM3")
	add("other_type", h, body)
	h = genuine(body)
	h["Wechatpay-Signature-Type"] = []string{"WECHATPAY2-SHA256-RSA2048", "WECHATPAY2-SHA256-RSA2048"}
	add("type_twice", h, body)
	for _, change := range []string{"+", "0", " "} {
		h = genuine(body)
		h.Set("Wechatpay-Timestamp", change+h.Get("Wechatpay-Timestamp"))
		add("timestamp_spelt_"+change, h, body)
	}
	h = genuine(body)
	sig := h.Get("Wechatpay-Signature")
	h.Set("Wechatpay-Signature", sig[:76]+"\n"+sig[76:])
	add("signature_with_line", h, body)

	contents := map[string]any{
		"foreign_merchant": with(order(s), "mchid", "1900000002"), "foreign_app": with(order(s), "appid", "wx0000000000000002"),
		"no_merchant": with(order(s), "mchid", nil), "no_app": with(order(s), "appid", nil), "no_number": with(order(s), "out_trade_no", nil),
		"number_with_line": with(order(s), "out_trade_no", "A\nB"), "no_state": with(order(s), "trade_state", nil), "array": []any{order(s)}, "text": "x",
	}
	for name, content := range contents {
		b := envelope("TRANSACTION.SUCCESS", "transaction", content)
		add(name, genuine(b), b)
	}
	for name, pair := range map[string][2]string{
		"other_nonce": {`"nonce":"abcdefghijkl"`, `"nonce":"abcdefghijkm"`}, "short_nonce": {`"nonce":"abcdefghijkl"`, `"nonce":"abc"`},
		"no_nonce": {`"nonce":"abcdefghijkl"`, `"x":1`}, "other_data": {`"associated_data":"transaction"`, `"associated_data":"refund"`},
		"no_data": {`"associated_data":"transaction"`, `"x":1`}, "data_is_number": {`"associated_data":"transaction"`, `"associated_data":1`},
		"other_algorithm": {"AEAD_AES_256_GCM", "AEAD_SM4_GCM"}, "cipher_cut": {`"ciphertext":"`, `"ciphertext":"AAAA`},
		"resource_twice": {`"resource_type"`, `"resource":{},"resource_type"`}, "resource_gone": {`"resource":{`, `"x":{`},
		"no_id": {`"id":"EV-2018022511223320873"`, `"id":""`}, "no_type": {`"event_type":"TRANSACTION.SUCCESS"`, `"event_type":""`},
		"other_resource": {"encrypt-resource", "plain-resource"},
	} {
		b := []byte(strings.Replace(string(body), pair[0], pair[1], 1))
		if string(b) == string(body) {
			panic(name + " changes nothing")
		}
		add(name, genuine(b), b)
	}
	xml := []byte("<xml><return_code>SUCCESS</return_code><req_info>T87GAHG17TGAHG1TGHAHAHA1Y1CIOA9UGJH1GAHV871HAGAGQYQQPOOJMXNBCXBVNMNMAJAA</req_info></xml>")
	add("v2_xml", http.Header{"Content-Type": {"text/xml"}}, xml)
	add("v2_xml_signed", genuine(xml), xml)
	huge := []byte(`{"x":"` + strings.Repeat("x", maxNotice) + `"}`)
	add("X08_huge", genuine(huge), huge)
	return out
}

// TestRefundNoticesAreNoPayment: they name the order and leave it to a query.
func TestRefundNoticesAreNoPayment(t *testing.T) {
	a := newAdapter(t, "", nil)
	content := map[string]any{"mchid": testMch, "transaction_id": testTrade, "out_trade_no": testNumber, "refund_id": "50200207182018070300011301001",
		"out_refund_no": "R1", "refund_status": "SUCCESS", "success_time": "2026-12-02T10:00:05+08:00", "trade_state": "SUCCESS", "appid": testApp,
		"amount": map[string]any{"total": 1999, "refund": 1999, "payer_total": 1500, "payer_refund": 1500, "currency": "CNY"}}
	read := func(event, kind string, content any) (channel.Notice, error) {
		body := envelope(event, kind, content)
		return a.ReadNotice(signed(keysOnce().wechat, testKeyID, time.Now(), "n", body), body)
	}
	for _, event := range []string{"REFUND.SUCCESS", "REFUND.ABNORMAL", "REFUND.CLOSED"} {
		n, err := read(event, "refund", content)
		if err != nil || n.Type != event || n.Number != testNumber || n.Fact.Number != testNumber || n.Fact.Kind != payonce.StateUnknown || n.Fact.Reason != "refund" || n.Fact.Amount != 0 {
			t.Errorf("%s: %+v %v", event, n, err)
		}
	}
	if _, err := read("REFUND.SUCCESS", "refund", with(content, "mchid", "1900000002")); !errors.Is(err, ErrAccount) {
		t.Errorf("another merchant's refund: %v", err)
	}
	with(content, "mchid", testMch)
	// A type and a content that do not fit, or that are new, say nothing of a payment.
	for _, c := range [][2]string{{"TRANSACTION.SUCCESS", "refund"}, {"REFUND.SUCCESS", "transaction"}, {"TRANSACTION.NEW", "transaction"}, {"PAYSCORE.USER_PAID", "payscore"}} {
		n, err := read(c[0], c[1], content)
		if err != nil || n.Fact.Kind != payonce.StateUnknown || n.Fact.Reason != "other-event" || n.Number != "" {
			t.Errorf("%v: %+v %v", c, n, err)
		}
	}
	for _, state := range []string{"NOTPAY", "CLOSED", "USERPAYING", "PAYERROR", "REVOKED", "NEW"} {
		for _, s := range []map[string]any{with(order(paid()), "trade_state", state), with(order(paid()), "trade_state", state, "transaction_id", nil, "success_time", nil)} {
			n, err := read("TRANSACTION.SUCCESS", "transaction", s)
			if err != nil || n.Fact.Kind != payonce.StateUnknown || n.Fact.Reason == "" || n.Number != testNumber {
				t.Errorf("a success that is %s: %+v %v", state, n, err)
			}
		}
	}
}

// TestAssociatedDataIsPassedAsReceived: its real value is not documented.
func TestAssociatedDataIsPassedAsReceived(t *testing.T) {
	a := newAdapter(t, "", nil)
	for _, data := range []any{"transaction", "", "certificate", nil, "任意"} {
		text, _ := data.(string)
		resource := map[string]any{"original_type": "transaction", "algorithm": "AEAD_AES_256_GCM", "nonce": "abcdefghijkl", "associated_data": data,
			"ciphertext": seal(testAPIKey, "abcdefghijkl", text, mustJSON(order(paid())))}
		for _, left := range []bool{false, true} {
			if left && text == "" {
				delete(resource, "associated_data")
			}
			body := mustJSON(map[string]any{"id": "EV-1", "event_type": "TRANSACTION.SUCCESS", "resource_type": "encrypt-resource", "resource": resource})
			n, err := a.ReadNotice(signed(keysOnce().wechat, testKeyID, time.Now(), "n", body), body)
			if err != nil || n.Fact.Kind != payonce.StateSettled {
				t.Errorf("associated_data %v: %+v %v", data, n, err)
			}
		}
	}
}

// TestX13_ReplayedNotice: an old one is refused for its age; a fresh one says the
// same event again, whatever signature it comes under.
func TestX13_ReplayedNotice(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	a := newAdapter(t, "", func(c *Config) { c.Now = func() time.Time { return now } })
	h, body := makeNotice(paid(), now)
	first, err := a.ReadNotice(h, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, age := range []time.Duration{0, time.Minute, 5 * time.Minute} {
		now = time.Unix(must64(h), 0).Add(age)
		if n, err := a.ReadNotice(h, body); err != nil || n.EventID != first.EventID || n.Fact.PaymentRef != first.Fact.PaymentRef {
			t.Errorf("after %v: %+v %v", age, n, err)
		}
	}
	resent := signed(keysOnce().wechat, testKeyID, now, "another-nonce", body)
	if n, err := a.ReadNotice(resent, body); err != nil || n.EventID != first.EventID {
		t.Errorf("resent under a new signature: %+v %v", n, err)
	}
	for _, age := range []time.Duration{301 * time.Second, time.Hour, 24 * time.Hour, -301 * time.Second} {
		now = time.Unix(must64(h), 0).Add(age)
		if n, err := a.ReadNotice(h, body); !errors.Is(err, ErrAge) {
			t.Errorf("replayed after %v: %+v %v", age, n, err)
		}
	}
}

func must64(h http.Header) (n int64) {
	for _, c := range h.Get("Wechatpay-Timestamp") {
		n = n*10 + int64(c-'0')
	}
	return n
}

// TestReplyNotice: to the letter.
func TestReplyNotice(t *testing.T) {
	a := newAdapter(t, "", nil)
	for o, want := range map[channel.NoticeOutcome]channel.NoticeReply{
		channel.NoticeStored:    {Status: 204},
		channel.NoticeRefused:   {Status: 401, ContentType: "application/json", Body: []byte(`{"code":"FAIL","message":"the notice is not genuine"}`)},
		channel.NoticeNotStored: {Status: 500, ContentType: "application/json", Body: []byte(`{"code":"FAIL","message":"the notice could not be stored"}`)},
	} {
		got := a.ReplyNotice(o)
		if got.Status != want.Status || got.ContentType != want.ContentType || string(got.Body) != string(want.Body) {
			t.Errorf("outcome %d: %+v, want %+v", o, got, want)
		}
	}
}
