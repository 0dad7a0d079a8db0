package httpapi

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/store"
)

func paymentRoutes() []*route {
	payment := reflect.TypeFor[paymentDoc]()
	none := reflect.TypeFor[emptyRequest]()
	return []*route{
		payRoute(),
		{
			method: http.MethodGet, path: "/v1/payments", access: accessRead, handle: (*exchange).listPayments,
			id: "list-payments", tag: "payments", summary: "List payments, newest first",
			query: append(listParams(),
				textParam("idempotency_key", "The key that a payment was asked for with, written as in the header."),
				textParam("order_no", "The shop's number of the order."),
				enumParam("status", "The state.", paymentStatuses...),
				textParam("channel_number", "The number that the channel sees.")),
			answers: []reply{{status: 200, text: "A page of payments.", body: reflect.TypeFor[paymentListDoc]()}},
		},
		{
			method: http.MethodGet, path: "/v1/payments/{id}", access: accessRead, handle: (*exchange).getPayment,
			id: "get-payment", tag: "payments", summary: "Read a payment, wait for its next change, or watch it",
			description: "With wait the answer comes on the next change, at once when the state is final. " +
				"With Accept: text/event-stream every state is an event named payment whose id is the version; the stream ends after a final state.",
			query:    []*huma.Param{intParam("wait", "Seconds to wait for a change. Ignored on streams.", 0, int(maxWait/time.Second))},
			answers:  []reply{{status: 200, text: "The payment.", body: payment, stream: true}},
			problems: []int{404},
		},
		{
			method: http.MethodPost, path: "/v1/payments/{id}/sync", access: accessWrite, key: keyOptional,
			handle: (*exchange).syncPayment, body: none, bodyOptional: true,
			id: "sync-payment", tag: "payments", summary: "Ask the channel about a payment now",
			answers:  []reply{{status: 200, text: "The payment as it is known now.", body: payment}},
			problems: []int{404, 409, 422},
		},
		{
			method: http.MethodPost, path: "/v1/payments/{id}/cancel", access: accessWrite, key: keyOptional,
			handle: (*exchange).cancelPayment, body: none, bodyOptional: true,
			id: "cancel-payment", tag: "payments", summary: "Close a payment at its channel",
			answers: []reply{
				{status: 200, text: "The payment however it ended; paid wins.", body: payment},
				{status: 202, text: "It is not proven yet that the payment can take no money.", body: payment},
			},
			problems: []int{404, 409, 422},
		},
	}
}

// emptyRequest is the body {}.
type emptyRequest struct{}

var paymentStatuses = []string{
	string(payonce.Created), string(payonce.Processing), string(payonce.Pending), string(payonce.Unknown),
	string(payonce.Succeeded), string(payonce.Failed), string(payonce.Cancelled),
}

// maxWait is the longest ?wait=.
const maxWait = 30 * time.Second

// paymentID returns the id of the path; whatever is no id is not found.
func (x *exchange) paymentID() (string, error) {
	id := x.r.PathValue("id")
	if !payonce.ValidID(payonce.PrefixPayment, id) {
		return "", store.ErrNotFound
	}
	return id, nil
}

// getPayment handles GET /v1/payments/{id} in its three forms.
func (x *exchange) getPayment() error {
	id, err := x.paymentID()
	if err != nil {
		return err
	}
	seconds, err := x.queryInt("wait", 0, 0, int(maxWait/time.Second))
	if err != nil {
		return err
	}
	ctx := x.r.Context()
	p, err := x.Reader.Payment(ctx, x.scope, id)
	if err != nil {
		return err
	}
	if x.r.Method == http.MethodGet && acceptsEvents(x.r.Header) {
		return x.stream(p)
	}
	if seconds > 0 && p.Status.Live() {
		if p, err = x.waitFor(p, time.Duration(seconds)*time.Second); err != nil {
			return err
		}
	}
	body, err := x.encodePayment(ctx, p, true)
	if err != nil {
		return err
	}
	x.send(http.StatusOK, body, false)
	return nil
}

// waitFor returns the payment after its next change or after d. When too many
// wait already, or the server is to stop, it returns what is known: a long poll
// that comes back early is no error.
func (x *exchange) waitFor(p *payonce.Payment, d time.Duration) (*payonce.Payment, error) {
	if !x.startWaiting() {
		return p, nil
	}
	defer x.stopWaiting()
	ctx, cancel := x.waitContext()
	defer cancel()
	q, err := x.Engine.Wait(ctx, x.scope, p.ID, p.Version, d)
	if err != nil && x.Draining.Err() != nil && x.r.Context().Err() == nil {
		return p, nil
	}
	return q, err
}

// waitContext ends when the client leaves or the server is to stop.
func (x *exchange) waitContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(x.r.Context())
	stop := context.AfterFunc(x.Draining, cancel)
	return ctx, func() { stop(); cancel() }
}

func (x *exchange) startWaiting() bool {
	if x.waiting.Add(1) > x.MaxWaiters {
		x.waiting.Add(-1)
		return false
	}
	x.waited = true
	return true
}

func (x *exchange) stopWaiting() { x.waiting.Add(-1) }

// encodePayment writes a payment that was read without its order. The order is
// read only where it decides whether an action is shown.
func (x *exchange) encodePayment(ctx context.Context, p *payonce.Payment, nextCheck bool) ([]byte, error) {
	v := x.viewNow(nextCheck)
	var o *payonce.Order
	if o.Shows(p, v.now) != nil {
		known, err := x.Reader.Order(ctx, p.Key)
		if err != nil {
			return nil, err
		}
		o = known.Order
	}
	return appendPayment(make([]byte, 0, paymentSize), o, p, v), nil
}

// acceptsEvents reports whether the client asks for a stream.
func acceptsEvents(h http.Header) bool {
	for _, line := range h.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(media), mediaEvents) && !refuses(params) {
				return true
			}
		}
	}
	return false
}

// refuses reports q=0.
func refuses(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if q, err := strconv.ParseFloat(value, 64); strings.EqualFold(name, "q") && err == nil && q == 0 {
			return true
		}
	}
	return false
}

// listPayments handles GET /v1/payments.
func (x *exchange) listPayments() error {
	page, err := x.page(payonce.PrefixPayment)
	if err != nil {
		return err
	}
	f := store.PaymentFilter{After: page.after, Limit: page.limit + 1}
	if err := x.paymentFilter(&f); err != nil {
		return err
	}
	ctx := x.r.Context()
	found, err := x.Reader.Payments(ctx, x.scope, f)
	if err != nil {
		return err
	}
	more := len(found) > page.limit
	if more {
		found = found[:page.limit]
	}
	items := make([][]byte, len(found))
	for i, p := range found {
		if items[i], err = x.encodePayment(ctx, p, true); err != nil {
			return err
		}
	}
	last := ""
	if len(found) > 0 {
		last = found[len(found)-1].ID
	}
	x.send(http.StatusOK, appendList(nil, len(items), func(b []byte, i int) []byte { return append(b, items[i]...) }, more, last), false)
	return nil
}

// paymentFilter reads the filters of the query. A key that cannot be one is
// refused by the same rules as in the header (R72).
func (x *exchange) paymentFilter(f *store.PaymentFilter) error {
	var wrong []payonce.Field
	check := func(name, says string) {
		if says != "" {
			wrong = append(wrong, payonce.Field{Pointer: queryPointer(name), Message: says})
		}
	}
	if x.query.Has("order_no") {
		f.OrderNo = x.query.Get("order_no")
		check("order_no", orderNoRule(f.OrderNo))
	}
	if x.query.Has("status") {
		f.Status = payonce.PaymentStatus(x.query.Get("status"))
		check("status", oneOf(string(f.Status), paymentStatuses))
	}
	if x.query.Has("channel_number") {
		f.Number = x.query.Get("channel_number")
		check("channel_number", plainRule(f.Number, 64))
	}
	if len(wrong) > 0 {
		return invalid(wrong)
	}
	if x.query.Has("idempotency_key") {
		key, err := idempotency.ParseKeyText(x.query.Get("idempotency_key"), idempotency.KeyOptions{})
		if err != nil {
			return err
		}
		s := idempotency.Scope{Environment: string(x.scope.Environment), Tenant: x.scope.Merchant}
		record := [32]byte(s.Record(key))
		f.Key = &record
	}
	return nil
}

// syncPayment handles POST /v1/payments/{id}/sync.
func (x *exchange) syncPayment() error {
	return x.actOnPayment(func(id string) (*payonce.Payment, bool, error) {
		p, err := x.Engine.Sync(x.moneyContext(), x.action("sync"), id)
		return p, true, err
	})
}

// cancelPayment handles POST /v1/payments/{id}/cancel.
func (x *exchange) cancelPayment() error {
	return x.actOnPayment(func(id string) (*payonce.Payment, bool, error) {
		return x.Engine.Cancel(x.moneyContext(), x.action("cancel"), id)
	})
}

// actOnPayment answers 200 with the payment, 202 while the outcome is unproven.
func (x *exchange) actOnPayment(act func(id string) (*payonce.Payment, bool, error)) error {
	id, err := x.paymentID()
	if err != nil {
		return err
	}
	if err := decode(x.body, []member[emptyRequest]{}, &emptyRequest{}, nil); err != nil {
		return err
	}
	replayed, err := x.knownKey()
	if err != nil {
		return err
	}
	p, proven, err := act(id)
	if err != nil {
		return err
	}
	body, err := x.encodePayment(x.moneyContext(), p, false)
	if err != nil {
		return err
	}
	x.send(x.provenStatus(proven), body, replayed)
	return nil
}

// provenStatus is 200, or 202 with the headers of an answer that is not final.
func (x *exchange) provenStatus(proven bool) int {
	if proven {
		return http.StatusOK
	}
	h := x.Header()
	h.Set("Retry-After", strconv.Itoa(int(pollAfter/time.Second)))
	h.Set(idempotency.HeaderStatus, idempotency.StatusPending)
	return http.StatusAccepted
}

// knownKey reports whether the key of the request has a record already, which
// makes the answer a repetition. The engine decides what a known key does; this
// only marks the answer.
func (x *exchange) knownKey() (bool, error) {
	if x.key == nil {
		return false, nil
	}
	r, err := x.Reader.Replay(x.r.Context(), *x.key)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return r != nil && err == nil, err
}
