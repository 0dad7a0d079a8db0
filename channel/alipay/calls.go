package alipay

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// Begin asks for the code of a qr payment. A page payment has no begin: its form
// is handed out by the transaction that stores it.
func (a *Adapter) Begin(ctx context.Context, c channel.Call) channel.Answer {
	p := &c.Payment
	if p.Method != MethodQR {
		return a.unsent(stepBegin, p, "self-signed", errors.New("alipay: only qr is begun by a call"))
	}
	params, err := a.stored(p, methodPrecreate)
	if err != nil {
		return a.unsent(stepBegin, p, "request-damaged", err)
	}
	params["timestamp"] = chinaTime(a.now())
	return a.read(stepBegin, methodPrecreate, p, a.post(ctx, params))
}

// Query asks what became of the number.
func (a *Adapter) Query(ctx context.Context, c channel.Call) channel.Answer {
	return a.ask(ctx, stepQuery, methodQuery, &c.Payment)
}

// Close closes a trade that waits. Where there is no trade yet, nothing is closed
// and the answer is no knowledge: the code or form ends by its own expiry.
func (a *Adapter) Close(ctx context.Context, c channel.Call) channel.Answer {
	return a.ask(ctx, stepClose, methodClose, &c.Payment)
}

func (a *Adapter) ask(ctx context.Context, s step, method string, p *payonce.Payment) channel.Answer {
	if !validNumber(p.Number) {
		return a.unsent(s, p, "number-damaged", errFrame)
	}
	return a.read(s, method, p, a.post(ctx, a.question(method, p.Number)))
}

// fact is what a request knows of itself before any answer.
func (a *Adapter) fact(s step, p *payonce.Payment) payonce.Fact {
	return payonce.Fact{Source: string(s), Account: a.cfg.Account, Number: p.Number}
}

// unsent answers a call that was not made.
func (a *Adapter) unsent(s step, p *payonce.Payment, reason string, err error) channel.Answer {
	ans := channel.Answer{Fact: a.fact(s, p), Err: err}
	ans.Reason = reason
	if s == stepBegin {
		ans.Kind = payonce.StateNotSent
	}
	return ans
}

// open reads the answer of an exchange, within its node's signature.
func (a *Adapter) open(ex *exchange, method string) (reply, error) {
	return a.alipay.read(ex.body, method)
}

// read classifies one exchange.
func (a *Adapter) read(s step, method string, p *payonce.Payment, ex *exchange) channel.Answer {
	ans := channel.Answer{Fact: a.fact(s, p), Raw: a.redact.evidence(ex.body)}
	if ex.err == nil {
		a.date(&ans.Fact, ex)
	}
	if why := ex.reason(); why != "" {
		ans.Reason, ans.Err = why, a.cause(ex)
		if !ex.connected.Load() && s == stepBegin {
			ans.Kind = payonce.StateNotSent
		}
		return ans
	}
	r, err := a.open(ex, method)
	switch {
	case errors.Is(err, errForged), errors.Is(err, errSignature):
		ans.Reason, ans.Err = "bad-signature", err
		return ans
	case err != nil:
		ans.Reason, ans.Err = "undecodable", err
		return ans
	}
	if r.signed {
		if named := r.text("out_trade_no"); named != "" {
			ans.Number = named // as stated: the signature does not bind it to our question
		}
	}
	switch {
	case r.code == codeSuccess && !r.signed:
		ans.Reason = "not-signed"
	case r.code == codeSuccess && r.subCode != "":
		ans.Reason = "contradiction"
	case r.code == codeSuccess && r.text("out_trade_no") == "":
		ans.Reason = "undecodable" // a success that names no number proves nothing of ours
	case r.code == codeSuccess:
		a.success(&ans, s, p, r)
	default:
		v := classify(s, r)
		ans.Kind, ans.Reason = v.kind, v.reason
	}
	switch ans.Kind {
	case payonce.StateRefused:
		ans.Failure = failure(a.redact.text(r.subCode))
	case payonce.StateUnknown, payonce.StateNotSent:
		ans.Err = a.replyError(r)
	}
	return ans
}

// success reads the fields of an answer with code 10000.
func (a *Adapter) success(ans *channel.Answer, s step, p *payonce.Payment, r reply) {
	switch s {
	case stepBegin:
		code := r.text("qr_code")
		if !printable(code, 1024) {
			ans.Reason = "undecodable"
			return
		}
		ans.Kind = payonce.StateWaiting
		ans.Action = &payonce.Action{Type: "qr_code", QRCode: code, ExpiresAt: p.DeadAt}
	case stepQuery:
		t := trade{status: r.text("trade_status"), no: r.text("trade_no"), total: r.text("total_amount"), paidAt: r.text("send_pay_date")}
		t.money = moneyTrace(r)
		t.state(&ans.Fact)
	case stepClose:
		ans.Kind = payonce.StateDead
	}
}

// date takes the channel's clock where it is the channel's own.
func (a *Adapter) date(f *payonce.Fact, ex *exchange) {
	if !a.cfg.TrustedDate && !(a.ownDate && ex.verified) {
		return
	}
	if t, err := http.ParseTime(ex.header.Get("Date")); err == nil {
		f.ServerDate = t.UTC()
	}
}

// trade is what a query or a notice says of a trade.
type trade struct {
	status, no, total, paidAt string
	money                     bool // something shows that money was taken once
}

// state classifies a trade. TRADE_CLOSED has two meanings: closed unpaid, or paid
// and given back in full. The second was a success, so closed counts as dead only
// where nothing shows a payment.
func (t trade) state(f *payonce.Fact) {
	paid := t.money || t.paidAt != ""
	switch {
	case t.status == "TRADE_SUCCESS", t.status == "TRADE_FINISHED", t.status == "TRADE_CLOSED" && paid:
		amount, ok := fen(t.total)
		if !ok || amount < 1 || !printable(t.no, 64) {
			f.Reason = "success-incomplete"
			return
		}
		f.Kind, f.PaymentRef, f.Amount, f.Currency, f.At = payonce.StateSettled, t.no, amount, cny, readTime(t.paidAt)
	case t.status == "TRADE_CLOSED":
		f.Kind = payonce.StateDead
	case t.status == "WAIT_BUYER_PAY":
		f.Kind = payonce.StateWaiting
	default:
		f.Reason = "unlisted-status"
	}
}

// moneyTrace looks for what only a paid trade has in the answer to a query. A
// buyer is no such thing: a trade has one since it was scanned.
func moneyTrace(r reply) bool {
	for _, name := range [...]string{"receipt_amount", "buyer_pay_amount", "invoice_amount", "point_amount", "refund_fee", "send_back_fee"} {
		if raw, ok := r.fields[name]; ok && !zero(raw) {
			return true
		}
	}
	for _, name := range [...]string{"gmt_refund", "gmt_refund_pay", "gmt_payment", "send_pay_date"} {
		if raw, ok := r.fields[name]; ok && string(raw) != `""` && string(raw) != "null" {
			return true
		}
	}
	var bills []json.RawMessage
	raw, ok := r.fields["fund_bill_list"]
	return ok && (json.Unmarshal(raw, &bills) != nil || len(bills) > 0)
}

// zero reports whether a money field certainly says nothing or 0.
func zero(raw json.RawMessage) bool {
	s, ok := textOf(raw)
	if !ok {
		return string(raw) == "null"
	}
	n, ok := fen(s)
	return s == "" || ok && n == 0
}
