package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// One notice comes ten times at once: every sender hears the exact word, the
// payment changes once, and nothing but that happens.
func TestW06_W13_TenTimesAtOnce(t *testing.T) {
	t.Parallel()
	m := relayedNode(t)
	for _, channel := range []string{alipay, "stripe"} {
		t.Run(channel, func(t *testing.T) {
			t.Parallel()
			no, ask, kind := newOrder("W06"), qr, "TRADE_SUCCESS"
			if channel == "stripe" {
				ask, kind = func(no string) pay { return cardCNY(no, threeDS) }, "payment_intent.succeeded"
			}
			number := m.number(no, 1)
			m.hold(number)
			m.sim.disturbs(t, channel, fault{Operation: "query", Fault: "http_500_before", Times: always, Number: number})
			id := m.pay(ask(no)).payment().ID
			if r := m.sim.does(channel, number, "paid", nil); r.code != http.StatusOK {
				t.Fatalf("the payer: %s", r)
			}
			d := m.one(t, number, kind)
			for _, r := range together(10, func(int) resp { return m.deliver(d) }) {
				taken(t, "one of ten", channel, r)
				if r.took > 5*time.Second {
					t.Errorf("it took %v", r.took)
				}
			}
			before := m.payment(id)
			if before.Status != "SUCCEEDED" {
				t.Fatalf("the payment is %s", before.Status)
			}
			taken(t, "later", channel, m.deliver(d))
			if after := m.payment(id); after.UpdatedAt != before.UpdatedAt {
				t.Error("a repetition changed the payment")
			}
			m.paidOnce(t, no)
			if log := strings.ToLower(m.log.String()); strings.Contains(log, "constraint") || strings.Contains(log, "duplicate key") {
				t.Error("a repetition made the database complain in the log")
			}
		})
	}
}

// Everything that a forger can do to a genuine notice without the channel's key.
// Nothing of it changes a state; the untouched one does.
func TestX02_G06_F04_ForgedAlipayNotices(t *testing.T) {
	t.Parallel()
	m, no := relayedNode(t), newOrder("X02")
	number := m.number(no, 1)
	m.hold(number)
	p := m.code(t, no)
	m.sim.disturbs(t, alipay, fault{Operation: "query", Fault: "http_500_before", Times: always, Number: number})
	m.sim.paysAlipay(t, number)
	d := m.one(t, number, "TRADE_SUCCESS")
	genuine := string(d.body)
	victim := m.number(newOrder("X02v"), 1)
	swap := func(old, fresh string) string {
		if !strings.Contains(genuine, old) {
			t.Fatalf("%q is not in the notice", old)
		}
		return strings.Replace(genuine, old, fresh, 1)
	}
	sealed := func(change func(map[string]string)) string {
		f := m.settledTrade(number, "2026112922001", "10.00")
		change(f)
		return string(form(m.sealed(f)))
	}
	for name, body := range map[string]string{
		"empty": "", "nonsense": "success", "JSON": `{"trade_status":"TRADE_SUCCESS"}`, "half": genuine[:len(genuine)/2],
		"unsigned":            "out_trade_no=" + number + "&trade_status=TRADE_SUCCESS&total_amount=10.00",
		"other amount":        swap("total_amount=10.00", "total_amount=10.01"),
		"other number":        swap(number, victim),
		"other status":        swap("TRADE_SUCCESS", "TRADE_FINISHED"),
		"other event":         swap("notify_id="+d.event, "notify_id=0"+d.event[1:]),
		"other sign_type":     swap("sign_type=RSA2", "sign_type=RSA"),
		"no sign_type":        swap("sign_type=RSA2", "x=RSA2"),
		"empty sign":          strings.Split(genuine, "sign=")[0] + "sign=&sign_type=RSA2",
		"sign twice":          genuine + "&sign=AAAA",
		"amount twice":        genuine + "&total_amount=10.00",
		"number twice":        "out_trade_no=" + number + "&" + genuine,
		"further field":       genuine + "&gmt_refund=2026-01-01+00%3A00%3A00",
		"field hidden in one": swap("&total_amount=", "%26total_amount%3D"),
		"upper-case name":     swap("out_trade_no=", "OUT_TRADE_NO="),
		"encoded twice":       strings.ReplaceAll(genuine, "%", "%25"),
		"semicolons":          strings.ReplaceAll(genuine, "&", ";"),
		"trailing &":          genuine + "&",
		"NUL":                 swap("TRADE_SUCCESS", "TRADE_SUCCESS%00"),
		"blank in a value":    swap("TRADE_SUCCESS", "TRADE_SUCCESS+"),
		"other application":   sealed(func(f map[string]string) { f["app_id"] = "2021999999999999" }),
		"other seller":        sealed(func(f map[string]string) { f["seller_id"] = "2088999999999999" }),
		"no application":      sealed(func(f map[string]string) { delete(f, "app_id") }),
		"no seller":           sealed(func(f map[string]string) { delete(f, "seller_id") }),
		"no number":           sealed(func(f map[string]string) { delete(f, "out_trade_no") }),
		"no amount":           sealed(func(f map[string]string) { f["total_amount"] = "" }),
		"no trade":            sealed(func(f map[string]string) { f["trade_no"] = "" }),
		"no event":            sealed(func(f map[string]string) { delete(f, "notify_id") }),
		"no status":           sealed(func(f map[string]string) { delete(f, "trade_status") }),
	} {
		refused(t, name, alipay, m.tells([]byte(body)))
	}
	if r := m.do(request{method: "POST", path: "/webhooks/alipay/nobody", body: d.body, noAuth: true}); r.code != http.StatusNotFound {
		t.Errorf("an unknown account: %s", r)
	}
	refused(t, "compressed", alipay, m.do(request{method: "POST", path: alipayPath, body: d.body, noAuth: true, head: map[string]string{"Content-Encoding": "gzip"}}))
	if r := m.do(request{method: "GET", path: alipayPath + "?" + genuine, noAuth: true}); r.code != http.StatusMethodNotAllowed && r.code != http.StatusNotFound {
		t.Errorf("as a link: %s", r)
	}
	if got := m.payment(p.ID); got.Status != "PENDING" || m.order(no).Status != "OPEN" {
		t.Fatalf("a forgery changed the payment: %+v", got)
	}
	taken(t, "the genuine one", alipay, m.deliver(d))
	m.isPaid(t, no)
}

// The same notice in other spellings of its transport is the same notice: + and
// %20, %2B for the plus of base64 and a blank in its place, lower-case escapes,
// another order of the fields.
func TestS01_S05_OtherSpellings(t *testing.T) {
	t.Parallel()
	m, no := relayedNode(t), newOrder("S01")
	p := m.code(t, no)
	plus := m.trade(p.Number, "WAIT_BUYER_PAY")
	for !strings.Contains(m.sealed(plus)["sign"], "+") { // until the signature has what is to be spelt
		plus["notify_id"] = newKey()
	}
	encoded := string(form(m.sealed(plus)))
	_, fields, _ := strings.Cut(encoded, "&")
	first, _, _ := strings.Cut(encoded, "&")
	for name, body := range map[string]string{
		"as sent": encoded, "a plus as a blank": strings.ReplaceAll(encoded, "%2B", "+"), "a plus as %20": strings.ReplaceAll(encoded, "%2B", "%20"),
		"lower case": strings.NewReplacer("%2B", "%2b", "%2F", "%2f", "%3D", "%3d", "%3A", "%3a").Replace(encoded),
		"%20":        strings.ReplaceAll(encoded, "+", "%20"), "bare base64": strings.NewReplacer("%2F", "/", "%3D", "=").Replace(encoded),
		"another order": fields + "&" + first,
	} {
		taken(t, name, alipay, m.tells([]byte(body)))
	}
	if got := m.payment(p.ID); got.Status != "PENDING" {
		t.Errorf("the payment is %s", got.Status)
	}
}

// Values of every kind are verified as they were sent, bytes untouched; fields
// that nobody knows are signed with the rest; what is added to the address of the
// notice is no field.
func TestS02_S04_S05_S06_ValuesAsTheyAre(t *testing.T) {
	t.Parallel()
	m := relayedNode(t)
	for name, more := range map[string]map[string]string{
		"blanks":       {"subject": "  tea  ", "body": " ", "buyer_logon_id": "x "},
		"tab and CRLF": {"body": "a\tb\r\nc\n", "subject": "\ttea\n"},
		"empty":        {"body": "", "extra": "", "voucher_detail_list": ""},
		"separators":   {"subject": "a&b=c+d%26e%3D", "body": "x=1&y=2;z"},
		"emoji":        {"subject": "🍵👨‍👩‍👧 茶", "body": "％＆＝"},
		"JSON":         {"fund_bill_list": `[{"amount":"10.00","fundChannel":"ALIPAY\/ACCOUNT","note":"a\\b\"c"}]`},
		"new fields":   {"zz_new_field": "1", "a_new_field": "2", "SIGN_NOTE": "x", "sign_type_2": "y"},
		"GBK":          {"charset": "gbk", "subject": "\xb2\xe2\xca\xd4\xb6\xa9\xb5\xa5 \x81\x5c\x81\x7c", "body": "\xd6\xa7\xb8\xb6"},
		"GB18030":      {"charset": "GB18030", "subject": "\x95\x32\x82\x36"},
	} {
		t.Run(name, func(t *testing.T) {
			no := newOrder("S05")
			p := m.code(t, no)
			m.sim.disturbs(t, alipay, fault{Operation: "query", Fault: "http_500_before", Times: always, Number: p.Number})
			f := m.settledTrade(p.Number, "2026"+p.Number[:10], "10.00")
			for k, v := range more {
				f[k] = v
			}
			altered := m.sealed(f)
			for k, v := range more {
				altered[k] = v + " "
				break
			}
			refused(t, "altered", alipay, m.tells(form(altered)))
			d := delivery{path: alipayPath + "?shop=1&out_trade_no=X&trade_status=TRADE_CLOSED&sign=x", body: form(m.sealed(f)),
				head: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=" + f["charset"]}}}
			taken(t, name, alipay, m.deliver(d))
			if got := m.payment(p.ID); got.Status != "SUCCEEDED" || m.order(no).Status != "PAID" {
				t.Errorf("the payment is %s", got.Status)
			}
		})
	}
}

// A genuine notice names a number that is not known here: it is kept, not dropped.
// When the order turns up, the channel is asked, and the money pays it.
func TestL01_L12_UnknownNumberIsKept(t *testing.T) {
	t.Parallel()
	m, no := relayedNode(t), newOrder("L01")
	number := m.number(no, 1)
	if r := m.sim.do(request{method: "POST", path: "/_sim/charge", noAuth: true, body: map[string]any{"channel": alipay, "amount": 1000, "currency": "CNY", "number": number}}); r.code != http.StatusOK {
		t.Fatalf("charge: %s", r)
	}
	f := m.settledTrade(number, m.line(t, number).PaymentID, "10.00")
	for range 2 {
		taken(t, "unknown number", alipay, m.says(f))
	}
	if r := m.get("/v1/orders/" + no); r.code != http.StatusNotFound {
		t.Fatalf("an order out of nothing: %s", r)
	}
	r := m.pay(qr(no))
	notFailed(t, r)
	m.isPaid(t, no)
	if n := len(m.taken(t, no)); n != 1 {
		t.Errorf("%d charges on the books, want 1", n)
	}
	taken(t, "again", alipay, m.says(f))
	m.paidOnce(t, no)
}

// The payer has paid and the notice is here before the answer to our request for
// the code: one success, and both sides are content.
func TestO13_L12_NoticeBeforeTheCode(t *testing.T) {
	t.Parallel()
	m := relayedNode(t)
	for range 3 {
		no := newOrder("O13")
		m.spoils(t, no, "create", "before_response", 1)
		r := m.pay(qr(no))
		notFailed(t, r)
		if r.code != http.StatusCreated || r.payment().Status != "SUCCEEDED" || r.shown().Type != "none" {
			t.Errorf("answer: %s", r)
		}
		m.acknowledged(t, m.number(no, 1))
		m.isPaid(t, no)
	}
}

// A genuine notice about a hundredth of what is due pays nothing: the sum is
// recorded for people. The full sum, when it comes, pays.
func TestA12_T04_NoticeOfAnotherAmount(t *testing.T) {
	t.Parallel()
	m, no := relayedNode(t), newOrder("A12")
	ask := qr(no)
	ask.amount = 100000
	p := m.waits(t, ask)
	taken(t, "0.01 of 1000.00", alipay, m.says(m.settledTrade(p.Number, "2026"+p.Number, "0.01")))
	got := m.payment(p.ID)
	if got.Status != "UNKNOWN" || got.UnknownReason == nil || *got.UnknownReason != "mismatch" || m.order(no).Status != "OPEN" || m.order(no).AmountPaid != 0 {
		t.Fatalf("the payment is %+v, the order %+v", got, m.order(no))
	}
	if r := m.pay(cardCNY(no, visa)); r.code == http.StatusCreated {
		t.Errorf("another attempt beside money that nobody has judged: %s", r)
	}
	m.stays(t, no, "OPEN")
	for _, bad := range []string{"1000.001", "1e3", "1,000.00", "-1000.00", " 1000.00", "0x3e8", "1000.00CNY", "999.99", "1000.01", "100000.00"} {
		taken(t, bad, alipay, m.says(m.settledTrade(p.Number, "2026"+p.Number, bad)))
		if o := m.order(no); o.Status != "OPEN" || o.AmountPaid != 0 {
			t.Fatalf("%q paid the order: %+v", bad, o)
		}
	}
}

// The channel says in its notice another amount than was paid. Its own answer
// decides.
func TestA12_WrongAmountInTheNotice(t *testing.T) {
	t.Parallel()
	for _, channel := range []string{alipay, "stripe"} {
		t.Run(channel, func(t *testing.T) {
			t.Parallel()
			w, no := steady(t), newOrder("A12w")
			w.sim.disturbs(t, channel, fault{Operation: "notice", Fault: "wrong_amount", Times: 1, Number: w.number(no, 1)})
			ask := qr(no)
			if channel == "stripe" {
				ask = cardCNY(no, threeDS)
			}
			p := w.pay(ask).payment()
			if r := w.sim.does(channel, p.Number, "paid", nil); r.code != http.StatusOK {
				t.Fatalf("the payer: %s", r)
			}
			w.isPaid(t, no)
		})
	}
}

// A payment's trade of the channel is bound to its order: a genuine notice that
// gives another order the same trade pays nothing.
func TestC02_A10_TradeOfAnotherOrder(t *testing.T) {
	t.Parallel()
	m, one, two := relayedNode(t), newOrder("C02"), newOrder("C02")
	a := m.code(t, one)
	m.sim.paysAlipay(t, a.Number)
	paid := m.isPaid(t, one)
	b := m.code(t, two)
	taken(t, "the other order's trade", alipay, m.says(m.settledTrade(b.Number, *paid.ChannelPayment, "10.00")))
	m.stays(t, two, "OPEN")
	if got := m.payment(b.ID); got.Status != "PENDING" || got.ChannelPayment != nil {
		t.Errorf("the payment is %+v", got)
	}
	m.sim.paysAlipay(t, b.Number)
	m.isPaid(t, two)
	m.paidOnce(t, one)
}

// Two notices under one event id: the second is taken for a repetition, and what
// it said is found by asking.
func TestG05_SameEventIDForTwoPayments(t *testing.T) {
	t.Parallel()
	m, one, two := relayedNode(t), newOrder("G05"), newOrder("G05")
	event := newKey()
	for _, no := range []string{one, two} {
		m.hold(m.number(no, 1))
		p := m.code(t, no)
		m.sim.paysAlipay(t, p.Number)
		f := m.settledTrade(p.Number, m.line(t, p.Number).PaymentID, "10.00")
		f["notify_id"] = event
		taken(t, no, alipay, m.says(f))
	}
	m.isPaid(t, one)
	m.isPaid(t, two)
}

// Whatever comes after a success (waiting, closed, finished, notices of refunds,
// now or much later) is taken and changes nothing; what comes of one attempt never
// touches another.
func TestO01_O02_O08_O10_StaleNotices(t *testing.T) {
	t.Parallel()
	m, no := relayedNode(t), newOrder("O01")
	old := m.scanned(t, no)
	fresh := m.pay(page(no))
	if fresh.code != http.StatusCreated {
		t.Fatalf("second attempt: %s", fresh)
	}
	fresh.shown().open(t)
	number := fresh.payment().Number
	m.sim.paysAlipay(t, number)
	before := m.isPaid(t, no)
	stale := func(number, status, tradeNo string, more map[string]string) {
		f := m.trade(number, status)
		if tradeNo != "" {
			f["trade_no"] = tradeNo
		}
		for k, v := range more {
			f[k] = v
		}
		taken(t, status+" of "+number, alipay, m.says(f))
	}
	paid, back := map[string]string{"gmt_payment": chinaNow()}, map[string]string{"gmt_payment": chinaNow(), "gmt_refund": chinaNow() + ".000", "refund_fee": "10.00", "gmt_close": chinaNow()}
	for range 2 {
		stale(number, "WAIT_BUYER_PAY", *before.ChannelPayment, nil)
		stale(number, "TRADE_CLOSED", *before.ChannelPayment, map[string]string{"gmt_close": chinaNow()})
		stale(number, "TRADE_FINISHED", *before.ChannelPayment, paid)
		stale(number, "TRADE_CLOSED", *before.ChannelPayment, back)
		stale(number, "TRADE_SUCCESS", *before.ChannelPayment, back)
		stale(number, "TRADE_UNHEARD_OF", *before.ChannelPayment, nil)
		stale(old.Number, "TRADE_CLOSED", "", nil)
		stale(old.Number, "WAIT_BUYER_PAY", "", nil)
	}
	after := m.paidOnce(t, no)
	if after.ID != before.ID || *after.SucceededAt != *before.SucceededAt || *after.ChannelPayment != *before.ChannelPayment {
		t.Errorf("the payment changed: %+v, was %+v", after, before)
	}
	if got := m.payment(old.ID); got.Status != "CANCELLED" {
		t.Errorf("the first attempt is %s", got.Status)
	}
}

// All orders in which up to three notices and a question can be heard lead to the
// same end: a code that is scanned, paid and given back in full.
func TestO05_O10_EveryOrderOfFacts(t *testing.T) {
	t.Parallel()
	m := relayedNode(t)
	steps := []string{"WAIT_BUYER_PAY", "TRADE_SUCCESS", "TRADE_CLOSED refund", "question"}
	orders := permutations(len(steps))
	rs := together(len(orders), func(i int) resp {
		no := newOrder("O05")
		number := m.number(no, 1)
		m.hold(number)
		r := m.pay(qr(no))
		m.sim.scans(t, number)
		m.sim.paysAlipay(t, number)
		if r := m.sim.do(request{method: "POST", path: "/_sim/refund", noAuth: true, body: map[string]any{"channel": alipay, "number": number}}); r.code != http.StatusOK {
			return resp{err: fmt.Errorf("refund: %s", r)}
		}
		for _, k := range orders[i] {
			if steps[k] == "question" {
				m.sync(r.payment().ID)
				continue
			}
			taken(t, steps[k], alipay, m.deliver(m.one(t, number, steps[k])))
		}
		if !poll(soon, func() bool { return m.order(no).Status == "PAID" }) {
			return resp{err: fmt.Errorf("order %v: %s", orders[i], m.get("/v1/orders/"+no))}
		}
		m.paidOnce(t, no)
		return resp{}
	})
	for _, r := range rs {
		if r.err != nil {
			t.Error(r.err)
		}
	}
}

// permutations of 0 … n-1.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			q := append([]int{}, p[:at]...)
			all = append(all, append(append(q, n-1), p[at:]...))
		}
	}
	return all
}
