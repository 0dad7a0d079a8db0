package wechatpay

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// documentedCodes is the documented table, written down again: status, codes, and
// what begin, query and close take them for.
func documentedCodes() []channeltest.Case {
	const (
		unknown = payonce.StateUnknown
		refused = payonce.StateRefused
		notSent = payonce.StateNotSent
		absent  = payonce.StateAbsent
	)
	rows := []struct {
		status              int
		codes               string
		begin, query, close payonce.FactKind
	}{
		{400, "PARAM_ERROR APPID_MCHID_NOT_MATCH MCH_NOT_EXISTS", refused, unknown, unknown},
		{400, "INVALID_REQUEST OUT_TRADE_NO_USED 201", unknown, unknown, unknown},
		{403, "OUT_TRADE_NO_USED 201", unknown, unknown, unknown},
		{400, "ORDER_CLOSED ORDERCLOSED", refused, unknown, unknown},
		{400, "ORDERPAID ORDER_PAID TRADE_ERROR", unknown, unknown, unknown},
		{403, "ORDERPAID ORDER_PAID TRADE_ERROR", unknown, unknown, unknown},
		{401, "SIGN_ERROR", notSent, unknown, unknown},
		{403, "NO_AUTH NOAUTH", notSent, unknown, unknown},
		{403, "RULE_LIMIT RULELIMIT", refused, unknown, unknown},
		{403, "ACCOUNT_ERROR ACCOUNTERROR NOT_ENOUGH NOTENOUGH", unknown, unknown, unknown},
		{404, "ORDER_NOT_EXIST ORDERNOTEXIST", unknown, absent, unknown},
		{404, "", notSent, unknown, unknown},
		{405, "", notSent, unknown, unknown},
		{429, "FREQUENCY_LIMITED RATELIMIT_EXCEEDED PARAM_ERROR SIGN_ERROR", unknown, unknown, unknown},
		{500, "SYSTEM_ERROR SYSTEMERROR BANK_ERROR BANKERROR OPENID_MISMATCH INVALID_TRANSACTIONID PARAM_ERROR ORDER_NOT_EXIST", unknown, unknown, unknown},
		{502, "SERVICE_UNAVAILABLE", unknown, unknown, unknown},
		{503, "SERVICE_UNAVAILABLE", unknown, unknown, unknown},
		{202, "USERPAYING", unknown, unknown, unknown},
	}
	var out []channeltest.Case
	for _, row := range rows {
		codes := strings.Fields(row.codes)
		if len(codes) == 0 {
			codes = []string{""}
		}
		for _, code := range codes {
			reply := refusal(row.status, code)
			if code == "" {
				reply.Body = nil
			}
			for step, want := range map[channeltest.Step]payonce.FactKind{channeltest.Begin: row.begin, channeltest.Query: row.query, channeltest.Close: row.close} {
				out = append(out, channeltest.Case{Name: strconv.Itoa(row.status) + "_" + code, Step: step, Want: want,
					Reply: func(channeltest.Request) channeltest.Reply { return reply },
					Check: func(t *testing.T, a channel.Answer) {
						if a.Kind == refused && a.Failure.ChannelCode != code {
							t.Errorf("failure is %+v", a.Failure)
						}
						if len(a.Raw) == 0 {
							t.Error("an answer without evidence")
						}
					}})
			}
		}
	}
	return out
}

// unlistedCodes: what no table has, and what an answer with a missing or wrong
// signature says.
func unlistedCodes(method string) []channeltest.Case {
	var out []channeltest.Case
	k := keysOnce()
	for _, s := range []channeltest.Step{channeltest.Begin, channeltest.Query, channeltest.Close} {
		add := func(name string, reply func() channeltest.Reply) {
			out = append(out, channeltest.Case{Name: name, Step: s, Reply: func(channeltest.Request) channeltest.Reply { return reply() }})
		}
		good := func() channeltest.Reply { return say(method)(s, paid(), channeltest.Request{}) }
		changed := func(f func(*channeltest.Reply)) func() channeltest.Reply {
			return func() channeltest.Reply { r := good(); f(&r); return r }
		}
		under := func(name string, make func(body []byte) http.Header) {
			add(name, changed(func(r *channeltest.Reply) { r.Header = make(r.Body) }))
		}
		at := func(d time.Duration) func([]byte) http.Header {
			return func(b []byte) http.Header { return signed(k.wechat, testKeyID, time.Now().Add(d), "n", b) }
		}
		for _, status := range []int{400, 401, 403, 404, 409} {
			add("new_code_"+strconv.Itoa(status), func() channeltest.Reply { return refusal(status, "NEW_CODE") })
			add("no_code_"+strconv.Itoa(status), func() channeltest.Reply { return channeltest.Reply{Status: status, Body: []byte(`{"message":"x"}`)} })
			add("html_"+strconv.Itoa(status), func() channeltest.Reply {
				return channeltest.Reply{Status: status, Body: []byte("<html>PARAM_ERROR</html>")}
			})
		}
		add("other_status_param_error", func() channeltest.Reply { return refusal(403, "PARAM_ERROR") })
		add("other_status_sign_error", func() channeltest.Reply { return refusal(403, "SIGN_ERROR") })
		add("other_status_not_exist", func() channeltest.Reply { return refusal(400, "ORDER_NOT_EXIST") })
		add("code_twice", func() channeltest.Reply {
			return channeltest.Reply{Status: 400, Body: []byte(`{"code":"PARAM_ERROR","code":"PARAM_ERROR"}`)}
		})
		add("code_other_case", func() channeltest.Reply {
			return channeltest.Reply{Status: 400, Body: []byte(`{"Code":"PARAM_ERROR"}`)}
		})
		add("code_is_number", func() channeltest.Reply { return channeltest.Reply{Status: 400, Body: []byte(`{"code":400}`)} })
		add("refusal_signed_by_stranger", func() channeltest.Reply {
			r := refusal(404, "ORDER_NOT_EXIST")
			r.Header = signed(k.stranger, testKeyID, time.Now(), "n", r.Body)
			return r
		})
		under("unsigned", func([]byte) http.Header { return nil })
		under("signed_by_us", func(b []byte) http.Header { return signed(k.merchant, testKeyID, time.Now(), "n", b) })
		under("signed_by_stranger", func(b []byte) http.Header { return signed(k.stranger, testKeyID, time.Now(), "n", b) })
		under("S10_unknown_serial", func(b []byte) http.Header { return signed(k.wechat, testKeyID+"2", time.Now(), "n", b) })
		under("certificate_serial", func(b []byte) http.Header { return signed(k.wechat, testSerial, time.Now(), "n", b) })
		under("signtest", func(b []byte) http.Header {
			h := signed(k.wechat, testKeyID, time.Now(), "n", b)
			h.Set("Wechatpay-Signature", "WECHATPAY/SIGNTEST/"+h.Get("Wechatpay-Signature")[19:])
			return h
		})
		under("Z06_old", at(-310*time.Second))
		under("Z06_future", at(310*time.Second))
		under("of_other_bytes", func(b []byte) http.Header { return at(0)(append([]byte(" "), b...)) })
		if s != channeltest.Close { // whose good answer is one
			under("of_an_empty_body", func([]byte) http.Header { return at(0)(nil) })
		}
		for _, name := range []string{"Wechatpay-Timestamp", "Wechatpay-Nonce", "Wechatpay-Signature", "Wechatpay-Serial"} {
			under("no_"+name, func(b []byte) http.Header { h := at(0)(b); h.Del(name); return h })
		}
		for _, status := range []int{201, 202, 206} {
			add("signed_"+strconv.Itoa(status), changed(func(r *channeltest.Reply) { r.Status = status }))
		}
		add("signed_500", changed(func(r *channeltest.Reply) { r.Status = 500 }))
		for _, body := range []string{`{}`, `[]`, `null`, `"x"`, `{"code_url":7,"prepay_id":[],"h5_url":{}}`, `{"h5_url":"javascript:1","code_url":"","prepay_id":"a b"}`} {
			add("signed_"+body, func() channeltest.Reply { return signedReply(200, []byte(body)) })
		}
	}
	return out
}
