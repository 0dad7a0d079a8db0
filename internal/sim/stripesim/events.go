package stripesim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/payonce/payonce/internal/sim/core"
)

// eventDays is how long events are listed.
const eventDays = 30 * 24 * 3600

// emitIntent, emitCharge and emitRefund make the event of a change with the
// object as it now is. Only inside Update.
func (s *Stripe) emitIntent(c *call, kind string, i *intent) {
	s.emit(c, kind, i.Number, i.ID, s.renderIntent(i, false))
}

func (s *Stripe) emitCharge(c *call, kind string, ch *charge) {
	s.emit(c, kind, s.numberOf(ch.Intent), ch.ID, s.renderCharge(ch))
}

func (s *Stripe) emitRefund(c *call, kind string, r *refund) {
	s.emit(c, kind, s.numberOf(r.Intent), r.ID, s.renderRefund(r))
}

// wireEvent is an event as it travels.
type wireEvent struct {
	ID         string `json:"id"`
	Object     string `json:"object"`
	APIVersion string `json:"api_version"`
	Created    int64  `json:"created"`
	Data       struct {
		Object any `json:"object"`
	} `json:"data"`
	Livemode bool `json:"livemode"`
	Pending  int  `json:"pending_webhooks"`
	Request  struct {
		ID  *string `json:"id"`
		Key *string `json:"idempotency_key"`
	} `json:"request"`
	Type string `json:"type"`
}

// The switches of Stripe's webhooks: one change can make two events, and no
// order of delivery is promised.
const (
	switchTwins = "twin_events"
	switchOrder = "event_order"
)

func (s *Stripe) emit(c *call, kind, number, objectID string, o any) {
	s.emitOne(c, kind, number, objectID, o)
	if s.w.Switch(Channel, switchTwins) == "on" {
		s.emitOne(c, kind, number, objectID, o)
	}
}

func (s *Stripe) emitOne(c *call, kind, number, objectID string, o any) {
	e := wireEvent{ID: s.w.ID("evt_"), Object: "event", APIVersion: Version, Created: s.now(), Type: kind}
	seq := s.w.Sequence()
	if c.change == 0 {
		c.change = seq
	}
	e.Data.Object = o
	e.Request.ID, e.Request.Key = orNull(c.request), orNull(c.key)
	targets := s.targets(kind)
	e.Pending = len(targets)
	body, err := json.Marshal(e)
	if err != nil {
		panic("stripesim: event: " + err.Error()) // objects of ours always render
	}
	s.eventOrder = append(s.eventOrder, e.ID)
	c.posted = append(c.posted, s.w.Post(core.Notice{
		Seq: seq, Channel: Channel, Number: number, Event: e.ID, Type: kind, Object: objectID,
		Change: c.change, Targets: targets,
	}, body, s.shuffled(seq, s.noticeFault(c, kind, number, len(targets)))))
}

// shuffled holds an event back for up to a quarter of a second, which follows
// from the seed, when the order is to be broken and no fault is at work.
func (s *Stripe) shuffled(seq int64, f *core.Fault) *core.Fault {
	if f != nil || s.w.Switch(Channel, switchOrder) != "shuffled" {
		return f
	}
	ms, err := strconv.ParseInt(s.w.Seed.HexOf("stripe event order", seq, 2), 16, 64)
	if err != nil {
		panic("stripesim: " + err.Error()) // two hexadecimal digits
	}
	return &core.Fault{Name: core.Late, DelayMS: ms + 1}
}

// noticeFault takes a fault once for all notices of a change: what a test
// calls "the notice of the payment" is several events here. The one that says
// only that an intent exists does not use up a fault that has a count.
func (s *Stripe) noticeFault(c *call, kind, number string, targets int) *core.Fault {
	switch {
	case targets == 0:
		return nil
	case kind == "payment_intent.created":
		return s.w.TakeLasting(Channel, core.OpNotice, number)
	case !c.faultTaken:
		c.faultTaken = true
		c.noticeFault = s.w.TakeFault(Channel, core.OpNotice, number)
	}
	return c.noticeFault
}

// signature is the Stripe-Signature of a body: HMAC-SHA256 with the whole
// secret, prefix included, over the time, a dot and the raw bytes.
func signature(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// Request implements core.Postman.
func (s *Stripe) Request(ctx context.Context, n core.Notice, endpoint string, t core.Target, body []byte, f *core.Fault) (*http.Request, error) {
	secret := ""
	s.w.View(func() { secret = s.endpointSecret(endpoint) })
	if secret == "" {
		return nil, errors.New("the endpoint was deleted")
	}
	switch {
	case f.Is(core.BadSignature):
		secret = "whsec_of_somebody_else"
	case f.Is(core.Truncated):
		body = body[:len(body)/2]
	case f.Is(core.WrongAmount), f.Is(core.ForeignAccount):
		body = distort(body, f)
	}
	if endpoint == startEndpoint && s.webhook != "" {
		t.URL = s.webhook // a later start may have been given another address
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("webhook %s: %w", t.URL, err)
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	// The receiver checks the age of t with its own, real clock.
	req.Header.Set("Stripe-Signature", signature(secret, s.w.RealNow(), body))
	return req, nil
}

// Acknowledged implements core.Postman: any 2xx.
func (s *Stripe) Acknowledged(status int, _ []byte) bool { return status/100 == 2 }

// gaps double from five seconds to twelve hours and end after three days.
var gaps = func() []time.Duration {
	var list []time.Duration
	var sum time.Duration
	for gap := 5 * time.Second; sum+gap <= 72*time.Hour; gap = min(2*gap, 12*time.Hour) {
		list = append(list, gap)
		sum += gap
	}
	return list
}()

// Gaps implements core.Postman.
func (s *Stripe) Gaps() []time.Duration { return gaps }

// Targets are today's addresses of a notice, for a resend.
func (s *Stripe) Targets(n core.Notice) map[string]core.Target { return s.targets(n.Type) }

// eventBody reads a stored event. Like everything that is read under the lock
// it is waited for before the call is answered.
func (s *Stripe) eventBody(id string) (json.RawMessage, bool) {
	n, ref := s.w.NoticeOf(id)
	if n == nil || n.Channel != Channel {
		return nil, false
	}
	body, err := s.w.Journal().Read(ref)
	return body, err == nil
}

func (s *Stripe) getEvent(c *call) *result {
	body, found := s.eventBody(c.id)
	if !found {
		return fail(missing("event", c.id, "id"))
	}
	return ok(body)
}

func (s *Stripe) listEvents(c *call) *result {
	types := c.params.list("types")
	if t := c.params.get("type"); t != "" {
		types = append(types, t)
	}
	delivered := c.params.get("delivery_success")
	oldest := s.now() - eventDays
	s.eventOrder = slices.DeleteFunc(s.eventOrder, func(id string) bool { // trimmed ones
		n, _ := s.w.NoticeOf(id)
		return n == nil
	})
	return listOf(c, s.eventOrder, "/v1/events", func(id string) (any, int64, bool) {
		n, _ := s.w.NoticeOf(id)
		switch {
		case n.Created < oldest,
			len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return matches(t, n.Type) }),
			delivered == "true" && !n.Acknowledged,
			delivered == "false" && n.Acknowledged:
			return nil, 0, false
		}
		body, found := s.eventBody(id)
		return body, n.Created, found
	})
}
