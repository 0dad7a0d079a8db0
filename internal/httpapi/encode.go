package httpapi

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/payonce/payonce"
)

// This file writes objects: always all members, always in one order, null for
// what has no value. The types in schema.go describe the same; a test compares
// them.

// view is what of an object depends on who asks and when.
type view struct {
	now       time.Time // for the expiry of actions; zero: nothing expires
	nextCheck bool      // GET shows next_check_at, answers to POST do not
}

// appendOrder writes an order, with its payments unless withPayments is false.
func (e Encoder) appendOrder(b []byte, o *payonce.Order, payments []*payonce.Payment, withPayments bool, v view) []byte {
	b = appendText(append(b, `{"order_no":`...), o.Key.OrderNo)
	b = appendText(append(b, `,"status":`...), string(o.Status))
	b = appendAmount(append(b, `,"amount":`...), o.Amount)
	b = appendText(append(b, `,"currency":`...), string(o.Currency))
	b = appendText(append(b, `,"subject":`...), o.Subject)
	b = appendText(append(b, `,"policy":`...), string(o.Policy))
	b = appendAmount(append(b, `,"amount_paid":`...), o.AmountPaid)
	b = appendAmount(append(b, `,"amount_refunded":`...), o.AmountRefunded)
	b = appendAmount(append(b, `,"amount_surplus":`...), o.AmountSurplus)
	b = appendTime(append(b, `,"expires_at":`...), o.ExpiresAt)
	b = append(b, `,"metadata":`...)
	if o.Metadata == "" {
		b = append(b, "null"...)
	} else {
		b = append(b, o.Metadata...) // canonical JSON, as it was stored
	}
	b = appendTextOrNull(append(b, `,"checkout_url":`...), e.checkoutURL(o))
	if withPayments {
		b = append(b, `,"payments":[`...)
		for i, p := range payments {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendPayment(b, o, p, v)
		}
		b = append(b, ']')
	}
	b = appendTime(append(b, `,"created_at":`...), o.CreatedAt)
	b = appendTime(append(b, `,"updated_at":`...), o.UpdatedAt)
	return append(b, '}')
}

// appendPayment writes a payment. o is its order, or nil where it is not at
// hand, and then has been looked at already.
func appendPayment(b []byte, o *payonce.Order, p *payonce.Payment, v view) []byte {
	b = appendText(append(b, `{"id":`...), p.ID)
	b = appendText(append(b, `,"order_no":`...), p.Key.OrderNo)
	b = strconv.AppendInt(append(b, `,"sequence":`...), int64(p.Sequence), 10)
	b = appendTextOrNull(append(b, `,"part":`...), p.Part)
	b = appendText(append(b, `,"status":`...), string(p.Status))
	b = strconv.AppendBool(append(b, `,"effective":`...), p.Effective)
	b = appendAmount(append(b, `,"amount":`...), p.Amount)
	b = appendAmount(append(b, `,"amount_authorized":`...), p.AmountAuthorized)
	b = appendText(append(b, `,"currency":`...), string(p.Currency))
	b = appendText(append(b, `,"channel":`...), p.Channel)
	b = appendText(append(b, `,"account":`...), p.Account)
	b = appendText(append(b, `,"method":`...), p.Method)
	b = appendText(append(b, `,"channel_number":`...), p.Number)
	b = appendTextOrNull(append(b, `,"channel_payment_id":`...), p.ChannelPaymentID)
	b = append(b, `,"action":`...)
	if action := o.Shows(p, v.now); action != nil {
		b = appendAction(b, action)
	} else {
		b = append(b, `{"type":"none"}`...)
	}
	b = appendFailure(append(b, `,"failure":`...), p.Failure)
	b = appendTextOrNull(append(b, `,"unknown_reason":`...), p.UnknownReason)
	b = append(b, `,"next_check_at":`...)
	if v.nextCheck {
		b = appendTime(b, p.DueAt)
	} else {
		b = append(b, "null"...)
	}
	b = appendTime(append(b, `,"dead_at":`...), p.DeadAt)
	b = appendAmount(append(b, `,"amount_refunded":`...), p.AmountRefunded)
	b = appendTime(append(b, `,"created_at":`...), p.CreatedAt)
	b = appendTime(append(b, `,"updated_at":`...), p.UpdatedAt)
	b = appendTime(append(b, `,"succeeded_at":`...), p.SucceededAt)
	return append(b, '}')
}

func appendAction(b []byte, a *payonce.Action) []byte {
	b = appendText(append(b, `{"type":`...), a.Type)
	switch a.Type {
	case "qr_code":
		b = appendText(append(b, `,"qr_code":`...), a.QRCode)
		b = appendTime(append(b, `,"expires_at":`...), a.ExpiresAt)
	case "redirect":
		b = appendText(append(b, `,"url":`...), a.URL)
		b = appendTime(append(b, `,"expires_at":`...), a.ExpiresAt)
	case "form":
		b = appendText(append(b, `,"url":`...), a.URL)
		b = appendText(append(b, `,"method":`...), a.Method)
		b = appendTexts(append(b, `,"fields":`...), a.Fields)
	case "client_params":
		b = appendTexts(append(b, `,"params":`...), a.Params)
	}
	return append(b, '}')
}

func appendFailure(b []byte, f *payonce.Failure) []byte {
	if f == nil {
		return append(b, "null"...)
	}
	b = appendText(append(b, `{"code":`...), f.Code)
	b = appendTextOrNull(append(b, `,"channel_code":`...), f.ChannelCode)
	b = appendTextOrNull(append(b, `,"message":`...), f.Message)
	return append(b, '}')
}

// appendList writes a page. items are written by each; last is the id behind the
// cursor, used when there are more.
func appendList(b []byte, n int, each func(b []byte, i int) []byte, more bool, last string) []byte {
	b = append(b, `{"data":[`...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = each(b, i)
	}
	b = strconv.AppendBool(append(b, `],"has_more":`...), more)
	b = append(b, `,"next":`...)
	if more {
		b = appendText(b, base64.RawURLEncoding.EncodeToString([]byte(last)))
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

func appendAmount(b []byte, a payonce.Amount) []byte { return strconv.AppendInt(b, int64(a), 10) }

// timeLayout is RFC 3339 in UTC with microseconds, always six digits.
const timeLayout = "2006-01-02T15:04:05.000000Z"

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return append(t.UTC().AppendFormat(append(b, '"'), timeLayout), '"')
}

func appendTexts(b []byte, m map[string]string) []byte {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = appendText(b, m[name])
	}
	return append(b, '}')
}

func appendTextOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendText(b, s)
}

// appendText writes a JSON string. What is not UTF-8 becomes U+FFFD.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
