package idempotency

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Values of [Problem.Retry]: what a client may do with the same intent.
const (
	RetrySameKey = "same-key" // send the same request with the same key
	RetryNewKey  = "new-key"  // send it again with a new key
	RetryNever   = "never"    // this request cannot succeed
)

// Problem is an error answer as application/problem+json (RFC 9457, R71). It is
// meant to be read by programs: Code says what happened, Retry and SafeNewKey what
// to do. It is an error, so that functions can return it as such.
type Problem struct {
	// Type is a stable address that explains the code. Left empty, [Problem.Write]
	// makes it from the address of the documentation and the code.
	Type   string
	Title  string // the same for every problem of one code
	Status int    // of HTTP
	// Detail is about this occurrence. It never holds a key, a secret, or what a
	// driver or a channel said.
	Detail string
	Code   string
	Retry  string // one of the Retry values
	// SafeNewKey says that a new key cannot make the operation happen twice.
	SafeNewKey bool
	// Operation is the reference of what the key stands for, "" if there is none
	// or it is not known; OperationState is its state, for instance "completed".
	Operation, OperationState string
	// OriginalStatus is the status of the first answer when its body is no longer
	// there (R48); 0 otherwise.
	OriginalStatus int
	// Location is the address of the operation's resource, written as the header;
	// "" for none.
	Location string
	// RetryAfter is how long to wait before a retry, rounded up to whole seconds
	// on the wire; 0 for no advice.
	RetryAfter time.Duration
	Errors     []FieldError
	// Extra are further members, written last in the order of their names. A name
	// that the problem itself uses is left out.
	Extra map[string]json.RawMessage

	cause error
}

// FieldError is one thing wrong with the request.
type FieldError struct {
	Pointer string // JSON pointer (RFC 6901) into the body, "" for all of it
	Message string // a sentence for the developer of the client
}

// Error returns the code and the detail, for logs.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Code
	}
	return p.Code + ": " + p.Detail
}

// Unwrap returns the error behind the problem, which is never shown to clients.
func (p *Problem) Unwrap() error { return p.cause }

// MarshalJSON writes the members in a fixed order: type, title, status, detail,
// code, retry, safe_new_key, then operation, operation_state, original_status,
// retry_after (seconds) and errors where they apply, then the extra ones.
func (p *Problem) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 512)
	b = append(b, '{')
	b = appendMember(b, "type", p.typeOr("about:blank"))
	b = appendMember(b, "title", p.Title)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.status()), 10)
	b = appendMember(b, "detail", p.Detail)
	b = appendMember(b, "code", p.Code)
	b = appendMember(b, "retry", p.Retry)
	b = append(b, `,"safe_new_key":`...)
	b = strconv.AppendBool(b, p.SafeNewKey)
	if p.Operation != "" {
		b = appendMember(b, "operation", p.Operation)
	}
	if p.OperationState != "" {
		b = appendMember(b, "operation_state", p.OperationState)
	}
	if p.OriginalStatus != 0 {
		b = append(b, `,"original_status":`...)
		b = strconv.AppendInt(b, int64(p.OriginalStatus), 10)
	}
	if p.RetryAfter > 0 {
		b = append(b, `,"retry_after":`...)
		b = strconv.AppendInt(b, seconds(p.RetryAfter), 10)
	}
	b = p.appendErrors(b)
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		if reservedMember(name) {
			continue
		}
		value := p.Extra[name]
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		b = append(b, ',')
		b = appendString(b, name)
		b = append(b, ':')
		b = append(b, value...)
	}
	return append(b, '}'), nil
}

func (p *Problem) appendErrors(b []byte) []byte {
	if len(p.Errors) == 0 {
		return b
	}
	b = append(b, `,"errors":[`...)
	for i, e := range p.Errors {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		b = appendMember(b, "pointer", e.Pointer)
		b = appendMember(b, "message", e.Message)
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendMember appends a member of text, with a comma unless it is the first.
func appendMember(b []byte, name, value string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = appendString(b, name)
	b = append(b, ':')
	return appendString(b, value)
}

func reservedMember(name string) bool {
	switch name {
	case "type", "title", "status", "detail", "code", "retry", "safe_new_key", "operation",
		"operation_state", "original_status", "retry_after", "errors":
		return true
	}
	return false
}

// Write sends the problem. docsURL is the address of the page that explains the
// codes; each code is an anchor on it. Headers that an abandoned answer may have
// left behind are removed; others, such as the request id, stay.
func (p *Problem) Write(w http.ResponseWriter, docsURL string) {
	q := *p
	if docsURL != "" {
		q.Type = q.typeOr(docsURL + "#" + q.Code)
	}
	for _, value := range q.Extra {
		if len(value) > 0 && !json.Valid(value) {
			q.Extra = nil // a broken member must not break the answer about money
			break
		}
	}
	body, _ := q.MarshalJSON() // never fails
	h := w.Header()
	for _, name := range []string{"Content-Encoding", "Etag", "Last-Modified", "Location"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if q.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(seconds(q.RetryAfter), 10))
	}
	if q.Location != "" {
		h.Set("Location", q.Location)
	}
	if q.Code == CodeKeyMissing && q.Type != "" {
		h.Add("Link", "<"+q.Type+`>; rel="describedby"`)
	}
	w.WriteHeader(q.status())
	_, _ = w.Write(body) // a client that left gets nothing, and nothing depends on it
}

func (p *Problem) typeOr(other string) string {
	if p.Type != "" {
		return p.Type
	}
	return other
}

// status is 500 for a problem that somebody made by hand and left at 0.
func (p *Problem) status() int {
	if p.Status == 0 {
		return http.StatusInternalServerError
	}
	return p.Status
}

// seconds rounds up, so that nobody comes back too early.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
