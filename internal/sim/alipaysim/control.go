package alipaysim

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/payonce/payonce/internal/sim/core"
)

// pagePath is the cashier page; what follows is an offer or a trade_no.
const pagePath = "/_sim/pages/alipay/"

// Charges are the lines of the books, oldest first. Only inside View.
func (a *Alipay) Charges() []core.Charge {
	type numbered struct {
		seq  int64
		line core.Charge
	}
	list := make([]numbered, 0, len(a.tradeOrder))
	for _, id := range a.tradeOrder {
		t := a.trades.Get(id)
		list = append(list, numbered{t.Seq, a.line(t)})
	}
	for _, id := range a.offerOrder {
		o := a.offers.Get(id)
		if line, own := a.offerLine(o); own {
			list = append(list, numbered{o.Seq, line})
		}
	}
	slices.SortStableFunc(list, func(a, b numbered) int { return int(a.seq - b.seq) })
	lines := make([]core.Charge, 0, len(list))
	for _, n := range list {
		lines = append(lines, n.line)
	}
	return lines
}

// change runs a control call to its durable end and starts its notices.
func (a *Alipay) change(fn func(c *call) (core.Charge, error)) (core.Charge, error) {
	var line core.Charge
	var failed error
	c := &call{}
	pos := a.w.Update(func() { line, failed = fn(c) })
	if err := a.w.Wait(pos); err != nil {
		return line, err
	}
	a.w.Start(c.posted)
	return line, failed
}

// named finds what a control call means: the newest trade of the number or
// trade_no, else the newest offer that opens, else the newest.
func (a *Alipay) named(c *call, number string) (*trade, *offer) {
	if t := a.current(c, number); t != nil {
		return t, nil
	}
	if t := a.trades.Get(number); t != nil {
		a.settle(c, t)
		return t, nil
	}
	var found *offer
	for _, id := range a.offersOf[number] {
		o := a.offers.Get(id)
		if found == nil || a.now() < o.Until || a.now() >= found.Until {
			found = o
		}
	}
	return nil, found
}

// Pay plays the payer of a number.
func (a *Alipay) Pay(o core.PayOrder) (core.Charge, error) {
	return a.change(func(c *call) (core.Charge, error) {
		t, row := a.named(c, o.Number)
		if t == nil && row == nil {
			return core.Charge{}, fmt.Errorf("%w: alipay has no %q", core.ErrUnknown, o.Number)
		}
		return a.pay(c, t, row, o)
	})
}

// pay lets the payer act on a trade, or on an offer when there is none.
func (a *Alipay) pay(c *call, t *trade, row *offer, o core.PayOrder) (core.Charge, error) {
	if o.Outcome == "" {
		o.Outcome = "paid"
	}
	forced := o.Force && o.Outcome == "paid"
	if t == nil {
		if o.Outcome == "abandoned" {
			line, _ := a.offerLine(row)
			return line, nil
		}
		opened, sub := a.open(c, row)
		switch {
		case sub == "":
			t = opened
		case forced:
			t = a.newTrade(c, row.Terms)
			row.Trade = t.ID
			a.offers.Put(row.ID, row)
		default:
			return core.Charge{}, fmt.Errorf("%w: %s", core.ErrNotPayable, sub)
		}
	}
	amount := o.Amount
	if amount == 0 {
		amount = t.Terms.Amount
	}
	switch {
	case t.Status != waiting && !forced:
		return core.Charge{}, fmt.Errorf("%w: the trade is %s", core.ErrNotPayable, t.Status)
	case t.Status != waiting && t.Paid > 0:
		// A paid trade takes no more: the money makes a second one.
		t = a.newTrade(c, t.Terms)
		a.payTrade(c, t, amount)
	case o.Outcome == "paid":
		a.payTrade(c, t, amount)
	case o.Outcome == "declined":
		t.Declined = true
		a.trades.Put(t.ID, t)
	}
	return a.line(t), nil
}

// Refund plays a refund made on the merchant's page; amount 0 is what is left.
func (a *Alipay) Refund(number string, amount int64) (core.Charge, error) {
	return a.change(func(c *call) (core.Charge, error) {
		t, row := a.named(c, number)
		switch {
		case t == nil && row == nil:
			return core.Charge{}, fmt.Errorf("%w: alipay has no %q", core.ErrUnknown, number)
		case t == nil, t.Status != success:
			return core.Charge{}, fmt.Errorf("%w: the trade is not paid", core.ErrNotPayable)
		}
		left := t.Paid - t.refunded()
		if amount == 0 {
			amount = left
		}
		if amount > left {
			return core.Charge{}, fmt.Errorf("%w: %s are left", core.ErrNotPayable, yuan(left))
		}
		a.refundTrade(c, t, a.w.ID("HD"), amount)
		return a.line(t), nil
	})
}

// Dispute does not exist here.
func (a *Alipay) Dispute(string) (core.Charge, error) {
	return core.Charge{}, fmt.Errorf("%w: alipay has no disputes", core.ErrBad)
}

// Charge books money that nobody here asked for. Nobody is told of it.
func (a *Alipay) Charge(amount int64, currency, number string) (core.Charge, error) {
	if amount < 1 || amount > maxAmount || !strings.EqualFold(currency, "CNY") {
		return core.Charge{}, fmt.Errorf("%w: amount or currency", core.ErrBad)
	}
	return a.change(func(c *call) (core.Charge, error) {
		if number == "" {
			number = a.w.ID("X")
		}
		t := a.newTrade(c, terms{Number: number, Amount: amount, Subject: "订单", Charset: "utf-8",
			Code: "FACE_TO_FACE_PAYMENT", Until: a.w.Now().Add(counterLife).Unix()})
		a.payTrade(c, t, amount)
		return a.line(t), nil
	})
}

// scan is a phone that opens the QR text: the trade begins to exist, and the
// cashier page is shown.
func (a *Alipay) scan(rw http.ResponseWriter, r *http.Request, token string) {
	if r.Method != http.MethodGet {
		http.Error(rw, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	_, err := a.change(func(c *call) (core.Charge, error) {
		if o := a.offers.Get(token); o != nil {
			a.open(c, o) // the page says when there is nothing to pay
		}
		return core.Charge{}, nil
	})
	if err != nil {
		a.w.Log.Error("the books cannot be written", "error", err)
		panic(http.ErrAbortHandler)
	}
	rw.Header().Set("Cache-Control", "no-store")
	http.Redirect(rw, r, pagePath+url.PathEscape(token), http.StatusFound)
}

// onPage is what a page is about.
func (a *Alipay) onPage(c *call, id string) (*trade, *offer) {
	if t := a.trades.Get(id); t != nil {
		a.settle(c, t)
		return t, nil
	}
	o := a.offers.Get(id)
	if o == nil {
		return nil, nil
	}
	t := a.current(c, o.Terms.Number)
	if t != nil && (o.Trade == t.ID || t.Terms.same(o.Terms)) {
		return t, o
	}
	return nil, o
}

// Page looks an offer or a trade up for the payer's page.
func (a *Alipay) Page(id string) (core.PageState, error) {
	var st core.PageState
	var paid trade
	_, err := a.change(func(c *call) (core.Charge, error) {
		t, o := a.onPage(c, id)
		switch {
		case t == nil && o == nil:
			return core.Charge{}, core.ErrUnknown
		case t == nil:
			st.Amount = "¥" + yuan(o.Terms.Amount)
			st.Open = a.now() < o.Until && a.current(c, o.Terms.Number) == nil
			st.Unopened = st.Open
		default:
			st.Amount = "¥" + yuan(t.total())
			st.Open, st.Paid = t.Status == waiting, t.Paid > 0
			if st.Paid {
				paid = *t
			}
		}
		return core.Charge{}, nil
	})
	if err == nil && st.Paid {
		st.ReturnURL, err = a.returnURL(paid)
	}
	return st, err
}

// PayPage plays a button on the payer's page.
func (a *Alipay) PayPage(id, outcome string) error {
	_, err := a.change(func(c *call) (core.Charge, error) {
		t, o := a.onPage(c, id)
		if t == nil && o == nil {
			return core.Charge{}, core.ErrUnknown
		}
		return a.pay(c, t, o, core.PayOrder{Outcome: outcome})
	})
	return err
}

// returnURL is where the browser goes after paying, with signed parameters
// that prove nothing.
func (a *Alipay) returnURL(t trade) (string, error) {
	u, err := url.Parse(t.Terms.ReturnURL)
	if err != nil || t.Terms.ReturnURL == "" {
		return "", nil
	}
	account, err := a.keys.Account()
	if err != nil {
		return "", err
	}
	params := map[string]string{"app_id": account.AppID, "auth_app_id": account.AppID, "charset": t.Terms.Charset,
		"method": t.Terms.Method + ".return", "out_trade_no": t.Terms.Number, "seller_id": account.SellerID,
		"timestamp": a.w.RealNow().In(beijing).Format(timeLayout), "total_amount": yuan(t.total()), "trade_no": t.ID, "version": "1.0"}
	signature, err := sign(account.Platform, canonical(params, false))
	if err != nil {
		return "", err
	}
	params["sign"], params["sign_type"] = signature, "RSA2"
	q := u.Query()
	for name, value := range params {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}
