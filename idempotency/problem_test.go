package idempotency

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const testDocs = "https://pay.example/docs/errors.md"

func TestR71_Catalogue(t *testing.T) {
	const s = time.Second
	cases := []struct {
		p          *Problem
		status     int
		code       string
		retry      string
		safeNewKey bool
		retryAfter bool
	}{
		{KeyMissing(), 400, "idempotency-key-missing", "new-key", true, false},
		{KeyInvalid("d"), 400, "idempotency-key-invalid", "never", true, false},
		{NotFingerprintable(400, "d"), 400, "request-not-fingerprintable", "new-key", true, false},
		{NotFingerprintable(413, "d"), 413, "request-not-fingerprintable", "new-key", true, false},
		{NotFingerprintable(415, "d"), 415, "request-not-fingerprintable", "new-key", true, false},
		{Reused(), 422, "idempotency-key-reused", "never", false, false},
		{InProgress("op", s), 409, "idempotency-in-progress", "same-key", false, true},
		{OutcomeUnknown("op", s), 409, "outcome-unknown", "same-key", false, true},
		{OutcomeNotStored("op", s), 503, "outcome-unknown", "same-key", false, true},
		{ResultUnavailable("op", 201, "/x"), 409, "result-unavailable", "never", false, false},
		{ResultExpired("op", 201, "/x"), 409, "result-expired", "never", false, false},
		{Unavailable(), 503, "idempotency-unavailable", "same-key", false, true},
		{TooManyUnresolved(), 429, "too-many-unresolved", "same-key", false, false},
		{ReplayNotAuthorized(), 403, "replay-not-authorized", "never", false, false},
		{RecordCorrupt("op"), 500, "record-corrupt", "same-key", false, false},
	}
	for _, c := range cases {
		w := httptest.NewRecorder()
		c.p.Write(w, testDocs)
		var doc struct {
			Type, Title, Detail, Code, Retry string
			Status                           int
			SafeNewKey                       *bool `json:"safe_new_key"`
			RetryAfter                       int   `json:"retry_after"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
			t.Fatalf("%s: %v in %s", c.code, err, w.Body)
		}
		if w.Code != c.status || doc.Status != c.status || doc.Code != c.code || doc.Retry != c.retry ||
			doc.SafeNewKey == nil || *doc.SafeNewKey != c.safeNewKey {
			t.Errorf("%s: %d %s", c.code, w.Code, w.Body)
		}
		if doc.Type != testDocs+"#"+c.code || doc.Title == "" || doc.Detail == "" {
			t.Errorf("%s: type, title or detail: %s", c.code, w.Body)
		}
		if got := w.Header().Get("Retry-After") != ""; got != c.retryAfter || (doc.RetryAfter > 0) != c.retryAfter {
			t.Errorf("%s: Retry-After %v, want %v", c.code, got, c.retryAfter)
		}
		if got := w.Header(); got.Get("Content-Type") != "application/problem+json" || got.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", c.code, got)
		}
		link := "<" + testDocs + `#idempotency-key-missing>; rel="describedby"`
		if got := w.Header().Get("Link"); (got == link) != (c.code == CodeKeyMissing) {
			t.Errorf("%s: Link %q", c.code, got)
		}
	}
}

func TestR71_MembersHaveAStableOrder(t *testing.T) {
	p := &Problem{
		Title: `T "q"`, Status: 409, Detail: "d\n", Code: "c", Retry: RetrySameKey, SafeNewKey: true,
		Operation: "pay_1", OperationState: "unknown", OriginalStatus: 201, RetryAfter: 1500 * time.Millisecond,
		Errors: []FieldError{{"/a", "x"}, {"", "y"}},
		Extra: map[string]json.RawMessage{
			"zeta": []byte(`1`), "payment": []byte(`{"id":"pay_1"}`), "none": nil,
			"status": []byte(`200`), "safe_new_key": []byte(`true`),
		},
	}
	const want = `{"type":"about:blank","title":"T \"q\"","status":409,"detail":"d\n","code":"c","retry":"same-key",` +
		`"safe_new_key":true,"operation":"pay_1","operation_state":"unknown","original_status":201,"retry_after":2,` +
		`"errors":[{"pointer":"/a","message":"x"},{"pointer":"","message":"y"}],` +
		`"none":null,"payment":{"id":"pay_1"},"zeta":1}`
	for range 20 {
		got, err := json.Marshal(p)
		if err != nil || string(got) != want {
			t.Fatalf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	if got, err := (&Problem{Title: "\xff"}).MarshalJSON(); err != nil || !json.Valid(got) || !strings.Contains(string(got), "\ufffd") {
		t.Errorf("text that is not UTF-8: %s, %v", got, err)
	}
}

func TestR71_WriteCleansUpAndKeepsWhatIsOfTheResponse(t *testing.T) {
	w := httptest.NewRecorder()
	for name, value := range map[string]string{
		"Content-Type": "text/html", "Content-Length": "1", "Content-Encoding": "gzip", "ETag": `"x"`,
		"Last-Modified": "x", "Location": "/old", "Request-Id": "req_1", "Cache-Control": "public",
	} {
		w.Header().Set(name, value)
	}
	p := &Problem{Code: "c", Type: "https://x.example/own", Location: "/v1/payments/pay_1", RetryAfter: time.Millisecond,
		Extra: map[string]json.RawMessage{"payment": []byte(`{broken`)}}
	p.Write(w, testDocs)
	if w.Code != 500 || !json.Valid(w.Body.Bytes()) || !strings.Contains(w.Body.String(), `"type":"https://x.example/own"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	h := w.Header()
	if h.Get("Request-Id") != "req_1" || h.Get("Location") != "/v1/payments/pay_1" || h.Get("Retry-After") != "1" {
		t.Errorf("headers %v", h)
	}
	if h.Get("ETag")+h.Get("Content-Encoding")+h.Get("Last-Modified") != "" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("headers of another answer are left: %v", h)
	}
	if p.Type == "" || len(p.Extra) != 1 {
		t.Error("Write changed the problem")
	}
	w = httptest.NewRecorder()
	KeyMissing().Write(w, "")
	if !strings.HasPrefix(w.Body.String(), `{"type":"about:blank"`) || w.Header().Get("Link") != "" {
		t.Errorf("without documentation: %s, Link %q", w.Body, w.Header().Get("Link"))
	}
}

func TestR71_ProblemIsAnError(t *testing.T) {
	var err error = KeyInvalid("The key is empty.")
	if err.Error() != "idempotency-key-invalid: The key is empty." {
		t.Error(err)
	}
	if (&Problem{Code: "c"}).Error() != "c" || errors.Unwrap(err) != nil {
		t.Error("a problem without detail or cause")
	}
}

func TestR32_RetryAfterIsOneToTenSeconds(t *testing.T) {
	for elapsed, want := range map[time.Duration]time.Duration{
		-time.Hour: 1, 0: 1, time.Millisecond: 1, time.Second: 1, 1001 * time.Millisecond: 2,
		9500 * time.Millisecond: 10, 10 * time.Second: 10, 11 * time.Second: 10, 1 << 62: 10,
	} {
		if got := RetryAfterInProgress(elapsed); got != want*time.Second {
			t.Errorf("after %v: %v, want %v s", elapsed, got, int64(want))
		}
		if got := InProgress("pay_1", elapsed); got.RetryAfter != want*time.Second || got.Operation != "pay_1" {
			t.Errorf("problem after %v: %+v", elapsed, got)
		}
	}
}

func TestR63_RetryAfterOfAnOutageIsSpread(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 1000 { // all three are missed with a chance of 3 × (2/3)^1000
		seen[Unavailable().RetryAfter] = true
	}
	if len(seen) != 3 || !seen[time.Second] || !seen[2*time.Second] || !seen[3*time.Second] {
		t.Errorf("Retry-After values %v, want 1, 2 and 3 s", seen)
	}
}

func TestR48_TombstoneNamesTheOperation(t *testing.T) {
	w := httptest.NewRecorder()
	ResultUnavailable("pay_1", 201, "/v1/payments/pay_1").Write(w, testDocs)
	for _, member := range []string{`"operation":"pay_1"`, `"operation_state":"completed"`, `"original_status":201`} {
		if !strings.Contains(w.Body.String(), member) {
			t.Errorf("%s is missing in %s", member, w.Body)
		}
	}
	if w.Header().Get("Location") != "/v1/payments/pay_1" {
		t.Errorf("Location %q", w.Header().Get("Location"))
	}
}
