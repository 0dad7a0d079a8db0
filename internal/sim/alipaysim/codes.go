package alipaysim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/payonce/payonce/internal/sim/core"
)

// Codes of the gateway and their messages.
const codeSuccess = "10000"

var messages = map[string]string{
	codeSuccess: "Success",
	"10003":     "order success pay inprocess",
	"20000":     "Service Currently Unavailable",
	"20001":     "Insufficient Token Permissions",
	"40001":     "Missing Required Arguments",
	"40002":     "Invalid Arguments",
	"40003":     "Insufficient Conditions",
	"40004":     "Business Failed",
	"40005":     "Call Limited",
	"40006":     "Insufficient Permissions",
}

// unsigned are the refusals of the gateway itself: they carry no sign.
var unsigned = map[string]bool{"20001": true, "40001": true, "40002": true, "40003": true, "40005": true, "40006": true}

// usual is the sub_code that a bare code is played with.
var usual = map[string]string{
	"20000": "isp.unknow-error",
	"20001": "aop.invalid-auth-token",
	"40001": "isv.missing-signature",
	"40002": "isv.invalid-signature",
	"40003": "isv.missing-signature-config",
	"40004": "ACQ.SYSTEM_ERROR",
	"40005": "isv.app-call-limited",
	"40006": "isv.insufficient-isv-permissions",
}

// subMessages are the texts of the sub_codes that the simulator itself gives.
var subMessages = map[string]string{
	"ACQ.TRADE_NOT_EXIST":                  "交易不存在",
	"TRADE_NOT_EXIST":                      "交易不存在",
	"ACQ.TRADE_HAS_SUCCESS":                "交易已被支付",
	"ACQ.TRADE_HAS_CLOSE":                  "交易已经关闭",
	"ACQ.TRADE_HAS_FINISHED":               "交易已完结",
	"ACQ.TRADE_STATUS_ERROR":               "交易状态不合法",
	"ACQ.REASON_TRADE_STATUS_INVALID":      "交易状态异常",
	"ACQ.CONTEXT_INCONSISTENT":             "交易信息被篡改",
	"ACQ.TRADE_BUYER_NOT_MATCH":            "交易买家不匹配",
	"ACQ.INVALID_PARAMETER":                "参数无效",
	"ACQ.SYSTEM_ERROR":                     "系统异常",
	"ACQ.TOTAL_FEE_EXCEED":                 "订单总金额不在允许范围内",
	"ACQ.NOW_TIME_AFTER_EXPIRE_TIME_ERROR": "系统当前时间已超过允许支付的时间",
	"ACQ.APPLY_PC_MERCHANT_CODE_ERROR":     "申请二维码失败，请勿使用同一订单号重复申请",
	"ACQ.DISCORDANT_REPEAT_REQUEST":        "请求信息不一致",
	"ACQ.REFUND_AMT_NOT_EQUAL_TOTAL":       "退款金额超限",
	"ACQ.SELLER_NOT_EXIST":                 "卖家不存在",
	"isv.invalid-signature":                "验签出错，请确认charset参数放在了URL查询字符串中且各参数值使用charset参数指示的字符集编码",
	"isv.invalid-app-id":                   "无效的AppID参数",
	"isv.illegal-json":                     "JSON格式错误",
}

func subMessage(sub string) string {
	if text, ok := subMessages[sub]; ok {
		return text
	}
	return "错误 " + sub
}

// gatewayCode is the code that a sub_code travels under.
func gatewayCode(sub string) string {
	name := sub[strings.IndexByte(sub, '.')+1:]
	switch {
	case strings.HasPrefix(sub, "isp."):
		return "20000"
	case strings.HasPrefix(sub, "aop.") && (strings.Contains(name, "auth-token") || strings.HasPrefix(name, "no-product")):
		return "20001"
	case strings.HasPrefix(sub, "aop."):
		return "20000"
	case !strings.HasPrefix(sub, "isv."):
		return "40004"
	case name == "missing-signature-config", name == "invalid-auth-relations":
		return "40003"
	case name == "missing-app-cert-sn", name == "missing-alipay-root-cert-sn":
		return "40002"
	case strings.HasPrefix(name, "missing-"), strings.HasPrefix(name, "decryption-error"):
		return "40001"
	case strings.HasSuffix(name, "-call-limited"):
		return "40005"
	case strings.HasSuffix(name, "-permissions"), name == "self-invoke-forbidden":
		return "40006"
	}
	return "40002"
}

// refuse is the reply with a sub_code.
func refuse(sub string) reply { return reply{code: gatewayCode(sub), sub: sub} }

// after marks an error that is answered although the call had its effect:
// error:after:ACQ.SYSTEM_ERROR.
const after = "after:"

// codeShape is what can be a code: one of the gateway's numbers, a sub_code
// with its prefix, or one of those that come without.
var codeShape = regexp.MustCompile(`^(10003|20000|20001|4000[1-6]|(ACQ|AQC|isv|isp|aop)\.[A-Za-z0-9_.-]{1,60}|[A-Z][A-Z0-9_]{1,60})$`)

// coded is the reply that error:CODE asks for.
func coded(arg string) reply {
	code := strings.TrimPrefix(arg, after)
	if _, number := messages[code]; number {
		return reply{code: code, sub: usual[code]}
	}
	return refuse(code)
}

// CheckFault refuses faults that Alipay cannot have: a code of another shape,
// and wrong amounts in the answers to close, which name none.
func (a *Alipay) CheckFault(f *core.Fault) error {
	switch {
	case f.Is(core.ErrorCode) && !codeShape.MatchString(strings.TrimPrefix(f.Arg, after)):
		return fmt.Errorf("%w: alipay has no error code %q", core.ErrBad, f.Arg)
	case f.Is(core.WrongAmount) && f.Operation == core.OpClose,
		f.Operation == core.OpConfirm, f.Operation == core.OpCapture, f.Operation == core.OpBill:
		return f.Senseless()
	}
	return nil
}
