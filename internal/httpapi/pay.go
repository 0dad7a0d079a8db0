package httpapi

import (
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
)

// paymentRequest is the body of POST /v1/payments.
type paymentRequest struct {
	OrderNo      string        `json:"order_no" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"The shop's number of the order."`
	Channel      string        `json:"channel" enum:"alipay,wechatpay,stripe,2c2p"`
	Method       string        `json:"method" enum:"qr,page,wap,app,native,jsapi,h5,card,checkout,redirect" doc:"alipay: qr, page, wap, app. wechatpay: native, jsapi, h5, app. stripe: card, checkout. 2c2p: redirect."`
	Amount       int64         `json:"amount" required:"false" nullable:"true" minimum:"1" maximum:"9000000000000000" doc:"In minor units. Needed when the order is not known yet, and as the share of a split order."`
	Currency     string        `json:"currency" required:"false" nullable:"true" pattern:"^[A-Z]{3}$" doc:"ISO 4217. Needed when the order is not known yet."`
	Subject      string        `json:"subject" required:"false" nullable:"true" minLength:"1" maxLength:"127" doc:"What is paid for, without control characters. Needed when the order is not known yet."`
	Account      string        `json:"account" required:"false" nullable:"true" pattern:"^[A-Za-z0-9_.-]{1,64}$" doc:"The channel account; needed where the merchant has several for the channel."`
	Payer        channel.Payer `json:"payer" required:"false"`
	ReturnURL    string        `json:"return_url" required:"false" nullable:"true" format:"uri" maxLength:"2048" doc:"Where the payer's browser is sent afterwards; http or https."`
	Part         string        `json:"part" required:"false" nullable:"true" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"The share of a split order."`
	PaymentToken string        `json:"payment_token" required:"false" nullable:"true" maxLength:"64" doc:"Not offered yet: every token is answered with 422 payment-token-invalid."`
	Capture      string        `json:"capture" required:"false" enum:"automatic" doc:"Only automatic is supported; manual is refused."`
}

var paymentMembers = []member[paymentRequest]{
	{"order_no", true, func(d *decoder, b *paymentRequest) { b.OrderNo = d.text(orderNoRule) }},
	{"channel", true, func(d *decoder, b *paymentRequest) { b.Channel = d.text(channelRule) }},
	{"method", true, func(d *decoder, b *paymentRequest) { b.Method = d.text(anyText) }},
	{"amount", false, func(d *decoder, b *paymentRequest) { b.Amount = d.amount() }},
	{"currency", false, func(d *decoder, b *paymentRequest) { b.Currency = d.text(currencyRule) }},
	{"subject", false, func(d *decoder, b *paymentRequest) { b.Subject = d.text(subjectRule) }},
	{"account", false, func(d *decoder, b *paymentRequest) { b.Account = d.text(accountRule) }},
	{"payer", false, func(d *decoder, b *paymentRequest) { object(d, payerMembers, &b.Payer) }},
	{"return_url", false, func(d *decoder, b *paymentRequest) { b.ReturnURL = d.text(returnURLRule) }},
	{"part", false, func(d *decoder, b *paymentRequest) { b.Part = d.text(partRule) }},
	{"payment_token", false, func(d *decoder, b *paymentRequest) { b.PaymentToken = d.text(tokenRule) }},
	{"capture", false, func(d *decoder, b *paymentRequest) { b.Capture = d.text(captureRule) }},
}

var payerMembers = []member[channel.Payer]{
	{"payment_method", false, func(d *decoder, p *channel.Payer) { p.PaymentMethod = d.text(payerRule) }},
	{"openid", false, func(d *decoder, p *channel.Payer) { p.OpenID = d.text(payerRule) }},
	{"client_ip", false, func(d *decoder, p *channel.Payer) { p.ClientIP = d.text(clientIPRule) }},
	{"buyer_id", false, func(d *decoder, p *channel.Payer) { p.BuyerID = d.text(payerRule) }},
}

// checkPayment compares members with each other.
func checkPayment(d *decoder, b *paymentRequest) {
	if says := methodRule(b.Channel, b.Method); says != "" && b.Method != "" {
		d.failAt("method", says)
	}
}

// anyText is for values that are judged together with another one.
func anyText(s string) string {
	if s == "" {
		return "The text must not be empty."
	}
	return ""
}

func (d *decoder) amount() int64 { return d.integer(1, int64(payonce.MaxAmount)) }

func payRoute() *route {
	payment := reflect.TypeFor[paymentDoc]()
	return &route{
		method: http.MethodPost, path: "/v1/payments", access: accessWrite, key: keyRequired,
		handle: (*exchange).pay,
		id:     "create-payment", tag: "payments", summary: "Pay an order",
		description: "Starts a payment attempt, or answers with the one that is already under way. " +
			"The status follows from the payment's state, the first time and on every repetition: " +
			"PENDING, SUCCEEDED 201; PROCESSING, UNKNOWN 202; FAILED 402 payment-declined; CANCELLED 409 payment-cancelled; " +
			"CREATED 503 channel-unreachable, or 202 while nobody has tried yet. " +
			"A key that met another key's attempt says 200 where this says 201. next_check_at is null here.",
		body: reflect.TypeFor[paymentRequest](),
		answers: []reply{
			{status: 200, text: "Another key's attempt for the same order, in its present state.", body: payment},
			{status: 201, text: "The payment: the payer has to act, or it is paid.", body: payment},
			{status: 202, text: "The outcome is not known yet; ask again.", body: payment},
		},
		problems: []int{402, 409, 422},
	}
}

// pay handles POST /v1/payments.
func (x *exchange) pay() error {
	var b paymentRequest
	if err := decode(x.body, paymentMembers, &b, checkPayment); err != nil {
		return err
	}
	if b.PaymentToken != "" {
		return payonce.Errorf(payonce.CodePaymentTokenInvalid, "Payment tokens are not offered by this version. Send an Idempotency-Key alone.")
	}
	res, err := x.Engine.Pay(x.moneyContext(), engine.PayRequest{
		Order: x.orderKey(b.OrderNo), Key: *x.key, Fingerprint: x.print, Same: x.same,
		Prefer:  idempotency.ParsePrefer(x.r.Header, idempotency.MaxWait),
		Channel: b.Channel, Method: b.Method, Account: b.Account,
		Amount: payonce.Amount(b.Amount), Currency: payonce.Currency(b.Currency), Subject: b.Subject,
		Payer: b.Payer, ReturnURL: b.ReturnURL, Part: b.Part, Capture: b.Capture,
	})
	if err != nil {
		return err
	}
	x.answerPay(res)
	return nil
}

// answerPay writes the answer that the payment's state calls for.
func (x *exchange) answerPay(res *engine.Result) {
	h := x.Header()
	if res.Async {
		idempotency.MarkApplied(h, idempotency.PreferRespondAsync)
	}
	if res.Waited {
		idempotency.MarkApplied(h, idempotency.PreferWait)
	}
	status, code := outcome(res.Payment)
	switch {
	case res.Stored != nil:
		x.answerStored(res, res.Stored.HTTPStatus, res.Stored.ContentType, res.Stored.Body)
	case !res.Payment.Status.Live():
		status, media, body := x.Encoder.Answer(res.Order, res.Payment)
		x.answerStored(res, status, media, body)
	case code != "":
		p := x.Encoder.paymentProblem(code, outcomeDetails[code], res.Order, res.Payment, x.viewNow(false))
		p.RetryAfter = pollAfter
		if res.Replayed {
			markReplayed(h)
		}
		p.Write(x, x.Encoder.docsURL())
	default:
		if status == http.StatusAccepted {
			h.Set("Retry-After", strconv.Itoa(int(pollAfter/time.Second)))
			h.Set(idempotency.HeaderStatus, idempotency.StatusPending)
		}
		body := appendPayment(make([]byte, 0, paymentSize), res.Order, res.Payment, x.viewNow(false))
		x.answerStored(res, status, mediaJSON, body)
	}
}

// answerStored sends bytes that a repetition gets again. Of the headers all that
// belong to the result follow from the payment, so that they are the same too.
func (x *exchange) answerStored(res *engine.Result, status int, media string, body []byte) {
	if res.Converged && status == http.StatusCreated {
		status = http.StatusOK
	}
	header := http.Header{"Content-Type": {media}, "Location": {paymentLocation(res.Payment)}}
	idempotency.Answer{Status: status, Header: header, Body: body}.Write(x, res.Replayed)
}

// markReplayed marks a problem as the answer of an earlier request; other
// answers are marked by idempotency.Answer.
func markReplayed(h http.Header) {
	h.Set(idempotency.HeaderReplayed, "true")
	h.Set(idempotency.HeaderReplayedStripe, "true")
	h.Set(idempotency.HeaderStatus, idempotency.StatusPending)
}

func (x *exchange) viewNow(nextCheck bool) view {
	return view{now: x.Runner.Now(), nextCheck: nextCheck}
}
