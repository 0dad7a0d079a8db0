package alipaysim

import "unicode/utf8"

// refund gives money back. One out_request_no is one refund of its trade: the
// same again answers the same without moving money.
func (a *Alipay) refund(c *call) reply {
	t, sub := a.find(c)
	if sub != "" {
		return refuse(sub)
	}
	amount, ok := parseYuan(c.biz.text("refund_amount"))
	number := c.biz.text("out_request_no")
	if !ok || len(number) > 64 || utf8.RuneCountInString(c.biz.text("refund_reason")) > 256 {
		return refuse(invalid)
	}
	if number == "" {
		if amount < t.total() {
			return refuse(invalid) // a partial refund needs its number
		}
		number = t.Terms.Number
	}
	if r := t.refundOf(number); r != nil {
		if r.Amount != amount {
			return refuse("ACQ.DISCORDANT_REPEAT_REQUEST")
		}
		return a.refunded(c, t, r, "N")
	}
	switch {
	case t.Status == waiting:
		return refuse("ACQ.TRADE_STATUS_ERROR")
	case t.Status == closed:
		return refuse("ACQ.TRADE_HAS_CLOSE")
	case t.Status == finished:
		return refuse("ACQ.TRADE_HAS_FINISHED")
	case amount > t.Paid-t.refunded():
		return refuse("ACQ.REFUND_AMT_NOT_EQUAL_TOTAL")
	}
	return a.refunded(c, t, a.refundTrade(c, t, number, amount), "Y")
}

// refunded is the reply; refund_fee is the sum of all refunds of the trade.
func (a *Alipay) refunded(c *call, t *trade, r *refund, change string) reply {
	var out reply
	out.text("buyer_logon_id", buyerLogon)
	name, id := a.buyerOf(t)
	if name == "buyer_id" {
		name = "buyer_user_id"
	}
	out.text(name, id)
	out.text("fund_change", change)
	out.text("gmt_refund_pay", clockText(r.At))
	out.text("out_trade_no", t.Terms.Number)
	out.text("refund_fee", yuan(t.refunded()))
	if c.biz.wants("refund_detail_item_list") {
		out.text("send_back_fee", yuan(r.Amount))
	}
	out.text("trade_no", t.ID)
	return out
}

// refundQuery knows one positive answer; a refund that was never made is a
// success without content.
func (a *Alipay) refundQuery(c *call) reply {
	t, sub := a.find(c)
	number := c.biz.text("out_request_no")
	switch {
	case sub == "ACQ.TRADE_NOT_EXIST":
		return refuse("TRADE_NOT_EXIST") // it comes with and without the prefix
	case sub != "":
		return refuse(sub)
	case number == "":
		return refuse(invalid)
	}
	var out reply
	r := t.refundOf(number)
	if r == nil {
		return out
	}
	if c.biz.wants("gmt_refund_pay") {
		out.text("gmt_refund_pay", clockText(r.At))
	}
	out.text("out_request_no", r.Number)
	out.text("out_trade_no", t.Terms.Number)
	out.text("refund_amount", yuan(r.Amount))
	out.text("refund_status", "REFUND_SUCCESS")
	out.text("total_amount", yuan(t.total()))
	out.text("trade_no", t.ID)
	return out
}
