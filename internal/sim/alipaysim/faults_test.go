package alipaysim_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// TestFaultsOnEveryOperation plays each fault on each operation and looks at
// the books for its effect.
func TestFaultsOnEveryOperation(t *testing.T) {
	r := newRig(t)
	operations := map[string]struct {
		ready  func(number string)
		call   func(number string) (method, biz string)
		effect func(number string) bool
	}{
		"create": {
			func(string) {},
			func(n string) (string, string) { return "precreate", order(n, "") },
			func(n string) bool { return len(r.books("charges", n)) == 1 },
		},
		"query": {
			func(n string) { r.qr(n); r.pay(n, "", 200) },
			func(n string) (string, string) { return "query", about(n) },
			nil,
		},
		"close": {
			func(n string) { r.qr(n); r.pay(n, `,"outcome":"scanned"`, 200) },
			func(n string) (string, string) { return "close", about(n) },
			func(n string) bool { return r.line(n)["status"] == "closed" },
		},
		"refund": {
			func(n string) { r.qr(n); r.pay(n, "", 200) },
			func(n string) (string, string) { return "refund", back(n, "a", "2.00") },
			func(n string) bool { return r.line(n)["refunded"] == 200.0 },
		},
		"refund_query": {
			func(n string) { r.qr(n); r.pay(n, "", 200); r.api("refund", back(n, "a", "2.00"), "10000") },
			func(n string) (string, string) {
				return "fastpay.refund.query", `{"out_trade_no":"` + n + `","out_request_no":"a"}`
			},
			nil,
		},
	}
	for operation, o := range operations {
		for _, c := range faultCases(operation) {
			number := strings.NewReplacer(":", "_", ".", "_", "-", "_").Replace(operation + "_" + c.fault)
			o.ready(number)
			r.fault(operation, c.fault, `,"number":"`+number+`"`)
			method, biz := o.call(number)
			a, err := r.send(r.params("alipay.trade."+method, biz))
			if !c.check(a, err) {
				t.Errorf("%s %s: %v %d %s", operation, c.fault, err, a.status, a.raw)
			}
			if o.effect != nil && o.effect(number) != c.effect {
				t.Errorf("%s %s: effect %v, want %v", operation, c.fault, !c.effect, c.effect)
			}
		}
	}
	equal(t, "all used up", len(r.control("GET", "/_sim/faults", "", 200)["faults"].([]any)), 0)
}

type faultCase struct {
	fault  string
	effect bool
	check  func(reply, error) bool
}

func faultCases(operation string) []faultCase {
	code := func(code string, signed bool) func(reply, error) bool {
		return func(a reply, err error) bool {
			return err == nil && a.status == 200 && a.code() == code && a.signed == signed && (signed || a.sign == "")
		}
	}
	lost := func(_ reply, err error) bool { return err != nil }
	html500 := func(a reply, err error) bool {
		return err == nil && a.status == 500 && strings.HasPrefix(a.raw, "<html>")
	}
	list := []faultCase{
		{"lose_request", false, lost},
		{"lose_response", true, lost},
		{"reset_mid_body", true, func(_ reply, err error) bool {
			return errors.Is(err, syscall.ECONNRESET) || err != nil && strings.Contains(err.Error(), "EOF")
		}},
		{"http_500_before", false, html500},
		{"http_500_after", true, html500},
		{"html_502", false, func(a reply, err error) bool { return err == nil && a.status == 502 }},
		{"truncated", true, func(a reply, err error) bool { return err == nil && a.status == 200 && a.body == nil && a.raw != "" }},
		{"bad_signature", true, func(a reply, err error) bool { return a.code() == "10000" && a.sign != "" && !a.signed }},
		{"error:ACQ.SYSTEM_ERROR", false, code("ACQ.SYSTEM_ERROR", true)},
		{"error:after:ACQ.SYSTEM_ERROR", true, code("ACQ.SYSTEM_ERROR", true)},
		{"error:aop.ACQ.SYSTEM_ERROR", false, code("aop.ACQ.SYSTEM_ERROR", true)},
		{"error:isp.unknow-error", false, func(a reply, err error) bool { return a.str("code") == "20000" && a.signed }},
		{"error:20000", false, code("isp.unknow-error", true)},
		{"error:20001", false, code("aop.invalid-auth-token", false)},
		{"error:40001", false, code("isv.missing-signature", false)},
		{"error:40002", false, code("isv.invalid-signature", false)},
		{"error:40003", false, code("isv.missing-signature-config", false)},
		{"error:40004", false, func(a reply, err error) bool { return a.str("code") == "40004" && a.signed }},
		{"error:40005", false, code("isv.app-call-limited", false)},
		{"error:40006", false, code("isv.insufficient-isv-permissions", false)},
		{"error:isv.missing-app-cert-sn", false, func(a reply, err error) bool { return a.str("code") == "40002" }},
		{"error:TRADE_NOT_EXIST", false, code("TRADE_NOT_EXIST", true)},
		{"foreign_account", true, func(a reply, err error) bool {
			return a.signed && strings.HasPrefix(a.str("out_trade_no"), "FOREIGN")
		}},
	}
	if operation == "create" || operation == "refund" || operation == "close" {
		list = append(list, faultCase{"before_response", true, code("10000", true)})
		if operation != "close" {
			list = append(list, faultCase{"duplicate:2", true, code("10000", true)})
		}
	}
	switch operation {
	case "query":
		list = append(list, faultCase{"wrong_amount", true, func(a reply, err error) bool { return a.signed && a.str("total_amount") == "0.01" }})
	case "refund":
		list = append(list, faultCase{"wrong_amount", true, func(a reply, err error) bool { return a.signed && a.str("refund_fee") == "0.01" }})
	case "refund_query":
		list = append(list, faultCase{"wrong_amount", true, func(a reply, err error) bool { return a.signed && a.str("refund_amount") == "0.01" }})
	}
	return list
}

func TestDelayedCall(t *testing.T) {
	r := newRig(t)
	r.qr("D1")
	r.fault("query", "delay", `,"delay_ms":50`)
	r.api("query", about("D1"), "ACQ.TRADE_NOT_EXIST")
	equal(t, "used", len(r.control("GET", "/_sim/faults", "", 200)["faults"].([]any)), 0)
}

func TestWrongAmountOfAnOrder(t *testing.T) {
	r := newRig(t)
	r.fault("create", "wrong_amount", "")
	r.qr("A1")
	equal(t, "taken for another amount", r.pay("A1", "", 200)["amount"], any(1.0))
	equal(t, "and says so", r.api("query", about("A1"), "10000").str("total_amount"), "0.01")
}

func TestDuplicatedCalls(t *testing.T) {
	r := newRig(t)
	r.qr("P1")
	r.pay("P1", "", 200)
	r.fault("refund", "duplicate:2", "")
	a := r.api("refund", back("P1", "a", "2.00"), "10000")
	equal(t, "the last says so", a.str("fund_change"), "N")
	equal(t, "calls", r.calls("refund", "P1"), 3)
	equal(t, "one refund", r.line("P1")["refunded"], any(200.0))
	r.qr("P2")
	r.pay("P2", `,"outcome":"scanned"`, 200)
	r.fault("close", "duplicate:1", "")
	r.api("close", about("P2"), "ACQ.REASON_TRADE_STATUS_INVALID")
}

func TestFaultsThatMakeNoSense(t *testing.T) {
	r := newRig(t)
	for _, f := range [][2]string{{"close", "wrong_amount"}, {"capture", "delay"}, {"confirm", "delay"}, {"query", "duplicate:2"},
		{"create", "error:no such code"}, {"create", "error:42"}, {"create", "fire"}, {"fly", "delay"}} {
		r.control("POST", "/_sim/faults", `{"channel":"alipay","operation":"`+f[0]+`","fault":"`+f[1]+`"}`, 400)
	}
	// Calls that are not authorized use up none.
	r.fault("query", "html_502", "")
	r.api("query", about("N1"), "isv.invalid-signature", "sign", "AAAA")
	equal(t, "left", len(r.control("GET", "/_sim/faults", "", 200)["faults"].([]any)), 1)
}
