package httpapi

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// The types of this file describe answers for the OpenAPI document. They are
// not used to write answers; a test compares them with what encode.go writes,
// member by member and in order.

type orderDoc struct {
	OrderNo        string            `json:"order_no" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Status         string            `json:"status" enum:"OPEN,PARTIALLY_PAID,PAID,CLOSING,CLOSED"`
	Amount         int64             `json:"amount" minimum:"1" maximum:"9000000000000000" doc:"In minor units, as every amount."`
	Currency       string            `json:"currency" pattern:"^[A-Z]{3}$"`
	Subject        string            `json:"subject"`
	Policy         string            `json:"policy" enum:"single,split"`
	AmountPaid     int64             `json:"amount_paid" minimum:"0" doc:"By payments that count."`
	AmountRefunded int64             `json:"amount_refunded" minimum:"0"`
	AmountSurplus  int64             `json:"amount_surplus" minimum:"0" doc:"Taken by charges that do not count; is refunded."`
	ExpiresAt      *string           `json:"expires_at" format:"date-time"`
	Metadata       map[string]string `json:"metadata"`
	CheckoutURL    *string           `json:"checkout_url" format:"uri" doc:"The page where the payer pays."`
	Payments       []paymentDoc      `json:"payments" nullable:"false" doc:"All attempts by sequence."`
	CreatedAt      string            `json:"created_at" format:"date-time"`
	UpdatedAt      string            `json:"updated_at" format:"date-time"`
}

func (orderDoc) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNull(s, "metadata")
}

type paymentDoc struct {
	ID               string     `json:"id" pattern:"^pay_[0-9A-HJKMNP-TV-Z]{26}$"`
	OrderNo          string     `json:"order_no" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Sequence         int64      `json:"sequence" minimum:"1" doc:"Which attempt of its order this is."`
	Part             *string    `json:"part"`
	Status           string     `json:"status" enum:"CREATED,PROCESSING,PENDING,UNKNOWN,SUCCEEDED,FAILED,CANCELLED"`
	Effective        bool       `json:"effective" doc:"Its success pays the order."`
	Amount           int64      `json:"amount" minimum:"1" maximum:"9000000000000000"`
	AmountAuthorized int64      `json:"amount_authorized" minimum:"0"`
	Currency         string     `json:"currency" pattern:"^[A-Z]{3}$"`
	Channel          string     `json:"channel"`
	Account          string     `json:"account"`
	Method           string     `json:"method"`
	ChannelNumber    string     `json:"channel_number" doc:"The number that the channel sees."`
	ChannelPaymentID *string    `json:"channel_payment_id" doc:"The channel's own id of the payment."`
	Action           actionDoc  `json:"action" doc:"What the payer has to do next."`
	Failure          failureDoc `json:"failure"`
	UnknownReason    *string    `json:"unknown_reason"`
	NextCheckAt      *string    `json:"next_check_at" format:"date-time" doc:"When the service looks next by itself; null in answers to POST."`
	DeadAt           *string    `json:"dead_at" format:"date-time" doc:"Afterwards the object at the channel can take no money."`
	AmountRefunded   int64      `json:"amount_refunded" minimum:"0"`
	CreatedAt        string     `json:"created_at" format:"date-time"`
	UpdatedAt        string     `json:"updated_at" format:"date-time"`
	SucceededAt      *string    `json:"succeeded_at" format:"date-time"`
}

func (paymentDoc) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNull(s, "failure")
}

type failureDoc struct {
	Code        string  `json:"code"`
	ChannelCode *string `json:"channel_code" doc:"The channel's own word."`
	Message     *string `json:"message" doc:"For people."`
}

// actionDoc is one of the actions below.
type actionDoc struct{}

func (actionDoc) TransformSchema(r huma.Registry, _ *huma.Schema) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		refTo[actionQRCodeDoc](r), refTo[actionRedirectDoc](r), refTo[actionFormDoc](r),
		refTo[actionClientParamsDoc](r), refTo[actionNoneDoc](r),
	}}
}

type actionQRCodeDoc struct {
	Type      string  `json:"type" enum:"qr_code"`
	QRCode    string  `json:"qr_code" doc:"The text of the code."`
	ExpiresAt *string `json:"expires_at" format:"date-time"`
}

type actionRedirectDoc struct {
	Type      string  `json:"type" enum:"redirect"`
	URL       string  `json:"url" format:"uri"`
	ExpiresAt *string `json:"expires_at" format:"date-time"`
}

type actionFormDoc struct {
	Type   string            `json:"type" enum:"form"`
	URL    string            `json:"url" format:"uri"`
	Method string            `json:"method"`
	Fields map[string]string `json:"fields"`
}

type actionClientParamsDoc struct {
	Type   string            `json:"type" enum:"client_params"`
	Params map[string]string `json:"params"`
}

type actionNoneDoc struct {
	Type string `json:"type" enum:"none"`
}

type paymentListDoc struct {
	Data    []paymentDoc `json:"data" nullable:"false"`
	HasMore bool         `json:"has_more"`
	Next    *string      `json:"next" doc:"The cursor for after; null on the last page."`
}

type orderListDoc struct {
	Data    []orderDoc `json:"data" nullable:"false"`
	HasMore bool       `json:"has_more"`
	Next    *string    `json:"next" doc:"The cursor for after; null on the last page."`
}

type problemDoc struct {
	Type           string          `json:"type" format:"uri" doc:"Explains the code."`
	Title          string          `json:"title"`
	Status         int64           `json:"status"`
	Detail         string          `json:"detail"`
	Code           string          `json:"code" doc:"What happened; see docs/errors.md."`
	Retry          string          `json:"retry" enum:"same-key,new-key,never" doc:"What to do with the same intent."`
	SafeNewKey     bool            `json:"safe_new_key" doc:"A new key cannot make the operation happen twice."`
	Operation      string          `json:"operation,omitempty"`
	OperationState string          `json:"operation_state,omitempty"`
	OriginalStatus int64           `json:"original_status,omitempty"`
	RetryAfter     int64           `json:"retry_after,omitempty" doc:"Seconds."`
	Errors         []fieldErrorDoc `json:"errors,omitempty" nullable:"false" doc:"Each wrong member of the body; parameters are written /query/name."`
	Payment        paymentDoc      `json:"payment,omitempty" doc:"The payment that the problem is about."`
	ProvableAt     *string         `json:"provable_at,omitempty" nullable:"true" format:"date-time" doc:"From then on the payment in the way can be proven dead; null: no time can be given."`
	Why            *string         `json:"why,omitempty" nullable:"true" doc:"What is waited for."`
}

type fieldErrorDoc struct {
	Pointer string `json:"pointer" doc:"JSON pointer (RFC 6901)."`
	Message string `json:"message"`
}

// orNull lets named members of an object also be null, which tags can say of
// scalars only.
func orNull(s *huma.Schema, names ...string) *huma.Schema {
	for name, of := range s.Properties {
		if slices.Contains(names, name) {
			s.Properties[name] = &huma.Schema{AnyOf: []*huma.Schema{of, {Type: "null"}}}
		}
	}
	return s
}
