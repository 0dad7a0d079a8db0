package prove

import (
	"context"
	"fmt"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// cards is a channel of prepared objects: create, then confirm. It keeps answers
// under idempotency keys, as such channels do: a repeat hears what the first one
// heard, whatever happened since.
type cards struct {
	silent
	w       *world
	objects []*object
	byKey   map[string]channel.Answer
}

// object is an intent at the channel.
type object struct {
	id, number string
	state      string // new, action, declined, paid, dead
	hot        bool   // somebody tried to pay it
	closed     time.Time
	amount     payonce.Amount
	body       string
}

// Account implements channel.Adapter.
func (c *cards) Account() string { return cardsAccount }

// Methods implements channel.Adapter.
func (c *cards) Methods() map[string]channel.Capabilities {
	return map[string]channel.Capabilities{"card": {Prepared: true, ReusedAfterDecline: true, DedupeWindow: 24 * time.Hour, Life: 2 * life}}
}

// Compose implements channel.Adapter.
func (c *cards) Compose(i channel.Intent) ([]byte, error) {
	return fmt.Appendf(nil, "%s %d", i.Number, i.Amount), nil
}

func (c *cards) find(id string) *object {
	for _, o := range c.objects {
		if o.id == id {
			return o
		}
	}
	return nil
}

func (c *cards) answer(o *object) channel.Answer {
	f := payonce.Fact{Object: o.id, Number: o.number, Amount: o.amount, Currency: currency, ServerDate: c.w.now}
	switch o.state {
	case "new":
		f.Kind = payonce.StateUnconfirmed
	case "action":
		f.Kind, f.Action = payonce.StateWaiting, &payonce.Action{Type: "redirect", URL: "https://bank.example/" + o.id}
	case "declined":
		f.Kind, f.Failure = payonce.StateDeclined, &payonce.Failure{Code: "declined", ChannelCode: "generic_decline"}
	case "paid":
		f.Kind, f.PaymentRef = payonce.StateSettled, o.id
	case "dead":
		f.Kind = payonce.StateDead
	}
	return channel.Answer{Fact: f, Raw: []byte(o.state)}
}

// once answers under a key: the first answer is kept for every repeat.
func (c *cards) once(key string, v variant, f func() channel.Answer) channel.Answer {
	if ans, ok := c.byKey[key]; ok {
		return ans
	}
	ans := channel.Answer{Fact: payonce.Fact{Reason: "http-5xx"}, KeySpent: true, Raw: []byte("500")}
	if v != spent {
		ans = f()
	}
	c.byKey[key] = ans
	return ans
}

// Prepare implements channel.Preparer.
func (c *cards) Prepare(_ context.Context, k channel.Call) channel.Answer {
	p := k.Payment
	return c.w.send(&call{step: "prepare", payment: p, keyNo: k.KeyNo, variants: []variant{lostRequest, delayed, notSent, spent},
		effect: func(v variant) channel.Answer {
			return c.once(fmt.Sprintf("%s-create-%d", p.Number, k.KeyNo), v, func() channel.Answer {
				o := &object{id: fmt.Sprintf("obj-%s-%d", p.Number, k.KeyNo), number: p.Number, state: "new", amount: p.Amount, body: string(p.Request)}
				c.objects = append(c.objects, o)
				return c.answer(o)
			})
		}})
}

// Begin implements channel.Adapter: the object is confirmed.
func (c *cards) Begin(_ context.Context, k channel.Call) channel.Answer {
	p := k.Payment
	return c.w.send(&call{step: "begin", payment: p, keyNo: k.KeyNo,
		variants: []variant{lostRequest, delayed, notSent, refused, spent, declines, challenge},
		effect: func(v variant) channel.Answer {
			return c.once(fmt.Sprintf("%s-confirm-%d", p.Number, k.KeyNo), v, func() channel.Answer { return c.confirm(&p, v) })
		}})
}

func (c *cards) confirm(p *payonce.Payment, v variant) channel.Answer {
	o := c.find(p.ObjectID)
	if o == nil {
		return lost("no-object")
	}
	if o.body != string(p.Request) {
		c.w.fail("I04-same-bytes", "%s was confirmed with other bytes", p.Number)
	}
	if v == refused {
		return channel.Answer{Fact: payonce.Fact{Kind: payonce.StateRefused, Number: o.number, ServerDate: c.w.now,
			Failure: &payonce.Failure{Code: "refused", ChannelCode: "no"}}, Raw: []byte("refused")}
	}
	if o.state == "new" || o.state == "declined" {
		o.hot = true
		switch v {
		case declines:
			o.state = "declined"
		case challenge:
			o.state = "action"
		default:
			c.pay(o, false)
		}
	}
	return c.answer(o)
}

func (c *cards) pay(o *object, late bool) {
	o.state = "paid"
	c.w.take(taken{account: cardsAccount, number: o.number, ref: o.id, amount: o.amount, late: late})
}

// Query implements channel.Adapter.
func (c *cards) Query(_ context.Context, k channel.Call) channel.Answer {
	id := k.Payment.ObjectID
	return c.w.send(&call{step: "query", payment: k.Payment, variants: []variant{lostRequest}, effect: func(variant) channel.Answer {
		if o := c.find(id); o != nil {
			return c.answer(o)
		}
		return lost("no-object")
	}})
}

// Close implements channel.Adapter: the object is cancelled.
func (c *cards) Close(_ context.Context, k channel.Call) channel.Answer {
	id := k.Payment.ObjectID
	return c.w.send(&call{step: "close", payment: k.Payment, variants: []variant{lostRequest, delayed}, effect: func(variant) channel.Answer {
		o := c.find(id)
		if o == nil {
			return lost("no-object")
		}
		if o.state != "paid" && o.state != "dead" {
			o.state, o.closed = "dead", c.w.now
		}
		return c.answer(o)
	}})
}
