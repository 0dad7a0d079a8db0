package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dial opens a raw connection to the API.
func (a *api) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(a.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

// wire is the raw request of a payment, without its body.
func (a *api) wire(length int, keyLines string) string {
	return fmt.Sprintf("POST /v1/payments HTTP/1.1\r\nHost: e2e\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n",
		a.key, length, keyLines)
}

func keyLine(key string) string { return "Idempotency-Key: " + key + "\r\n" }

// answerOf reads one answer from a raw connection.
func answerOf(c net.Conn) (*http.Response, error) {
	return http.ReadResponse(bufio.NewReader(c), nil)
}

func rawBody(t testing.TB, p pay) string {
	t.Helper()
	b, err := json.Marshal(p.body())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The client hangs up once its request is sent: the payment is made all the
// same, once, and the same key finds it.
func TestT33_ClientGoesAwayAfterSending(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T33"), newKey()
	w.slow(t, no, "confirm", time.Second, 1)
	body := rawBody(t, pay{order: no})
	c := w.dial(t)
	if _, err := c.Write([]byte(w.wire(len(body), keyLine(key)) + body)); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "the call is under way", func() bool { return w.calls(t, "confirm", no) == 1 })
	c.Close()
	r := w.retry(t, pay{order: no, key: key}, soon)
	if r.code != http.StatusCreated || !r.replayed() {
		t.Errorf("the same key: %s, marked %v", r, r.replayed())
	}
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
	w.paidOnce(t, no)
}

// The client hangs up in the middle of its body: nothing was stored.
func TestT34_ClientGoesAwayInTheBody(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T34"), newKey()
	body := rawBody(t, pay{order: no})
	c := w.dial(t)
	if _, err := c.Write([]byte(w.wire(len(body), keyLine(key)) + body[:len(body)/2])); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if r := w.get("/v1/orders/" + no); r.code != http.StatusNotFound {
		t.Errorf("an order was stored: %s", r)
	}
	if r := w.pay(pay{order: no, key: key}); r.code != http.StatusCreated || r.replayed() {
		t.Errorf("the same key: %s", r)
	}
	w.paidOnce(t, no)
}

// A body that trickles in holds no right: a twin executes meanwhile.
func TestT35_SlowBodyHoldsNothing(t *testing.T) {
	t.Parallel()
	w, no, key := steady(t), newOrder("T35"), newKey()
	body := rawBody(t, pay{order: no})
	c := w.dial(t)
	if _, err := c.Write([]byte(w.wire(len(body), keyLine(key)) + body[:20])); err != nil {
		t.Fatal(err)
	}
	a := w.pay(pay{order: no, key: key})
	if a.code != http.StatusCreated || a.replayed() {
		t.Errorf("the twin: %s", a)
	}
	if _, err := c.Write([]byte(body[20:])); err != nil {
		t.Fatal(err)
	}
	res, err := answerOf(c)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusCreated || res.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the slow one: %s, want the replay", res.Status)
	}
	w.paidOnce(t, no)
}

// Every wrong form of a key is refused and binds nothing.
func TestT03_WrongKeys(t *testing.T) {
	t.Parallel()
	w, no := steady(t), newOrder("T03")
	body := rawBody(t, pay{order: no})
	valid := newKey()
	for name, lines := range map[string]string{
		"none":            "",
		"empty":           keyLine(""),
		"blank":           keyLine("   "),
		"empty string":    keyLine(`""`),
		"256 characters":  keyLine(strings.Repeat("x", 256)),
		"TAB inside":      keyLine(valid + "\tb"),
		"blank inside":    keyLine(valid + " b"),
		"not ASCII":       keyLine("café"),
		"comma":           keyLine(valid + ",b"),
		"two lines":       keyLine(valid) + keyLine("other"),
		"same line twice": keyLine(valid) + keyLine(valid),
		"unterminated":    keyLine(`"` + valid),
		"bad escape":      keyLine(`"a\b"`),
		"two members":     keyLine(`"a", "b"`),
		"control":         keyLine(valid + "\x01"),
		"DEL":             keyLine(valid + "\x7f"),
		"bare quote":      keyLine(`a"b`),
		"bare semicolon":  keyLine("a;b"),
		"bare backslash":  keyLine(`a\b`),
		"quoted blank":    keyLine(`"a b"`),
		"256 quoted":      keyLine(`"` + strings.Repeat("x", 256) + `"`),
	} {
		c := w.dial(t)
		if _, err := c.Write([]byte(w.wire(len(body), lines) + body)); err != nil {
			t.Fatal(err)
		}
		res, err := answerOf(c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		res.Body.Close()
		c.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s, want 400", name, res.Status)
		}
	}
	if r := w.get("/v1/orders/" + no); r.code != http.StatusNotFound {
		t.Errorf("an order was stored: %s", r)
	}
	if r := w.pay(pay{order: no, key: valid}); r.code != http.StatusCreated || r.replayed() {
		t.Errorf("the valid part as a key: %s", r)
	}
	if r := w.pay(pay{order: newOrder("T03"), key: strings.Repeat("y", 248) + runID + "z"}); r.code != http.StatusCreated {
		t.Errorf("255 characters: %s", r)
	}
	w.paidOnce(t, no)
}
