package idempotency

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Answer is a response as it is stored and replayed: bytes, not something that is
// rendered again (R43).
type Answer struct {
	Status int
	Header http.Header // what [StorableHeader] returned
	Body   []byte
}

// storable are the headers that belong to the result (R44).
var storable = []string{
	"Content-Type", "Content-Language", "Content-Disposition", "Content-Encoding",
	"Location", "Content-Location", "Link", "Etag", "Last-Modified",
}

// never are the headers that belong to one response, one connection or one
// client. Storing them would give a stranger's cookie or an old date to the next
// caller; no configuration can allow them (R44).
var never = map[string]bool{
	"Set-Cookie": true, "Set-Cookie2": true, "Authorization": true, "Authentication-Info": true,
	"Www-Authenticate": true,
	// hop by hop
	"Connection": true, "Keep-Alive": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true,
	// of the message or the moment
	"Content-Length": true, "Date": true, "Server": true, "Age": true, "Retry-After": true,
	"Strict-Transport-Security": true, "Cache-Control": true, "Preference-Applied": true,
	// request and trace ids
	"Request-Id": true, "X-Request-Id": true, "Correlation-Id": true, "X-Correlation-Id": true,
	"Trace-Id": true, "X-Trace-Id": true, "Traceparent": true, "Tracestate": true,
	"Traceresponse": true, "Baggage": true, "B3": true, "X-Amzn-Trace-Id": true,
	"X-Amzn-Requestid": true, "X-Cloud-Trace-Context": true, "Uber-Trace-Id": true,
	// ours, written anew
	HeaderReplayedStripe: true,
}

var neverPrefixes = []string{
	"Proxy-", "Access-Control-", "Ratelimit", "X-Ratelimit-", "X-B3-", "Idempotency-",
}

func neverStored(name string) bool {
	if never[name] {
		return true
	}
	return slices.ContainsFunc(neverPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// StorableHeader returns a copy of the headers of h that may be stored and
// replayed: those of the allow list and the configured extra ones, but never what
// R44 forbids and nothing that h's Connection header names. The layer sits inside
// compression, so a Content-Encoding is the handler's own.
func StorableHeader(h http.Header, extra ...string) http.Header {
	stored := make(http.Header)
	keep := func(name string) {
		name = http.CanonicalHeaderKey(name)
		if values := h[name]; len(values) > 0 && !neverStored(name) && !namedIn(h["Connection"], name) {
			stored[name] = slices.Clone(values)
		}
	}
	for _, name := range storable {
		keep(name)
	}
	for _, name := range extra {
		keep(name)
	}
	return stored
}

// namedIn reports whether name stands in one of the comma-separated lines.
func namedIn(lines []string, name string) bool {
	for _, line := range lines {
		for option := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(option, " \t"), name) {
				return true
			}
		}
	}
	return false
}

// Write sends the answer: the first time, after it was stored (R35), and on every
// replay, which is marked (R42). Status and body are the same bytes each time.
// Headers that are already in w from outer layers (request id, CORS, rate limits)
// stay, unless the answer has them itself. Every answer is Cache-Control: no-store
// (R45). A Status that the caller has set before, such as [StatusPending] for a
// result that is not final, stays.
//
// A status that no answer can have means that the record was damaged; then
// [RecordCorrupt] is sent (R49).
func (a Answer) Write(w http.ResponseWriter, replayed bool) {
	if a.Status < 200 || a.Status > 599 {
		RecordCorrupt("").Write(w, "")
		return
	}
	h := w.Header()
	for name, values := range a.Header {
		// Also what an older version stored must not get out.
		if name = http.CanonicalHeaderKey(name); !neverStored(name) {
			h[name] = slices.Clone(values)
		}
	}
	h.Set("Cache-Control", "no-store")
	if replayed {
		h.Set(HeaderReplayed, "true")
		h.Set(HeaderReplayedStripe, "true")
		if h.Get(HeaderStatus) == "" {
			h.Set(HeaderStatus, StatusReplayed)
		}
	} else {
		h.Del(HeaderReplayed)
		h.Del(HeaderReplayedStripe)
	}
	if !bodyAllowed(a.Status) {
		h.Del("Content-Length")
		w.WriteHeader(a.Status)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the record is durable; a client that left asks again
}

// bodyAllowed is false for the statuses that have no body in HTTP.
func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// SetExpires says until when the answer is kept (R58).
func SetExpires(h http.Header, t time.Time) {
	h.Set(HeaderExpires, t.UTC().Format(http.TimeFormat))
}

// Expose lets scripts of other origins read the headers of the layer, by adding
// them to Access-Control-Expose-Headers (R42). Calling it twice changes nothing.
func Expose(h http.Header) {
	addList(h, "Access-Control-Expose-Headers", []string{
		HeaderReplayed, HeaderReplayedStripe, HeaderStatus, HeaderExpires,
		"Retry-After", "Location", "Link", "Preference-Applied",
	})
}
