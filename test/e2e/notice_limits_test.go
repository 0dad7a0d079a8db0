package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// notices' addresses with the answers of a channel that refuses.
var noticePaths = map[string]string{alipay: alipayPath, "stripe": "/webhooks/stripe/" + cardAccount}

// A body of ten megabytes is refused before it is read to its end, with every kind
// of content, by length or in chunks, and nobody else waits for it.
func TestX08_TenMegabytes(t *testing.T) {
	t.Parallel()
	m := relayedNode(t)
	const size = 10 << 20
	for channel, path := range noticePaths {
		for name, unit := range map[string]string{"zeros": "\x00", "fields": "a=b&", "nesting": `{"a":[`, "percent": "%2"} {
			body := bytes.Repeat([]byte(unit), size/len(unit))
			r := m.do(request{method: "POST", path: path, body: body, noAuth: true})
			if r.err == nil {
				refused(t, channel+" "+name, channel, r)
			}
			if r.took > 5*time.Second {
				t.Errorf("%s %s took %v", channel, name, r.took)
			}
		}
		c := m.dial(t)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: e2e\r\nTransfer-Encoding: chunked\r\n\r\n", path)
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10))
		for range size / (64 << 10) {
			if _, err := io.WriteString(c, chunk); err != nil {
				break // refused before the end: that is what it is for
			}
		}
		if res, err := answerOf(c); err == nil && res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s in chunks: %s", channel, res.Status)
		}
		c.Close()
	}
	no := newOrder("X08")
	if r := m.pay(cardCNY(no, visa)); r.code != http.StatusCreated {
		t.Errorf("afterwards: %s", r)
	}
}

// Senders that never come to the end of their notice hold nobody up, and are let
// go of after half a minute. What they sent changes nothing.
func TestX08_SlowSenders(t *testing.T) {
	t.Parallel()
	m, no := relayedNode(t), newOrder("X08s")
	p := m.code(t, no)
	body := string(form(m.sealed(m.settledTrade(p.Number, "2026"+p.Number, "10.00"))))
	var slow []net.Conn
	for _, path := range noticePaths {
		for range 10 {
			c := m.dial(t)
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: e2e\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body[:len(body)-1])
			slow = append(slow, c)
		}
	}
	if r := m.pay(cardCNY(newOrder("X08s"), visa)); r.code != http.StatusCreated || r.took > 5*time.Second {
		t.Errorf("meanwhile, after %v: %s", r.took, r)
	}
	if got := m.payment(p.ID); got.Status != "PENDING" {
		t.Errorf("the payment is %s", got.Status)
	}
	began := time.Now()
	for _, c := range slow {
		res, err := answerOf(c)
		if err == nil && res.StatusCode != http.StatusBadRequest {
			t.Errorf("answer to a slow sender: %s", res.Status)
		}
		c.Close()
	}
	if d := time.Since(began); d > 45*time.Second {
		t.Errorf("slow senders were held for %v", d)
	}
	if got := m.payment(p.ID); got.Status != "PENDING" {
		t.Errorf("the payment is %s", got.Status)
	}
}

// storeless is a node at both channels whose PostgreSQL can be cut off, and a
// simulator whose clock the test moves.
func storeless(t *testing.T) (*relayed, *pgProxy) {
	t.Helper()
	dsn, drop := newPostgres(t)
	t.Cleanup(drop)
	proxy := newPGProxy(t, hostOf(t, dsn))
	n, err := newNode(nodeSettings{name: "storeless", bin: plainBin, database: through(t, dsn, proxy.addr)})
	if err != nil {
		t.Fatal(err)
	}
	sim, p, err := simWithWebhook("5", "http://"+n.addr+noticePaths["stripe"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop() })
	all, err := bothAccounts(n, sim, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.migrate(); err != nil {
		t.Fatal(err)
	}
	_, key, err := n.newAPIKey(serveMerchant, "test")
	if err != nil {
		t.Fatal(err)
	}
	n.mustStart(t)
	showLogs(t, "node", n.log)
	t.Cleanup(func() { n.proc.stop() })
	m := &relayed{node: n, secret: all["stripe"]["webhook_secret"]}
	m.world = world{api: &api{base: "http://" + n.addr, key: key}, sim: sim, merchant: serveMerchant, log: n.log}
	return m, proxy
}

// Nothing is acknowledged that is not stored: while the database is away, the
// channels hear 500 and come again by their own schedules, and then it is taken.
func TestL04_L06_L02_NotAcknowledgedWithoutAStore(t *testing.T) {
	t.Parallel()
	m, proxy := storeless(t)
	byCode, byCard := newOrder("L04"), newOrder("L04")
	code := m.code(t, byCode)
	card := m.pay(cardCNY(byCard, threeDS)).payment()
	for _, channel := range []string{alipay, "stripe"} {
		for _, number := range []string{code.Number, card.Number} {
			m.sim.disturbs(t, channel, fault{Operation: "query", Fault: "http_500_before", Times: always, Number: number})
		}
	}
	proxy.stop()
	m.sim.paysAlipay(t, code.Number)
	m.sim.pays(t, card.Number)
	tried := func(number string) bool {
		for _, n := range m.sim.books(t).told(number) {
			if strings.HasSuffix(strings.ToLower(n.Type), "success") || n.Type == "payment_intent.succeeded" {
				if n.Acknowledged {
					t.Fatalf("acknowledged without a store: %+v", n)
				}
				return n.Deliveries > 0
			}
		}
		return false
	}
	until(t, soon, "both channels have told", func() bool { return tried(code.Number) && tried(card.Number) })
	event := []byte(`{"id":"evt_x","object":"event","type":"payment_intent.succeeded","livemode":false,"data":{"object":{"id":"` + *card.ChannelPayment +
		`","object":"payment_intent","status":"succeeded","amount":1000,"amount_received":1000,"currency":"cny","metadata":{"payonce_number":"` + card.Number + `"}}}}`)
	if r := m.event(event, stripeSigned(m.secret, time.Now(), event)); r.code != http.StatusInternalServerError {
		t.Errorf("Stripe's notice without a store: %s", r)
	}
	proxy.again(t)
	until(t, soon, "the database is back", func() bool { return m.get("/readyz").code == http.StatusOK })
	for _, id := range []string{code.ID, card.ID} {
		if got := m.payment(id); got.Status != "PENDING" && got.Status != "UNKNOWN" {
			t.Errorf("%s knows of money that it was told of without a store: %s", got.OrderNo, got.Status)
		}
	}
	m.sim.advance(t, 5*time.Minute)
	for _, p := range []payment{code, card} {
		m.until(t, p.ID, soon, "SUCCEEDED")
		m.acknowledged(t, p.Number)
		m.paidOnce(t, p.OrderNo)
	}
	for _, n := range m.sim.books(t).told(code.Number) {
		if n.Type == "TRADE_SUCCESS" && n.Deliveries < 2 {
			t.Errorf("it was not sent again: %+v", n)
		}
	}
}
