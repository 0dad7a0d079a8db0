package alipaysim

// codePath is where QR texts lead: opening it is scanning the code.
const codePath = "/_sim/alipay/"

// precreate gives a QR text. Alipay has no trade of the number afterwards.
func (a *Alipay) precreate(c *call) reply {
	o, sub := a.order(c)
	if sub != "" {
		return refuse(sub)
	}
	if t := a.current(c, o.Number); t != nil {
		if sub := repeated(t, o); sub != "" {
			return refuse(sub)
		}
	}
	row := a.standing(o)
	if row != nil {
		switch a.w.Switch(Channel, switchAgain) {
		case "refused":
			return refuse("ACQ.APPLY_PC_MERCHANT_CODE_ERROR")
		case "new_code":
			row = nil
		}
	}
	if row == nil {
		until, sub := a.codeUntil(c, o)
		if sub != "" {
			return refuse(sub)
		}
		row = a.newOffer(o, until)
	}
	a.hurry(c, row)
	var r reply
	r.text("out_trade_no", o.Number)
	r.text("qr_code", c.base+codePath+row.ID)
	return r
}

// codeUntil is the end of a QR code: at most two hours, and not after its
// order.
func (a *Alipay) codeUntil(c *call, o terms) (int64, string) {
	now := a.w.Now()
	until := min(now.Add(codeLife).Unix(), o.Until)
	if text := c.biz.text("qr_code_timeout_express"); text != "" {
		at, ok := parseTimeout(text, now)
		if !ok {
			return 0, invalid
		}
		until = min(until, at.Unix())
	}
	return until, ""
}

// hurry plays a payer who has paid before the answer is there.
func (a *Alipay) hurry(c *call, o *offer) {
	if !c.prompt {
		return
	}
	if t, sub := a.open(c, o); sub == "" {
		a.payTrade(c, t, t.Terms.Amount)
	}
}

// create makes a trade at once.
func (a *Alipay) create(c *call) reply {
	o, sub := a.order(c)
	if sub != "" {
		return refuse(sub)
	}
	for _, name := range []string{"buyer_id", "buyer_open_id", "buyer_logon_id", "op_buyer_open_id"} {
		if o.Buyer == "" {
			o.Buyer = c.biz.text(name)
		}
	}
	if o.Buyer == "" {
		return refuse(invalid)
	}
	t := a.current(c, o.Number)
	if t == nil {
		t = a.newTrade(c, o)
	} else if sub := repeated(t, o); sub != "" {
		return refuse(sub)
	}
	if c.prompt {
		a.payTrade(c, t, t.Terms.Amount)
	}
	var r reply
	r.text("out_trade_no", t.Terms.Number)
	r.text("trade_no", t.ID)
	return r
}

// openForm is a payer's browser that opens a signed form or link. It leads to
// the cashier page; the trade comes when the payer logs in there.
func (a *Alipay) openForm(c *call) reply {
	o, sub := a.order(c)
	if sub != "" {
		return refuse(sub)
	}
	t := a.current(c, o.Number)
	if t != nil {
		if sub := repeated(t, o); sub == "ACQ.TRADE_HAS_SUCCESS" && t.Terms.same(o) {
			return reply{page: pagePath + t.ID} // which says that it is paid
		} else if sub != "" {
			return refuse(sub)
		}
	}
	row := a.standing(o)
	if row == nil {
		row = a.newOffer(o, o.Until)
	}
	a.hurry(c, row)
	return reply{page: pagePath + row.ID}
}

// find is the trade that a call is about: trade_no wins over out_trade_no.
func (a *Alipay) find(c *call) (*trade, string) {
	number, id := c.biz.text("out_trade_no"), c.biz.text("trade_no")
	var t *trade
	switch {
	case id != "":
		if t = a.trades.Get(id); t != nil {
			a.settle(c, t)
		}
	case number != "":
		t = a.current(c, number)
	default:
		return nil, invalid
	}
	if t == nil {
		return nil, "ACQ.TRADE_NOT_EXIST"
	}
	return t, ""
}

func (a *Alipay) query(c *call) reply {
	t, sub := a.find(c)
	if sub != "" {
		return refuse(sub)
	}
	received := yuan(0)
	if t.Paid > 0 {
		received = yuan(t.Paid - t.coupon())
	}
	var r reply
	r.text("buyer_logon_id", buyerLogon)
	name, id := a.buyerOf(t)
	if name == "buyer_id" {
		name = "buyer_user_id"
	}
	r.text(name, id)
	r.text("buyer_pay_amount", received)
	if t.Paid > 0 {
		r.raw("fund_bill_list", funds(t))
	}
	r.text("invoice_amount", received)
	r.text("out_trade_no", t.Terms.Number)
	r.text("point_amount", yuan(0))
	r.text("receipt_amount", received)
	if t.Paid > 0 {
		r.text("send_pay_date", clockText(t.PaidAt))
	}
	r.text("total_amount", yuan(t.total()))
	r.text("trade_no", t.ID)
	r.text("trade_status", t.Status)
	return r
}

const buyerLogon = "pay***@buyer.example"

// buyerOf is who pays a trade, under the name that the merchant gets.
func (a *Alipay) buyerOf(t *trade) (name, id string) {
	id = t.Terms.Buyer
	if id == "" {
		id = a.buyer()
	}
	if a.w.Switch(Channel, switchBuyer) == "open_id" {
		return "buyer_open_id", "0" + id
	}
	return "buyer_id", id
}

// funds is fund_bill_list: what the buyer paid and what the coupon bore.
func funds(t *trade) string {
	list := `[{"amount":"` + yuan(t.Paid-t.coupon()) + `","fund_channel":"ALIPAYACCOUNT"}`
	if t.coupon() > 0 {
		list += `,{"amount":"` + yuan(t.coupon()) + `","fund_channel":"MDISCOUNT"}`
	}
	return list + "]"
}

// close ends a trade that waits for its buyer, and only such a one: a QR code
// or form without a trade stays payable.
func (a *Alipay) close(c *call) reply {
	t, sub := a.find(c)
	switch {
	case sub != "":
		return refuse(sub)
	case !addressable(c.params["notify_url"], c.strict):
		return refuse(invalid)
	case t.Status == closed:
		return refuse("ACQ.REASON_TRADE_STATUS_INVALID")
	case t.Status != waiting:
		return refuse("ACQ.TRADE_STATUS_ERROR")
	}
	a.closeTrade(c, t, c.params["notify_url"])
	var r reply
	r.text("out_trade_no", t.Terms.Number)
	r.text("trade_no", t.ID)
	return r
}

// cancel ends a trade whatever it is: unpaid ones are closed, paid ones given
// back. A number without a trade is no error and nothing is remembered; an
// unknown trade_no is an error.
func (a *Alipay) cancel(c *call) reply {
	t, sub := a.find(c)
	var r reply
	action := ""
	switch {
	case sub == "ACQ.TRADE_NOT_EXIST" && c.biz.text("trade_no") == "":
		r.text("out_trade_no", c.biz.text("out_trade_no"))
		r.text("retry_flag", "N")
		return r
	case sub != "":
		return refuse(sub)
	case t.Status == finished:
		return refuse("ACQ.TRADE_HAS_FINISHED")
	case t.Status == waiting:
		action = "close"
		a.closeTrade(c, t, "")
	case t.Status == success:
		action = "refund"
		a.refundTrade(c, t, "cancel"+t.ID, t.Paid-t.refunded())
	case t.Paid > 0:
		action = "refund"
	default:
		action = "close"
	}
	r.text("action", action)
	r.text("out_trade_no", t.Terms.Number)
	r.text("retry_flag", "N")
	r.text("trade_no", t.ID)
	return r
}
