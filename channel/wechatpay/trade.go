package wechatpay

import (
	"time"

	"github.com/payonce/payonce"
)

// statement reads an order: the answer to a query, or the content of a notice
// about a payment. They have the same shape.
func (a *Adapter) statement(f *payonce.Fact, m members) {
	number, mchid, appid := m.text("out_trade_no"), m.text("mchid"), m.text("appid")
	if !printable(number, 64) || !printable(mchid, 64) || !printable(appid, 64) {
		f.Reason = "undecodable" // names nobody: it proves nothing of ours
		return
	}
	f.Number = number // as stated: the signature does not bind it to our question
	if !a.ours(mchid, appid) {
		f.Account = word(mchid) + "/" + word(appid)
	}
	a.state(f, m)
}

func (a *Adapter) ours(mchid, appid string) bool {
	return mchid == a.cfg.MchID && (appid == a.cfg.AppID || appid == a.cfg.MobileAppID)
}

// state is the table of trade_state. A refund of any part turns SUCCESS into
// REFUND, so both were a success of the whole amount. Failed tries leave NOTPAY.
// The last three belong to payments by bar code, which are not made here.
func (a *Adapter) state(f *payonce.Fact, m members) {
	paid := m.text("transaction_id") != "" || m.text("success_time") != ""
	switch state := m.text("trade_state"); state {
	case "SUCCESS", "REFUND":
		settle(f, m)
	case "NOTPAY", "USERPAYING", "CLOSED", "PAYERROR":
		if paid {
			f.Reason = "contradiction"
			return
		}
		f.Kind = map[string]payonce.FactKind{"NOTPAY": payonce.StateWaiting, "USERPAYING": payonce.StateWaiting,
			"CLOSED": payonce.StateDead, "PAYERROR": payonce.StateDeclined}[state]
		if f.Kind == payonce.StateDeclined {
			f.Failure = &payonce.Failure{Code: "declined", ChannelCode: state, Message: "The payment failed at WeChat Pay."}
		}
	case "REVOKED":
		f.Reason = "revoked" // paid and taken back, or never paid: people look
	default:
		f.Reason = "unlisted-status"
	}
}

// settle takes amount.total, what the order costs. What the payer paid of it is
// less where a coupon paid the rest.
func settle(f *payonce.Fact, m members) {
	amount, err := m.object("amount")
	ref := m.text("transaction_id")
	if err != nil || !printable(ref, 32) {
		f.Reason = "success-incomplete"
		return
	}
	total, ok := amount.fen("total")
	currency := amount.text("currency")
	if !ok || !printable(currency, 3) {
		f.Reason = "success-incomplete"
		return
	}
	f.Kind, f.PaymentRef, f.Amount, f.Currency = payonce.StateSettled, ref, total, payonce.Currency(currency)
	if at, err := time.Parse(time.RFC3339, m.text("success_time")); err == nil {
		f.At = at.UTC()
	}
}
