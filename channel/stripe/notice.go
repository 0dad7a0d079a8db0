package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// Errors of ReadNotice, for the log and the doctor.
var (
	ErrNotSigned   = errors.New("stripe notice: not exactly one Stripe-Signature header")
	ErrHeader      = errors.New("stripe notice: the Stripe-Signature header is malformed")
	ErrSignature   = errors.New("stripe notice: no signature matches")
	ErrTimestamp   = errors.New("stripe notice: the timestamp is more than five minutes off")
	ErrEvent       = errors.New("stripe notice: the body is not an event")
	ErrEnvironment = errors.New("stripe notice: the event is of the other mode")
	ErrAccount     = errors.New("stripe notice: the event is of another account")
)

const (
	// tolerance holds in both directions.
	tolerance = 300 * time.Second
	maxHeader = 4096
)

// ReadNotice verifies the signature over the raw body and reads the event.
// Intent events become facts; events about charges and refunds name their
// intent and leave the state to a query; any other genuine event is a notice
// without number and knowledge.
func (a *Adapter) ReadNotice(h http.Header, body []byte) (channel.Notice, error) {
	if err := verify(h, body, a.cfg.WebhookSecrets, a.now()); err != nil {
		return channel.Notice{}, err
	}
	var ev struct {
		ID       string `json:"id"`
		Object   string `json:"object"`
		Type     string `json:"type"`
		Livemode *bool  `json:"livemode"`
		Account  string `json:"account"`
		Data     struct {
			Object json.RawMessage `json:"object"`
		} `json:"data"`
	}
	if err := decode(body, &ev); err != nil || ev.Object != "event" || !validID("evt_", ev.ID) || !validType(ev.Type) {
		return channel.Notice{}, ErrEvent
	}
	if ev.Livemode == nil || *ev.Livemode != a.live() {
		return channel.Notice{}, ErrEnvironment
	}
	if own := a.stripeAccount.Load(); ev.Account != "" && (own == nil || ev.Account != *own) {
		return channel.Notice{}, ErrAccount
	}
	n := channel.Notice{EventID: ev.ID, Type: ev.Type}
	n.Fact = payonce.Fact{Source: "notice", Account: a.cfg.Account}
	family, _, _ := strings.Cut(ev.Type, ".")
	var err error
	switch family {
	case "payment_intent":
		err = a.intentEvent(&n, ev.Data.Object)
	case "charge", "refund":
		err = relatedEvent(&n, ev.Data.Object)
	default:
		n.Fact.Reason = "other-event"
	}
	n.Number = n.Fact.Number
	return n, err
}

func validType(s string) bool {
	return len(s) <= 100 && strings.Contains(s, ".") && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_.") == ""
}

// intentEvent classifies the intent in the event, as it was when the event was
// made.
func (a *Adapter) intentEvent(n *channel.Notice, raw []byte) error {
	in := new(intent)
	if err := decode(raw, in); err != nil || !in.valid() {
		return ErrEvent
	}
	a.state(&n.Fact, in)
	untouched := in.Status == "requires_payment_method" || in.Status == "requires_confirmation"
	switch {
	case n.Type == "payment_intent.payment_failed" && (untouched || in.Status == "requires_action" || in.Status == "canceled"):
		n.Fact.Kind, n.Fact.Reason, n.Fact.Action = payonce.StateDeclined, "", nil
		n.Fact.Failure = failure("declined", in.LastPaymentError)
	case n.Type == "payment_intent.payment_failed":
		n.Fact = payonce.Fact{Source: n.Fact.Source, Account: n.Fact.Account, Object: n.Fact.Object, Number: n.Fact.Number, Reason: "contradiction"}
	case n.Type == "payment_intent.created" && untouched:
		n.Fact.Kind, n.Fact.Reason, n.Fact.Failure = payonce.StateUnconfirmed, "", nil
	}
	return nil
}

// relatedEvent names the intent that a charge, refund or dispute belongs to.
func relatedEvent(n *channel.Notice, raw []byte) error {
	var o struct {
		PaymentIntent json.RawMessage   `json:"payment_intent"`
		Metadata      map[string]string `json:"metadata"`
	}
	if err := decode(raw, &o); err != nil {
		return ErrEvent
	}
	id := chargeRef{} // the same shapes: null, an id, or the object
	if len(o.PaymentIntent) > 0 && id.UnmarshalJSON(o.PaymentIntent) == nil && validID("pi_", id.ID) {
		n.Fact.Object = id.ID
	}
	n.Fact.Number = o.Metadata[metaNumber]
	n.Fact.Reason = "related-event"
	return nil
}

// verify checks Stripe-Signature over the bytes as received. The header must
// come once, hold one t and at least one v1; other schemes are ignored. It is
// never weaker than the official verifier, and also refuses the future.
func verify(h http.Header, body []byte, secrets []string, now time.Time) error {
	values := h.Values("Stripe-Signature")
	if len(values) != 1 || values[0] == "" {
		return ErrNotSigned
	}
	if len(values[0]) > maxHeader || len(body) > maxBody {
		return ErrHeader
	}
	stamp, sigs, err := parseSignature(values[0])
	if err != nil {
		return err
	}
	if len(sigs) == 0 || !matches(secrets, stamp, body, sigs) {
		return ErrSignature
	}
	sec, _ := strconv.ParseInt(stamp, 10, 64)
	if d := now.Sub(time.Unix(sec, 0)); d > tolerance || d < -tolerance {
		return ErrTimestamp
	}
	return nil
}

// parseSignature splits t=…,v1=…,…. Every part has exactly one equals sign.
func parseSignature(s string) (stamp string, sigs [][]byte, err error) {
	for part := range strings.SplitSeq(s, ",") {
		k, v, ok := strings.Cut(part, "=")
		if !ok || strings.Contains(v, "=") {
			return "", nil, ErrHeader
		}
		switch k {
		case "t":
			if stamp != "" || !validStamp(v) {
				return "", nil, ErrHeader
			}
			stamp = v
		case "v1":
			if sig, err := hex.DecodeString(v); err == nil && len(sig) == sha256.Size && v == strings.ToLower(v) {
				sigs = append(sigs, sig)
			}
		}
	}
	if stamp == "" {
		return "", nil, ErrHeader
	}
	return stamp, sigs, nil
}

// validStamp accepts plain decimal seconds of up to twelve digits, without a
// leading zero: the text is what was signed.
func validStamp(s string) bool {
	return s != "" && len(s) <= 12 && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}

// matches compares every signature with every secret in constant time.
func matches(secrets []string, stamp string, body []byte, sigs [][]byte) bool {
	found := false
	for _, secret := range secrets {
		m := hmac.New(sha256.New, []byte(secret))
		m.Write([]byte(stamp))
		m.Write([]byte{'.'})
		m.Write(body)
		want := m.Sum(nil)
		for _, sig := range sigs {
			if hmac.Equal(want, sig) {
				found = true
			}
		}
	}
	return found
}
