package httpapi

import (
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

// orderRequest is the body of POST /v1/orders.
type orderRequest struct {
	OrderNo   string            `json:"order_no" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"The shop's number of the order."`
	Amount    int64             `json:"amount" minimum:"1" maximum:"9000000000000000" doc:"In minor units."`
	Currency  string            `json:"currency" pattern:"^[A-Z]{3}$" doc:"ISO 4217."`
	Subject   string            `json:"subject" minLength:"1" maxLength:"127" doc:"What is paid for, without control characters."`
	Policy    string            `json:"policy" required:"false" enum:"single,split" doc:"single (the default): one full payment. split: shares, each with its own part."`
	ExpiresAt string            `json:"expires_at" required:"false" nullable:"true" format:"date-time" doc:"Afterwards the order takes no payment and is closed. Must lie ahead."`
	Metadata  map[string]string `json:"metadata" required:"false" maxProperties:"50" doc:"The shop's own data: names of at most 64, values of at most 500 characters."`

	metadata string // as it was sent
}

var orderMembers = []member[orderRequest]{
	{"order_no", true, func(d *decoder, b *orderRequest) { b.OrderNo = d.text(orderNoRule) }},
	{"amount", true, func(d *decoder, b *orderRequest) { b.Amount = d.amount() }},
	{"currency", true, func(d *decoder, b *orderRequest) { b.Currency = d.text(currencyRule) }},
	{"subject", true, func(d *decoder, b *orderRequest) { b.Subject = d.text(subjectRule) }},
	{"policy", false, func(d *decoder, b *orderRequest) { b.Policy = d.text(policyRule) }},
	{"expires_at", false, func(d *decoder, b *orderRequest) { b.ExpiresAt = d.text(timeRule) }},
	{"metadata", false, func(d *decoder, b *orderRequest) { b.metadata = d.metadata() }},
}

// amendRequest is the body of POST /v1/orders/{order_no}/amend.
type amendRequest struct {
	Amount  int64  `json:"amount" minimum:"1" maximum:"9000000000000000" doc:"The new amount in minor units."`
	Subject string `json:"subject" required:"false" nullable:"true" minLength:"1" maxLength:"127"`
}

var amendMembers = []member[amendRequest]{
	{"amount", true, func(d *decoder, b *amendRequest) { b.Amount = d.amount() }},
	{"subject", false, func(d *decoder, b *amendRequest) { b.Subject = d.text(subjectRule) }},
}

func orderRoutes() []*route {
	order := reflect.TypeFor[orderDoc]()
	return []*route{
		{
			method: http.MethodPost, path: "/v1/orders", access: accessWrite, key: keyOptional,
			handle: (*exchange).createOrder, body: reflect.TypeFor[orderRequest](),
			id: "create-order", tag: "orders", summary: "Make an order known",
			answers: []reply{
				{status: 200, text: "The order was known with these values.", body: order},
				{status: 201, text: "The order is new.", body: order},
			},
			problems: []int{409, 422},
		},
		{
			method: http.MethodGet, path: "/v1/orders", access: accessRead, handle: (*exchange).listOrders,
			id: "list-orders", tag: "orders", summary: "List orders, newest first",
			query:   listParams(),
			answers: []reply{{status: 200, text: "A page of orders.", body: reflect.TypeFor[orderListDoc]()}},
		},
		{
			method: http.MethodGet, path: "/v1/orders/{order_no}", access: accessRead, handle: (*exchange).getOrder,
			id: "get-order", tag: "orders", summary: "Read an order with its payments",
			answers:  []reply{{status: 200, text: "The order.", body: order}},
			problems: []int{404},
		},
		{
			method: http.MethodPost, path: "/v1/orders/{order_no}/amend", access: accessWrite, key: keyOptional,
			handle: (*exchange).amendOrder, body: reflect.TypeFor[amendRequest](),
			id: "amend-order", tag: "orders", summary: "Change the amount of an unpaid order",
			description: "Closes live payments at their channels first; 409 payment-outcome-unknown while that cannot be proven.",
			answers:     []reply{{status: 200, text: "The order with its new amount.", body: order}},
			problems:    []int{404, 409, 422},
		},
		{
			method: http.MethodPost, path: "/v1/orders/{order_no}/close", access: accessWrite, key: keyOptional,
			handle: (*exchange).closeOrder, body: reflect.TypeFor[emptyRequest](), bodyOptional: true,
			id: "close-order", tag: "orders", summary: "Close an order and its payments",
			answers: []reply{
				{status: 200, text: "The order however it ended; paid wins.", body: order},
				{status: 202, text: "It is not proven yet that no payment can take money.", body: order},
			},
			problems: []int{404, 409, 422},
		},
	}
}

// createOrder handles POST /v1/orders.
func (x *exchange) createOrder() error {
	var b orderRequest
	if err := decode(x.body, orderMembers, &b, nil); err != nil {
		return err
	}
	req := engine.OrderRequest{
		ActionRequest: x.action("order"), Order: x.orderKey(b.OrderNo),
		Amount: payonce.Amount(b.Amount), Currency: payonce.Currency(b.Currency),
		Subject: b.Subject, Policy: payonce.Policy(b.Policy),
	}
	if b.ExpiresAt != "" {
		t, _ := time.Parse(time.RFC3339, b.ExpiresAt) // timeRule has read it
		req.ExpiresAt = t.UTC().Truncate(time.Microsecond)
		if err := x.liesAhead(req.Order, req.ExpiresAt); err != nil {
			return err
		}
	}
	if b.metadata != "" {
		text, err := idempotency.CanonicalJSON([]byte(b.metadata))
		if err != nil {
			return err
		}
		req.Metadata = string(text)
	}
	res, err := x.Engine.CreateOrder(x.moneyContext(), req)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if res.Created || res.Replayed && x.madeOrder() {
		status = http.StatusCreated
	}
	return x.answerOrder(status, res)
}

// madeOrder reports whether the first request with this key made the order, so
// that a repetition has its status: key and order are of one transaction, which
// has one time.
func (x *exchange) madeOrder() bool {
	r, err := x.Reader.Replay(x.r.Context(), *x.key)
	return err == nil && r.Order != nil && r.Order.CreatedAt.Equal(r.Key.CreatedAt)
}

// liesAhead refuses a new order that would be closed at once. A known order may
// be sent again after it has expired: the repetition of a lost answer.
func (x *exchange) liesAhead(k payonce.OrderKey, t time.Time) error {
	if t.After(x.Runner.Now()) {
		return nil
	}
	_, err := x.Reader.Order(x.r.Context(), k)
	if errors.Is(err, store.ErrNotFound) {
		return invalid([]payonce.Field{{Pointer: "/expires_at", Message: "The time must lie ahead."}})
	}
	return err
}

// orderNo returns the number of the path; whatever is no number is not found.
func (x *exchange) orderNo() (string, error) {
	no := x.r.PathValue("order_no")
	if !payonce.ValidOrderNo(no) {
		return "", store.ErrNotFound
	}
	return no, nil
}

// getOrder handles GET /v1/orders/{order_no}.
func (x *exchange) getOrder() error {
	no, err := x.orderNo()
	if err != nil {
		return err
	}
	o, err := x.Reader.Order(x.r.Context(), x.orderKey(no))
	if err != nil {
		return err
	}
	x.send(http.StatusOK, x.Encoder.appendOrder(nil, o.Order, o.Payments, true, x.viewNow(true)), false)
	return nil
}

// listOrders handles GET /v1/orders.
func (x *exchange) listOrders() error {
	page, err := x.page(payonce.PrefixOrder)
	if err != nil {
		return err
	}
	found, err := x.Reader.Orders(x.r.Context(), x.scope, store.OrderFilter{After: page.after, Limit: page.limit + 1})
	if err != nil {
		return err
	}
	more := len(found) > page.limit
	if more {
		found = found[:page.limit]
	}
	last := ""
	if len(found) > 0 {
		last = found[len(found)-1].Order.ID
	}
	v := x.viewNow(true)
	x.send(http.StatusOK, appendList(nil, len(found), func(b []byte, i int) []byte {
		return x.Encoder.appendOrder(b, found[i].Order, found[i].Payments, true, v)
	}, more, last), false)
	return nil
}

// amendOrder handles POST /v1/orders/{order_no}/amend.
func (x *exchange) amendOrder() error {
	no, err := x.orderNo()
	if err != nil {
		return err
	}
	var b amendRequest
	if err := decode(x.body, amendMembers, &b, nil); err != nil {
		return err
	}
	res, err := x.Engine.AmendOrder(x.moneyContext(), x.action("amend"), no, payonce.Amount(b.Amount), b.Subject)
	if err != nil {
		return err
	}
	return x.answerOrder(http.StatusOK, res)
}

// closeOrder handles POST /v1/orders/{order_no}/close.
func (x *exchange) closeOrder() error {
	no, err := x.orderNo()
	if err != nil {
		return err
	}
	if err := decode(x.body, []member[emptyRequest]{}, &emptyRequest{}, nil); err != nil {
		return err
	}
	res, err := x.Engine.CloseOrder(x.moneyContext(), x.action("close"), no)
	if err != nil {
		return err
	}
	return x.answerOrder(x.provenStatus(res.Proven), res)
}

func (x *exchange) answerOrder(status int, res *engine.OrderResult) error {
	body := x.Encoder.appendOrder(nil, res.Order, res.Payments, true, x.viewNow(false))
	x.Header().Set("Location", "/v1/orders/"+res.Order.Key.OrderNo)
	x.send(status, body, res.Replayed)
	return nil
}
