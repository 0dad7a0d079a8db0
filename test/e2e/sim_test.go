package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"
)

// simulator is the channel that keeps the books.
type simulator struct{ api }

type charge struct {
	Channel   string `json:"channel"`
	Number    string `json:"number"`
	PaymentID string `json:"payment_id"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Status    string `json:"status"`
	Refunded  int64  `json:"refunded"`
}

type callCount struct {
	Channel   string `json:"channel"`
	Operation string `json:"operation"`
	Number    string `json:"number"`
	Count     int    `json:"count"`
}

type notice struct {
	Number       string `json:"number"`
	Type         string `json:"type"`
	Deliveries   int    `json:"deliveries"`
	Acknowledged bool   `json:"acknowledged"`
}

type books struct {
	Charges []charge    `json:"charges"`
	Calls   []callCount `json:"calls"`
	Notices []notice    `json:"notices"`
}

// told are the notices of the numbers.
func (b books) told(numbers ...string) []notice {
	var list []notice
	for _, n := range b.Notices {
		if slices.Contains(numbers, n.Number) {
			list = append(list, n)
		}
	}
	return list
}

// took reports whether the channel took money for this object.
func (c charge) took() bool {
	return slices.Contains([]string{"paid", "partially_refunded", "refunded"}, c.Status)
}

func (s *simulator) books(t testing.TB) books {
	t.Helper()
	r := s.get("/_sim/books")
	var b books
	if r.err != nil || r.code != http.StatusOK || json.Unmarshal(r.body, &b) != nil {
		t.Fatalf("the books cannot be read: %s", r)
	}
	return b
}

// of returns the objects of the numbers, in the order of their making.
func (b books) of(numbers ...string) []charge {
	var list []charge
	for _, c := range b.Charges {
		if slices.Contains(numbers, c.Number) {
			list = append(list, c)
		}
	}
	return list
}

func (b books) taken(numbers ...string) []charge {
	var list []charge
	for _, c := range b.of(numbers...) {
		if c.took() {
			list = append(list, c)
		}
	}
	return list
}

// calls counts the requests of one operation that the channel received.
func (b books) calls(operation string, numbers ...string) int {
	n := 0
	for _, c := range b.Calls {
		if c.Operation == operation && slices.Contains(numbers, c.Number) {
			n += c.Count
		}
	}
	return n
}

type fault struct {
	Channel   string `json:"channel"`
	Operation string `json:"operation"`
	Fault     string `json:"fault"`
	Times     int    `json:"times,omitempty"`
	DelayMS   int64  `json:"delay_ms,omitempty"`
	Number    string `json:"number,omitempty"`
}

// always is a fault for ever.
const always = -1

func (s *simulator) fault(t testing.TB, f fault) (remove func()) {
	t.Helper()
	f.Channel = "stripe"
	r := s.do(request{method: "POST", path: "/_sim/faults", body: f, noAuth: true})
	var got struct {
		ID string `json:"id"`
	}
	if r.err != nil || r.code != http.StatusCreated || json.Unmarshal(r.body, &got) != nil {
		t.Fatalf("fault %+v: %s", f, r)
	}
	return func() { s.do(request{method: "DELETE", path: "/_sim/faults/" + got.ID, noAuth: true}) }
}

// advance moves virtual time.
func (s *simulator) advance(t testing.TB, d time.Duration) {
	t.Helper()
	r := s.do(request{method: "POST", path: "/_sim/clock", body: map[string]int64{"advance_s": int64(d / time.Second)}, noAuth: true})
	if r.err != nil || r.code != http.StatusOK {
		t.Fatalf("move the clock: %s", r)
	}
}

// now is virtual time.
func (s *simulator) now(t testing.TB) time.Time {
	t.Helper()
	var c struct {
		Now time.Time `json:"now"`
	}
	r := s.do(request{method: "GET", path: "/_sim/clock", noAuth: true})
	if r.err != nil || json.Unmarshal(r.body, &c) != nil {
		t.Fatalf("read the clock: %s", r)
	}
	return c.Now
}

// payer plays the payer of a number at the channel's own page.
func (s *simulator) payer(number, outcome string, force bool) resp {
	return s.do(request{method: "POST", path: "/_sim/pay", noAuth: true,
		body: map[string]any{"channel": "stripe", "number": number, "outcome": outcome, "force": force}})
}

// pays is payer for a payment that can be paid.
func (s *simulator) pays(t testing.TB, number string) {
	t.Helper()
	if r := s.payer(number, "paid", false); r.code != http.StatusOK {
		t.Fatalf("the payer cannot pay %s: %s", number, r)
	}
}

// credentials are those of the simulated Stripe account.
func (s *simulator) credentials() (map[string]string, error) {
	r := s.get("/_sim/credentials?channel=stripe")
	if r.err != nil {
		return nil, r.err
	}
	var all map[string]map[string]string
	if err := json.Unmarshal(r.body, &all); err != nil {
		return nil, err
	}
	return all["stripe"], nil
}
