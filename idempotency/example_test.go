package idempotency_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/payonce/payonce/idempotency"
)

func ExampleParseKey() {
	h := http.Header{}
	h.Set("Idempotency-Key", `"order-17"`)
	key, present, err := idempotency.ParseKey(h, idempotency.KeyOptions{})
	fmt.Println(key.Value(), present, err)
	fmt.Println("in a log:", key)

	h.Set("Idempotency-Key", "one,two")
	_, _, err = idempotency.ParseKey(h, idempotency.KeyOptions{})
	fmt.Println(err)
	// Output:
	// order-17 true <nil>
	// in a log: [idempotency key]
	// idempotency-key-invalid: The idempotency key contains a comma, which separates two keys; send exactly one, or write it in double quotes.
}

func ExampleCanonicalJSON() {
	out, _ := idempotency.CanonicalJSON([]byte(`{ "b": 1.0, "a": "\u0041" }`))
	fmt.Println(string(out))

	_, err := idempotency.CanonicalJSON([]byte(`{"items":[{"id":1,"id":2}]}`))
	var e *idempotency.JSONError
	if errors.As(err, &e) {
		fmt.Println(e.Pointer, e.Reason)
	}
	// Output:
	// {"a":"A","b":1.0}
	// /items/0/id The object has two members of this name.
}

// A secret is rotated by putting the new one in front. Records keep the id of the
// secret that they were made under.
func ExampleFingerprinter_Match() {
	january := idempotency.Secret{ID: "january", Key: []byte("0123456789abcdef0123456789abcdef")}
	february := idempotency.Secret{ID: "february", Key: []byte("fedcba9876543210fedcba9876543210")}
	scope := idempotency.Scope{Environment: "live", Tenant: "merchant-1"}
	request := idempotency.Request{Method: "POST", EscapedPath: "/charges", Body: []byte("amount=100")}

	before, _ := idempotency.NewFingerprinter(january)
	stored, _ := before.Sum(scope, request)

	after, _ := idempotency.NewFingerprinter(february, january)
	same, err := after.Match(stored, scope, request)
	fmt.Println(stored.Secret, same, err)

	request.RawQuery = "x=1"
	same, err = after.Match(stored, scope, request)
	fmt.Println(stored.Secret, same, err)
	// Output:
	// january true <nil>
	// january false <nil>
}

func ExampleParsePrefer() {
	h := http.Header{"Prefer": {`respond-async, wait=90`}}
	p := idempotency.ParsePrefer(h, idempotency.MaxWait)
	fmt.Println(p.Wait, p.RespondAsync)
	// Output: 30s true
}

func ExampleProblem() {
	p := idempotency.InProgress("pay_1", 2500*time.Millisecond)
	p.Extra = map[string]json.RawMessage{"payment": json.RawMessage(`{"id":"pay_1"}`)}
	w := httptest.NewRecorder()
	p.Write(w, "https://api.example/docs/errors.md")
	var out bytes.Buffer
	_ = json.Indent(&out, w.Body.Bytes(), "", "  ")
	fmt.Println(&out)
	fmt.Println("Retry-After:", w.Header().Get("Retry-After"))
	// Output:
	// {
	//   "type": "https://api.example/docs/errors.md#idempotency-in-progress",
	//   "title": "Request is in progress",
	//   "status": 409,
	//   "detail": "The first request with this key has not been answered yet. Send the same request with the same key again after the given time.",
	//   "code": "idempotency-in-progress",
	//   "retry": "same-key",
	//   "safe_new_key": false,
	//   "operation": "pay_1",
	//   "retry_after": 3,
	//   "payment": {
	//     "id": "pay_1"
	//   }
	// }
	// Retry-After: 3
}
