package idempotency

import "net/http"

// The header fields of the layer, in canonical spelling.
const (
	// HeaderKey carries the client's key (R5).
	HeaderKey = "Idempotency-Key"
	// HeaderReplayed is "true" on a replay and absent otherwise (R42).
	HeaderReplayed = "Idempotency-Replayed"
	// HeaderReplayedStripe is the spelling that clients of Stripe look for (R42).
	HeaderReplayedStripe = "Idempotent-Replayed"
	// HeaderStatus says what the layer did: one of the Status values.
	HeaderStatus = "Idempotency-Status"
	// HeaderExpires is the HTTP date until which the answer is kept (R58).
	HeaderExpires = "Idempotency-Expires"
)

// Values of [HeaderStatus].
const (
	StatusReplayed = "replayed" // the stored answer of an earlier request (R42)
	StatusPending  = "pending"  // the outcome is not known yet; this is the current state (R41)
	StatusIgnored  = "ignored"  // the route does not support keys (R3)
)

// SafeMethod reports whether the method changes nothing: GET, HEAD, OPTIONS and
// TRACE. On these the key is ignored completely: it is not parsed, so even a
// malformed one is no error, and there is no look-up, record or marker (R1).
// Methods are case-sensitive, as in HTTP.
func SafeMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
