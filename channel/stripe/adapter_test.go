package stripe

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

func TestMain(m *testing.M) {
	// Idle client connections end when their fake channel does.
	goleak.VerifyTestMain(m)
}

func payment(t *testing.T, a *Adapter) payonce.Payment {
	t.Helper()
	in := testIntent()
	request, err := a.Compose(in)
	if err != nil {
		t.Fatal(err)
	}
	return payonce.Payment{Number: in.Number, ObjectID: testObject, Request: request, Amount: in.Amount, Currency: in.Currency, DeadAt: in.DeadAt}
}

// TestS09_Config: a wrong key or secret is found at start-up, with a message
// that names the member and shows no secret.
func TestS09_Config(t *testing.T) {
	ok := Config{Account: "a", Environment: payonce.Test, SecretKey: testKey, WebhookSecrets: []string{testHook}}
	if _, err := New(ok); err != nil {
		t.Fatalf("a good configuration: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no account":       {func(c *Config) { c.Account = "" }, "account id"},
		"no environment":   {func(c *Config) { c.Environment = "" }, "environment"},
		"no key":           {func(c *Config) { c.SecretKey = "" }, "secret_key is missing"},
		"live key in test": {func(c *Config) { c.SecretKey = "sk_live_canary" }, "live key"},
		"test key in live": {func(c *Config) { c.Environment = payonce.Live }, "test key"},
		"publishable key":  {func(c *Config) { c.SecretKey = "pk_test_canary" }, "must start with"},
		"only a prefix":    {func(c *Config) { c.SecretKey = "sk_test_" }, "must start with"},
		"key with newline": {func(c *Config) { c.SecretKey = "sk_test_canary\n" }, "must start with"},
		"empty secret":     {func(c *Config) { c.WebhookSecrets = []string{testHook, ""} }, "webhook_secret 2"},
		"bare secret":      {func(c *Config) { c.WebhookSecrets = []string{"whsec_"} }, "webhook_secret 1"},
		"live publishable": {func(c *Config) { c.PublishableKey = "pk_live_canary" }, "publishable_key"},
		"relative base":    {func(c *Config) { c.BaseURL = "/stripe" }, "base_url"},
		"live over http": {func(c *Config) {
			c.SecretKey, c.Environment, c.BaseURL = "sk_live_canary", payonce.Live, "http://10.0.0.1"
		}, "https"},
		"account id": {func(c *Config) { c.StripeAccount = "cus_1" }, "acct_"},
		"maximum":    {func(c *Config) { c.MaxAmount = -1 }, "max_amount"},
		"X09 no verification": {func(c *Config) {
			c.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		}, "verify"},
		"X09 own dialer": {func(c *Config) {
			c.Transport = &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }}
		}, "dialer"},
	} {
		cfg := ok
		c.change(&cfg)
		_, err := New(cfg)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "anary") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, key := range []string{"sk_live_x", "rk_live_x"} {
		if _, err := New(Config{Account: "a", Environment: payonce.Live, SecretKey: key}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestI01_KeysAndHeaders: keys of each step, the pinned version, and nothing that
// describes this machine.
func TestI01_KeysAndHeaders(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	w.Answer(func(r channeltest.Request) channeltest.Reply { return say(query, settledStatement(), r) })
	a := newAdapter(t, w.URL+"/stripe/?strict=1", nil)
	defer a.CloseIdleConnections()
	p, ctx := payment(t, a), context.Background()
	for keyNo, keys := range map[int][3]string{
		0: {"-create-1", "-confirm", "-cancel-" + testObject},
		1: {"-create-1", "-confirm", "-cancel-" + testObject},
		3: {"-create-3", "-confirm-3", "-cancel-" + testObject + "-3"},
	} {
		c := channel.Call{Payment: p, KeyNo: keyNo}
		a.Prepare(ctx, c)
		a.Begin(ctx, c)
		a.Close(ctx, c)
		a.Query(ctx, c)
		reqs := w.Take()
		if len(reqs) != 4 {
			t.Fatalf("%d requests", len(reqs))
		}
		for i, want := range keys {
			if got := reqs[i].Header.Get("Idempotency-Key"); got != testNumber+want {
				t.Errorf("KeyNo %d: key %q, want %q", keyNo, got, testNumber+want)
			}
		}
		q := reqs[3]
		if q.Method != "GET" || q.Header.Get("Idempotency-Key") != "" || q.URI != "/stripe/v1/payment_intents/"+testObject+"?expand%5B%5D=latest_charge&strict=1" {
			t.Errorf("query: %s %s key %q", q.Method, q.URI, q.Header.Get("Idempotency-Key"))
		}
		for _, r := range reqs {
			if r.Header.Get("Authorization") != "Bearer "+testKey || r.Header.Get("Stripe-Version") != "2026-02-25.clover" ||
				r.Header.Get("X-Stripe-Client-Telemetry") != "" || r.Header.Get("Accept-Encoding") != "" || strings.Contains(r.Header.Get("X-Stripe-Client-User-Agent"), "uname") {
				t.Errorf("headers of %s: %v", r.URI, r.Header)
			}
		}
		for _, r := range reqs[:3] {
			if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.Header.Get("Transfer-Encoding") != "" {
				t.Errorf("form headers of %s: %v", r.URI, r.Header)
			}
		}
	}
}

// TestR05_ReusedConnectionIsReallyReused: the suite's case of a killed
// connection means something only if the connection was kept before.
func TestR05_ReusedConnectionIsReallyReused(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	w.Answer(func(r channeltest.Request) channeltest.Reply { return say(query, settledStatement(), r) })
	a := newAdapter(t, w.URL, nil)
	defer a.CloseIdleConnections()
	p := payment(t, a)
	for range 3 {
		a.Begin(context.Background(), channel.Call{Payment: p, KeyNo: 1})
		a.Query(context.Background(), channel.Call{Payment: p})
	}
	for _, r := range w.Take() {
		if r.Conn != 1 {
			t.Fatalf("a request came on connection %d", r.Conn)
		}
	}
}

// TestI02_NothingToSend: without an intent there is nothing to confirm, ask or cancel,
// and damaged bytes are not sent.
func TestI02_NothingToSend(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, nil)
	ctx, p := context.Background(), payment(t, a)
	for _, id := range []string{"", "pi_", "pi_1/../../charges", "ch_1", "pi_1?x"} {
		q := p
		q.ObjectID = id
		c := channel.Call{Payment: q, KeyNo: 1}
		for name, ans := range map[string]channel.Answer{"begin": a.Begin(ctx, c), "query": a.Query(ctx, c), "close": a.Close(ctx, c)} {
			want := payonce.StateUnknown
			if name == "begin" {
				want = payonce.StateNotSent
			}
			if ans.Kind != want || ans.Reason != "no-object" || ans.Err == nil {
				t.Errorf("%s of %q: %s (%s)", name, id, ans.Kind, ans.Reason)
			}
		}
	}
	p.Request = append(p.Request, 'x')
	c := channel.Call{Payment: p, KeyNo: 1}
	for name, ans := range map[string]channel.Answer{"prepare": a.Prepare(ctx, c), "begin": a.Begin(ctx, c)} {
		if ans.Kind != payonce.StateNotSent || ans.Reason != "request-damaged" {
			t.Errorf("%s: %s (%s)", name, ans.Kind, ans.Reason)
		}
	}
	if n := len(w.Take()); n != 0 {
		t.Errorf("%d requests left", n)
	}
}

// TestX10_ActionAndEvidence: what the payer gets, and that evidence does not hold it.
func TestX10_ActionAndEvidence(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, func(c *Config) { c.PublishableKey = "pk_test_1" })
	defer a.CloseIdleConnections()
	p := payment(t, a)
	st := settledStatement()
	st.Kind = payonce.StateWaiting
	o := object(st)
	w.Answer(func(channeltest.Request) channeltest.Reply { return channeltest.Reply{Body: mustJSON(o)} })
	ans := a.Begin(context.Background(), channel.Call{Payment: p, KeyNo: 1})
	if act := ans.Action; act == nil || act.Type != "redirect" || !strings.HasSuffix(act.URL, testSecret) || !act.ExpiresAt.Equal(p.DeadAt) || act.Params != nil {
		t.Errorf("redirect: %+v", act)
	}
	o["next_action"] = map[string]any{"type": "use_stripe_sdk", "use_stripe_sdk": map[string]any{"client_secret": testSecret, "stripe_js": "https://x/?a=" + testSecret}}
	ans = a.Begin(context.Background(), channel.Call{Payment: p, KeyNo: 1})
	if act := ans.Action; act == nil || act.Type != "client_params" || act.Params["client_secret"] != testSecret || act.Params["publishable_key"] != "pk_test_1" || act.URL != "" {
		t.Errorf("client_params: %+v", act)
	}
	if raw := string(ans.Raw); strings.Contains(raw, "Canary") || !strings.Contains(raw, testObject) {
		t.Errorf("evidence: %s", raw)
	}
}

// TestSettledTime: the time of the charge, where the answer has it.
func TestSettledTime(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, nil)
	defer a.CloseIdleConnections()
	o := object(settledStatement())
	w.Answer(func(channeltest.Request) channeltest.Reply { return channeltest.Reply{Body: mustJSON(o)} })
	c := channel.Call{Payment: payment(t, a)}
	if at := a.Query(context.Background(), c).At; !at.Equal(time.Unix(1700000100, 0)) {
		t.Errorf("at %v", at)
	}
	o["latest_charge"] = "ch_1"
	if ans := a.Query(context.Background(), c); !ans.At.IsZero() || ans.Kind != payonce.StateSettled {
		t.Errorf("%s at %v", ans.Kind, ans.At)
	}
	// A failed try whose error was wiped by an update is still a failed try.
	o["status"] = "requires_payment_method"
	if ans := a.Query(context.Background(), c); ans.Kind != payonce.StateDeclined || ans.Failure == nil || ans.Failure.Code != "declined" {
		t.Errorf("%s %+v", ans.Kind, ans.Failure)
	}
}

// TestZ06_ServerDate: the channel's clock counts only from the channel itself.
func TestZ06_ServerDate(t *testing.T) {
	date := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ask := func(tlsOn bool, change func(*Config), own bool) time.Time {
		var cert *tls.Certificate
		cfg := func(c *Config) {}
		if tlsOn {
			c, pool := channeltest.Certificate(t)
			cert = c
			cfg = func(c *Config) { c.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}} }
		}
		w := channeltest.NewWire(t, cert)
		w.Answer(func(r channeltest.Request) channeltest.Reply {
			rep := say(query, settledStatement(), r)
			rep.Header = http.Header{"Date": {date.Format(http.TimeFormat)}}
			return rep
		})
		a := newAdapter(t, w.URL, func(c *Config) { cfg(c); change(c) })
		defer a.CloseIdleConnections()
		a.ownDate = a.ownDate || own
		return a.Query(context.Background(), channel.Call{Payment: payment(t, a)}).ServerDate
	}
	none, trusted := func(*Config) {}, func(c *Config) { c.TrustedDate = true }
	if d := ask(false, none, false); !d.IsZero() {
		t.Errorf("another host over http: %v", d)
	}
	if d := ask(true, none, false); !d.IsZero() {
		t.Errorf("another host over TLS: %v", d)
	}
	if d := ask(false, trusted, false); !d.Equal(date) {
		t.Errorf("declared trusted: %v", d)
	}
	if d := ask(false, none, true); !d.IsZero() {
		t.Errorf("Stripe's host without TLS: %v", d)
	}
	if d := ask(true, none, true); !d.Equal(date) {
		t.Errorf("Stripe's host over verified TLS: %v", d)
	}
	if a := newAdapter(t, "", nil); !a.ownDate {
		t.Error("the default base URL is not taken for Stripe's own")
	}
	for _, base := range []string{"http://api.stripe.com", "https://api.stripe.com.example", "https://proxy.example/api.stripe.com"} {
		if a := newAdapter(t, base, nil); a.ownDate {
			t.Errorf("%s is taken for Stripe's own", base)
		}
	}
	if a := newAdapter(t, "", func(c *Config) { c.Transport = &http.Transport{} }); a.ownDate {
		t.Error("own roots are taken for Stripe's own")
	}
}

// TestS09_Probe: start-up learns the account, and finds keys of another one.
func TestS09_Probe(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	body, status := `{"id":"acct_1","object":"account"}`, 200
	w.Answer(func(channeltest.Request) channeltest.Reply {
		return channeltest.Reply{Status: status, Body: []byte(body)}
	})
	a := newAdapter(t, w.URL, nil)
	defer a.CloseIdleConnections()
	if id, live, err := a.Probe(context.Background()); id != "acct_1" || live || err != nil {
		t.Errorf("probe: %s %t %v", id, live, err)
	}
	if r := w.Take(); len(r) != 1 || r[0].Method != "GET" || r[0].URI != "/v1/account" {
		t.Errorf("requests: %v", r)
	}
	for _, c := range []struct {
		status int
		body   string
	}{
		{200, `{"id":"acct_2"}`}, {200, `{"id":"acct_1","livemode":true}`}, {200, `{}`}, {200, `<html>`},
		{401, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided: ` + testKey + `"}}`}, {302, ``},
	} {
		status, body = c.status, c.body
		if _, _, err := a.Probe(context.Background()); err == nil || strings.Contains(err.Error(), testKey) {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
	}
}

// TestR09_Reasons: the stable words for answers that never came.
func TestR09_Reasons(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	hang := make(chan struct{})
	defer close(hang)
	w.Handle(func(net.Conn, channeltest.Request) bool { <-hang; return false })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	a := newAdapter(t, w.URL, nil)
	c := channel.Call{Payment: payment(t, a), KeyNo: 1}
	if ans := a.Begin(ctx, c); ans.Reason != "timeout" || ans.Kind != payonce.StateUnknown {
		t.Errorf("deadline: %s (%s)", ans.Kind, ans.Reason)
	}
	closed := newAdapter(t, "http://127.0.0.1:1", nil)
	if ans := closed.Begin(context.Background(), c); ans.Reason != "not-connected" || ans.Kind != payonce.StateNotSent {
		t.Errorf("closed port: %s (%s)", ans.Kind, ans.Reason)
	}
	w2 := channeltest.NewWire(t, nil)
	w2.Handle(func(net.Conn, channeltest.Request) bool { return false })
	lost := newAdapter(t, w2.URL, nil)
	if ans := lost.Begin(context.Background(), c); ans.Reason != "connection-lost" || ans.Kind != payonce.StateUnknown {
		t.Errorf("hang-up: %s (%s)", ans.Kind, ans.Reason)
	}
}
