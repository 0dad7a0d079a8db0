package wechatpay

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// Errors of ReadNotice beside those of a signature.
var (
	ErrForm    = errors.New("wechatpay notice: the body is not the JSON of an API v3 notice")
	ErrContent = errors.New("wechatpay notice: the content cannot be decrypted or read (is apiv3_key this merchant's?)")
	ErrAccount = errors.New("wechatpay notice: it is for another merchant or application")
)

const maxNotice = 256 << 10

// ReadNotice verifies the signature over the raw body, decrypts what is inside
// and reads it. A notice about a refund names its order and leaves the state to a
// query: it is no new payment. A refund that was made at the merchant site is
// told in the XML of API v2, which has no signature of this kind and is refused.
//
// The serial of a platform certificate that is not known fetches their list,
// once, within the time that WeChat Pay waits; nothing else here does I/O.
func (a *Adapter) ReadNotice(h http.Header, body []byte) (channel.Notice, error) {
	if len(body) == 0 || len(body) > maxNotice {
		return channel.Notice{}, ErrForm
	}
	ctx, cancel := context.WithTimeout(context.Background(), refreshLimit)
	defer cancel()
	if err := a.check(ctx, h, body); err != nil {
		return channel.Notice{}, err
	}
	m, err := object(body)
	if err != nil {
		return channel.Notice{}, ErrForm
	}
	n := channel.Notice{EventID: m.text("id"), Type: m.text("event_type")}
	n.Fact = payonce.Fact{Source: "notice", Account: a.cfg.Account}
	resource, err := m.object("resource")
	if err != nil || !printable(n.EventID, 64) || !printable(n.Type, 64) || m.text("resource_type") != "encrypt-resource" {
		return channel.Notice{}, ErrForm
	}
	plain, err := a.decrypt(resource)
	if err != nil {
		return channel.Notice{}, ErrContent
	}
	content, err := object(plain)
	if err != nil {
		return channel.Notice{}, ErrContent
	}
	if err := a.content(&n, resource.text("original_type"), content); err != nil {
		return channel.Notice{}, err
	}
	return n, nil
}

// content reads what a notice is about. Every content names the merchant; that of
// a refund names no application.
func (a *Adapter) content(n *channel.Notice, kind string, m members) error {
	mchid, number := m.text("mchid"), m.text("out_trade_no")
	if mchid == "" {
		return ErrContent
	}
	if mchid != a.cfg.MchID {
		return ErrAccount
	}
	switch {
	case n.Type == "TRANSACTION.SUCCESS" && kind == "transaction":
		if !printable(number, 64) || m.text("appid") == "" || m.text("trade_state") == "" {
			return ErrContent
		}
		if !a.ours(mchid, m.text("appid")) {
			return ErrAccount
		}
		n.Number, n.Fact.Number = number, number
		if a.state(&n.Fact, m); n.Fact.Kind != payonce.StateSettled && n.Fact.Kind != payonce.StateUnknown {
			// A success that says it is none.
			n.Fact.Kind, n.Fact.Reason, n.Fact.Failure = payonce.StateUnknown, "contradiction", nil
		}
	case strings.HasPrefix(n.Type, "REFUND.") && kind == "refund":
		if !printable(number, 64) {
			return ErrContent
		}
		n.Number, n.Fact.Number, n.Fact.Reason = number, number, "refund"
	default:
		n.Fact.Reason = "other-event"
	}
	return nil
}

// ReplyNotice implements channel.Adapter. 204 without body stops the notice; any
// other answer makes WeChat Pay send it again.
func (a *Adapter) ReplyNotice(o channel.NoticeOutcome) channel.NoticeReply {
	r := channel.NoticeReply{ContentType: "application/json"}
	switch o {
	case channel.NoticeStored:
		return channel.NoticeReply{Status: http.StatusNoContent}
	case channel.NoticeRefused:
		r.Status, r.Body = http.StatusUnauthorized, []byte(`{"code":"FAIL","message":"the notice is not genuine"}`)
	default:
		r.Status, r.Body = http.StatusInternalServerError, []byte(`{"code":"FAIL","message":"the notice could not be stored"}`)
	}
	return r
}
