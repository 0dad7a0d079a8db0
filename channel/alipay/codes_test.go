package alipay

import (
	"strings"
	"testing"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// documentedCodes is the sheet's table, written down again: code, sub_codes, and
// what begin, query and close take them for.
func documentedCodes(steps ...channeltest.Step) []channeltest.Case {
	const (
		unknown = payonce.StateUnknown
		refused = payonce.StateRefused
		notSent = payonce.StateNotSent
	)
	rows := []struct {
		code, subs           string
		begin, query, closed payonce.FactKind
		unsigned             bool
	}{
		{"20000", "isp.unknow-error aop.unknow-error aop.ACQ.SYSTEM_ERROR", unknown, unknown, unknown, true},
		{"10003", "-", unknown, unknown, unknown, false},
		{"20001", "aop.invalid-auth-token aop.auth-token-time-out aop.invalid-app-auth-token aop.app-auth-token-time-out aop.no-product-reg-by-partner", notSent, unknown, unknown, true},
		{"40001", "isv.missing-method isv.missing-signature isv.missing-signature-type isv.missing-signature-key isv.missing-app-id isv.missing-timestamp isv.missing-version isv.decryption-error-missing-encrypt-type", notSent, unknown, unknown, true},
		{"40002", "isv.invalid-method isv.invalid-signature-type isv.invalid-signature isv.invalid-app-id isv.invalid-timestamp isv.invalid-charset isv.forbidden-api isv.not-online-app isv.app-cert-expired isv.missing-app-cert-sn isv.missing-alipay-root-cert-sn", notSent, unknown, unknown, true},
		{"40002", "isv.invalid-parameter isv.invalid-format isv.illegal-json isv.suspected-attack isv.invalid-openid", refused, unknown, unknown, true},
		{"40003", "isv.missing-signature-config isv.invalid-auth-relations", notSent, unknown, unknown, true},
		{"40005", "isv.app-call-limited isv.method-call-limited", unknown, unknown, unknown, true},
		{"40006", "isv.insufficient-isv-permissions isv.insufficient-user-permissions isv.self-invoke-forbidden", notSent, unknown, unknown, true},
		{"40004", "ACQ.SYSTEM_ERROR AQC.SYSTEM_ERROR", unknown, unknown, unknown, false},
		{"40004", "ACQ.INVALID_PARAMETER", refused, unknown, unknown, false},
		{"40004", "ACQ.TRADE_NOT_EXIST TRADE_NOT_EXIST", unknown, payonce.StateAbsent, unknown, false},
		{"40004", "ACQ.ENTERPRISE_PAY_BIZ_ERROR ACQ.TRADE_STATUS_ERROR ACQ.REASON_TRADE_STATUS_INVALID ACQ.REASON_ILLEGAL_STATUS", unknown, unknown, unknown, false},
		{"40004", "ACQ.TRADE_HAS_SUCCESS ACQ.TRADE_HAS_CLOSE ACQ.CONTEXT_INCONSISTENT ACQ.TRADE_BUYER_NOT_MATCH ACQ.APPLY_PC_MERCHANT_CODE_ERROR", unknown, unknown, unknown, false},
		{"40004", `ACQ.NOW_TIME_AFTER_EXPIRE_TIME_ERROR ACQ.TOTAL_FEE_EXCEED ACQ.EXIST_FORBIDDEN_WORD ACQ.BUYER_SELLER_EQUAL ACQ.BUYER_ENABLE_STATUS_FORBID
			ACQ.BUYER_NOT_EXIST ACQ.BUYER_PAYMENT_AMOUNT_DAY_LIMIT_ERROR ACQ.BUYER_PAYMENT_AMOUNT_MONTH_LIMIT_ERROR ACQ.ERROR_BUYER_CERTIFY_LEVEL_LIMIT
			ACQ.BEYOND_PAY_RESTRICTION ACQ.BEYOND_PER_RECEIPT_RESTRICTION ACQ.BEYOND_PER_RECEIPT_DAY_RESTRICTION ACQ.BEYOND_PER_RECEIPT_SINGLE_RESTRICTION
			ACQ.MERCHANT_PERM_RECEIPT_SUSPEND_LIMIT ACQ.MERCHANT_PERM_RECEIPT_SINGLE_LIMIT ACQ.MERCHANT_PERM_RECEIPT_DAY_LIMIT ACQ.SUB_GOODS_SIZE_MAX_COUNT
			ACQ.PAYER_UNMATCHED ACQ.USER_LOGONID_DUP ACQ.CUSTOMER_VALIDATE_ERROR ACQ.NOT_SUPPORT_PAYMENT_INST
			ACQ.ILLEGAL_ARGUMENT ACQ.ACCESS_FORBIDDEN ACQ.PARTNER_ERROR ACQ.SELLER_BEEN_BLOCKED ACQ.SELLER_NOT_EXIST ACQ.ERROR_SELLER_CERTIFY_LEVEL_LIMIT
			ACQ.MERCHANT_STATUS_NOT_NORMAL ACQ.RISK_MERCHANT_IP_NOT_EXIST ACQ.INVALID_STORE_ID ACQ.STORE_INFO_INVALID ACQ.INVALID_RECEIVE_ACCOUNT
			ACQ.DEFAULT_SETTLE_RULE_NOT_EXIST ACQ.TRADE_SETTLE_ERROR ACQ.SECONDARY_MERCHANT_STATUS_ERROR ACQ.SECONDARY_MERCHANT_ID_INVALID
			ACQ.SECONDARY_MERCHANT_ID_BLANK ACQ.SECONDARY_MERCHANT_NOT_MATCH ACQ.SECONDARY_MERCHANT_ISV_PUNISH_INDIRECT
			ACQ.SECONDARY_MERCHANT_ALIPAY_ACCOUNT_INVALID ACQ.SECONDARY_MERCHANT_CARD_ALIAS_NO_INVALID ACQ.SUB_MERCHANT_CREATE_FAIL
			ACQ.SUB_MERCHANT_TYPE_INVALID ACQ.PLATFORM_BUSINESS_ACQUIRE_MODE_MUST_MERCHANT_ID ACQ.OPEN_ID_NOT_TINY_APP ACQ.BIZ_PRODUCT_NOT_ALLOWED
			ACQ.UNBOUND_APPLICATION ACQ.PRODUCT_NOT_SUPPORT_IN_TINY_APP`, refused, unknown, unknown, false},
	}
	var out []channeltest.Case
	for _, row := range rows {
		for sub := range strings.FieldsSeq(row.subs) {
			for _, s := range steps {
				want := map[channeltest.Step]payonce.FactKind{channeltest.Begin: row.begin, channeltest.Query: row.query, channeltest.Close: row.closed}[s]
				out = append(out, codeCase(s, row.code, sub, row.unsigned, want))
			}
		}
	}
	return out
}

func codeCase(s channeltest.Step, code, sub string, unsigned bool, want payonce.FactKind) channeltest.Case {
	fields := failed(sub)
	fields["code"] = code
	if sub == "-" {
		delete(fields, "sub_code")
	}
	return channeltest.Case{Name: code + "_" + sub, Step: s, Want: want,
		Reply: func(channeltest.Request) channeltest.Reply {
			if unsigned {
				return answerOf(nodeNames[s], mustJSON(fields), "")
			}
			return signedAnswer(s, fields)
		},
		Check: func(t *testing.T, a channel.Answer) {
			if a.Kind == payonce.StateRefused && a.Failure.ChannelCode != word(sub) {
				t.Errorf("failure is %+v", a.Failure)
			}
		}}
}

// unlistedCodes: what no table has, and what an answer without or with a wrong
// signature says.
func unlistedCodes(steps ...channeltest.Step) []channeltest.Case {
	var out []channeltest.Case
	add := func(s channeltest.Step, name string, reply channeltest.Reply) {
		out = append(out, channeltest.Case{Name: name, Step: s, Reply: func(channeltest.Request) channeltest.Reply { return reply }})
	}
	st := channeltest.Statement{Kind: payonce.StateSettled, Number: testNumber, Amount: 1999}
	for _, s := range steps {
		name := nodeNames[s]
		good := say(s, st, channeltest.Request{})
		node, _, _ := strings.Cut(strings.TrimPrefix(string(good.Body), `{"`+name+`":`), `,"sign"`)
		add(s, "new_code", signedAnswer(s, map[string]any{"code": "40009", "sub_code": "isv.new"}))
		add(s, "new_business_code", signedAnswer(s, failed("ACQ.NEW_CODE")))
		add(s, "new_gateway_code", answerOf(name, mustJSON(map[string]any{"code": "40002", "sub_code": "isv.new"}), ""))
		add(s, "no_sub_code", signedAnswer(s, map[string]any{"code": "40004"}))
		add(s, "number_as_code", signedAnswer(s, map[string]any{"code": 10000, "out_trade_no": testNumber}))
		add(s, "unsigned_success", answerOf(name, []byte(node), ""))
		add(s, "unsigned_error_node_success", answerOf("error_response", []byte(node), ""))
		add(s, "unsigned_business_refusal", answerOf(name, mustJSON(failed("ACQ.TOTAL_FEE_EXCEED")), ""))
		add(s, "unsigned_absent", answerOf(name, mustJSON(failed("ACQ.TRADE_NOT_EXIST")), ""))
		add(s, "signed_by_us", answerOf(name, []byte(node), signText(keysOnce().app, []byte(node))))
		add(s, "signed_by_stranger", answerOf(name, []byte(node), signText(keysOnce().stranger, []byte(node))))
		add(s, "other_method", answerOf("alipay_trade_refund_response", []byte(node), signText(keysOnce().alipay, []byte(node))))
		add(s, "amount_changed", answerOf(name, []byte(strings.Replace(node, testNumber, testNumber[:19]+"X", 1)), signText(keysOnce().alipay, []byte(node))))
		add(s, "two_nodes", answerOf(name, []byte(node+`,"`+name+`":`+node), signText(keysOnce().alipay, []byte(node))))
		add(s, "error_node_too", answerOf(name, []byte(node+`,"error_response":{"code":"40002","sub_code":"isv.invalid-parameter"}`), signText(keysOnce().alipay, []byte(node))))
		add(s, "two_signs", answerOf(name, []byte(node+`,"sign":"`+signText(keysOnce().app, []byte(node))+`"`), signText(keysOnce().alipay, []byte(node))))
		double := `{"code":"10000","trade_status":"TRADE_CLOSED",` + node[1:]
		add(s, "member_twice", answerOf(name, []byte(double), signText(keysOnce().alipay, []byte(double))))
		add(s, "success_with_sub_code", signedAnswer(s, map[string]any{"code": "10000", "sub_code": "ACQ.X", "out_trade_no": testNumber, "qr_code": "q", "trade_status": "TRADE_CLOSED"}))
		add(s, "no_number", signedAnswer(s, map[string]any{"code": "10000", "qr_code": "q", "trade_no": testTrade, "trade_status": "TRADE_CLOSED"}))
		add(s, "http_500_signed", channeltest.Reply{Status: 500, Body: good.Body})
		add(s, "http_201_signed", channeltest.Reply{Status: 201, Body: good.Body})
	}
	return out
}
