package alipay

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel/channeltest"
	"golang.org/x/text/encoding/simplifiedchinese"
)

var noticeAt = time.Date(2026, 12, 1, 2, 0, 5, 0, time.UTC)

func paidNotice() map[string]string {
	return noticeFields(channeltest.Statement{Kind: payonce.StateSettled, Number: testNumber, Amount: 1999}, noticeAt)
}

func with(f map[string]string, pairs ...string) map[string]string {
	f = maps.Clone(f)
	for i := 0; i+1 < len(pairs); i += 2 {
		f[pairs[i]] = pairs[i+1]
	}
	return f
}

func without(f map[string]string, names ...string) map[string]string {
	f = maps.Clone(f)
	for _, n := range names {
		delete(f, n)
	}
	return f
}

// forgedNotices are signed by Alipay or somebody else, and must be refused.
func forgedNotices(_ testing.TB, s channeltest.Statement, at time.Time) []channeltest.Forgery {
	k, f := keysOnce(), noticeFields(s, at)
	var out []channeltest.Forgery
	add := func(name string, body []byte) { out = append(out, channeltest.Forgery{Name: name, Body: body}) }
	add("X02_signed_by_us", signNotice(k.app, f))
	add("X02_signed_by_stranger", signNotice(k.stranger, f))
	add("foreign_seller", signNotice(k.alipay, with(f, "seller_id", "2088000000000002")))
	add("foreign_app", signNotice(k.alipay, with(f, "app_id", "2021000000000002")))
	for _, name := range []string{"app_id", "seller_id", "out_trade_no", "trade_no", "trade_status", "total_amount", "notify_id", "notify_type", "sign_type"} {
		add("missing_"+name, signNotice(k.alipay, without(f, name)))
		add("empty_"+name, signNotice(k.alipay, with(f, name, "")))
	}
	body := string(signNotice(k.alipay, f))
	for _, pair := range []string{"sign=x", "sign_type=RSA2", "total_amount=0.01", "total_amount=19.99", "trade_status=TRADE_SUCCESS", "out_trade_no=X"} {
		add("X02_doubled_last_"+pair, []byte(body+"&"+pair))
		add("X02_doubled_first_"+pair, []byte(pair+"&"+body))
	}
	add("sign_type_RSA", []byte(strings.Replace(body, "sign_type=RSA2", "sign_type=RSA", 1)))
	add("no_pair", []byte(body+"&"))
	add("no_name", []byte(body+"&=x"))
	add("no_equals", []byte(body+"&x"))
	add("bad_escape", []byte(body+"&x=%2"))
	add("json", mustJSON(f))
	add("X08_huge", []byte(body+"&x="+strings.Repeat("x", maxNotice)))
	add("X08_many", []byte(body+strings.Repeat("&x=y", maxFields)))
	return out
}

// TestS01_PlusInTheSignature: encoded, raw and as a blank; and altered.
func TestS01_PlusInTheSignature(t *testing.T) {
	a := newAdapter(t, "", nil)
	sign, f := "", paidNotice()
	for i := 0; !strings.Contains(sign, "+") || !strings.Contains(sign, "/"); i++ {
		f["notify_id"] = fmt.Sprint(i)
		sign = signText(keysOnce().alipay, []byte(published(f, "sign_type")))
	}
	v := url.Values{}
	for k, s := range f {
		v.Set(k, s)
	}
	rest := v.Encode()
	for name, s := range map[string]string{
		"encoded": url.QueryEscape(sign), "raw": sign, "blank": strings.ReplaceAll(sign, "+", "%20"), "raw_equals": strings.ReplaceAll(url.QueryEscape(sign), "%3D", "="),
		"lower_case": strings.NewReplacer("%2B", "%2b", "%2F", "%2f", "%3D", "%3d").Replace(url.QueryEscape(sign)),
	} {
		if _, err := a.ReadNotice(nil, []byte(rest+"&sign="+s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, s := range map[string]string{
		"slash_for_plus": strings.Replace(sign, "+", "/", 1), "cut": sign[:len(sign)-4], "no_padding": strings.TrimRight(sign, "="),
		"line": sign[:76] + "\n" + sign[76:], "doubled": sign + sign, "url_alphabet": strings.NewReplacer("+", "-", "/", "_").Replace(sign),
		"padding_bits": base64Twin(sign),
	} {
		if n, err := a.ReadNotice(nil, []byte(rest+"&sign="+url.QueryEscape(s))); err == nil {
			t.Errorf("%s was accepted: %+v", name, n)
		}
	}
}

// base64Twin is another text that a lax decoder reads as the same bytes.
func base64Twin(s string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	b := []byte(strings.TrimRight(s, "="))
	i := strings.IndexByte(alphabet, b[len(b)-1])
	b[len(b)-1] = alphabet[i^1]
	twin := string(b) + s[len(b):]
	if one, _ := base64.StdEncoding.DecodeString(twin); one == nil {
		panic("the twin is no base64")
	}
	return twin
}

// TestS02_UntouchedValues, S04 new fields, S05 split before decoding, S06
// back-slashes: each verifies over exactly what was received.
func TestS02_S04_S05_S06_UntouchedValues(t *testing.T) {
	a := newAdapter(t, "", nil)
	for name, value := range map[string]string{
		"S02_trailing_blank": "tea ", "S02_leading_blank": "  tea", "S02_tab": "\ttea\t", "S02_crlf": "tea\r\n", "S02_empty": "",
		"S04_new_field": "x", "S05_and": "a&b", "S05_equals": "a=b==", "S05_plus": "1+1", "S05_percent": "100%25 %zz", "S05_emoji": "🍵茶",
		"S06_json": `[{"amount":"15.00","voucher":"a\\b\"c\/d","fundChannel":"ALIPAYACCOUNT"}]`, "S06_html": "[{&quot;a&quot;:1}]",
	} {
		for _, field := range []string{"subject", "fund_bill_list", "zz_new_field", "a_new_field"} {
			f := with(paidNotice(), field, value)
			n, err := a.ReadNotice(nil, signNotice(keysOnce().alipay, f))
			if err != nil || n.Fact.Kind != payonce.StateSettled {
				t.Errorf("%s in %s: %v %s", name, field, err, n.Fact.Kind)
			}
		}
	}
}

// TestS02_EmptyFields: signed with or without the empty ones.
func TestS02_EmptyFields(t *testing.T) {
	a, f := newAdapter(t, "", nil), paidNotice()
	body := append(signNotice(keysOnce().alipay, f), "&body=&refund_fee="...)
	n, err := a.ReadNotice(nil, body)
	if err != nil || n.Fact.Kind != payonce.StateSettled {
		t.Errorf("empties that were not signed: %v %+v", err, n)
	}
	if n, err = a.ReadNotice(nil, signNotice(keysOnce().alipay, with(f, "body", "", "refund_fee", ""))); err != nil || n.Fact.Kind != payonce.StateSettled {
		t.Errorf("empties that were signed: %v %+v", err, n)
	}
}

// TestS12_GBKSender: the text was signed in GBK and is verified in it.
func TestS12_GBKSender(t *testing.T) {
	a := newAdapter(t, "", nil)
	gbk, err := simplifiedchinese.GBK.NewEncoder().String("測試乗茶") // trail bytes hold \ and |
	if err != nil {
		t.Fatal(err)
	}
	n, err := a.ReadNotice(nil, signNotice(keysOnce().alipay, with(paidNotice(), "charset", "GBK", "subject", gbk)))
	if err != nil || n.Fact.Kind != payonce.StateSettled || n.Number != testNumber {
		t.Errorf("%v %+v", err, n)
	}
}

// TestO10_StatusesAndRefunds: each status in a notice, with and without the marks
// of a refund.
func TestO10_StatusesAndRefunds(t *testing.T) {
	a, paid := newAdapter(t, "", nil), paidNotice()
	unpaid := without(paid, "gmt_payment", "receipt_amount", "buyer_pay_amount", "fund_bill_list")
	cases := []struct {
		name   string
		f      map[string]string
		kind   payonce.FactKind
		reason string
	}{
		{"success", paid, payonce.StateSettled, ""},
		{"finished", with(paid, "trade_status", "TRADE_FINISHED"), payonce.StateSettled, ""},
		{"success_refund_fee_zero", with(paid, "refund_fee", "0.00"), payonce.StateSettled, ""},
		{"waiting", with(unpaid, "trade_status", "WAIT_BUYER_PAY"), payonce.StateWaiting, ""},
		{"closed_unpaid", with(unpaid, "trade_status", "TRADE_CLOSED", "gmt_close", "2026-12-01 10:15:00"), payonce.StateDead, ""},
		{"partial_refund", with(paid, "refund_fee", "5.00", "gmt_refund", "2026-12-02 10:00:00.123", "out_biz_no", "R1"), payonce.StateUnknown, "refund"},
		{"partial_refund_fee_only", with(paid, "refund_fee", "5.00"), payonce.StateUnknown, "refund"},
		{"refund_fee_unreadable", with(paid, "refund_fee", "five"), payonce.StateUnknown, "refund"},
		{"full_refund", with(paid, "trade_status", "TRADE_CLOSED", "refund_fee", "19.99", "gmt_refund", "2026-12-02 10:00:00", "gmt_close", "2026-12-02 10:00:00"), payonce.StateUnknown, "refund"},
		{"full_refund_date_only", with(unpaid, "trade_status", "TRADE_CLOSED", "gmt_refund", "2026-12-02 10:00:00"), payonce.StateUnknown, "refund"},
		{"closed_with_payment", with(paid, "trade_status", "TRADE_CLOSED"), payonce.StateUnknown, "closed-after-payment"},
		{"finished_after_refund", with(paid, "trade_status", "TRADE_FINISHED", "refund_fee", "5.00"), payonce.StateUnknown, "refund"},
		{"new_status", with(paid, "trade_status", "TRADE_NEW"), payonce.StateUnknown, "unlisted-status"},
		{"A12_amount_unreadable", with(paid, "total_amount", "19.999"), payonce.StateUnknown, "success-incomplete"},
		{"A12_amount_zero", with(paid, "total_amount", "0.00"), payonce.StateUnknown, "success-incomplete"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n, err := a.ReadNotice(nil, signNotice(keysOnce().alipay, c.f))
			if err != nil {
				t.Fatal(err)
			}
			if n.Fact.Kind != c.kind || n.Fact.Reason != c.reason || n.Number != testNumber || n.Fact.Number != testNumber || n.Type != c.f["trade_status"] {
				t.Errorf("%+v", n)
			}
			if c.kind == payonce.StateSettled {
				f := n.Fact
				if f.Amount != 1999 || f.Currency != "CNY" || f.PaymentRef != testTrade || !f.At.Equal(time.Date(2026, 12, 1, 2, 0, 5, 0, time.UTC)) || f.Account != "ali1" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
	n, err := a.ReadNotice(nil, signNotice(keysOnce().alipay, map[string]string{"app_id": testApp, "notify_id": "N9", "notify_type": "dut_user_sign", "sign_type": "RSA2"}))
	if err != nil || n.Number != "" || n.Fact.Kind != payonce.StateUnknown || n.EventID != "N9" {
		t.Errorf("another kind of notice: %v %+v", err, n)
	}
}

// TestW06_EventID: resends keep it, other events of the trade have their own.
func TestW06_EventID(t *testing.T) {
	a, f := newAdapter(t, "", nil), paidNotice()
	first, err1 := a.ReadNotice(nil, signNotice(keysOnce().alipay, f))
	again, err2 := a.ReadNotice(http.Header{"X": {"y"}}, signNotice(keysOnce().alipay, with(f, "notify_time", "2026-12-01 10:04:05")))
	other, err3 := a.ReadNotice(nil, signNotice(keysOnce().alipay, with(f, "notify_id", "N2", "refund_fee", "1.00")))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if first.EventID != again.EventID || first.EventID == other.EventID || first.Number != other.Number {
		t.Errorf("events %q, resent %q, refund %q", first.EventID, again.EventID, other.EventID)
	}
}

// TestX02_HiddenFields: the signed text of a full refund, cut into other fields
// so that the refund disappears inside a value, must not pass for a trade that
// was closed unpaid; nor may a value be cut into fields.
func TestX02_HiddenFields(t *testing.T) {
	a := newAdapter(t, "", nil)
	f := with(paidNotice(), "trade_status", "TRADE_CLOSED", "refund_fee", "19.99", "gmt_refund", "2026-12-02 10:00:00")
	body := signNotice(keysOnce().alipay, f)
	v, err := url.ParseQuery(string(body))
	if err != nil {
		t.Fatal(err)
	}
	v.Set("gmt_create", v.Get("gmt_create")+"&gmt_payment="+v.Get("gmt_payment")+"&gmt_refund="+v.Get("gmt_refund"))
	v.Set("receipt_amount", v.Get("receipt_amount")+"&refund_fee="+v.Get("refund_fee"))
	for _, k := range []string{"gmt_payment", "gmt_refund", "refund_fee"} {
		v.Del(k)
	}
	if n, err := a.ReadNotice(nil, []byte(v.Encode())); err == nil {
		t.Errorf("accepted as %s: %+v", n.Fact.Kind, n)
	}
	// A genuine notice whose subject looks like a field: it cannot be told from one
	// that was cut, so neither form is believed.
	f = with(paidNotice(), "body", "x&total_amount=0.01")
	whole := signNotice(keysOnce().alipay, f)
	cut := bytes.Replace(whole, []byte("x%26total_amount%3D0.01"), []byte("x&total_amount=0.01"), 1)
	moved := bytes.Replace(cut, []byte("&total_amount=19.99"), nil, 1)
	for i, body := range [][]byte{whole, cut, moved} {
		if n, err := a.ReadNotice(nil, body); err == nil {
			t.Errorf("form %d was accepted: %+v", i, n)
		}
	}
}
