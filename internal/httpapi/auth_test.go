package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// TestUnauthorized: whatever is wrong with a key, the answer is the same.
func TestUnauthorized(t *testing.T) {
	w := newWorld(t)
	var first string
	for name, headers := range map[string][]string{
		"none": {"Authorization: -"}, "nope": {"Authorization: Bearer nope"}, "unknown": {"Authorization: Bearer sk_test_unknown"},
		"revoked": {"Authorization: Bearer " + revokedKey}, "basic": {"Authorization: Basic " + apiKey}, "bare": {"Authorization: " + apiKey},
		"twice": {"Authorization: Bearer " + apiKey, "Authorization: Bearer " + apiKey}, "prefix alone": {"Authorization: Bearer sk_test_"},
		"prefix of the other environment": {"Authorization: Bearer " + mislabelled}, "long": {"Authorization: Bearer sk_test_" + strings.Repeat("x", 300)},
		"other prefix": {"Authorization: Bearer pk_test_m1"}, "empty": {"Authorization: "},
	} {
		a := w.call("POST", "/v1/payments", goodBody, append(headers, "Idempotency-Key: k")...)
		m := a.problem(401, "unauthorized")
		if a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
		detail := m["detail"].(string)
		if first == "" {
			first = detail
		}
		if detail != first {
			t.Errorf("%s says %q, another said %q", name, detail, first)
		}
	}
	if len(w.engine.calls) != 0 {
		t.Error("the engine was called")
	}
	// The header's scheme has no case, keys do.
	w.call("GET", "/v1/payments", "", "Authorization: bearer "+apiKey).ok(200)
	w.call("GET", "/v1/payments", "", "Authorization: Bearer "+strings.ToUpper(apiKey)).problem(401, "unauthorized")
}

func TestDevKeysAreTest(t *testing.T) {
	if claimed("sk_dev_payonce") != payonce.Test || claimed("sk_live_x") != payonce.Live || claimed("sk_test_x") != payonce.Test {
		t.Error("prefixes name other environments")
	}
}

// TestRoles: a key of role read may only look.
func TestRoles(t *testing.T) {
	w := newWorld(t)
	w.reader.payments = []*payonce.Payment{paid()}
	for _, path := range []string{"/v1/payments", "/v1/orders", "/v1/orders/A1/close", "/v1/orders/A1/amend", "/v1/payments/" + payID + "/sync", "/v1/payments/" + payID + "/cancel"} {
		w.call("POST", path, goodBody, "Authorization: Bearer "+readKey, "Idempotency-Key: k").problem(403, "forbidden")
	}
	w.call("GET", "/v1/payments/"+payID, "", "Authorization: Bearer "+readKey).ok(200)
	w.pay("k", goodBody, "Authorization: Bearer "+operatorKey).ok(201)
	for _, c := range []struct {
		role string
		a    access
		want bool
	}{{roleOperator, accessOperator, true}, {roleAPI, accessOperator, false}, {roleRead, accessOperator, false}, {"", accessRead, false}, {"admin", accessRead, false}} {
		if permitted(c.role, c.a) != c.want {
			t.Errorf("role %q access %d", c.role, c.a)
		}
	}
}

// TestR04OrderOfChecks: each request is wrong in two ways; the earlier check
// answers.
func TestR04OrderOfChecks(t *testing.T) {
	limited := false
	w := newWorld(t, func(o *Options) {
		o.Allow = func(store.Scope) time.Duration {
			if limited {
				return 3 * time.Second
			}
			return 0
		}
	})
	w.call("POST", "/v1/nothing", goodBody, "Authorization: -").problem(404, "not-found")
	w.call("POST", "/v1/payments", goodBody, "Authorization: -", "Idempotency-Key: a,b").problem(401, "unauthorized")
	limited = true
	a := w.call("POST", "/v1/payments", goodBody, "Authorization: Bearer "+readKey)
	a.problem(429, "rate-limited")
	if a.header.Get("Retry-After") != "3" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	limited = false
	w.call("POST", "/v1/payments", goodBody, "Authorization: Bearer "+readKey, "Idempotency-Key: a,b").problem(403, "forbidden")
	w.call("POST", "/v1/payments?x=1", "{", "Idempotency-Key: a,b").problem(400, "idempotency-key-invalid")
	w.call("POST", "/v1/payments?x=1", "{", "Idempotency-Key: k", "Content-Type: text/plain").problem(400, "invalid-request")
	w.call("POST", "/v1/payments", "{", "Idempotency-Key: k", "Content-Type: text/plain").problem(415, "unsupported-media-type")
	if len(w.engine.calls) != 0 {
		t.Error("the engine was called")
	}
}

// TestKeyCache: one look-up serves many requests, not for longer than promised;
// unknown keys are looked up each time, so a new key works at once.
func TestKeyCache(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		w.call("GET", "/v1/payments", "").ok(200)
	}
	if w.reader.asked != 1 {
		t.Errorf("the store was asked %d times", w.reader.asked)
	}
	revoked := *w.reader.keys[hashOf(apiKey)]
	revoked.RevokedAt = noon
	w.reader.keys[hashOf(apiKey)] = &revoked
	w.clock.advance(keyCacheTime - 1)
	w.call("GET", "/v1/payments", "").ok(200)
	w.clock.advance(1)
	w.call("GET", "/v1/payments", "").problem(401, "unauthorized")

	const fresh = "Authorization: Bearer sk_test_fresh"
	w.call("GET", "/v1/payments", "", fresh).problem(401, "unauthorized")
	w.reader.keys[hashOf("sk_test_fresh")] = &store.APIKey{Merchant: "m1", Environment: payonce.Test, Role: roleAPI}
	w.call("GET", "/v1/payments", "", fresh).ok(200)
}

func TestKeyCacheIsBounded(t *testing.T) {
	c := newKeyCache()
	for i := range 3 * keyCacheSize {
		c.put([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, &store.APIKey{}, noon.Add(time.Duration(i)*time.Millisecond))
	}
	if len(c.entries) > keyCacheSize {
		t.Errorf("%d entries", len(c.entries))
	}
}

// TestStoreDownAtAuthentication: a keyed POST is told to repeat with its key,
// everything else that the store is unavailable.
func TestStoreDownAtAuthentication(t *testing.T) {
	w := newWorld(t)
	w.reader.err = store.ErrUnavailable
	w.pay("k", goodBody).problem(503, "idempotency-unavailable")
	a := w.call("GET", "/v1/payments", "")
	a.problem(503, "store-unavailable")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.call("POST", "/v1/orders/A1/close", "{}").problem(503, "store-unavailable")
	r := httptest.NewRequest("GET", "/healthz", nil)
	w.do(r).ok(200) // R65: liveness does not depend on the store
}
