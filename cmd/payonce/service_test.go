package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/run"
)

// timed records the deadlines that a handler's connection is given.
type timed struct {
	*httptest.ResponseRecorder
	read, write []time.Time
}

func (t *timed) SetReadDeadline(d time.Time) error  { t.read = append(t.read, d); return nil }
func (t *timed) SetWriteDeadline(d time.Time) error { t.write = append(t.write, d); return nil }

func TestR19_ABodyHasADeadlineAndAWaitHasNone(t *testing.T) {
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	during := 0
	deadlines(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		during = len(w.read)
		_, _ = io.ReadAll(r.Body)
	})).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")))
	if during != 1 || len(w.read) != 2 || w.read[0].IsZero() || !w.read[1].IsZero() {
		t.Errorf("read deadlines: %v", w.read)
	}
	w = &timed{ResponseRecorder: httptest.NewRecorder()}
	deadlines(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if len(w.read)+len(w.write) != 0 {
		t.Errorf("a request without a body: %v %v", w.read, w.write)
	}
}

func TestB11_EveryWriteOfAStreamHasItsOwnTime(t *testing.T) {
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept", "text/event-stream")
	deadlines(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "event: payment\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
	})).ServeHTTP(w, r)
	if len(w.write) < 2 || !w.Flushed {
		t.Errorf("write deadlines %v, flushed %v", w.write, w.Flushed)
	}
}

func TestG14_MetricsNameNoOrder(t *testing.T) {
	reg := prometheus.NewRegistry()
	observe := newObserver(reg)
	observe("call.begin", "stripe", "settled")
	observe("payment", "stripe", "SUCCEEDED")
	observe("alarm", "stripe", "")
	observe("alarm", "stripe", "surplus-charge")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			counted++
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "channel", "step", "answer", "status", "alarm":
				default:
					t.Errorf("%s has the label %s", f.GetName(), l.GetName())
				}
			}
		}
	}
	if counted != 3 {
		t.Errorf("%d series, want 3", counted)
	}
}

// The derived secret is part of every record ever stored: it may not change,
// and it stays readable when another one is configured.
func TestR18_AConfiguredSecretKeepsOldFingerprintsReadable(t *testing.T) {
	scope := idempotency.Scope{Environment: "test", Tenant: "m1"}
	req := idempotency.Request{Method: "POST", EscapedPath: "/v1/payments"}
	before, err := newFingerprinter("0123456789abcdef", &config.Config{})
	if err != nil {
		t.Fatal(err)
	}
	old, err := before.Sum(scope, req)
	if err != nil {
		t.Fatal(err)
	}
	after, err := newFingerprinter("0123456789abcdef", &config.Config{FingerprintSecrets: []config.FingerprintSecret{{ID: "f1", Secret: config.NewSecret("fedcba9876543210")}}})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := after.Match(old, scope, req); err != nil || !ok {
		t.Errorf("the old fingerprint: %v %v", ok, err)
	}
	if now, err := after.Sum(scope, req); err != nil || now.Secret != "f1" || old.Secret != "installation" {
		t.Errorf("new ones are signed by %q, old ones by %q (%v)", now.Secret, old.Secret, err)
	}
}

func TestCheckoutOffersTestCardsOnlyInTheTestEnvironment(t *testing.T) {
	account := func(id string, env payonce.Environment, paused bool) config.Account {
		return config.Account{ID: id, Channel: "stripe", Environment: env, Paused: paused, SecretKey: config.NewSecret("sk_" + string(env) + "_x"), WebhookSecret: config.NewSecret("whsec_x")}
	}
	accounts, err := openAccounts(&config.Config{Merchants: []config.Merchant{
		{ID: "m1", Accounts: []config.Account{account("a", payonce.Test, false), account("b", payonce.Live, false)}},
		{ID: "m2", Accounts: []config.Account{account("c", payonce.Test, true)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{accounts: accounts}
	for key, want := range map[payonce.OrderKey]int{
		{Merchant: "m1", Environment: payonce.Test}: 3, {Merchant: "m1", Environment: payonce.Live}: 0,
		{Merchant: "m2", Environment: payonce.Test}: 0, {Merchant: "m3", Environment: payonce.Test}: 0,
	} {
		got := s.choices(key)
		if len(got) != want {
			t.Errorf("%v: %d choices, want %d", key, len(got), want)
		}
		for _, c := range got {
			if c.Account != "a" {
				t.Errorf("%v is offered account %s", key, c.Account)
			}
		}
	}
}

func TestTheClockIsMovedOnlyByAWellFormedCall(t *testing.T) {
	d := &devParts{clock: new(run.Clock)}
	for body, want := range map[string]int{
		`{"offset_s":60}`: http.StatusNoContent, `{}`: http.StatusBadRequest, `{"offset_s":"60"}`: http.StatusBadRequest,
		`{"offset":60}`: http.StatusBadRequest, `{"offset_s":99999999999999}`: http.StatusBadRequest, ``: http.StatusBadRequest,
	} {
		w := httptest.NewRecorder()
		d.setClock(w, httptest.NewRequest(http.MethodPost, "/_dev/clock", strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", body, w.Code, want)
		}
	}
	if d.clock.Offset() != time.Minute {
		t.Errorf("offset %v", d.clock.Offset())
	}
}

func TestErrorsBecomeExitCodes(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int
		text string
	}{
		{nil, exitOK, ""},
		{errors.New("unknown flag: --x"), exitUsage, "payonce: unknown flag: --x\npayonce: see payonce help\n"},
		{configError(config.Problems{"a: wrong", "b: wrong"}), exitConfig, "payonce: a: wrong\npayonce: b: wrong\n"},
		{coded(exitDatabase, exit(exitPort, "taken")), exitPort, "payonce: taken\n"},
		{coded(exitDatabase, errors.New("gone")), exitDatabase, "payonce: gone\n"},
		{exit(exitNotGood, "1 finding"), exitNotGood, "payonce: 1 finding\n"},
	} {
		var b bytes.Buffer
		if code := report(tc.err, &b); code != tc.code || b.String() != tc.text {
			t.Errorf("%v: %d %q, want %d %q", tc.err, code, b.String(), tc.code, tc.text)
		}
	}
}

func TestDoctorComparesClocks(t *testing.T) {
	var out bytes.Buffer
	d := &doctor{streams: streams{out: &out}}
	now := time.Now()
	d.clocks(now, now.Add(time.Second))
	if d.bad != 0 {
		t.Errorf("a second is nothing:\n%s", out.String())
	}
	d.clocks(now, now.Add(-time.Minute))
	if d.bad != 1 || !strings.Contains(out.String(), "differ by 1m0s") {
		t.Errorf("a minute is much:\n%s", out.String())
	}
}

func TestDoctorAsksAccountsWithoutShowingSecrets(t *testing.T) {
	answer := http.StatusOK
	channel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/account" {
			t.Errorf("%s %s is no harmless question", r.Method, r.URL.Path)
		}
		w.WriteHeader(answer)
		_, _ = io.WriteString(w, `{"id":"acct_1"}`)
	}))
	defer channel.Close()
	accounts, err := openAccounts(&config.Config{Merchants: []config.Merchant{{ID: "m1", Accounts: []config.Account{{ID: "s1", Channel: "stripe",
		Environment: payonce.Test, BaseURL: channel.URL, SecretKey: config.NewSecret("sk_test_hidden"), WebhookSecret: config.NewSecret("whsec_hidden")}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := &doctor{streams: streams{out: &out}}
	d.account(context.Background(), &accounts[0])
	answer = http.StatusUnauthorized
	d.account(context.Background(), &accounts[0])
	if d.found != 2 || d.bad != 1 || !strings.Contains(out.String(), "acct_1") || strings.Contains(out.String(), "hidden") {
		t.Errorf("%d of %d:\n%s", d.bad, d.found, out.String())
	}
}
