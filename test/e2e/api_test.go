package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// api is a shop's view of the service. It opens a connection for every request:
// a connection that died with a process would be repeated by the transport, and
// what a test sees has to be one request.
type api struct {
	base string
	key  string
}

var transport = &http.Transport{DisableKeepAlives: true, DisableCompression: true}

// patience bounds one request of a test.
const patience = 60 * time.Second

type resp struct {
	err  error // no answer came
	code int
	head http.Header
	body []byte
	took time.Duration
}

type failure struct {
	Code    string  `json:"code"`
	Channel *string `json:"channel_code"`
}

type action struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type payment struct {
	ID             string   `json:"id"`
	OrderNo        string   `json:"order_no"`
	Sequence       int      `json:"sequence"`
	Status         string   `json:"status"`
	Effective      bool     `json:"effective"`
	Amount         int64    `json:"amount"`
	Currency       string   `json:"currency"`
	Number         string   `json:"channel_number"`
	ChannelPayment *string  `json:"channel_payment_id"`
	Action         action   `json:"action"`
	Failure        *failure `json:"failure"`
	UnknownReason  *string  `json:"unknown_reason"`
	NextCheckAt    *string  `json:"next_check_at"`
	DeadAt         *string  `json:"dead_at"`
	UpdatedAt      string   `json:"updated_at"`
	SucceededAt    *string  `json:"succeeded_at"`
}

type order struct {
	OrderNo       string    `json:"order_no"`
	Status        string    `json:"status"`
	Amount        int64     `json:"amount"`
	Currency      string    `json:"currency"`
	AmountPaid    int64     `json:"amount_paid"`
	AmountSurplus int64     `json:"amount_surplus"`
	ExpiresAt     *string   `json:"expires_at"`
	CheckoutURL   *string   `json:"checkout_url"`
	Payments      []payment `json:"payments"`
}

type problem struct {
	Type       string   `json:"type"`
	Status     any      `json:"status"`
	Code       string   `json:"code"`
	Retry      string   `json:"retry"`
	SafeNewKey *bool    `json:"safe_new_key"`
	Payment    *payment `json:"payment"`
}

// payment is the one the answer is or speaks of; the zero value when there is
// none.
func (r resp) payment() payment {
	var p payment
	if json.Unmarshal(r.body, &p) == nil && p.ID != "" {
		return p
	}
	if pr := r.problem(); pr.Payment != nil {
		return *pr.Payment
	}
	return payment{}
}

func (r resp) problem() problem {
	var p problem
	_ = json.Unmarshal(r.body, &p)
	return p
}

func (r resp) order() order {
	var o order
	_ = json.Unmarshal(r.body, &o)
	return o
}

func (r resp) replayed() bool { return r.head.Get("Idempotency-Replayed") == "true" }

// retryAfter is the header in seconds, -1 without one.
func (r resp) retryAfter() int {
	n, err := strconv.Atoi(r.head.Get("Retry-After"))
	if err != nil {
		return -1
	}
	return n
}

// String shows an answer in a failure message.
func (r resp) String() string {
	if r.err != nil {
		return "no answer: " + r.err.Error()
	}
	b := r.body
	if len(b) > 600 {
		b = b[:600]
	}
	return strconv.Itoa(r.code) + " " + string(b)
}

// request is one HTTP request; zero members have sensible values.
type request struct {
	method, path string
	body         any // marshalled, or sent as it is when []byte
	key          string
	keys         []string // several key lines
	prefer       string
	head         map[string]string
	within       time.Duration
	noAuth       bool
}

func (a *api) do(q request) resp {
	var body io.Reader
	switch b := q.body.(type) {
	case nil:
	case []byte:
		body = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return resp{err: err}
		}
		body = bytes.NewReader(raw)
	}
	if q.within == 0 {
		q.within = patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, q.method, a.base+q.path, body)
	if err != nil {
		return resp{err: err}
	}
	if !q.noAuth {
		req.Header.Set("Authorization", "Bearer "+a.key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		req.Header.Set("Idempotency-Key", q.key)
	}
	for _, k := range q.keys {
		req.Header.Add("Idempotency-Key", k)
	}
	if q.prefer != "" {
		req.Header.Set("Prefer", q.prefer)
	}
	for k, v := range q.head {
		req.Header.Set(k, v)
	}
	return send(req)
}

func send(req *http.Request) resp {
	began := time.Now()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return resp{err: err, took: time.Since(began)}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return resp{err: err, code: res.StatusCode, head: res.Header, body: b, took: time.Since(began)}
}

// pay is a payment request; zero members have sensible values.
type pay struct {
	order    string
	key      string // made at random when empty
	amount   int64  // 1000
	currency string // USD
	card     string // pm_card_visa
	prefer   string
	extra    map[string]any
	within   time.Duration
	declines bool // the channel declines it: it may be told so
}

const (
	visa     = "pm_card_visa"
	declined = "pm_card_visa_chargeDeclined"
	threeDS  = "pm_card_authenticationRequired"
	master   = "pm_card_mastercard"
)

func (p pay) body() map[string]any {
	if p.amount == 0 {
		p.amount = 1000
	}
	if p.currency == "" {
		p.currency = "USD"
	}
	if p.card == "" {
		p.card = visa
	}
	b := map[string]any{"order_no": p.order, "channel": "stripe", "method": "card", "amount": p.amount, "currency": p.currency,
		"subject": "end to end", "payer": map[string]any{"payment_method": p.card}}
	for k, v := range p.extra {
		b[k] = v
	}
	return b
}

func (a *api) pay(p pay) resp {
	if p.key == "" {
		p.key = newKey()
	}
	return a.do(request{method: "POST", path: "/v1/payments", body: p.body(), key: p.key, prefer: p.prefer, within: p.within})
}

func (a *api) get(path string) resp { return a.do(request{method: "GET", path: path}) }

func (a *api) post(path string, body any) resp {
	return a.do(request{method: "POST", path: path, body: body, key: newKey()})
}

func (a *api) payment(id string) payment { return a.get("/v1/payments/" + id).payment() }
func (a *api) order(no string) order     { return a.get("/v1/orders/" + no).order() }
func (a *api) sync(id string) resp       { return a.post("/v1/payments/"+id+"/sync", map[string]any{}) }
func (a *api) cancel(id string) resp     { return a.post("/v1/payments/"+id+"/cancel", map[string]any{}) }
func (a *api) closeOrder(no string) resp { return a.post("/v1/orders/"+no+"/close", map[string]any{}) }

// newKey is an idempotency key that nobody used.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

var failedWord = regexp.MustCompile(`(?i)\bfailed\b`)

// notFailed checks an answer to a payer whose money may be on its way: it may
// say anything but that the payment failed.
func notFailed(t testing.TB, r resp) {
	t.Helper()
	if r.err == nil && failedWord.Match(r.body) {
		t.Errorf("the payer is told that the payment failed: %s", r)
	}
}

// until waits for one of the states and fails on FAILED on the way, unless that
// is a state it waits for.
func (a *api) until(t testing.TB, id string, within time.Duration, states ...string) payment {
	t.Helper()
	var p payment
	ok := poll(within, func() bool {
		r := a.get("/v1/payments/" + id)
		if r.err != nil || r.code != http.StatusOK {
			return false
		}
		p = r.payment()
		for _, s := range states {
			if p.Status == s {
				return true
			}
		}
		if p.Status == "FAILED" {
			t.Fatalf("payment %s is FAILED: %s", id, r)
		}
		return false
	})
	if !ok {
		t.Fatalf("payment %s of order %s is not %v within %v but %s", id, p.OrderNo, states, within, p.Status)
	}
	return p
}

// retry repeats a payment request as a patient shop does, until its answer is
// final, and checks every answer on the way.
func (a *api) retry(t testing.TB, p pay, within time.Duration) resp {
	t.Helper()
	var r resp
	id := ""
	ok := poll(within, func() bool {
		r = a.pay(p)
		if !p.declines {
			notFailed(t, r)
		}
		if r.err != nil {
			return false
		}
		if got := r.payment().ID; got != "" {
			if id != "" && got != id {
				t.Fatalf("the same key shows payment %s, then %s", id, got)
			}
			id = got
		}
		return r.code == http.StatusCreated || r.code == http.StatusOK && r.payment().Status == "SUCCEEDED" ||
			r.code == http.StatusPaymentRequired || r.problem().Code == "payment-cancelled" || r.problem().Code == "order-already-paid"
	})
	if !ok {
		t.Fatalf("order %s: no final answer within %v, the last one is %s", p.order, within, r)
	}
	return r
}
