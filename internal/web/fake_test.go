package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

const installation = "0123456789abcdef0123456789abcdef"

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	order = payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: "A-1"}
)

// books is a fake of engine and reader: it keeps what it is given and records
// what it is asked.
type books struct {
	asked  atomic.Int64
	mu     sync.Mutex
	orders map[payonce.OrderKey]*store.OrderWithPayments
	paid   []engine.PayRequest
	err    error // of Pay
	broken error // of reads
	onPay  func(*store.OrderWithPayments, engine.PayRequest)
}

func (b *books) Order(_ context.Context, k payonce.OrderKey) (*store.OrderWithPayments, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return nil, b.broken
	}
	o, ok := b.orders[k]
	if !ok {
		return nil, store.ErrNotFound
	}
	c := *o
	c.Payments = append([]*payonce.Payment(nil), o.Payments...)
	return &c, nil
}

func (b *books) Orders(_ context.Context, s store.Scope, _ store.OrderFilter) ([]*store.OrderWithPayments, error) {
	var out []*store.OrderWithPayments
	for k, o := range b.orders {
		if k.Merchant == s.Merchant && k.Environment == s.Environment {
			out = append(out, o)
		}
	}
	return out, b.broken
}

func (b *books) Pay(_ context.Context, r engine.PayRequest) (*engine.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid = append(b.paid, r)
	if b.onPay != nil {
		b.onPay(b.orders[r.Order], r)
	}
	return &engine.Result{}, b.err
}

func (b *books) CreateOrder(_ context.Context, r engine.OrderRequest) (*engine.OrderResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := &payonce.Order{ID: "ord_1", Key: r.Order, Status: payonce.OrderOpen, Amount: r.Amount, Currency: r.Currency, Subject: r.Subject, Policy: payonce.PolicySingle}
	b.orders[r.Order] = &store.OrderWithPayments{Order: o}
	return &engine.OrderResult{Order: o, Created: true}, b.err
}

func openOrder() *store.OrderWithPayments {
	return &store.OrderWithPayments{Order: &payonce.Order{ID: "ord_1", Key: order, Status: payonce.OrderOpen, Amount: 1999, Currency: "CNY",
		Subject: "A <teapot> & cup", Policy: payonce.PolicySingle}}
}

func attempt(s payonce.PaymentStatus) *payonce.Payment {
	return &payonce.Payment{ID: "pay_1", OrderID: "ord_1", Key: order, Sequence: 1, Status: s, Amount: 1999, Currency: "CNY", Number: "N0000000000000000001"}
}

type rig struct {
	*books
	h      http.Handler
	signer *Signer
	path   string // of the order's checkout
}

func newRig(t *testing.T, o *store.OrderWithPayments, shop *Shop) *rig {
	t.Helper()
	s, err := NewSigner(installation, "https://pay.example/")
	if err != nil {
		t.Fatal(err)
	}
	f, err := idempotency.NewFingerprinter(idempotency.Secret{ID: "t", Key: []byte("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	b := &books{orders: map[payonce.OrderKey]*store.OrderWithPayments{o.Order.Key: o}}
	h, err := New(Options{Engine: b, Reader: b, Signer: s, Fingerprints: f, Now: func() time.Time { return noon }, Logger: slog.New(slog.DiscardHandler), Shop: shop,
		Choices: func(payonce.OrderKey) []Choice {
			return []Choice{
				{Channel: "stripe", Method: "card", Account: "s1", PaymentMethod: "pm_card_visa", Label: LabelCardPays},
				{Channel: "stripe", Method: "card", Account: "s1", PaymentMethod: "pm_card_visa_chargeDeclined", Label: LabelCardDeclined},
				{Channel: "alipay", Method: "page", Account: "a1", Label: LabelOnline, Currencies: []payonce.Currency{"CNY"}},
				{Channel: "alipay", Method: "qr", Account: "a1", Label: LabelOnline, Currencies: []payonce.Currency{"CNY"}},
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{books: b, h: h, signer: s, path: strings.TrimPrefix(s.CheckoutURL(o.Order.Key), "https://pay.example")}
}

func (r *rig) get(path string, headers ...string) *httptest.ResponseRecorder {
	return r.do(httptest.NewRequest(http.MethodGet, path, nil), headers)
}

func (r *rig) post(path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r.do(req, headers)
}

func (r *rig) do(req *http.Request, headers []string) *httptest.ResponseRecorder {
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.h.ServeHTTP(w, req)
	return w
}

// Ask implements Engine: it counts the questions that pages cause.
func (b *books) Ask(*payonce.Payment) { b.asked.Add(1) }
