package httpapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/payonce/payonce"
)

// TestGoldenPayment pins the members, their order and the spelling of values.
func TestGoldenPayment(t *testing.T) {
	full := inState(payonce.Pending)
	full.Part, full.AmountAuthorized, full.ChannelPaymentID = "p1", 40, "pi_1"
	full.Failure = &payonce.Failure{Code: "declined", ChannelCode: "card_declined", Message: "a \"quoted\" word"}
	full.UnknownReason, full.DeadAt = "timeout", noon.Add(2*time.Hour)
	for _, c := range []struct {
		name string
		p    *payonce.Payment
		v    view
		want string
	}{
		{"all members", withQR(full), view{now: noon, nextCheck: true},
			`{"id":"pay_01JGQ0000000000000000000AA","order_no":"A1","sequence":1,"part":"p1","status":"PENDING","effective":false,` +
				`"amount":100,"amount_authorized":40,"currency":"USD","channel":"stripe","account":"st1","method":"card",` +
				`"channel_number":"0123456789ABCDEFGHIJ","channel_payment_id":"pi_1",` +
				`"action":{"type":"qr_code","qr_code":"https://qr.example/1","expires_at":"2030-01-02T13:00:00.123456Z"},` +
				`"failure":{"code":"declined","channel_code":"card_declined","message":"a \"quoted\" word"},"unknown_reason":"timeout",` +
				`"next_check_at":"2030-01-02T12:01:00.123456Z","dead_at":"2030-01-02T14:00:00.123456Z","amount_refunded":0,` +
				`"created_at":"2030-01-02T12:00:00.123456Z","updated_at":"2030-01-02T12:00:01.123456Z","succeeded_at":null}`},
		{"no values", inState(payonce.Created), view{now: noon},
			`{"id":"pay_01JGQ0000000000000000000AA","order_no":"A1","sequence":1,"part":null,"status":"CREATED","effective":false,` +
				`"amount":100,"amount_authorized":0,"currency":"USD","channel":"stripe","account":"st1","method":"card",` +
				`"channel_number":"0123456789ABCDEFGHIJ","channel_payment_id":null,"action":{"type":"none"},"failure":null,` +
				`"unknown_reason":null,"next_check_at":null,"dead_at":null,"amount_refunded":0,` +
				`"created_at":"2030-01-02T12:00:00.123456Z","updated_at":"2030-01-02T12:00:01.123456Z","succeeded_at":null}`},
	} {
		if got := string(appendPayment(nil, openOrder(), c.p, c.v)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestGoldenOrder(t *testing.T) {
	o := openOrder()
	o.Metadata, o.ExpiresAt = `{"k":"v"}`, noon.Add(time.Hour)
	e := Encoder{Checkout: func(k payonce.OrderKey) string { return "https://pay.example/" + k.OrderNo }}
	head := `{"order_no":"A1","status":"OPEN","amount":100,"currency":"USD","subject":"a book","policy":"single",` +
		`"amount_paid":0,"amount_refunded":0,"amount_surplus":0,"expires_at":"2030-01-02T13:00:00.123456Z","metadata":{"k":"v"},` +
		`"checkout_url":"https://pay.example/A1",`
	tail := `"created_at":"2030-01-02T12:00:00.123456Z","updated_at":"2030-01-02T12:00:00.123456Z"}`
	p := paid()
	want := head + `"payments":[` + string(appendPayment(nil, o, p, view{})) + `],` + tail
	if got := string(e.appendOrder(nil, o, []*payonce.Payment{p}, true, view{})); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got, want := string(e.EventData(o, nil)), `{"order":`+head+tail+`,"payment":null,"refund":null,"case":null}`; got != want {
		t.Errorf("event:\n got %s\nwant %s", got, want)
	}
	if got, part := string(e.EventData(o, p)), `"payment":{"id":"pay_`; !strings.Contains(got, part) || !json.Valid([]byte(got)) {
		t.Errorf("event of a payment: %s", got)
	}
}

// TestActions: each type has exactly its members, and an action is shown only
// while the payer can use it.
func TestActions(t *testing.T) {
	ends := noon.Add(time.Hour)
	for want, a := range map[string]*payonce.Action{
		`{"type":"qr_code","qr_code":"q","expires_at":null}`:                               {Type: "qr_code", QRCode: "q"},
		`{"type":"redirect","url":"https://x","expires_at":"2030-01-02T13:00:00.123456Z"}`: {Type: "redirect", URL: "https://x", ExpiresAt: ends},
		`{"type":"form","url":"https://x","method":"POST","fields":{"a":"1","b":"<&>"}}`:   {Type: "form", URL: "https://x", Method: "POST", Fields: map[string]string{"b": "<&>", "a": "1"}, ExpiresAt: ends},
		`{"type":"client_params","params":{"client_secret":"s"}}`:                          {Type: "client_params", Params: map[string]string{"client_secret": "s"}},
	} {
		if got := string(appendAction(nil, a)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for name, c := range map[string]struct {
		change func(*payonce.Order, *payonce.Payment)
		want   bool
	}{
		"pending":         {func(*payonce.Order, *payonce.Payment) {}, true},
		"expired":         {func(_ *payonce.Order, p *payonce.Payment) { p.Action.ExpiresAt = noon }, false},
		"past dead_at":    {func(_ *payonce.Order, p *payonce.Payment) { p.Action.ExpiresAt = time.Time{}; p.DeadAt = noon }, false},
		"given up":        {func(_ *payonce.Order, p *payonce.Payment) { p.GivenUp = true }, false},
		"superseded":      {func(_ *payonce.Order, p *payonce.Payment) { p.Superseded = true }, false},
		"unknown":         {func(_ *payonce.Order, p *payonce.Payment) { p.Status = payonce.Unknown }, false},
		"order closing":   {func(o *payonce.Order, _ *payonce.Payment) { o.Status = payonce.OrderClosing }, false},
		"order expired":   {func(o *payonce.Order, _ *payonce.Payment) { o.ExpiresAt = noon }, false},
		"order part paid": {func(o *payonce.Order, _ *payonce.Payment) { o.Status = payonce.OrderPartiallyPaid }, true},
	} {
		o, p := openOrder(), withQR(inState(payonce.Pending))
		c.change(o, p)
		if got := o.Shows(p, noon) != nil; got != c.want {
			t.Errorf("%s: shown %v", name, got)
		}
	}
}

// TestSchemaAgrees: the described types have the members of the written objects
// in the same order, and the decoder's tables have those of the request types.
func TestSchemaAgrees(t *testing.T) {
	o := openOrder()
	p := withQR(inState(payonce.Pending))
	p.Failure = &payonce.Failure{}
	payment := appendPayment(nil, o, p, view{})
	problem, _ := Encoder{}.problem(payonce.CodeInternal, "").MarshalJSON()
	for _, c := range []struct {
		written []byte
		doc     reflect.Type
		under   string
	}{
		{payment, reflect.TypeFor[paymentDoc](), ""},
		{payment, reflect.TypeFor[actionQRCodeDoc](), "action"},
		{payment, reflect.TypeFor[failureDoc](), "failure"},
		{Encoder{}.appendOrder(nil, o, nil, true, view{}), reflect.TypeFor[orderDoc](), ""},
		{appendList(nil, 0, nil, true, "x"), reflect.TypeFor[paymentListDoc](), ""},
		{appendList(nil, 0, nil, false, ""), reflect.TypeFor[orderListDoc](), ""},
		{problem, reflect.TypeFor[problemDoc](), ""},
	} {
		got, want := memberNames(t, c.written, c.under), tagNames(c.doc, false)
		if got != want {
			t.Errorf("%s: written %s, described %s", c.doc.Name(), got, want)
		}
	}
	agree(t, paymentMembers)
	agree(t, payerMembers)
	agree(t, orderMembers)
	agree(t, amendMembers)
}

func agree[T any](t *testing.T, members []member[T]) {
	t.Helper()
	var read, required []string
	for _, m := range members {
		read = append(read, m.name)
		if m.required {
			required = append(required, m.name)
		}
	}
	of := reflect.TypeFor[T]()
	if got, want := strings.Join(read, " "), tagNames(of, true); got != want {
		t.Errorf("%s: decoder reads %s, described %s", of.Name(), got, want)
	}
	s := newRegistry().Schema(of, false, "")
	if got, want := strings.Join(required, " "), strings.Join(s.Required, " "); got != want {
		t.Errorf("%s: decoder requires %s, described %s", of.Name(), got, want)
	}
}

// tagNames lists the JSON names of a type's fields; of an answer only those that
// are always there.
func tagNames(of reflect.Type, optional bool) string {
	var all []string
	for i := range of.NumField() {
		name, rest, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "" && (optional || rest != "omitempty") {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

func memberNames(t *testing.T, object []byte, under string) string {
	t.Helper()
	var outer map[string]json.RawMessage
	if under != "" {
		if err := json.Unmarshal(object, &outer); err != nil {
			t.Fatal(err)
		}
		object = outer[under]
	}
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token()
	var all []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name.(string))
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(all, " ")
}

// TestTextRoundTrip: any text comes back from encoding/json as it was, with
// U+FFFD for what is not UTF-8.
func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		var out string
		if err := json.Unmarshal(appendText(nil, in), &out); err != nil {
			t.Fatal(err)
		}
		want := in
		if !utf8.ValidString(in) {
			want = string([]rune(in))
		}
		if out != want {
			t.Fatalf("%q became %q", in, out)
		}
	})
}
