package prove

import (
	"context"
	"fmt"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

const (
	codesAccount = "codes1"
	cardsAccount = "cards1"
	currency     = payonce.Currency("CNY")
	life         = 15 * time.Minute
)

// codes is a channel that the payer drives: a code is invisible until it is
// scanned, a form is signed without a call and exists once it is opened.
type codes struct {
	silent
	w      *world
	trades map[string]*trade
	order  []string // numbers, as they came
}

// trade is what the channel knows of a number.
type trade struct {
	number string
	state  string // offered, waiting, paid, closed
	dead   time.Time
	closed time.Time
	amount payonce.Amount
	body   string
}

// Account implements channel.Adapter.
func (c *codes) Account() string { return codesAccount }

// Methods implements channel.Adapter.
func (c *codes) Methods() map[string]channel.Capabilities {
	return map[string]channel.Capabilities{
		"qr":   {OnlyByAction: true, DedupeWindow: 24 * time.Hour, Life: life},
		"page": {SelfSigned: true, Life: life},
	}
}

// Compose implements channel.Adapter.
func (c *codes) Compose(i channel.Intent) ([]byte, error) {
	return fmt.Appendf(nil, "%s %d %d", i.Number, i.Amount, i.DeadAt.Unix()), nil
}

// Sign implements channel.Signer.
func (c *codes) Sign(p payonce.Payment) (*payonce.Action, error) {
	return &payonce.Action{Type: "form", URL: "https://pay.example", Method: "POST", Fields: map[string]string{"n": p.Number}, ExpiresAt: p.DeadAt}, nil
}

func (c *codes) reply(number string, f payonce.Fact) channel.Answer {
	f.Number, f.ServerDate = number, c.w.now
	return channel.Answer{Fact: f, Raw: []byte(f.Kind.String())}
}

// Begin implements channel.Adapter: the number gets a code.
func (c *codes) Begin(_ context.Context, k channel.Call) channel.Answer {
	p := k.Payment
	return c.w.send(&call{step: "begin", payment: p, keyNo: k.KeyNo, variants: []variant{lostRequest, delayed, notSent, refused},
		effect: func(v variant) channel.Answer { return c.begin(&p, v) }})
}

func (c *codes) begin(p *payonce.Payment, v variant) channel.Answer {
	t := c.trades[p.Number]
	refusal := payonce.Fact{Kind: payonce.StateRefused, Failure: &payonce.Failure{Code: "refused", ChannelCode: "no"}}
	switch {
	case v == refused, t == nil && !c.w.now.Before(p.DeadAt):
		return c.reply(p.Number, refusal)
	case t == nil:
		t = c.open(p.Number, p.DeadAt, p.Amount, "offered")
		t.body = string(p.Request)
		if c.w.script.lie == paysAnyone {
			c.pay(t, false)
		}
	case t.body != "" && t.body != string(p.Request):
		c.w.fail("I04-same-bytes", "%s was sent with other bytes", p.Number)
	case t.state == "paid" || t.state == "closed":
		return c.reply(p.Number, payonce.Fact{Reason: "trade-has-ended"})
	}
	return c.reply(p.Number, payonce.Fact{Kind: payonce.StateWaiting, Action: &payonce.Action{Type: "qr_code", QRCode: "qr:" + p.Number, ExpiresAt: p.DeadAt}})
}

func (c *codes) open(number string, dead time.Time, amount payonce.Amount, state string) *trade {
	t := &trade{number: number, state: state, dead: dead, amount: amount}
	c.trades[number] = t
	c.order = append(c.order, number)
	return t
}

// Query implements channel.Adapter.
func (c *codes) Query(_ context.Context, k channel.Call) channel.Answer {
	number := k.Payment.Number
	return c.w.send(&call{step: "query", payment: k.Payment, variants: []variant{lostRequest}, effect: func(variant) channel.Answer {
		t := c.trades[number]
		c.expire(t)
		switch {
		case t == nil || t.state == "offered":
			return c.reply(number, payonce.Fact{Kind: payonce.StateAbsent})
		case t.state == "waiting":
			return c.reply(number, payonce.Fact{Kind: payonce.StateWaiting})
		case t.state == "paid" && c.w.script.lie != forgetsPaid:
			return c.settled(t)
		}
		return c.reply(number, payonce.Fact{Kind: payonce.StateDead})
	}})
}

func (c *codes) settled(t *trade) channel.Answer {
	return c.reply(t.number, payonce.Fact{Kind: payonce.StateSettled, PaymentRef: "t-" + t.number, Amount: t.amount, Currency: currency})
}

func (c *codes) expire(t *trade) {
	if t != nil && t.state == "waiting" && !c.w.now.Before(t.dead) {
		t.state, t.closed = "closed", t.dead
	}
}

// Close implements channel.Adapter. A number that was never scanned cannot be
// closed, one that is paid cannot either.
func (c *codes) Close(_ context.Context, k channel.Call) channel.Answer {
	number := k.Payment.Number
	return c.w.send(&call{step: "close", payment: k.Payment, variants: []variant{lostRequest, delayed}, effect: func(variant) channel.Answer {
		t := c.trades[number]
		c.expire(t)
		switch {
		case t == nil || t.state == "offered":
			return c.reply(number, payonce.Fact{Kind: payonce.StateAbsent})
		case t.state == "paid":
			return c.reply(number, payonce.Fact{Reason: "status-error"})
		}
		if t.state != "closed" && c.w.script.lie != closesNot {
			t.state, t.closed = "closed", c.w.now
		}
		return c.reply(number, payonce.Fact{Kind: payonce.StateDead})
	}})
}

// payable reports whether a payer who holds the action of a number can still make
// the channel take money without any fault of its own.
func (c *codes) payable(number string, dead time.Time) bool {
	t := c.trades[number]
	c.expire(t)
	if t == nil { // a form that was never opened
		return c.w.forms[number] && c.w.shown[number] != nil && c.w.now.Before(dead)
	}
	return (t.state == "waiting" || t.state == "offered") && c.w.shown[number] != nil && c.w.now.Before(t.dead)
}

// scan is the payer who opens what he was shown.
func (c *codes) scan(p *payonce.Payment) {
	if t := c.trades[p.Number]; t != nil {
		t.state = "waiting"
		return
	}
	c.open(p.Number, p.DeadAt, p.Amount, "waiting")
}

func (c *codes) pay(t *trade, late bool) {
	t.state = "paid"
	c.w.take(taken{account: codesAccount, number: t.number, ref: "t-" + t.number, amount: t.amount, late: late})
	if c.w.script.lie == takesTwice {
		c.w.money = append(c.w.money, taken{account: codesAccount, number: t.number, ref: "u-" + t.number, amount: t.amount, at: c.w.now})
	}
}
