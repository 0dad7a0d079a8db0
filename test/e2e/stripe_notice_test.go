package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A genuine event of another time, with another secret, for another mode, with a
// signature in every wrong form, or altered in any place: refused.
func TestX02_F04_ForgedStripeSignatures(t *testing.T) {
	t.Parallel()
	m, no := relayedNode(t), newOrder("X02s")
	number := m.number(no, 1)
	m.hold(number)
	p := m.pay(cardCNY(no, threeDS)).payment()
	m.sim.disturbs(t, "stripe", fault{Operation: "query", Fault: "http_500_before", Times: always, Number: number})
	m.sim.pays(t, number)
	d := m.one(t, number, "payment_intent.succeeded")
	now := time.Now()
	good := stripeSigned(m.secret, now, d.body)
	_, v1, _ := strings.Cut(good, "v1=")
	stamp, _, _ := strings.Cut(good, ",")
	for name, c := range map[string]struct {
		body      []byte
		signature string
	}{
		"none":               {d.body, ""},
		"other secret":       {d.body, stripeSigned("whsec_of_somebody_else", now, d.body)},
		"no secret":          {d.body, stripeSigned("", now, d.body)},
		"too old":            {d.body, stripeSigned(m.secret, now.Add(-6*time.Minute), d.body)},
		"of the future":      {d.body, stripeSigned(m.secret, now.Add(6*time.Minute), d.body)},
		"other time":         {d.body, "t=" + strconv.FormatInt(now.Unix()+1, 10) + ",v1=" + v1},
		"no time":            {d.body, "v1=" + v1},
		"time twice":         {d.body, stamp + "," + good},
		"only v0":            {d.body, strings.Replace(good, "v1=", "v0=", 1)},
		"half":               {d.body, good[:len(good)-2]},
		"upper case":         {d.body, stamp + ",v1=" + strings.ToUpper(v1)},
		"other amount":       {bytes.Replace(d.body, []byte(`"amount":1000`), []byte(`"amount":1001`), 1), good},
		"one byte more":      {append(bytes.Clone(d.body), '\n'), good},
		"printed again":      {bytes.ReplaceAll(d.body, []byte(`,"`), []byte(`, "`)), good},
		"empty":              {nil, stripeSigned(m.secret, now, nil)},
		"no event":           {[]byte(`{}`), stripeSigned(m.secret, now, []byte(`{}`))},
		"live mode":          m.resigned(d.body, `"livemode":false`, `"livemode":true`),
		"no mode":            m.resigned(d.body, `"livemode":false`, `"mode":false`),
		"another's account":  m.resigned(d.body, `"object":"event"`, `"object":"event","account":"acct_other"`),
		"not an event":       m.resigned(d.body, `"object":"event"`, `"object":"charge"`),
		"type with blank":    m.resigned(d.body, `"type":"payment_intent.succeeded"`, `"type":"payment_intent.succeeded "`),
		"id of another kind": m.resigned(d.body, `"id":"evt_`, `"id":"pi_`),
	} {
		if strings.HasPrefix(name, "other amount") && bytes.Equal(c.body, d.body) {
			t.Fatal("nothing was altered")
		}
		refused(t, name, "stripe", m.event(c.body, c.signature))
	}
	if got := m.payment(p.ID); got.Status != "PENDING" {
		t.Fatalf("a forgery changed the payment: %+v", got)
	}
	taken(t, "two signatures, one of them right", "stripe", m.event(d.body, stamp+",v1="+strings.Repeat("0", 64)+",v0=x,v1="+v1))
	m.isPaid(t, no)
}

// An event of our mode whose object is of the other one contradicts itself. It is
// kept as evidence and changes no state.
func TestX02_ObjectOfTheOtherMode(t *testing.T) {
	t.Parallel()
	m, no := relayedNode(t), newOrder("X02m")
	number := m.number(no, 1)
	m.hold(number)
	p := m.pay(cardCNY(no, threeDS)).payment()
	m.sim.disturbs(t, "stripe", fault{Operation: "query", Fault: "http_500_before", Times: always, Number: number})
	m.sim.pays(t, number)
	body := bytes.Replace(m.one(t, number, "payment_intent.succeeded").body, []byte(`"livemode":false`), []byte(`"livemode":true`), 1)
	m.event(body, stripeSigned(m.secret, time.Now(), body))
	if got := m.payment(p.ID); got.Status == "SUCCEEDED" || m.order(no).AmountPaid != 0 {
		t.Errorf("the payment is %s, the order has %d", got.Status, m.order(no).AmountPaid)
	}
}

// resigned is an altered event with the signature of whoever has the secret.
func (m *relayed) resigned(body []byte, old, fresh string) (c struct {
	body      []byte
	signature string
}) {
	at := bytes.Index(body, []byte(old))
	if strings.Contains(old, "livemode") {
		at = bytes.LastIndex(body, []byte(old)) // the event's own, behind its object's
	}
	if at < 0 {
		panic(old + " is not in the event")
	}
	c.body = slices.Concat(body[:at], []byte(fresh), body[at+len(old):])
	c.signature = stripeSigned(m.secret, time.Now(), c.body)
	return c
}

// fallsAndPays is a payer who is declined and then pays the same object.
func (m *relayed) fallsAndPays(t testing.TB, number string) {
	t.Helper()
	if r := m.sim.does("stripe", number, "declined", nil); r.code != http.StatusOK {
		t.Fatalf("decline: %s", r)
	}
	if r := m.sim.does("stripe", number, "paid", map[string]any{"force": true}); r.code != http.StatusOK {
		t.Fatalf("pay: %s", r)
	}
}

// All events of one payment (made, waiting for its payer, declined, paid, charged,
// each of them twice with ids of their own) arrive together: one payment, one
// charge, every one acknowledged.
func TestW10_W05_AllEventsTogether(t *testing.T) {
	t.Parallel()
	m := relayedNode(t)
	for range 3 {
		no := newOrder("W10")
		number := m.number(no, 1)
		m.hold(number)
		p := m.pay(cardCNY(no, threeDS)).payment()
		m.fallsAndPays(t, number)
		m.one(t, number, "payment_intent.succeeded")
		m.one(t, number, "charge.succeeded")
		all := m.of(number)
		if len(all) < 4 {
			t.Fatalf("only %d events", len(all))
		}
		for i, r := range together(len(all), func(i int) resp { return m.deliver(all[i]) }) {
			taken(t, all[i].kind, "stripe", r)
		}
		m.isPaid(t, no)
		if o := m.order(no); len(o.Payments) != 1 || o.Payments[0].ID != p.ID {
			t.Errorf("payments: %+v", o.Payments)
		}
	}
}

// All orders in which a decline, the money, its charge and a question can be heard
// lead to the same end.
func TestO05_O04_EveryOrderOfEvents(t *testing.T) {
	t.Parallel()
	m := relayedNode(t)
	steps := []string{"payment_intent.payment_failed", "payment_intent.succeeded", "charge.succeeded", "question"}
	orders := permutations(len(steps))
	rs := together(len(orders), func(i int) resp {
		no := newOrder("O05s")
		number := m.number(no, 1)
		m.hold(number)
		r := m.pay(cardCNY(no, threeDS))
		m.fallsAndPays(t, number)
		for _, k := range orders[i] {
			if steps[k] == "question" {
				m.sync(r.payment().ID)
				continue
			}
			taken(t, steps[k], "stripe", m.deliver(m.one(t, number, steps[k])))
		}
		if !poll(soon, func() bool { return m.order(no).Status == "PAID" }) {
			return resp{err: fmt.Errorf("order %v: %s", orders[i], m.get("/v1/orders/"+no))}
		}
		m.paidOnce(t, no)
		return resp{}
	})
	for _, r := range rs {
		if r.err != nil {
			t.Error(r.err)
		}
	}
}

// The channel makes every event twice and delivers them in no order, by itself:
// payments of every kind end as the books say, and all notices are taken.
func TestF04_W06_TwinsInNoOrder(t *testing.T) {
	t.Parallel()
	m := relayedNode(t)
	var nos []string
	for i := range 12 {
		no := newOrder("twins")
		nos = append(nos, no)
		card := []string{visa, threeDS, "pm_sim_processing"}[i%3]
		r := m.pay(cardCNY(no, card))
		notFailed(t, r)
		if i%3 != 0 {
			if i%2 == 0 && card == threeDS {
				m.fallsAndPays(t, m.number(no, 1))
			} else {
				m.sim.pays(t, m.number(no, 1))
			}
		}
	}
	for _, no := range nos {
		m.isPaid(t, no)
		kinds := map[string]int{}
		for _, n := range m.acknowledged(t, m.number(no, 1)) {
			kinds[n.Type]++
		}
		if kinds["payment_intent.succeeded"] != 2 {
			t.Errorf("events: %v", kinds)
		}
	}
}
