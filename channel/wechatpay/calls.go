package wechatpay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// Begin sends the stored prepay bytes. Sent again, they give a new code of the
// same order while it is unpaid.
func (a *Adapter) Begin(ctx context.Context, c channel.Call) channel.Answer {
	p := &c.Payment
	body, err := a.stored(p)
	if err != nil {
		return a.unsent(stepBegin, p, "request-damaged", err)
	}
	return a.read(stepBegin, p, a.post(ctx, pathOf[p.Method], body))
}

// Query asks what became of our number.
func (a *Adapter) Query(ctx context.Context, c channel.Call) channel.Answer {
	p := &c.Payment
	if !validNumber(p.Number) {
		return a.unsent(stepQuery, p, "number-damaged", errFrame)
	}
	return a.read(stepQuery, p, a.get(ctx, a.numberPath(p.Number)))
}

// QueryTransaction asks for a paid order by WeChat Pay's own number of it
// (transaction_id), for people who hold only that. What is not paid has none: a
// number that is not known is no knowledge.
func (a *Adapter) QueryTransaction(ctx context.Context, c channel.Call, transactionID string) channel.Answer {
	p := &c.Payment
	if !printable(transactionID, 32) {
		return a.unsent(stepQuery, p, "number-damaged", errFrame)
	}
	ex := a.get(ctx, "/v3/pay/transactions/id/"+url.PathEscape(transactionID)+"?mchid="+url.QueryEscape(a.cfg.MchID))
	ans := a.read(stepQuery, p, ex)
	if ans.Kind == payonce.StateAbsent {
		ans.Kind, ans.Reason, ans.Err = payonce.StateUnknown, "not-paid-or-not-known", errors.New("wechatpay: no paid order has this transaction_id")
	}
	return ans
}

var errUnseen = errors.New("wechatpay: a number that was never ordered is not closed: the close would answer success and burn the number")

// Close closes an order that was not paid. It is sent only to a number that an
// answer has shown to exist.
func (a *Adapter) Close(ctx context.Context, c channel.Call) channel.Answer {
	p := &c.Payment
	if !validNumber(p.Number) {
		return a.unsent(stepClose, p, "number-damaged", errFrame)
	}
	if !p.Seen {
		return a.unsent(stepClose, p, "number-not-seen", errUnseen)
	}
	body, err := json.Marshal(map[string]string{"mchid": a.cfg.MchID})
	if err != nil {
		return a.unsent(stepClose, p, "request-damaged", err)
	}
	return a.read(stepClose, p, a.post(ctx, "/v3/pay/transactions/out-trade-no/"+p.Number+"/close", body))
}

func (a *Adapter) numberPath(number string) string {
	return "/v3/pay/transactions/out-trade-no/" + number + "?mchid=" + url.QueryEscape(a.cfg.MchID)
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

// read classifies one exchange.
func (a *Adapter) read(s step, p *payonce.Payment, ex *exchange) channel.Answer {
	ans := channel.Answer{Fact: a.fact(s, p), Raw: a.evidence(ex)}
	if ex.answered {
		a.date(&ans.Fact, ex)
	}
	if why := ex.reason(); why != "" {
		ans.Reason, ans.Err = why, a.cause(ex)
		if !ex.connected.Load() && s == stepBegin {
			ans.Kind = payonce.StateNotSent
		}
		return ans
	}
	// A refusal may come without signature. One that brings a wrong one is no more
	// believed than a success.
	success := ex.status >= 200 && ex.status < 300
	if (success || ex.claimsSignature()) && (!ex.checked || ex.proof != nil) {
		ans.Reason, ans.Err = unproven(ex.proof)
		return ans
	}
	switch {
	case s == stepClose && ex.status == http.StatusNoContent && len(ex.body) == 0:
		ans.Kind = payonce.StateDead
	case s == stepClose && success, success && ex.status != http.StatusOK:
		ans.Reason = "unexpected-status"
	case success:
		a.success(&ans, s, p, ex.body)
	default:
		v, code := classify(s, ex.status, ex.body)
		ans.Kind, ans.Reason = v.kind, v.reason
		if ans.Kind == payonce.StateRefused {
			ans.Failure = failure(a.redact.text(code))
		}
		if ans.Kind == payonce.StateUnknown || ans.Kind == payonce.StateNotSent {
			ans.Err = a.replyError(ex, code)
		}
	}
	if ans.Kind == payonce.StateUnknown && ans.Err == nil {
		ans.Err = fmt.Errorf("wechatpay: %s: HTTP %d", ans.Reason, ex.status)
	}
	return ans
}

// unproven says why an answer that should be signed is no knowledge.
func unproven(proof error) (string, error) {
	switch {
	case proof == nil, errors.Is(proof, ErrNotSigned):
		return "not-signed", ErrNotSigned
	case errors.Is(proof, ErrSerial):
		return "unknown-serial", proof
	case errors.Is(proof, ErrAge):
		return "signature-age", proof
	}
	return "bad-signature", proof
}

// replyError describes a refusal by its codes, never by its text. The end of
// Request-ID is a finer number, for people.
func (a *Adapter) replyError(ex *exchange, code string) error {
	msg := fmt.Sprintf("wechatpay: HTTP %d code %s", ex.status, word(code))
	if id := ex.header.Get("Request-Id"); id != "" {
		msg += " request " + word(id)
	}
	return errors.New(a.redact.text(msg))
}

// evidence is the body as received. An empty one says nothing by itself: then the
// status and the signature over it are kept.
func (a *Adapter) evidence(ex *exchange) []byte {
	if len(ex.body) > 0 || !ex.answered {
		return a.redact.evidence(ex.body)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d\n", ex.status)
	for _, name := range signedHeaders {
		for _, v := range ex.header.Values(name) {
			b.WriteString(name + ": " + v + "\n")
		}
	}
	return a.redact.evidence([]byte(b.String()))
}

// success reads a signed answer of 200.
func (a *Adapter) success(ans *channel.Answer, s step, p *payonce.Payment, body []byte) {
	m, err := object(body)
	if err != nil {
		ans.Reason, ans.Err = "undecodable", err
		return
	}
	if s == stepQuery {
		a.statement(&ans.Fact, m)
		return
	}
	act, err := a.action(p, m)
	if err != nil {
		ans.Reason, ans.Err = "undecodable", err
		return
	}
	ans.Kind, ans.Action = payonce.StateWaiting, act
}

var errAction = errors.New("wechatpay: the answer holds no code, prepay id or link of this method")

// action makes what the payer needs of a prepay answer.
func (a *Adapter) action(p *payonce.Payment, m members) (*payonce.Action, error) {
	act := &payonce.Action{ExpiresAt: p.DeadAt}
	switch p.Method {
	case MethodNative:
		act.Type, act.QRCode = "qr_code", m.text("code_url")
		if !printable(act.QRCode, 1024) {
			return nil, errAction
		}
	case MethodH5:
		u, err := url.Parse(m.text("h5_url"))
		if err != nil || !printable(m.text("h5_url"), 2048) || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || a.own) {
			return nil, errAction
		}
		act.Type, act.URL = "redirect", m.text("h5_url")
		// Nothing but this may be added to the link.
		if p.ReturnURL != "" && u.RawQuery != "" && u.Fragment == "" {
			act.URL += "&redirect_url=" + url.QueryEscape(p.ReturnURL)
		}
		if end := a.sentAt(p).Add(h5Life); end.Before(act.ExpiresAt) {
			act.ExpiresAt = end
		}
	default:
		id := m.text("prepay_id")
		if !printable(id, 64) {
			return nil, errAction
		}
		params, err := a.clientParams(p.Method, id, a.now())
		if err != nil {
			return nil, err
		}
		act.Type, act.Params = "client_params", params
	}
	return act, nil
}

// sentAt is a moment before the request, on the clock that the payment's own
// times are of.
func (a *Adapter) sentAt(p *payonce.Payment) time.Time {
	if last := p.LastPermit(); last != nil && !last.GivenAt.IsZero() {
		return last.GivenAt
	}
	if !p.CreatedAt.IsZero() {
		return p.CreatedAt
	}
	return a.now()
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
