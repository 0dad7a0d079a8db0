package alipaysim_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTradeExistsOnlyAfterTheScan: before it query, close and cancel know
// nothing of the number, and the code stays payable.
func TestTradeExistsOnlyAfterTheScan(t *testing.T) {
	r := newRig(t)
	code := r.qr("T1")
	r.api("query", about("T1"), "ACQ.TRADE_NOT_EXIST")
	r.api("close", about("T1"), "ACQ.TRADE_NOT_EXIST")
	a := r.api("cancel", about("T1"), "10000")
	equal(t, "no action", a.str("action"), "")
	equal(t, "no retry", a.str("retry_flag"), "N")
	r.api("cancel", `{"trade_no":"2026120122001400000000000001"}`, "ACQ.TRADE_NOT_EXIST")
	l := r.line("T1")
	equal(t, "on the books", l["status"], any("created"))
	equal(t, "without a trade", l["payment_id"], any(""))

	status, header, _ := r.get(code) // the scan
	equal(t, "scan", status, 302)
	a = r.api("query", about("T1"), "10000")
	equal(t, "waits", a.str("trade_status"), "WAIT_BUYER_PAY")
	equal(t, "amount", a.str("total_amount"), "10.00")
	if no := a.str("trade_no"); !regexp.MustCompile(`^20\d{6}22001\d{15}$`).MatchString(no) {
		t.Fatalf("trade_no %q", no)
	}
	equal(t, "books", r.line("T1")["status"], any("unpaid"))
	_, _, page := r.get(r.srv.URL + header.Get("Location"))
	equal(t, "page", strings.Contains(page, "¥10.00") && strings.Contains(page, "<form"), true)

	res, err := r.http.PostForm(r.srv.URL+header.Get("Location"), map[string][]string{"outcome": {"paid"}})
	r.ok(err)
	res.Body.Close()
	a = r.api("query", about("T1"), "10000")
	equal(t, "paid", a.str("trade_status"), "TRADE_SUCCESS")
	equal(t, "paid at", len(a.str("send_pay_date")), len(layout))
	if a.str("receipt_amount") != "9.99" || a.str("buyer_pay_amount") != "9.99" {
		t.Fatalf("a coupon makes what is received smaller than the total: %s", a.raw)
	}
	b := r.api("query", `{"trade_no":"`+a.str("trade_no")+`","out_trade_no":"other"}`, "10000")
	equal(t, "trade_no wins", b.str("out_trade_no"), "T1")
	r.get(code)
	_, _, page = r.get(r.srv.URL + header.Get("Location"))
	equal(t, "nothing left to pay", strings.Contains(page, "<form"), false)
	equal(t, "creates", r.calls("create", "T1"), 1)
}

func TestCloseAndCancel(t *testing.T) {
	r := newRig(t)
	r.qr("C1")
	r.pay("C1", `,"outcome":"scanned"`, 200)
	r.api("close", about("C1"), "10000")
	equal(t, "closed", r.api("query", about("C1"), "10000").str("trade_status"), "TRADE_CLOSED")
	r.api("close", about("C1"), "ACQ.REASON_TRADE_STATUS_INVALID")
	equal(t, "again", r.api("cancel", about("C1"), "10000").str("action"), "close")
	r.pay("C1", "", 409)
	r.api("precreate", order("C1", ""), "ACQ.TRADE_HAS_CLOSE")
	equal(t, "books", r.line("C1")["status"], any("closed"))

	r.qr("C2")
	r.pay("C2", "", 200)
	r.api("close", about("C2"), "ACQ.TRADE_STATUS_ERROR")
	equal(t, "cancel of a paid one", r.api("cancel", about("C2"), "10000").str("action"), "refund")
	equal(t, "again", r.api("cancel", about("C2"), "10000").str("action"), "refund")
	equal(t, "books", r.line("C2")["refunded"], any(1000.0))

	r.qr("C3")
	r.pay("C3", `,"outcome":"scanned"`, 200)
	equal(t, "cancel of a waiting one", r.api("cancel", about("C3"), "10000").str("action"), "close")
	r.api("query", `{}`, "ACQ.INVALID_PARAMETER")
	r.api("close", `{}`, "ACQ.INVALID_PARAMETER")
}

// TestRepeatedNumber is the table of repeated out_trade_no.
func TestRepeatedNumber(t *testing.T) {
	r := newRig(t)
	other := `{"out_trade_no":"N1","total_amount":"10.01","subject":"测试"}`
	first := r.qr("N1")
	equal(t, "the same code again", r.qr("N1"), first)
	r.turn("precreate_again", "refused")
	r.api("precreate", order("N1", ""), "ACQ.APPLY_PC_MERCHANT_CODE_ERROR")
	r.turn("precreate_again", "new_code")
	second := r.qr("N1")
	if second == first {
		t.Fatal("no new code")
	}
	rival := r.api("precreate", other, "10000").str("qr_code")
	r.get(first)
	r.get(second) // leads to the same trade
	equal(t, "one trade", len(r.books("charges", "N1")), 2)
	r.get(rival) // another amount: no trade of it
	r.api("precreate", other, "ACQ.CONTEXT_INCONSISTENT")
	equal(t, "waiting", r.api("query", about("N1"), "10000").str("total_amount"), "10.00")
	r.api("precreate", order("N1", ""), "10000")
	r.api("create", order("N1", `,"buyer_id":"2088"`), "ACQ.TRADE_BUYER_NOT_MATCH")
	r.pay("N1", "", 200)
	r.api("precreate", order("N1", ""), "ACQ.TRADE_HAS_SUCCESS")
	r.api("create", order("N1", `,"buyer_id":"2088"`), "ACQ.TRADE_HAS_SUCCESS")
	r.api("refund", `{"out_trade_no":"N1","refund_amount":"10.00","out_request_no":"r"}`, "10000")
	r.api("precreate", order("N1", ""), "ACQ.TRADE_HAS_CLOSE")

	a := r.api("create", order("N2", `,"buyer_id":"2088000000000001"`), "10000")
	equal(t, "create makes the trade", r.api("query", about("N2"), "10000").str("trade_no"), a.str("trade_no"))
	equal(t, "buyer", r.api("query", about("N2"), "10000").str("buyer_user_id"), "2088000000000001")
	equal(t, "again", r.api("create", order("N2", `,"buyer_id":"2088000000000001"`), "10000").str("trade_no"), a.str("trade_no"))
	r.api("create", order("N2", `,"buyer_id":"2088000000000002"`), "ACQ.TRADE_BUYER_NOT_MATCH")
	r.api("create", order("N3", ""), "ACQ.INVALID_PARAMETER")
}

func TestLivesOfCodesAndTrades(t *testing.T) {
	r := newRig(t)
	r.qr("E1")
	r.advance("7201") // a code lives two hours
	equal(t, "dead code", r.line("E1")["status"], any("closed"))
	r.pay("E1", "", 409)
	r.api("query", about("E1"), "ACQ.TRADE_NOT_EXIST")

	r.api("precreate", order("E2", `,"time_expire":"`+r.virtual(3*time.Minute)+`"`), "10000")
	r.pay("E2", `,"outcome":"scanned"`, 200)
	r.advance("185")
	a := r.api("query", about("E2"), "10000")
	equal(t, "timed out", a.str("trade_status"), "TRADE_CLOSED")
	equal(t, "without a payment", a.str("send_pay_date"), "")
	r.pay("E2", "", 409)

	r.api("precreate", order("E3", `,"timeout_express":"5m"`), "10000")
	r.pay("E3", `,"outcome":"scanned"`, 200)
	r.reopen() // the timer is set again
	r.advance("301")
	equal(t, "timed out", r.line("E3")["status"], any("closed"))

	r.api("precreate", order("E4", `,"qr_code_timeout_express":"1m"`), "10000")
	r.advance("61")
	r.pay("E4", "", 409)

	r.qr("E5")
	r.pay("E5", "", 200)
	r.advance("31536001")
	equal(t, "finished", r.api("query", about("E5"), "10000").str("trade_status"), "TRADE_FINISHED")
	r.api("refund", `{"out_trade_no":"E5","refund_amount":"1.00","out_request_no":"r"}`, "ACQ.TRADE_HAS_FINISHED")
	r.api("cancel", about("E5"), "ACQ.TRADE_HAS_FINISHED")
	r.api("precreate", order("E5", ""), "ACQ.TRADE_HAS_SUCCESS")
	equal(t, "books", r.line("E5")["status"], any("paid"))
}

func TestOrderFieldsAreChecked(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("长", 257)
	for biz, want := range map[string]string{
		order("bad-number", ""):                                                                                                     "ACQ.INVALID_PARAMETER",
		order(strings.Repeat("9", 65), ""):                                                                                          "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"10.00","subject":"a/b"}`:                                                              "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"10.00","subject":"a&b"}`:                                                              "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"10.00","subject":"a=b"}`:                                                              "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"10.00","subject":"a\u0000b"}`:                                                         "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"10.00","subject":"` + long + `"}`:                                                     "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"10.00"}`:                                                                              "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"0.00","subject":"s"}`:                                                                 "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"-1","subject":"s"}`:                                                                   "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"1.001","subject":"s"}`:                                                                "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"1,000.00","subject":"s"}`:                                                             "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":1e2,"subject":"s"}`:                                                                    "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":"100000000.01","subject":"s"}`:                                                         "ACQ.INVALID_PARAMETER",
		`{"out_trade_no":"V1","total_amount":true,"subject":"s"}`:                                                                   "ACQ.INVALID_PARAMETER",
		order("V1", `,"product_code":"QUICK_WAP_WAY"`):                                                                              "ACQ.INVALID_PARAMETER",
		order("V1", `,"seller_id":"2088999999999999"`):                                                                              "ACQ.SELLER_NOT_EXIST",
		order("V1", `,"time_expire":"`+r.virtual(-time.Second)+`"`):                                                                 "ACQ.NOW_TIME_AFTER_EXPIRE_TIME_ERROR",
		order("V1", `,"time_expire":"`+r.virtual(30*time.Second)+`"`):                                                               "ACQ.INVALID_PARAMETER",
		order("V1", `,"time_expire":"`+r.virtual(16*24*time.Hour)+`"`):                                                              "ACQ.INVALID_PARAMETER",
		order("V1", `,"time_expire":"2026-12-01"`):                                                                                  "ACQ.INVALID_PARAMETER",
		order("V1", `,"timeout_express":"1.5h"`):                                                                                    "ACQ.INVALID_PARAMETER",
		order("V1", `,"timeout_express":"16d"`):                                                                                     "ACQ.INVALID_PARAMETER",
		order("V5", `,"timeout_express":"1c"`):                                                                                      "10000",
		`{"out_trade_no":"V2","total_amount":100000000,"subject":"引号\"和\\\"emoji😀","body":""}`:                                      "10000",
		`{"out_trade_no":"V3","total_amount":"0.01","subject":"s","product_code":"QR_CODE_OFFLINE","seller_id":"` + r.seller + `"}`: "10000",
	} {
		r.api("precreate", biz, want)
	}
	r.api("precreate", order("V4", ""), "ACQ.INVALID_PARAMETER", "notify_url", "ftp://127.0.0.1/")
	r.api("precreate", order("V4", ""), "ACQ.INVALID_PARAMETER", "notify_url", "http://127.0.0.1/"+strings.Repeat("n", 256))
	equal(t, "nothing was made", len(r.books("charges", "V4")), 0)
}

func TestForcedMoney(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	r.qr("F1", "notify_url", s.srv.URL)
	r.pay("F1", `,"outcome":"scanned"`, 200)
	r.api("close", about("F1"), "10000")
	no := r.line("F1")["payment_id"]
	r.pay("F1", `,"outcome":"declined","force":true`, 409)
	got := r.pay("F1", `,"force":true`, 200)
	equal(t, "the closed trade is paid", got["payment_id"], no)
	equal(t, "late notice", s.next(t).form.Get("trade_status"), "TRADE_SUCCESS")
	equal(t, "query says so", r.api("query", about("F1"), "10000").str("trade_status"), "TRADE_SUCCESS")
	equal(t, "one line", r.line("F1")["status"], any("paid"))

	got = r.pay("F1", `,"force":true,"amount":1`, 200) // paid twice
	lines := r.books("charges", "F1")
	equal(t, "two lines", len(lines), 2)
	d := s.next(t)
	equal(t, "second trade", d.form.Get("trade_no"), got["payment_id"].(string))
	equal(t, "its amount", d.form.Get("total_amount"), "0.01")
	equal(t, "the number means the newest", r.api("query", about("F1"), "10000").str("trade_no"), got["payment_id"].(string))
	equal(t, "the first is there", r.api("query", `{"trade_no":"`+no.(string)+`"}`, "10000").str("total_amount"), "10.00")

	r.qr("F2", "notify_url", s.srv.URL)
	r.advance("7201")
	r.pay("F2", `,"force":true`, 200) // the code was dead
	equal(t, "notice", s.next(t).form.Get("out_trade_no"), "F2")
	equal(t, "one line", r.line("F2")["status"], any("paid"))
}

func TestPayerOutcomes(t *testing.T) {
	r := newRig(t)
	r.pay("nobody", "", 404)
	r.qr("O1")
	equal(t, "left", r.pay("O1", `,"outcome":"abandoned"`, 200)["status"], any("created"))
	r.api("query", about("O1"), "ACQ.TRADE_NOT_EXIST")
	equal(t, "declined", r.pay("O1", `,"outcome":"declined"`, 200)["status"], any("declined"))
	equal(t, "still waits", r.api("query", about("O1"), "10000").str("trade_status"), "WAIT_BUYER_PAY")
	equal(t, "amount", r.pay("O1", `,"amount":1`, 200)["amount"], any(1.0))
	equal(t, "wire", r.api("query", about("O1"), "10000").str("total_amount"), "0.01")
	r.pay("O1", "", 409)
	r.control("POST", "/_sim/dispute", `{"channel":"alipay","number":"O1"}`, 400)
	c := r.control("POST", "/_sim/charge", `{"channel":"alipay","amount":77,"currency":"CNY"}`, 200)
	equal(t, "orphan", r.api("query", about(c["number"].(string)), "10000").str("total_amount"), "0.77")
	r.control("POST", "/_sim/charge", `{"channel":"alipay","amount":77,"currency":"USD"}`, 400)
}
