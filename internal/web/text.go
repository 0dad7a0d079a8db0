package web

import (
	"net/http"
	"strconv"
	"strings"
)

// language picks English or Chinese: what the address says, else what the
// browser prefers, else English.
func language(r *http.Request) string {
	if l := r.URL.Query().Get("lang"); l == "en" || l == "zh" {
		return l
	}
	best, weight := "en", 0.0
	for part := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		q := 1.0
		if v, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			if f, err := strconv.ParseFloat(v, 64); err == nil {
				q = f
			}
		}
		main, _, _ := strings.Cut(strings.ToLower(tag), "-")
		if (main == "en" || main == "zh") && q > weight {
			best, weight = main, q
		}
	}
	return best
}

func text(lang, key string) string {
	t, ok := texts[key]
	if !ok {
		return key
	}
	if lang == "zh" {
		return t[1]
	}
	return t[0]
}

// texts of the pages, English and Chinese. No text calls a payment failed whose
// outcome is not known.
var texts = map[string][2]string{
	"lang-other": {"中文", "English"},
	"fault":      {"Something is wrong on our side. Please reload this page in a moment.", "我们的系统出了点问题，请稍后刷新页面。"},
	"not-found":  {"There is no such payment page. Please use the link that the shop gave you.", "没有这个付款页面，请使用商家提供的链接。"},
	"busy":       {"We cannot look it up right now. This page keeps asking; please do not pay again.", "暂时无法查询，本页会继续查询，请勿重复付款。"},

	"checkout":    {"Checkout", "收银台"},
	"order":       {"Order", "订单"},
	"amount":      {"Amount", "金额"},
	"pay":         {"Pay", "支付"},
	"pay-again":   {"Try again", "重新支付"},
	"method":      {"How would you like to pay?", "请选择支付方式"},
	"test-mode":   {"Test environment: no real money moves.", "测试环境：不会产生真实扣款。"},
	"no-method":   {"The shop has set up no way to pay on this page.", "商家尚未在此页面开通支付方式。"},
	"no-script":   {"This page renews itself every few seconds.", "本页每隔几秒自动刷新。"},
	"lost-answer": {"The connection was lost. We are asking what became of the payment.", "连接中断，正在查询支付结果。"},

	"confirming":            {"Confirming the result, please do not pay again", "支付结果确认中，请勿重复付款"},
	"confirming-more":       {"You may close this page; the result does not get lost.", "可以关闭本页，支付结果不会丢失。"},
	"ready":                 {"Ready to pay", "待支付"},
	"declined":              {"The payment was declined", "支付被拒绝"},
	"declined-more":         {"No money was taken. You may try again or choose another way.", "没有扣款，可以重试或选择其他方式。"},
	"cancelled":             {"The payment was cancelled", "支付已取消"},
	"cancelled-more":        {"No money was taken. You may start again.", "没有扣款，可以重新发起支付。"},
	"waiting":               {"One more step", "还差一步"},
	"waiting-more":          {"Please finish at your bank or payment app. This page follows by itself.", "请在银行或支付应用中完成，本页会自动更新。"},
	"continue":              {"Continue", "继续"},
	"scan":                  {"Scan with your payment app", "请用支付应用扫码"},
	"open-code":             {"Test: open what the code says", "测试：打开二维码指向的页面"},
	"time-left":             {"Time left:", "剩余时间："},
	"until":                 {"until", "至"},
	"free-in":               {"Another way opens at the latest in:", "最迟可换一种方式的等待时间："},
	"switch-more":           {"You will not pay twice: what is under way is closed first. A code that nobody has scanned cannot be closed and has to run out.", "不会重复付款：会先关闭正在进行的支付。尚未被扫过的二维码无法关闭，只能等它过期。"},
	"other-way":             {"Choose another way", "换一种支付方式"},
	"paid":                  {"Paid", "支付成功"},
	"paid-more":             {"Thank you. The shop knows.", "谢谢，商家已收到付款。"},
	"surplus":               {"More was paid than the order asked for. What is too much does not count and goes back to you:", "实际支付多于订单金额，多付的部分不计入订单，将退还给您："},
	"closed":                {"This order is closed", "订单已关闭"},
	"closed-more":           {"It can no longer be paid.", "该订单已无法支付。"},
	"unavailable":           {"This order is paid in parts", "该订单分期或分笔支付"},
	"unavailable-more":      {"Please pay through the shop.", "请在商家页面支付。"},
	"earlier-live":          {"The earlier attempt may still take money, so another cannot start yet. Finish the one that is under way, or wait until it has ended.", "之前的支付仍可能扣款，因此暂时不能另行支付。请完成正在进行的支付，或等待其结束。"},
	"cannot-pay":            {"This order cannot be paid this way. Nothing was charged; please choose another way.", "该订单无法用此方式支付，没有扣款，请选择其他方式。"},
	"stale":                 {"The payment had moved on meanwhile. Please look before you pay.", "支付状态已有变化，请确认后再支付。"},
	LabelCardPays:           {"Test card that pays", "测试卡：支付成功"},
	LabelCardDeclined:       {"Test card that is declined", "测试卡：被拒绝"},
	LabelCardAuthentication: {"Test card that asks for authentication", "测试卡：需要验证"},
	LabelOnline:             {"Pay online", "在线支付"},
	"alipay-qr":             {"Alipay: scan a code", "支付宝：扫码支付"},
	"alipay-page":           {"Alipay: on this device", "支付宝：在本设备上支付"},

	"shop":          {"Demo shop", "演示商店"},
	"shop-intro":    {"Make an order, pay it, and break things on the way. However often the payer clicks and whatever gets lost: the channel charges once.", "下单、支付，并在途中制造故障。无论点击多少次、丢失什么：渠道只扣款一次。"},
	"make-order":    {"Make an order", "下单"},
	"subject":       {"What", "商品"},
	"sample":        {"A teapot", "一把茶壶"},
	"currency":      {"Currency", "币种"},
	"to-checkout":   {"Go on at the checkout", "前往收银台继续"},
	"recent":        {"Recent orders", "最近的订单"},
	"back-to-shop":  {"All orders", "全部订单"},
	"orders-none":   {"None yet.", "暂无订单。"},
	"bad-order":     {"An order needs a name of 1 to 127 characters and an amount like 19.99.", "请填写 1–127 字的商品名和金额（如 19.99）。"},
	"col-order":     {"The shop's order", "商店的订单"},
	"col-attempts":  {"Payment attempts", "支付尝试"},
	"col-books":     {"The channel's own books", "渠道自己的账本"},
	"charges":       {"charges", "笔扣款"},
	"charge":        {"charge", "笔扣款"},
	"books-gone":    {"The books cannot be read right now.", "暂时无法读取账本。"},
	"books-link":    {"All books of the channel", "渠道完整账本"},
	"attempts-none": {"None yet.", "暂无。"},
	"calls":         {"Calls the channel received", "渠道收到的调用"},
	"hosted":        {"Open the hosted checkout", "打开收银台"},
	"pay-ten":       {"Click ten times at once", "同时点击十次"},
	"break":         {"Break something", "制造故障"},
	"lose-answer":   {"Lose the channel's next answer", "丢失渠道的下一个应答"},
	"slow-channel":  {"Make the channel slow once (4 s)", "让渠道慢一次（4 秒）"},
	"kill":          {"Kill the service now", "立即杀死服务进程"},
	"armed-lose":    {"The channel will do what the next payment asks and its answer will be lost. Now pay.", "渠道会照常处理下一次支付，但应答会丢失。现在请支付。"},
	"armed-slow":    {"The channel will take four seconds for its next answer: time to kill the service.", "渠道下一个应答将耗时四秒：可趁机杀死服务。"},
	"armed-failed":  {"The simulator did not take the fault.", "模拟器未接受该故障。"},
	"killed":        {"The service was killed. It starts again by itself.", "服务进程已被杀死，会自动重启。"},
	"process":       {"Service process", "服务进程"},
	"gone":          {"The service does not answer; asking again …", "服务没有应答，正在重试……"},
	"verdict-one":   {"One order, one charge.", "一个订单，一笔扣款。"},
	"verdict-none":  {"Nothing charged yet.", "尚未扣款。"},
	"verdict-payer": {"Waiting for the payer.", "等待付款人操作。"},
	"verdict-wait":  {"Finding out what the channel did …", "正在查明渠道的处理结果……"},
	"verdict-more":  {"More than one charge; what is too much is surplus and is reported.", "扣款多于一笔；多出部分记为多付并上报。"},

	"OPEN": {"open", "待支付"}, "PARTIALLY_PAID": {"partially paid", "部分支付"}, "PAID": {"paid", "已支付"},
	"CLOSING": {"closing", "关闭中"}, "CLOSED": {"closed", "已关闭"},
	"CREATED": {"created", "已创建"}, "PROCESSING": {"processing", "处理中"}, "PENDING": {"pending", "等待中"},
	"UNKNOWN": {"unknown", "待确认"}, "SUCCEEDED": {"succeeded", "成功"}, "FAILED": {"failed", "失败"}, "CANCELLED": {"cancelled", "已取消"},
}
