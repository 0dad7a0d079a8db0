package stripe

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// maxDepth bounds the nesting of an answer; an expanded intent stays below 12.
const maxDepth = 64

var errDepth = errors.New("stripe: nested too deep")

// decode reads one JSON object. Amounts are declared as *int64, so that a
// fraction, an exponent, a string or an overflow is an error.
func decode(b []byte, v any) error {
	if len(b) > maxBody {
		return errors.New("stripe: too large")
	}
	if t := bytes.TrimLeft(b, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return errors.New("stripe: no JSON object")
	}
	if deeper(b, maxDepth) {
		return errDepth
	}
	return json.Unmarshal(b, v)
}

// deeper reports whether brackets outside strings nest deeper than limit.
func deeper(b []byte, limit int) bool {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// intent is what this package reads of a PaymentIntent.
type intent struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	Status           string            `json:"status"`
	Amount           *int64            `json:"amount"`
	AmountReceived   *int64            `json:"amount_received"`
	AmountCapturable *int64            `json:"amount_capturable"`
	Currency         string            `json:"currency"`
	Livemode         *bool             `json:"livemode"`
	Metadata         map[string]string `json:"metadata"`
	ClientSecret     string            `json:"client_secret"`
	LatestCharge     chargeRef         `json:"latest_charge"`
	LastPaymentError *apiError         `json:"last_payment_error"`
	NextAction       *struct {
		RedirectToURL *struct {
			URL string `json:"url"`
		} `json:"redirect_to_url"`
	} `json:"next_action"`
}

// valid reports whether the object is an intent that can be named.
func (in *intent) valid() bool {
	return in != nil && in.Object == "payment_intent" && validID("pi_", in.ID)
}

// chargeRef is a charge, as an id or expanded.
type chargeRef struct {
	ID      string
	Created time.Time
}

// UnmarshalJSON takes null, an id, or an object.
func (c *chargeRef) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.ID)
	}
	var o *struct {
		ID      string `json:"id"`
		Created int64  `json:"created"`
	}
	if err := json.Unmarshal(b, &o); err != nil || o == nil {
		return err
	}
	c.ID = o.ID
	if o.Created > 0 {
		c.Created = time.Unix(o.Created, 0).UTC()
	}
	return nil
}

// apiError is Stripe's error object. Its message is never used: it may hold
// what the payer typed.
type apiError struct {
	Type          string  `json:"type"`
	Code          string  `json:"code"`
	DeclineCode   string  `json:"decline_code"`
	Param         string  `json:"param"`
	PaymentIntent *intent `json:"payment_intent"`
}

// decodeError returns nil when the body is not an error of Stripe.
func decodeError(b []byte) *apiError {
	var doc struct {
		Error *apiError `json:"error"`
	}
	if err := decode(b, &doc); err != nil || doc.Error == nil || doc.Error.Type == "" {
		return nil
	}
	return doc.Error
}
