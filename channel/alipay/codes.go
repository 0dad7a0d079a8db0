package alipay

import (
	"strings"

	"github.com/payonce/payonce"
)

// step is one of the three requests. Its name is the source of its facts.
type step string

const (
	stepBegin step = "begin"
	stepQuery step = "query"
	stepClose step = "close"
)

// Codes of the gateway.
const (
	codeSuccess = "10000" // the call worked; its fields say what
	codeFailed  = "40004" // sub_code says why
)

// verdict is the class of an answer that is no success.
type verdict struct {
	kind   payonce.FactKind
	reason string // of StateUnknown and StateNotSent
}

var (
	refused = verdict{kind: payonce.StateRefused}
	// stopped: the gateway turned the request away before it looked at its content.
	// The same bytes may pass once the configuration is right.
	stopped = verdict{payonce.StateNotSent, "configuration"}
)

func unknown(reason string) verdict { return verdict{payonce.StateUnknown, reason} }

// table gives each code of a list its verdict; codes are separated by blanks.
func table(lists map[string]verdict) map[string]verdict {
	m := map[string]verdict{}
	for codes, v := range lists {
		for _, c := range strings.Fields(codes) {
			m[c] = v
		}
	}
	return m
}

// gatewayCodes: refusals of the gateway itself, by code and sub_code without its
// isv., isp. or aop. They come without signature, which is safe because all of
// them only say that this request was not executed.
var gatewayCodes = map[string]map[string]verdict{
	"20001": table(map[string]verdict{
		"invalid-auth-token auth-token-time-out invalid-app-auth-token app-auth-token-time-out no-product-reg-by-partner": stopped,
	}),
	"40001": table(map[string]verdict{
		`missing-method missing-signature missing-signature-type missing-signature-key missing-app-id missing-timestamp
		missing-version decryption-error-missing-encrypt-type`: stopped,
	}),
	"40002": table(map[string]verdict{
		`invalid-method invalid-signature-type invalid-signature invalid-app-id invalid-timestamp invalid-charset forbidden-api
		not-online-app app-cert-expired missing-app-cert-sn missing-alipay-root-cert-sn`: stopped,
		"invalid-parameter invalid-format illegal-json suspected-attack invalid-openid": refused,
	}),
	"40003": table(map[string]verdict{"missing-signature-config invalid-auth-relations": stopped}),
	"40006": table(map[string]verdict{"insufficient-isv-permissions insufficient-user-permissions self-invoke-forbidden": stopped}),
}

// precreateCodes: business answers, by sub_code without ACQ.
var precreateCodes = table(map[string]verdict{
	// A trade with this number exists or may exist; only a query tells.
	"SYSTEM_ERROR":                 unknown("system-error"),
	"TRADE_HAS_SUCCESS":            unknown("already-paid"),
	"TRADE_HAS_CLOSE":              unknown("number-closed"),
	"CONTEXT_INCONSISTENT":         unknown("other-trade"),
	"TRADE_BUYER_NOT_MATCH":        unknown("other-buyer"),
	"APPLY_PC_MERCHANT_CODE_ERROR": unknown("code-exists"), // or the product is not contracted

	// Refused for a reason of the business.
	`NOW_TIME_AFTER_EXPIRE_TIME_ERROR TOTAL_FEE_EXCEED EXIST_FORBIDDEN_WORD BUYER_SELLER_EQUAL BUYER_ENABLE_STATUS_FORBID
	BUYER_NOT_EXIST BUYER_PAYMENT_AMOUNT_DAY_LIMIT_ERROR BUYER_PAYMENT_AMOUNT_MONTH_LIMIT_ERROR ERROR_BUYER_CERTIFY_LEVEL_LIMIT
	BEYOND_PAY_RESTRICTION BEYOND_PER_RECEIPT_RESTRICTION BEYOND_PER_RECEIPT_DAY_RESTRICTION BEYOND_PER_RECEIPT_SINGLE_RESTRICTION
	MERCHANT_PERM_RECEIPT_SUSPEND_LIMIT MERCHANT_PERM_RECEIPT_SINGLE_LIMIT MERCHANT_PERM_RECEIPT_DAY_LIMIT
	SUB_GOODS_SIZE_MAX_COUNT PAYER_UNMATCHED USER_LOGONID_DUP CUSTOMER_VALIDATE_ERROR NOT_SUPPORT_PAYMENT_INST`: refused,

	// Refused because of our configuration, contract or request.
	`INVALID_PARAMETER ILLEGAL_ARGUMENT ACCESS_FORBIDDEN PARTNER_ERROR SELLER_BEEN_BLOCKED SELLER_NOT_EXIST
	ERROR_SELLER_CERTIFY_LEVEL_LIMIT MERCHANT_STATUS_NOT_NORMAL RISK_MERCHANT_IP_NOT_EXIST INVALID_STORE_ID STORE_INFO_INVALID
	INVALID_RECEIVE_ACCOUNT DEFAULT_SETTLE_RULE_NOT_EXIST TRADE_SETTLE_ERROR SECONDARY_MERCHANT_STATUS_ERROR
	SECONDARY_MERCHANT_ID_INVALID SECONDARY_MERCHANT_ID_BLANK SECONDARY_MERCHANT_NOT_MATCH
	SECONDARY_MERCHANT_ISV_PUNISH_INDIRECT SECONDARY_MERCHANT_ALIPAY_ACCOUNT_INVALID SECONDARY_MERCHANT_CARD_ALIAS_NO_INVALID
	SUB_MERCHANT_CREATE_FAIL SUB_MERCHANT_TYPE_INVALID PLATFORM_BUSINESS_ACQUIRE_MODE_MUST_MERCHANT_ID OPEN_ID_NOT_TINY_APP
	BIZ_PRODUCT_NOT_ALLOWED UNBOUND_APPLICATION PRODUCT_NOT_SUPPORT_IN_TINY_APP`: refused,
})

var queryCodes = table(map[string]verdict{
	"TRADE_NOT_EXIST":          {kind: payonce.StateAbsent},
	"SYSTEM_ERROR":             unknown("system-error"),
	"INVALID_PARAMETER":        unknown("configuration"),
	"ENTERPRISE_PAY_BIZ_ERROR": unknown("enterprise-pay"),
})

var closeCodes = table(map[string]verdict{
	"TRADE_NOT_EXIST":   unknown("nothing-to-close"), // a code or form may be alive all the same
	"SYSTEM_ERROR":      unknown("system-error"),
	"INVALID_PARAMETER": unknown("configuration"),
	// It does not wait any more: most likely it is paid.
	"TRADE_STATUS_ERROR REASON_TRADE_STATUS_INVALID REASON_ILLEGAL_STATUS": unknown("not-waiting"),
})

// classify says what an answer that is no success means for the step. Every way
// through that finds nothing ends as unknown.
func classify(s step, r reply) verdict {
	v := unknown("unlisted")
	switch r.code {
	case codeFailed:
		if !r.signed {
			return unknown("not-signed")
		}
		if found, ok := businessCodes[s][cutPrefix(r.subCode, "ACQ.", "AQC.")]; ok {
			v = found
		}
	case "20000":
		v = unknown("system-error")
	case "10003":
		v = unknown("buyer-is-paying")
	case "40005":
		v = unknown("rate-limited")
	default:
		if found, ok := gatewayCodes[r.code][cutPrefix(r.subCode, "isv.", "isp.", "aop.")]; ok {
			v = found
		}
	}
	if s != stepBegin && (v.kind == payonce.StateRefused || v.kind == payonce.StateNotSent) {
		return unknown("configuration") // a question that was not asked
	}
	return v
}

var businessCodes = map[step]map[string]verdict{stepBegin: precreateCodes, stepQuery: queryCodes, stepClose: closeCodes}

func cutPrefix(s string, prefixes ...string) string {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(s, p); ok {
			return rest
		}
	}
	return s
}

// failure says why a request was refused, in our words.
func failure(subCode string) *payonce.Failure {
	f := &payonce.Failure{Code: "refused", ChannelCode: word(subCode), Message: "The payment request was refused."}
	if strings.Contains(subCode, "RESTRICTION") || strings.Contains(subCode, "LIMIT") || strings.Contains(subCode, "EXCEED") {
		f.Message = "The amount is over a limit at Alipay."
	}
	return f
}
