package prove

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// call is one request to a channel.
type call struct {
	step     string // prepare, begin, query, close
	payment  payonce.Payment
	keyNo    int
	variants []variant
	effect   func(variant) channel.Answer
}

// packet is a request whose caller has given up, and which may arrive yet.
type packet struct {
	call *call
	sent time.Time
}

// taken is one charge on the channels' books. Late money was taken although the
// channel had said that it would not be.
type taken struct {
	account, number, ref string
	amount               payonce.Amount
	late                 bool
	at                   time.Time
}

// post is a message of a channel that waits to be delivered, again and again until
// it was acknowledged.
type post struct {
	account string
	notice  channel.Notice
	done    bool
	doing   bool
	again   bool // acknowledged, and sent once more
}

func lost(reason string) channel.Answer {
	return channel.Answer{Fact: payonce.Fact{Reason: reason}, Err: errors.New(reason)}
}

// send takes a request over the network: it leaves, it has its effect, its answer
// comes back. Each of them is a step, and each may be lost.
func (w *world) send(c *call) channel.Answer {
	w.leaves(c)
	var ans channel.Answer
	switch v := w.park(step{kind: "send", what: c.step + " " + c.payment.Number[:4], variants: c.variants, call: c}); v {
	case lostRequest:
		ans = lost("connection-lost")
	case delayed:
		ans = lost("timeout")
		w.later(c)
	case notSent:
		ans = channel.Answer{Fact: payonce.Fact{Kind: payonce.StateNotSent}, Raw: []byte("not sent")}
	default:
		ans = c.effect(v)
		w.told(digestOf(&ans))
		if w.park(step{kind: "answer", what: c.step + " " + ans.Kind.String(), variants: []variant{lostAnswer}}) == lostAnswer {
			ans = lost("connection-lost")
		}
	}
	w.told(digestOf(&ans))
	return ans
}

// digestOf tells answers apart; on its way an answer is part of the state.
func digestOf(a *channel.Answer) digest {
	return digestStart.num(int64(a.Kind)).text(a.Object).text(a.Reason).text(a.PaymentRef).flag(a.KeySpent).time(a.ServerDate)
}

// later keeps a request in the network after its caller has given up. A question
// has no effect and is forgotten.
func (w *world) later(c *call) {
	if c.step != "query" {
		w.flight = append(w.flight, &packet{call: c, sent: w.now})
	}
}

// leaves looks at what is about to leave the process: a money call uses up a permit
// that is committed, carries the bytes that are committed, and the same ones every
// time; only a number that is known to exist is closed.
func (w *world) leaves(c *call) {
	p := &c.payment
	w.calls[c.step]++
	switch c.step {
	case "begin":
		permit := p.LastPermit()
		row := w.payment(p.ID)
		switch {
		case permit == nil || row == nil || len(row.Permits) < permit.No || row.Permits[permit.No-1].GivenAt != permit.GivenAt:
			w.fail("I03-permit-before-send", "%s was sent without a committed permit", p.Number)
			return
		case row.Number != p.Number || row.Amount != p.Amount || row.Account != p.Account || !bytes.Equal(row.Request, p.Request):
			w.fail("I04-sent-as-stored", "%s was sent otherwise than it is stored", p.Number)
		}
		id := permitID{p.ID, permit.No}
		if w.used[id] {
			w.fail("I03-one-use", "permit %d of %s was used twice", permit.No, p.Number)
		}
		w.used[id] = true
	case "close":
		if !p.Seen && p.ObjectID == "" {
			w.fail("close-only-what-exists", "%s was closed before it was seen", p.Number)
		}
	}
}

type permitID struct {
	payment string
	no      int
}

// take notes money that a channel took.
func (w *world) take(t taken) {
	t.at = w.now
	w.money = append(w.money, t)
	w.announce(t.account, "e-"+t.ref, t.number, "", payonce.Fact{Kind: payonce.StateSettled, PaymentRef: t.ref, Amount: t.amount, Currency: currency})
}

// announce lets a channel send a message.
func (w *world) announce(account, event, number, object string, f payonce.Fact) {
	f.Number, f.Object = number, object
	w.posts = append(w.posts, &post{account: account, notice: channel.Notice{EventID: event, Type: f.Kind.String(), Number: number, Fact: f}})
}

// silent is the part of an adapter that this package does not use: notices are
// handed to the engine as if they had been verified.
type silent struct{}

// ReadNotice implements channel.Adapter.
func (silent) ReadNotice(http.Header, []byte) (channel.Notice, error) {
	return channel.Notice{}, errors.New("notices are handed over as verified")
}

// ReplyNotice implements channel.Adapter.
func (silent) ReplyNotice(channel.NoticeOutcome) channel.NoticeReply {
	return channel.NoticeReply{Status: http.StatusOK}
}
