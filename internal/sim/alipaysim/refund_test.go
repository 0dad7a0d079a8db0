package alipaysim_test

import "testing"

func back(number, request, amount string) string {
	return `{"out_trade_no":"` + number + `","out_request_no":"` + request + `","refund_amount":"` + amount + `"}`
}

// TestF09_RefundNumberIsOneRefund: the same number and amount is the same
// refund, another amount is refused, another number is another refund.
func TestF09_RefundNumberIsOneRefund(t *testing.T) {
	r := newRig(t)
	r.qr("R1")
	r.api("refund", back("R1", "a", "1.00"), "ACQ.TRADE_NOT_EXIST")
	r.pay("R1", `,"outcome":"scanned"`, 200)
	r.api("refund", back("R1", "a", "1.00"), "ACQ.TRADE_STATUS_ERROR")
	r.pay("R1", "", 200)

	a := r.api("refund", back("R1", "a", "3.00"), "10000")
	equal(t, "money moves", a.str("fund_change"), "Y")
	again := r.api("refund", back("R1", "a", "3.00"), "10000")
	equal(t, "once", again.str("fund_change"), "N")
	equal(t, "sum", again.str("refund_fee"), "3.00")
	r.api("refund", back("R1", "a", "3.01"), "ACQ.DISCORDANT_REPEAT_REQUEST")
	r.api("refund", back("R1", "b", "7.01"), "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL")
	r.api("refund", back("R1", "", "1.00"), "ACQ.INVALID_PARAMETER")
	r.api("refund", back("R1", "b", "0"), "ACQ.INVALID_PARAMETER")
	equal(t, "stays paid", r.api("query", about("R1"), "10000").str("trade_status"), "TRADE_SUCCESS")
	equal(t, "books", r.line("R1")["status"], any("partially_refunded"))
	a = r.api("refund", back("R1", "b", "7.00"), "10000")
	equal(t, "cumulative", a.str("refund_fee"), "10.00")
	q := r.api("query", about("R1"), "10000")
	equal(t, "closed by a full refund", q.str("trade_status"), "TRADE_CLOSED")
	equal(t, "but it was paid", q.str("send_pay_date") != "", true)
	r.api("refund", back("R1", "c", "1.00"), "ACQ.TRADE_HAS_CLOSE")
	equal(t, "repeat after the end", r.api("refund", back("R1", "b", "7.00"), "10000").str("fund_change"), "N")
	l := r.line("R1")
	equal(t, "books", l["status"], any("refunded"))
	equal(t, "two refunds", len(l["refunds"].([]any)), 2)
}

func TestRefundQuery(t *testing.T) {
	r := newRig(t)
	r.api("fastpay.refund.query", `{"out_trade_no":"nobody","out_request_no":"a"}`, "TRADE_NOT_EXIST")
	r.qr("Q1")
	r.pay("Q1", "", 200)
	r.api("fastpay.refund.query", about("Q1"), "ACQ.INVALID_PARAMETER")
	none := r.api("fastpay.refund.query", `{"out_trade_no":"Q1","out_request_no":"a"}`, "10000")
	equal(t, "a success that says nothing", len(none.body), 2)
	r.api("refund", `{"out_trade_no":"Q1","refund_amount":"10.00","query_options":["refund_detail_item_list"]}`, "10000")
	a := r.api("fastpay.refund.query", `{"out_trade_no":"Q1","out_request_no":"Q1","query_options":["gmt_refund_pay"]}`, "10000")
	equal(t, "status", a.str("refund_status"), "REFUND_SUCCESS")
	equal(t, "amount", a.str("refund_amount"), "10.00")
	equal(t, "time", a.str("gmt_refund_pay") != "", true)
}

func TestDashboardRefund(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	r.qr("D1", "notify_url", s.srv.URL)
	r.control("POST", "/_sim/refund", `{"channel":"alipay","number":"nobody"}`, 404)
	r.control("POST", "/_sim/refund", `{"channel":"alipay","number":"D1"}`, 409)
	r.pay("D1", "", 200)
	s.next(t)
	equal(t, "part", r.control("POST", "/_sim/refund", `{"channel":"alipay","number":"D1","amount":400}`, 200)["refunded"], any(400.0))
	equal(t, "notice", s.next(t).form.Get("refund_fee"), "4.00")
	r.control("POST", "/_sim/refund", `{"channel":"alipay","number":"D1","amount":601}`, 409)
	equal(t, "rest", r.control("POST", "/_sim/refund", `{"channel":"alipay","number":"D1"}`, 200)["status"], any("refunded"))
	equal(t, "notice", s.next(t).form.Get("trade_status"), "TRADE_CLOSED")
}
