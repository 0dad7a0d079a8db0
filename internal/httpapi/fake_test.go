package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

// noon is the time of every test.
var noon = time.Date(2030, 1, 2, 12, 0, 0, 123456000, time.UTC)

const (
	apiKey      = "sk_test_m1"
	liveKey     = "sk_live_m1"
	rotatedKey  = "sk_test_m1_second"
	otherKey    = "sk_test_m2"
	readKey     = "sk_test_m1_read"
	operatorKey = "sk_test_m1_operator"
	revokedKey  = "sk_test_m1_revoked"
	mislabelled = "sk_live_stored_as_test"
)

// world is a handler over a fake engine and a fake reader.
type world struct {
	t        testing.TB
	engine   *fakeEngine
	reader   *fakeReader
	clock    *fakeRunner
	logs     *syncBuffer
	registry *prometheus.Registry
	handler  http.Handler
}

func newWorld(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, clock: &fakeRunner{now: noon}, logs: &syncBuffer{}, registry: prometheus.NewRegistry()}
	w.reader = &fakeReader{keys: map[[32]byte]*store.APIKey{}, orders: map[payonce.OrderKey]*store.OrderWithPayments{}, records: map[[32]byte]*store.Replay{}}
	for secret, k := range map[string]store.APIKey{
		apiKey: {Merchant: "m1", Environment: payonce.Test, Role: roleAPI}, liveKey: {Merchant: "m1", Environment: payonce.Live, Role: roleAPI},
		rotatedKey: {Merchant: "m1", Environment: payonce.Test, Role: roleAPI}, otherKey: {Merchant: "m2", Environment: payonce.Test, Role: roleAPI},
		readKey: {Merchant: "m1", Environment: payonce.Test, Role: roleRead}, operatorKey: {Merchant: "m1", Environment: payonce.Test, Role: roleOperator},
		revokedKey:  {Merchant: "m1", Environment: payonce.Test, Role: roleAPI, RevokedAt: noon.Add(-time.Second)},
		mislabelled: {Merchant: "m1", Environment: payonce.Test, Role: roleAPI},
	} {
		w.reader.keys[sha256.Sum256([]byte(secret))] = &k
	}
	w.engine = &fakeEngine{reader: w.reader}
	prints, err := idempotency.NewFingerprinter(idempotency.Secret{ID: "s1", Key: []byte("0123456789abcdef0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	o := Options{
		Engine: w.engine, Reader: w.reader, Fingerprinter: prints, Runner: w.clock,
		Encoder:   Encoder{DocsURL: "https://docs.example/errors", Checkout: func(k payonce.OrderKey) string { return "https://pay.example/checkout/" + k.OrderNo }},
		RequestID: func() string { return fmt.Sprintf("req-%d", n.Add(1)) },
		Logger:    slog.New(slog.NewJSONHandler(w.logs, nil)), Registerer: w.registry,
	}
	for _, f := range change {
		f(&o)
	}
	if w.handler, err = New(o); err != nil {
		t.Fatal(err)
	}
	return w
}

// call sends one request. headers are "Name: value"; an Authorization of the
// usual key is added unless one is given; a body makes it JSON.
func (w *world) call(method, path, body string, headers ...string) *answer {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest(method, path, nil)
	}
	r.Header.Set("Authorization", "Bearer "+apiKey)
	if body != "" {
		r.Header.Set("Content-Type", mediaJSON)
	}
	set := map[string]bool{}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if !set[name] {
			r.Header.Del(name)
		}
		set[name] = true
		if value != "-" {
			r.Header[http.CanonicalHeaderKey(name)] = append(r.Header[http.CanonicalHeaderKey(name)], value)
		}
	}
	return w.do(r)
}

func (w *world) do(r *http.Request) *answer {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	a := &answer{t: w.t, code: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
	if a.header.Get("Request-Id") == "" {
		w.t.Errorf("%s %s: no Request-Id", r.Method, r.URL.Path)
	}
	if a.header.Get("Cache-Control") != "no-store" {
		w.t.Errorf("%s %s: Cache-Control %q", r.Method, r.URL.Path, a.header.Get("Cache-Control"))
	}
	validateAnswer(w.t, r, a)
	return a
}

const goodBody = `{"order_no":"A1","channel":"stripe","method":"card","amount":100,"currency":"USD","subject":"a book","payer":{"payment_method":"pm_card_visa"}}`

func (w *world) pay(key, body string, headers ...string) *answer {
	w.t.Helper()
	return w.call("POST", "/v1/payments", body, append([]string{"Idempotency-Key: " + key}, headers...)...)
}

type answer struct {
	t      testing.TB
	code   int
	header http.Header
	body   []byte
}

func (a *answer) json() map[string]any {
	a.t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.body, &m); err != nil {
		a.t.Fatalf("%d: %v in %q", a.code, err, a.body)
	}
	return m
}

// problem checks the whole shape of a problem and returns it.
func (a *answer) problem(status int, code string) map[string]any {
	a.t.Helper()
	if a.code != status || a.header.Get("Content-Type") != mediaProblem {
		a.t.Fatalf("got %d %s %s, want the problem %d %s", a.code, a.header.Get("Content-Type"), a.body, status, code)
	}
	m := a.json()
	if m["code"] != code || m["status"] != float64(status) || m["type"] != "https://docs.example/errors#"+code {
		a.t.Fatalf("got %s, want %s", a.body, code)
	}
	for _, name := range []string{"title", "detail", "retry"} {
		if s, _ := m[name].(string); s == "" {
			a.t.Errorf("problem %s has no %s", code, name)
		}
	}
	if _, ok := m["safe_new_key"].(bool); !ok {
		a.t.Errorf("problem %s has no safe_new_key", code)
	}
	return m
}

func (a *answer) ok(status int) map[string]any {
	a.t.Helper()
	if a.code != status || a.header.Get("Content-Type") != mediaJSON {
		a.t.Fatalf("got %d %s %s, want %d", a.code, a.header.Get("Content-Type"), a.body, status)
	}
	return a.json()
}

func (a *answer) pointers() string {
	var all []string
	list, _ := a.json()["errors"].([]any)
	for _, e := range list {
		all = append(all, e.(map[string]any)["pointer"].(string))
	}
	return strings.Join(all, " ")
}

// fakeEngine answers what a test put into it and keeps what it was asked. By
// default it remembers keys as the engine does.
type fakeEngine struct {
	reader *fakeReader
	mu     sync.Mutex
	calls  []engine.PayRequest
	known  map[[32]byte]engine.PayRequest

	onPay    func(context.Context, engine.PayRequest) (*engine.Result, error)
	onCreate func(engine.OrderRequest) (*engine.OrderResult, error)
	onAmend  func(engine.ActionRequest, string, payonce.Amount, string) (*engine.OrderResult, error)
	onClose  func(engine.ActionRequest, string) (*engine.OrderResult, error)
	onSync   func(engine.ActionRequest, string) (*payonce.Payment, error)
	onCancel func(engine.ActionRequest, string) (*payonce.Payment, bool, error)
	onWait   func(context.Context, string, int64, time.Duration) (*payonce.Payment, error)
}

var (
	_ Engine = (*fakeEngine)(nil)
	_ Engine = (*engine.Engine)(nil)
)

func (e *fakeEngine) executed() int { e.mu.Lock(); defer e.mu.Unlock(); return len(e.known) }

func (e *fakeEngine) Pay(ctx context.Context, r engine.PayRequest) (*engine.Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, r)
	if e.onPay != nil {
		return e.onPay(ctx, r)
	}
	first, replayed := e.known[r.Key]
	if replayed && !r.Same(first.Fingerprint) {
		return nil, idempotency.Reused()
	}
	if !replayed {
		if e.known == nil {
			e.known = map[[32]byte]engine.PayRequest{}
		}
		e.known[r.Key] = r
	}
	p := paid()
	p.Key = r.Order
	return &engine.Result{Order: openOrder(), Payment: p, Replayed: replayed}, nil
}

func (e *fakeEngine) CreateOrder(_ context.Context, r engine.OrderRequest) (*engine.OrderResult, error) {
	return e.onCreate(r)
}

func (e *fakeEngine) AmendOrder(_ context.Context, a engine.ActionRequest, no string, amount payonce.Amount, subject string) (*engine.OrderResult, error) {
	return e.onAmend(a, no, amount, subject)
}

func (e *fakeEngine) CloseOrder(_ context.Context, a engine.ActionRequest, no string) (*engine.OrderResult, error) {
	return e.onClose(a, no)
}

func (e *fakeEngine) Sync(_ context.Context, a engine.ActionRequest, id string) (*payonce.Payment, error) {
	return e.onSync(a, id)
}

func (e *fakeEngine) Cancel(_ context.Context, a engine.ActionRequest, id string) (*payonce.Payment, bool, error) {
	return e.onCancel(a, id)
}

func (e *fakeEngine) Wait(ctx context.Context, _ store.Scope, id string, version int64, d time.Duration) (*payonce.Payment, error) {
	return e.onWait(ctx, id, version, d)
}

// fakeReader holds one merchant's rows. Methods that no test reaches are those
// of the nil interface.
type fakeReader struct {
	store.Reader
	mu       sync.Mutex
	keys     map[[32]byte]*store.APIKey
	asked    int // for API keys
	orders   map[payonce.OrderKey]*store.OrderWithPayments
	payments []*payonce.Payment // newest first
	records  map[[32]byte]*store.Replay
	filter   store.PaymentFilter
	err      error // of everything
}

func (r *fakeReader) APIKey(_ context.Context, hash [32]byte) (*store.APIKey, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.err != nil {
		return nil, r.err
	}
	if k := r.keys[hash]; k != nil {
		return k, nil
	}
	return nil, store.ErrNotFound
}

func (r *fakeReader) Order(_ context.Context, k payonce.OrderKey) (*store.OrderWithPayments, error) {
	if r.err != nil {
		return nil, r.err
	}
	if o := r.orders[k]; o != nil {
		return o, nil
	}
	return nil, store.ErrNotFound
}

func (r *fakeReader) Orders(_ context.Context, s store.Scope, f store.OrderFilter) ([]*store.OrderWithPayments, error) {
	var all []*store.OrderWithPayments
	for k, o := range r.orders {
		if k.Merchant == s.Merchant && k.Environment == s.Environment && len(all) < f.Limit {
			all = append(all, o)
		}
	}
	return all, r.err
}

func (r *fakeReader) Payment(_ context.Context, s store.Scope, id string) (*payonce.Payment, error) {
	if r.err != nil {
		return nil, r.err
	}
	for _, p := range r.payments {
		if p.ID == id && p.Key.Merchant == s.Merchant && p.Key.Environment == s.Environment {
			return p, nil
		}
	}
	return nil, store.ErrNotFound
}

func (r *fakeReader) Payments(_ context.Context, s store.Scope, f store.PaymentFilter) ([]*payonce.Payment, error) {
	r.filter = f
	var all []*payonce.Payment
	for _, p := range r.payments {
		if p.Key.Merchant == s.Merchant && (f.After == "" || p.ID < f.After) && len(all) < f.Limit {
			all = append(all, p)
		}
	}
	return all, r.err
}

func (r *fakeReader) Replay(_ context.Context, key [32]byte) (*store.Replay, error) {
	if rec := r.records[key]; rec != nil {
		return rec, nil
	}
	return nil, store.ErrNotFound
}

// fakeRunner is a clock that stands still.
type fakeRunner struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeRunner) Go(string, func(context.Context)) { panic("not used") }
func (c *fakeRunner) After(time.Duration) (<-chan time.Time, func()) {
	panic("not used")
}
func (c *fakeRunner) Random([]byte) { panic("not used") }
func (c *fakeRunner) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}
func (c *fakeRunner) advance(d time.Duration) { c.mu.Lock(); c.now = c.now.Add(d); c.mu.Unlock() }

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}
func (s *syncBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

var _ io.Writer = (*syncBuffer)(nil)

const (
	payID  = "pay_01JGQ0000000000000000000AA"
	payID2 = "pay_01JGQ0000000000000000000BB"
)

func openOrder() *payonce.Order {
	return &payonce.Order{
		ID: "ord_01JGQ0000000000000000000AA", Key: payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: "A1"},
		Status: payonce.OrderOpen, Amount: 100, Currency: "USD", Subject: "a book", Policy: payonce.PolicySingle,
		CreatedAt: noon, UpdatedAt: noon,
	}
}

// inState is a payment of openOrder in a state.
func inState(s payonce.PaymentStatus) *payonce.Payment {
	o := openOrder()
	return &payonce.Payment{
		ID: payID, OrderID: o.ID, Key: o.Key, Sequence: 1, Status: s, Amount: 100, Currency: "USD",
		Channel: "stripe", Account: "st1", Method: "card", Number: "0123456789ABCDEFGHIJ", Version: 3,
		CreatedAt: noon, UpdatedAt: noon.Add(time.Second), DueAt: noon.Add(time.Minute),
	}
}

func paid() *payonce.Payment {
	p := inState(payonce.Succeeded)
	p.Effective, p.ChannelPaymentID, p.SucceededAt = true, "pi_1", noon.Add(time.Second)
	return p
}

func withQR(p *payonce.Payment) *payonce.Payment {
	p.Action = &payonce.Action{Type: "qr_code", QRCode: "https://qr.example/1", ExpiresAt: noon.Add(time.Hour)}
	return p
}

func hashOf(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }
