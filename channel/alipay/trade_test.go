package alipay

import (
	"context"
	"crypto/tls"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// ask makes one query that is answered with the given node.
func ask(t *testing.T, fields map[string]any) channel.Answer {
	t.Helper()
	w := channeltest.NewWire(t, nil)
	w.Answer(func(channeltest.Request) channeltest.Reply { return signedAnswer(channeltest.Query, fields) })
	a := newAdapter(t, w.URL, nil)
	return a.Query(context.Background(), channel.Call{Payment: testPayment(t, a, testIntent(MethodQR))})
}

// TestO10_ClosedIsDeadOnlyWithoutPayment: a trade that was paid and given back in
// full was a success, whatever single mark of it the answer shows.
func TestO10_ClosedIsDeadOnlyWithoutPayment(t *testing.T) {
	st := channeltest.Statement{Kind: payonce.StateDead, Number: testNumber, Amount: 1999}
	for mark, value := range map[string]any{
		"": nil, "buyer_user_id": "2088", "gmt_close": "2026-12-01 10:15:00", "receipt_amount": "0.00", "refund_fee": "0.00", "fund_bill_list": []any{}, "send_pay_date": "",
	} {
		f := tradeFields(st)
		if f[mark] = value; mark == "" {
			delete(f, "")
		}
		if a := ask(t, f); a.Kind != payonce.StateDead {
			t.Errorf("closed with %q %v = %s, want dead", mark, value, a.Kind)
		}
	}
	for mark, value := range map[string]any{
		"send_pay_date": "2026-12-01 10:00:05", "gmt_payment": "2026-12-01 10:00:05", "receipt_amount": "19.99", "buyer_pay_amount": "0.01", "invoice_amount": "1.00",
		"point_amount": "1.00", "refund_fee": "19.99", "send_back_fee": "19.99", "gmt_refund_pay": "2026-12-02 10:00:00", "gmt_refund": "x",
		"fund_bill_list": []any{map[string]any{"amount": "19.99"}}, "receipt_amount ": nil,
	} {
		if strings.HasSuffix(mark, " ") {
			mark, value = "receipt_amount", "unreadable"
		}
		f := tradeFields(st)
		f[mark] = value
		if a := ask(t, f); a.Kind != payonce.StateSettled || a.Amount != 1999 || a.PaymentRef != testTrade {
			t.Errorf("closed with %s %v = %s of %d, want settled", mark, value, a.Kind, a.Amount)
		}
	}
}

// TestA12_Success: amount and time as told, and no success without them.
func TestA12_Success(t *testing.T) {
	good := tradeFields(channeltest.Statement{Kind: payonce.StateSettled, Number: testNumber, Amount: 1999})
	a := ask(t, good)
	if a.Kind != payonce.StateSettled || a.Amount != 1999 || !a.At.Equal(time.Date(2026, 12, 1, 2, 0, 5, 0, time.UTC)) {
		t.Errorf("%+v", a.Fact)
	}
	for name, value := range map[string]any{"total_amount": "19.999", "trade_no": "", "trade_status": "TRADE_PENDING", "out_trade_no": nil} {
		f := maps.Clone(good)
		f[name] = value
		if a := ask(t, f); a.Kind != payonce.StateUnknown || a.Err == nil {
			t.Errorf("%s %v = %s, want unknown", name, value, a.Kind)
		}
	}
	for _, amount := range []any{19.99, 1999, nil, true} {
		f := maps.Clone(good)
		f["total_amount"] = amount
		if a := ask(t, f); a.Kind != payonce.StateUnknown {
			t.Errorf("total_amount %v = %s, want unknown", amount, a.Kind)
		}
	}
	f := maps.Clone(good)
	f["trade_status"], f["send_pay_date"] = "TRADE_FINISHED", "later"
	if a := ask(t, f); a.Kind != payonce.StateSettled || !a.At.IsZero() {
		t.Errorf("finished at an unreadable time: %+v", a.Fact)
	}
}

// TestBegin_Code: the code is handed on with our own end, and a success without a
// readable code is none.
func TestBegin_Code(t *testing.T) {
	for code, ok := range map[any]bool{"https://qr.alipay.com/bax00000": true, "": false, "a b": false, 7: false, "码": false, strings.Repeat("x", 2000): false} {
		w := channeltest.NewWire(t, nil)
		w.Answer(func(channeltest.Request) channeltest.Reply {
			return signedAnswer(channeltest.Begin, map[string]any{"code": "10000", "out_trade_no": testNumber, "qr_code": code})
		})
		a := newAdapter(t, w.URL, nil)
		p := testPayment(t, a, testIntent(MethodQR))
		ans := a.Begin(context.Background(), channel.Call{Payment: p})
		if (ans.Kind == payonce.StateWaiting) != ok || ok != (ans.Action != nil) {
			t.Errorf("code %v: %s, action %v", code, ans.Kind, ans.Action)
		}
		if ok && (ans.Action.Type != "qr_code" || ans.Action.QRCode != code || !ans.Action.ExpiresAt.Equal(p.DeadAt)) {
			t.Errorf("action is %+v", ans.Action)
		}
	}
}

// TestR05_RepeatHasFreshTime: a re-send an hour later has another timestamp and
// signature and nothing else.
func TestR05_RepeatHasFreshTime(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	w.Answer(func(r channeltest.Request) channeltest.Reply {
		return say(channeltest.Begin, channeltest.Statement{Kind: payonce.StateWaiting, Number: testNumber}, r)
	})
	now := time.Date(2026, 1, 1, 15, 59, 59, 0, time.UTC) // Z02: Chinese midnight
	a := newAdapter(t, w.URL, func(c *Config) { c.Now = func() time.Time { return now } })
	p := testPayment(t, a, testIntent(MethodQR))
	a.Begin(context.Background(), channel.Call{Payment: p, KeyNo: 1})
	now = now.Add(time.Second)
	a.Begin(context.Background(), channel.Call{Payment: p, KeyNo: 2})
	reqs := w.Take()
	if len(reqs) != 2 {
		t.Fatalf("%d requests", len(reqs))
	}
	one, two := params(t, reqs[0]), params(t, reqs[1])
	if one["timestamp"] != "2026-01-01 23:59:59" || two["timestamp"] != "2026-01-02 00:00:00" || one["sign"] == two["sign"] {
		t.Errorf("timestamps %s, %s", one["timestamp"], two["timestamp"])
	}
	for _, r := range []map[string]string{one, two} {
		if r["sign"] != signText(keysOnce().app, []byte(published(r, "sign"))) {
			t.Error("a request is not signed by the published rule")
		}
		delete(r, "timestamp")
		delete(r, "sign")
	}
	if !maps.Equal(one, two) {
		t.Errorf("first %v\nthen %v", one, two)
	}
	if ct := reqs[0].Header.Get("Content-Type"); ct != "application/x-www-form-urlencoded;charset=utf-8" {
		t.Errorf("content type %q", ct)
	}
}

// TestDamagedRequestIsNotSent: bytes that were changed, or are another number's
// or application's.
func TestDamagedRequestIsNotSent(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, nil)
	good := testPayment(t, a, testIntent(MethodQR))
	for name, change := range map[string]func(*payonce.Payment){
		"empty": func(p *payonce.Payment) { p.Request = nil }, "cut": func(p *payonce.Payment) { p.Request = p.Request[:len(p.Request)-1] },
		"other_number": func(p *payonce.Payment) { p.Number = "0000000000000000000X" },
		"other_app":    func(p *payonce.Payment) { p.Request = []byte(strings.Replace(string(p.Request), testApp, "2021", 1)) },
		"other_method": func(p *payonce.Payment) {
			p.Request = []byte(strings.Replace(string(p.Request), "precreate", "pay", 1))
		},
		"more":          func(p *payonce.Payment) { p.Request = append(p.Request, "zz=1\n"...) },
		"page":          func(p *payonce.Payment) { *p = testPayment(t, a, testIntent(MethodPage)); p.Method = MethodQR },
		"method_of_row": func(p *payonce.Payment) { p.Method = MethodPage },
	} {
		p := good
		change(&p)
		if ans := a.Begin(context.Background(), channel.Call{Payment: p}); ans.Kind != payonce.StateNotSent || ans.Err == nil {
			t.Errorf("%s: %s %v", name, ans.Kind, ans.Err)
		}
	}
	p := good
	p.Number = `X","trade_no":"1`
	if ans := a.Query(context.Background(), channel.Call{Payment: p}); ans.Kind != payonce.StateUnknown {
		t.Errorf("query of a damaged number: %s", ans.Kind)
	}
	if got := w.Take(); len(got) != 0 {
		t.Errorf("%d requests arrived", len(got))
	}
}

// TestServerDate: only from an account that declares it, here.
func TestServerDate(t *testing.T) {
	cert, roots := channeltest.Certificate(t)
	w := channeltest.NewWire(t, cert)
	date := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	w.Answer(func(r channeltest.Request) channeltest.Reply {
		reply := say(channeltest.Query, channeltest.Statement{Kind: payonce.StateAbsent}, r)
		reply.Header = http.Header{"Date": {date.Format(http.TimeFormat)}}
		return reply
	})
	for _, trusted := range []bool{false, true} {
		a := newAdapter(t, w.URL, func(c *Config) {
			c.TrustedDate, c.Transport = trusted, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
		})
		ans := a.Query(context.Background(), channel.Call{Payment: testPayment(t, a, testIntent(MethodPage))})
		if ans.Kind != payonce.StateAbsent || ans.ServerDate.Equal(date) != trusted || ans.ServerDate.IsZero() == trusted {
			t.Errorf("trusted %t: %s, date %v", trusted, ans.Kind, ans.ServerDate)
		}
	}
	for base, own := range map[string]bool{"": true, testGateway: true, "https://openapi-sandbox.dl.alipaydev.com": true, "https://proxy.example/gateway.do": false,
		"http://openapi-sandbox.dl.alipaydev.com/gateway.do": false, liveGateway: false, "https://openapi-sandbox.dl.alipaydev.com:8443/gateway.do": false} {
		if a := newAdapter(t, base, nil); a.ownDate != own {
			t.Errorf("%q: own date %t, want %t", base, a.ownDate, own)
		}
	}
}

// TestProbe: a signed answer, whatever it says of the number, proves both keys.
func TestProbe(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, nil)
	absent := func(r channeltest.Request) channeltest.Reply {
		return say(channeltest.Query, channeltest.Statement{Kind: payonce.StateAbsent}, r)
	}
	w.Answer(absent)
	if err := a.Probe(context.Background()); err != nil {
		t.Error(err)
	}
	for name, reply := range map[string]channeltest.Reply{
		"invalid-signature": answerOf("alipay_trade_query_response", mustJSON(map[string]any{"code": "40002", "sub_code": "isv.invalid-signature"}), ""),
		"signature":         answerOf("alipay_trade_query_response", mustJSON(failed("x")), signText(keysOnce().app, mustJSON(failed("x")))),
		"HTTP 502":          {Status: 502},
		"no JSON object":    {Body: []byte("<html>")},
	} {
		w.Answer(func(channeltest.Request) channeltest.Reply { return reply })
		if err := a.Probe(context.Background()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
