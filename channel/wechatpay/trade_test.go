package wechatpay

import (
	"context"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// ask queries once, against one answer.
func ask(t *testing.T, content map[string]any, change func(*Config)) channel.Answer {
	t.Helper()
	w := channeltest.NewWire(t, nil)
	w.Answer(func(channeltest.Request) channeltest.Reply { return signedReply(200, mustJSON(content)) })
	a := newAdapter(t, w.URL, change)
	return a.Query(context.Background(), channel.Call{Payment: testPayment(t, a, testIntent(MethodNative)), KeyNo: 1})
}

// TestTradeStates: each trade_state, alone and against what contradicts it.
func TestTradeStates(t *testing.T) {
	unpaid := func(state string) map[string]any {
		return with(order(channeltest.Statement{Number: testNumber}), "trade_state", state)
	}
	for name, c := range map[string]struct {
		content map[string]any
		kind    payonce.FactKind
		reason  string
	}{
		"success": {order(paid()), payonce.StateSettled, ""},
		// A refund of any part: it was a success of the whole amount.
		"refund":                 {with(order(paid()), "trade_state", "REFUND"), payonce.StateSettled, ""},
		"notpay":                 {unpaid("NOTPAY"), payonce.StateWaiting, ""},
		"userpaying":             {unpaid("USERPAYING"), payonce.StateWaiting, ""},
		"closed":                 {unpaid("CLOSED"), payonce.StateDead, ""},
		"payerror":               {unpaid("PAYERROR"), payonce.StateDeclined, ""},
		"revoked":                {unpaid("REVOKED"), payonce.StateUnknown, "revoked"},
		"new":                    {unpaid("NEW_STATE"), payonce.StateUnknown, "unlisted-status"},
		"lower_case":             {with(order(paid()), "trade_state", "success"), payonce.StateUnknown, "unlisted-status"},
		"no_state":               {unpaid(""), payonce.StateUnknown, "unlisted-status"},
		"closed_but_paid":        {with(order(paid()), "trade_state", "CLOSED"), payonce.StateUnknown, "contradiction"},
		"notpay_but_paid":        {with(order(paid()), "trade_state", "NOTPAY"), payonce.StateUnknown, "contradiction"},
		"payerror_but_paid":      {with(order(paid()), "trade_state", "PAYERROR"), payonce.StateUnknown, "contradiction"},
		"no_transaction":         {with(order(paid()), "transaction_id", nil), payonce.StateUnknown, "success-incomplete"},
		"no_amount":              {with(order(paid()), "amount", nil), payonce.StateUnknown, "success-incomplete"},
		"amount_text":            {with(order(paid()), "amount", map[string]any{"total": "1999", "currency": "CNY"}), payonce.StateUnknown, "success-incomplete"},
		"amount_fraction":        {with(order(paid()), "amount", map[string]any{"total": 1999.5, "currency": "CNY"}), payonce.StateUnknown, "success-incomplete"},
		"amount_of_the_payer":    {with(order(paid()), "amount", map[string]any{"payer_total": 1999, "currency": "CNY"}), payonce.StateUnknown, "success-incomplete"},
		"no_currency":            {with(order(paid()), "amount", map[string]any{"total": 1999}), payonce.StateUnknown, "success-incomplete"},
		"no_number":              {with(order(paid()), "out_trade_no", nil), payonce.StateUnknown, "undecodable"},
		"no_merchant":            {with(order(paid()), "mchid", nil), payonce.StateUnknown, "undecodable"},
		"no_app":                 {with(order(paid()), "appid", nil), payonce.StateUnknown, "undecodable"},
		"success_of_the_app_too": {with(order(paid()), "appid", "wx0000000000000009"), payonce.StateSettled, ""},
	} {
		a := ask(t, c.content, nil)
		if a.Kind != c.kind || a.Kind == payonce.StateUnknown && a.Reason != c.reason {
			t.Errorf("%s: %s (%s), want %s (%s)", name, a.Kind, a.Reason, c.kind, c.reason)
		}
		if a.Kind == payonce.StateSettled && (a.PaymentRef != testTrade || a.Amount != 1999 || a.Currency != "CNY" || !a.At.Equal(time.Date(2026, 12, 1, 2, 0, 5, 0, time.UTC))) {
			t.Errorf("%s: %+v", name, a.Fact)
		}
	}
	for _, member := range []string{"mchid", "appid"} {
		if a := ask(t, with(order(paid()), member, "x1"), nil); a.Account == "wx1" || a.Account == "" {
			t.Errorf("another %s was read as ours: %+v", member, a.Fact)
		}
	}
}

// TestQueryTransaction: by WeChat Pay's number; one that it does not know proves
// nothing of ours.
func TestQueryTransaction(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, nil)
	c := channel.Call{Payment: testPayment(t, a, testIntent(MethodNative)), KeyNo: 1}
	w.Answer(func(channeltest.Request) channeltest.Reply { return signedReply(200, mustJSON(order(paid()))) })
	if got := a.QueryTransaction(context.Background(), c, testTrade); got.Kind != payonce.StateSettled || got.Number != testNumber {
		t.Errorf("%+v", got.Fact)
	}
	if r := w.Take(); len(r) != 1 || r[0].Method != "GET" || r[0].URI != "/v3/pay/transactions/id/"+testTrade+"?mchid="+testMch {
		t.Errorf("asked %+v", r)
	}
	w.Answer(func(channeltest.Request) channeltest.Reply { return refusal(404, "ORDER_NOT_EXIST") })
	if got := a.QueryTransaction(context.Background(), c, testTrade); got.Kind != payonce.StateUnknown || got.Err == nil {
		t.Errorf("not found: %+v", got)
	}
	w.Take()
	if got := a.QueryTransaction(context.Background(), c, "a\nb"); got.Kind != payonce.StateUnknown || len(w.Take()) != 0 {
		t.Errorf("no transaction id: %+v", got)
	}
}

// TestCloseNeedsASeenNumber: a close of a number that was never ordered answers
// success and burns the number, so it is not sent.
func TestCloseNeedsASeenNumber(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	w.Answer(func(channeltest.Request) channeltest.Reply { return signedReply(204, nil) })
	a := newAdapter(t, w.URL, nil)
	p := testPayment(t, a, testIntent(MethodNative))
	p.Seen = false
	got := a.Close(context.Background(), channel.Call{Payment: p, KeyNo: 1})
	if got.Kind != payonce.StateUnknown || got.Reason != "number-not-seen" || len(w.Take()) != 0 {
		t.Errorf("unseen: %+v", got)
	}
	p.Seen = true
	got = a.Close(context.Background(), channel.Call{Payment: p, KeyNo: 1})
	r := w.Take()
	if got.Kind != payonce.StateDead || len(r) != 1 {
		t.Fatalf("seen: %+v", got)
	}
	if r[0].Method != "POST" || r[0].URI != "/v3/pay/transactions/out-trade-no/"+testNumber+"/close" || string(r[0].Body) != `{"mchid":"`+testMch+`"}` {
		t.Errorf("closed by %s %s %s", r[0].Method, r[0].URI, r[0].Body)
	}
	authorized(t, r[0], "")
}

// TestServerDate: the Date header counts only where it is WeChat Pay's own or is
// declared trusted.
func TestServerDate(t *testing.T) {
	content := order(channeltest.Statement{Kind: payonce.StateWaiting, Number: testNumber})
	if a := ask(t, content, nil); !a.ServerDate.IsZero() {
		t.Errorf("a foreign host's date: %v", a.ServerDate)
	}
	if a := ask(t, content, func(c *Config) { c.TrustedDate = true }); time.Since(a.ServerDate).Abs() > time.Minute {
		t.Errorf("a trusted date: %v", a.ServerDate)
	}
	live := func(c *Config) { c.Environment, c.BaseURL = payonce.Live, "" }
	if a := newAdapter(t, "", live); !a.ownDate || !a.own {
		t.Error("WeChat Pay's own host is not known as such")
	}
}
