package alipaysim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/payonce/payonce/internal/sim/core"
)

const (
	// theAddress names the one target of a notice.
	theAddress  = "notify_url"
	sellerMail  = "seller@shop.example"
	foreignApp  = "2021999999999999"
	foreignUser = "2088999999999999"
)

// wanted tells whether a status is notified. What is sent differs between
// products and merchants, so each status has its switch: without one, app and
// wap payments have all but the first, others only successes.
func (a *Alipay) wanted(t *trade, status string, r *refund) bool {
	if r != nil {
		return a.w.Switch(Channel, switchRefunds) == "on"
	}
	name := map[string]string{waiting: switchWaiting, success: switchSuccess, finished: switchFinished, closed: switchClosed}[status]
	switch a.w.Switch(Channel, name) {
	case "on":
		return true
	case "off":
		return false
	}
	return t.Terms.Method == "alipay.trade.wap.pay" || t.Terms.Method == "alipay.trade.app.pay"
}

// notify stores the notice of a change, if it is sent at all. A close may have
// named an address of its own. Only inside Update.
func (a *Alipay) notify(c *call, t *trade, status string, r *refund, address string) {
	if address == "" {
		if address = t.Terms.NotifyURL; !a.wanted(t, status, r) {
			return
		}
	}
	if address == "" {
		return
	}
	fields := a.noticeFields(t, status, r)
	a.w.ID("")
	seq := a.w.Sequence()
	now := a.w.Now().In(beijing)
	id := now.Format("20060102") + "00222" + now.Format("150405") + a.w.Seed.HexOf("alipay notice", seq, 16)
	fields["notify_id"] = id
	body, err := json.Marshal(fields)
	if err != nil {
		panic("alipaysim: notice: " + err.Error()) // texts always render
	}
	take := a.w.TakeFault
	if status == waiting {
		// That a payer has scanned is too unimportant to use up a fault
		// that was meant for the payment.
		take = a.w.TakeLasting
	}
	f := take(Channel, core.OpNotice, t.Terms.Number)
	c.posted = append(c.posted, a.w.Post(core.Notice{Seq: seq, Channel: Channel, Number: t.Terms.Number, Event: id,
		Type: status, Object: t.ID, Change: seq, Targets: map[string]core.Target{theAddress: {URL: address}}}, body, f))
}

// noticeFields are all but those of the sender, which are added when it is
// sent.
func (a *Alipay) noticeFields(t *trade, status string, r *refund) map[string]string {
	f := map[string]string{
		"notify_type": "trade_status_sync", "charset": t.Terms.Charset, "version": "1.0", "trade_no": t.ID,
		"out_trade_no": t.Terms.Number, "trade_status": status, "total_amount": yuan(t.total()),
		"subject": t.Terms.Subject, "gmt_create": clockText(t.Created), "buyer_logon_id": buyerLogon,
	}
	name, id := a.buyerOf(t)
	f[name] = id
	put := func(name, value string) {
		if value != "" {
			f[name] = value
		}
	}
	put("body", t.Terms.Body)
	put("passback_params", t.Terms.Passback)
	if t.Paid > 0 {
		received := yuan(t.Paid - t.coupon())
		f["receipt_amount"], f["invoice_amount"], f["buyer_pay_amount"], f["point_amount"] = received, received, received, yuan(0)
		f["gmt_payment"] = clockText(t.PaidAt)
		// JSON inside a form field, escaped as the gateway does.
		f["fund_bill_list"] = strings.ReplaceAll(fundsOfNotice(t), "/", `\/`)
	}
	if t.ClosedAt != 0 {
		f["gmt_close"] = clockText(t.ClosedAt)
	}
	if r != nil {
		f["refund_fee"], f["send_back_fee"] = yuan(t.refunded()), yuan(r.Amount)
		f["out_biz_no"], f["gmt_refund"] = r.Number, clockText(r.At)+".000"
	}
	return f
}

// fundsOfNotice is fund_bill_list as notices spell it.
func fundsOfNotice(t *trade) string {
	return strings.ReplaceAll(funds(t), "fund_channel", "fundChannel")
}

// Request implements core.Postman: a form signed with Alipay's key over all
// fields except sign and sign_type, each value in the charset of the order.
func (a *Alipay) Request(ctx context.Context, n core.Notice, _ string, t core.Target, body []byte, f *core.Fault) (*http.Request, error) {
	account, err := a.keys.Account()
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("notice %s: %w", n.Event, err)
	}
	fields["app_id"], fields["auth_app_id"] = account.AppID, account.AppID
	fields["seller_id"], fields["seller_email"] = account.SellerID, sellerMail
	fields["notify_time"] = a.w.RealNow().In(beijing).Format(timeLayout)
	distortNotice(fields, f)
	empties := a.w.Switch(Channel, switchEmpty)
	if empties != "none" {
		fields["voucher_detail_list"], fields["extra"] = "", ""
	}
	for name, value := range fields {
		fields[name] = encode(value, fields["charset"])
	}
	text := canonical(fields, empties == "signed")
	if f.Is(core.BadSignature) {
		text += "forged"
	}
	signature, err := sign(account.Platform, text)
	if err != nil {
		return nil, err
	}
	fields["sign"], fields["sign_type"] = signature, "RSA2"
	form := formOf(fields)
	if f.Is(core.Truncated) {
		form = form[:len(form)/2]
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, strings.NewReader(form))
	if err != nil {
		return nil, fmt.Errorf("notify_url %s: %w", t.URL, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset="+fields["charset"])
	req.Header.Set("User-Agent", "Mozilla/4.0")
	return req, nil
}

func distortNotice(fields map[string]string, f *core.Fault) {
	switch {
	case f.Is(core.WrongAmount):
		for name := range amountFields {
			if fields[name] != "" {
				fields[name] = wrongYuan(fields[name])
			}
		}
	case f.Is(core.ForeignAccount):
		fields["app_id"], fields["auth_app_id"] = foreignApp, foreignApp
		fields["seller_id"], fields["seller_email"] = foreignUser, "someone@else.example"
	}
}

// formOf escapes the fields; their order means nothing.
func formOf(fields map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(url.QueryEscape(name) + "=" + url.QueryEscape(fields[name]))
	}
	return b.String()
}

// Acknowledged implements core.Postman: exactly the seven bytes.
func (a *Alipay) Acknowledged(status int, body []byte) bool {
	return status == http.StatusOK && string(body) == "success"
}

// gaps are the published pauses between the eight deliveries.
var gaps = []time.Duration{240 * time.Second, 600 * time.Second, 600 * time.Second, 3600 * time.Second,
	7200 * time.Second, 21600 * time.Second, 54000 * time.Second}

// Gaps implements core.Postman.
func (a *Alipay) Gaps() []time.Duration { return gaps }

// Targets of a resend are those of the notice: its address came with the
// order.
func (a *Alipay) Targets(n core.Notice) map[string]core.Target { return n.Targets }
