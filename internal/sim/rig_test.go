package sim_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce/internal/sim"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

// rig is a simulator behind a real socket, with the account's key.
type rig struct {
	t    *testing.T
	sim  *sim.Sim
	srv  *httptest.Server
	key  string
	http *http.Client
	opts sim.Options
}

func newRig(t *testing.T, change ...func(*sim.Options)) *rig {
	t.Helper()
	opts := sim.Options{DataDir: t.TempDir(), Seed: 7, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&opts)
	}
	r := &rig{t: t, opts: opts, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	r.open()
	t.Cleanup(func() { r.close() })
	return r
}

func (r *rig) open() {
	r.t.Helper()
	s, err := sim.Open(r.opts)
	if err != nil {
		r.t.Fatal(err)
	}
	r.sim, r.srv = s, httptest.NewServer(s.Handler())
	r.key = str(r.control("GET", "/_sim/credentials?channel=stripe", "", 200), "stripe", "secret_key")
}

func (r *rig) close() {
	if r.srv == nil {
		return
	}
	r.srv.Close()
	r.srv = nil
	if err := r.sim.Close(); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) reopen() {
	r.close()
	r.open()
}

// reply is an answer with its decoded body.
type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (r *rig) do(method, path, key, contentType, idem, body string) (reply, error) {
	req, err := http.NewRequest(method, r.srv.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if idem != "" {
		req.Header.Set("Idempotency-Key", idem)
	}
	res, err := r.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	out := reply{status: res.StatusCode, header: res.Header, raw: string(b)}
	if err != nil {
		return out, err
	}
	_ = json.Unmarshal(b, &out.body) // HTML and cut bodies stay raw
	return out, nil
}

// api calls Stripe; form is "a=b&c=d".
func (r *rig) api(method, path, idem, form string, want int) reply {
	r.t.Helper()
	out, err := r.do(method, "/stripe/v1/"+path, r.key, "application/x-www-form-urlencoded", idem, form)
	if err != nil {
		r.t.Fatal(err)
	}
	if out.status != want {
		r.t.Fatalf("%s %s: %d %s, want %d", method, path, out.status, out.raw, want)
	}
	return out
}

func (r *rig) control(method, path, body string, want int) map[string]any {
	r.t.Helper()
	out, err := r.do(method, path, "", "application/json", "", body)
	if err != nil {
		r.t.Fatal(err)
	}
	if out.status != want {
		r.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, out.status, out.raw, want)
	}
	return out.body
}

// create makes an intent of 10.00 USD under a number.
func (r *rig) create(number, more string) string {
	r.t.Helper()
	form := "amount=1000&currency=usd&metadata[payonce_number]=" + number
	if more != "" {
		form += "&" + more
	}
	return str(r.api("POST", "payment_intents", "", form, 200).body, "id")
}

func (r *rig) paid(number string) string {
	r.t.Helper()
	return r.create(number, "payment_method=pm_card_visa&confirm=true")
}

func (r *rig) fault(operation, fault, more string) {
	r.t.Helper()
	r.control("POST", "/_sim/faults", `{"channel":"stripe","operation":"`+operation+`","fault":"`+fault+`"`+more+`}`, 201)
}

// lines are the books' charges of a number.
func (r *rig) lines(number string) []map[string]any {
	r.t.Helper()
	return pick(r.control("GET", "/_sim/books", "", 200), "charges", "number", number)
}

func (r *rig) line(number string) map[string]any {
	r.t.Helper()
	l := r.lines(number)
	if len(l) != 1 {
		r.t.Fatalf("%d lines of %s on the books, want 1: %v", len(l), number, l)
	}
	return l[0]
}

// calls is the books' count of received calls.
func (r *rig) calls(operation, number string) int {
	r.t.Helper()
	for _, c := range pick(r.control("GET", "/_sim/books", "", 200), "calls", "number", number) {
		if c["operation"] == operation && c["channel"] == "stripe" {
			return int(c["count"].(float64))
		}
	}
	return 0
}

func pick(books map[string]any, list, member, value string) []map[string]any {
	var out []map[string]any
	for _, v := range books[list].([]any) {
		if m := v.(map[string]any); m[member] == value {
			out = append(out, m)
		}
	}
	return out
}

func str(m map[string]any, path ...string) string {
	for _, p := range path[:len(path)-1] {
		m, _ = m[p].(map[string]any)
	}
	s, _ := m[path[len(path)-1]].(string)
	return s
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// until polls a condition that a real socket decides.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatal("never happened: " + what)
		}
		<-tick.C
	}
}

// shop receives notices.
type shop struct {
	srv    *httptest.Server
	got    chan delivered
	status func(n int, d delivered) int
}

type delivered struct {
	header http.Header
	raw    []byte
	event  map[string]any
}

func (d delivered) kind() string { return str(d.event, "type") }
func (d delivered) id() string   { return str(d.event, "id") }

func newShop(t *testing.T, status func(n int, d delivered) int) *shop {
	t.Helper()
	s := &shop{got: make(chan delivered, 1000), status: status}
	seen := make(chan int, 1)
	seen <- 0
	s.srv = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		d := delivered{header: r.Header, raw: b}
		_ = json.Unmarshal(b, &d.event)
		n := <-seen
		code := 200
		if s.status != nil {
			code = s.status(n, d)
		}
		s.got <- d
		seen <- n + 1
		rw.WriteHeader(code)
	}))
	t.Cleanup(s.srv.Close)
	return s
}

// next waits for a notice of one of the kinds and skips others.
func (s *shop) next(t *testing.T, kinds ...string) delivered {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		select {
		case d := <-s.got:
			for _, k := range kinds {
				if d.kind() == k {
					return d
				}
			}
		case <-limit:
			t.Fatalf("no notice of %v", kinds)
		}
	}
}

func (s *shop) endpoint(r *rig, events ...string) (secret string) {
	v := url.Values{"url": {s.srv.URL}, "enabled_events[]": events}
	return str(r.api("POST", "webhook_endpoints", "", v.Encode(), 200).body, "secret")
}

func bytesEqual(t *testing.T, what string, a, b string) {
	t.Helper()
	if !bytes.Equal([]byte(a), []byte(b)) {
		t.Fatalf("%s differ:\n%s\n%s", what, a, b)
	}
}
