package stripe

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v84/webhook"
	"pgregory.net/rapid"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel/channeltest"
)

func settledStatement() channeltest.Statement {
	return channeltest.Statement{Kind: payonce.StateSettled, Number: testNumber, Object: testObject, Amount: 1999, Currency: "EUR"}
}

// forgedNotices are what the suite cannot think of: other keys, other schemes,
// other forms of body, all with a signature that is right in itself.
func forgedNotices(_ testing.TB, s channeltest.Statement, at time.Time) []channeltest.Forgery {
	body := event("evt_1", "payment_intent.succeeded", false, object(s))
	good := sign(testHook, at, body)
	stamp, v1, _ := strings.Cut(good, ",")
	head := func(v string) http.Header { return http.Header{"Stripe-Signature": {v}} }
	var out []channeltest.Forgery
	for name, v := range map[string]string{
		"other_secret": sign("whsec_other", at, body), "api_key_as_secret": sign(testKey, at, body),
		"secret_without_prefix": sign(strings.TrimPrefix(testHook, "whsec_"), at, body), "empty_secret": sign("", at, body),
		"v0_only": stamp + "," + strings.Replace(v1, "v1", "v0", 1), "no_t": v1, "no_v1": stamp,
		"two_t": stamp + "," + good, "second_t_later": good + ",t=9999999999", "no_equals": good + ",x",
		"two_equals": good + ",a=b=c", "padded_t": strings.Replace(good, "t=", "t=0", 1), "signed_t": strings.Replace(good, "t=", "t=+", 1),
		"blank": " " + good, "upper_hex": stamp + ",v1=" + strings.ToUpper(v1[3:]), "short_v1": good[:len(good)-2],
		"long_header": good + strings.Repeat(",v0=00", 1000),
	} {
		out = append(out, channeltest.Forgery{Name: name, Header: head(v), Body: body})
	}
	for name, b := range map[string][]byte{
		"thin_v2": []byte(`{"id":"evt_1","object":"v2.core.event","type":"v1.billing.meter.no_meter_found","livemode":false}`),
		"array":   []byte(`[]`), "empty": {}, "no_id": []byte(`{"object":"event","type":"a.b","livemode":false}`),
		"no_mode":   []byte(`{"id":"evt_1","object":"event","type":"payment_intent.succeeded","data":{"object":{}}}`),
		"no_object": []byte(`{"id":"evt_1","object":"event","type":"payment_intent.succeeded","livemode":false,"data":{}}`),
		"X08_deep":  []byte(`{"id":"evt_1","object":"event","type":"a.b","livemode":false,"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`),
		"X08_large": []byte(`{"id":"evt_1","object":"event","type":"a.b","livemode":false,"x":"` + strings.Repeat("x", 2<<20) + `"}`),
		"connect":   []byte(`{"id":"evt_1","object":"event","type":"a.b","livemode":false,"account":"acct_other"}`),
		"trailing":  append(event("evt_1", "payment_intent.succeeded", false, object(s)), '{'),
	} {
		out = append(out, channeltest.Forgery{Name: "signed_" + name, Header: signed(at, b), Body: b})
	}
	return out
}

// TestSignatureVector is the vector of docs/channels.md, against both verifiers.
func TestSignatureVector(t *testing.T) {
	const header = "t=1700000000,v1=ceb8863f7208fa249a6cd8f951e993c7563412aca65866f6272283debe143ab3"
	secrets := []string{"whsec_test_secret"}
	h := http.Header{"Stripe-Signature": {header}}
	at := time.Unix(1700000000, 0)
	if err := verify(h, []byte("{}"), secrets, at); err != nil {
		t.Errorf("the documented vector is refused: %v", err)
	}
	if err := webhook.ValidatePayloadIgnoringTolerance([]byte("{}"), header, secrets[0]); err != nil {
		t.Errorf("the official verifier refuses the vector: %v", err)
	}
	if err := verify(h, []byte("{ }"), secrets, at); !errors.Is(err, ErrSignature) {
		t.Errorf("another body: %v", err)
	}
	if err := verify(h, []byte("{}"), nil, at); !errors.Is(err, ErrSignature) {
		t.Errorf("no secret configured: %v", err)
	}
	if err := verify(h, []byte("{}"), secrets, at.Add(time.Hour)); !errors.Is(err, ErrTimestamp) {
		t.Errorf("an hour late: %v", err)
	}
}

// TestSignatureAgainstOfficial: what the official library signs is accepted,
// and whatever we accept, it accepts too.
func TestSignatureAgainstOfficial(t *testing.T) {
	const secret = "whsec_test_secret"
	now := time.Now().Truncate(time.Second)
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		at := now.Add(time.Duration(rapid.IntRange(-290, 290).Draw(t, "age")) * time.Second)
		p := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: secret, Timestamp: at})
		if err := verify(http.Header{"Stripe-Signature": {p.Header}}, body, []string{"whsec_old", secret}, now); err != nil {
			t.Fatalf("the official signature %s is refused: %v", p.Header, err)
		}
		parts := strings.Split(p.Header, ",")
		extra := rapid.SampledFrom([]string{"v0=00", "v1=00", "v1=zz", "v2=", "t=1", "x", "v1=a=b", "", " v1=00", parts[0], parts[1]})
		mixed := strings.Join(rapid.Permutation(append(parts, rapid.SliceOfN(extra, 0, 3).Draw(t, "extra")...)).Draw(t, "order"), ",")
		ours := verify(http.Header{"Stripe-Signature": {mixed}}, body, []string{secret}, now)
		theirs := webhook.ValidatePayload(body, mixed, secret)
		if ours == nil && theirs != nil {
			t.Fatalf("accepted %q, the official verifier says %v", mixed, theirs)
		}
		if theirs == nil && ours != nil && !errors.Is(ours, ErrHeader) {
			t.Fatalf("refused %q with %v, the official verifier accepts", mixed, ours)
		}
	})
}

// TestRolledSecret: during a roll the notice carries two v1, and either of our
// secrets is enough.
func TestRolledSecret(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	body := event("evt_1", "payment_intent.succeeded", false, object(settledStatement()))
	stamp, v1, _ := strings.Cut(sign("whsec_new", now, body), ",")
	header := stamp + ",v0=abc,v1=" + strings.Repeat("0", 64) + "," + v1
	for _, secrets := range [][]string{{"whsec_new"}, {"whsec_old", "whsec_new"}, {"whsec_new", "whsec_old"}} {
		a := newAdapter(t, "http://127.0.0.1:1", func(c *Config) {
			c.WebhookSecrets, c.Now = secrets, func() time.Time { return now }
		})
		if _, err := a.ReadNotice(http.Header{"Stripe-Signature": {header}}, body); err != nil {
			t.Errorf("with %d secrets: %v", len(secrets), err)
		}
	}
}

// TestO01_EventsAreReadByTypeAndObject: the meaning of each event; what is not
// an intent's state leaves the question to a query.
func TestO01_EventsAreReadByTypeAndObject(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	a := newAdapter(t, "http://127.0.0.1:1", func(c *Config) { c.Now = func() time.Time { return now }; c.StripeAccount = "acct_1" })
	in := func(status string) map[string]any {
		o := object(settledStatement())
		o["status"] = status
		return o
	}
	charge := map[string]any{"id": "ch_1", "object": "charge", "status": "succeeded", "payment_intent": testObject, "metadata": map[string]any{"payonce_number": testNumber}}
	for _, c := range []struct {
		typ    string
		obj    map[string]any
		want   payonce.FactKind
		reason string
		number string
		object string
	}{
		{"payment_intent.succeeded", in("succeeded"), payonce.StateSettled, "", testNumber, testObject},
		{"payment_intent.processing", in("processing"), payonce.StateWaiting, "", testNumber, testObject},
		{"payment_intent.amount_capturable_updated", in("requires_capture"), payonce.StateWaiting, "", testNumber, testObject},
		{"payment_intent.payment_failed", in("requires_payment_method"), payonce.StateDeclined, "", testNumber, testObject},
		{"payment_intent.payment_failed", in("canceled"), payonce.StateDeclined, "", testNumber, testObject},
		{"payment_intent.payment_failed", in("succeeded"), payonce.StateUnknown, "contradiction", testNumber, testObject},
		{"payment_intent.created", in("requires_payment_method"), payonce.StateUnconfirmed, "", testNumber, testObject},
		{"payment_intent.partially_funded", in("blessed"), payonce.StateUnknown, "status", testNumber, testObject},
		{"charge.succeeded", charge, payonce.StateUnknown, "related-event", testNumber, testObject},
		{"charge.dispute.created", map[string]any{"id": "dp_1", "payment_intent": map[string]any{"id": testObject}}, payonce.StateUnknown, "related-event", "", testObject},
		{"refund.updated", map[string]any{"id": "re_1", "payment_intent": nil}, payonce.StateUnknown, "related-event", "", ""},
		{"payout.paid", map[string]any{"id": "po_1"}, payonce.StateUnknown, "other-event", "", ""},
	} {
		body := event("evt_9", c.typ, false, c.obj)
		n, err := a.ReadNotice(signed(now, body), body)
		if err != nil {
			t.Errorf("%s: %v", c.typ, err)
			continue
		}
		f := n.Fact
		if f.Kind != c.want || f.Reason != c.reason || n.Number != c.number || f.Object != c.object || n.Type != c.typ || n.EventID != "evt_9" {
			t.Errorf("%s: %s (%s) number %q object %q", c.typ, f.Kind, f.Reason, n.Number, f.Object)
		}
		if f.Kind == payonce.StateUnknown && (f.Amount != 0 || f.PaymentRef != "") {
			t.Errorf("%s: no knowledge that names an amount", c.typ)
		}
	}
	own := []byte(`{"id":"evt_1","object":"event","type":"a.b","livemode":false,"account":"acct_1"}`)
	if _, err := a.ReadNotice(signed(now, own), own); err != nil {
		t.Errorf("an event that names our own account: %v", err)
	}
	foreign := []byte(`{"id":"evt_1","object":"event","type":"a.b","livemode":false,"account":"acct_2"}`)
	if _, err := a.ReadNotice(signed(now, foreign), foreign); !errors.Is(err, ErrAccount) {
		t.Errorf("an event of another account: %v", err)
	}
	other := event("evt_1", "payment_intent.succeeded", true, object(settledStatement()))
	if _, err := a.ReadNotice(signed(now, other), other); !errors.Is(err, ErrEnvironment) {
		t.Errorf("X01: a live event at a test account: %v", err)
	}
}
