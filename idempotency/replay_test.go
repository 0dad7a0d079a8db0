package idempotency

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// handlerHeader is everything that a handler might set.
const handlerHeader = `Set-Cookie: a=1
Set-Cookie2: x
X-Request-Id: r1
Request-Id: r1
Location: /v1/payments/pay_1
ETag: "1"
Access-Control-Allow-Origin: https://a.example
Connection: X-Foo, close
X-Foo: secret of the hop
X-Own: kept
Content-Type: application/json
Content-Language: de
Content-Disposition: inline
Content-Encoding: gzip
Content-Location: /x
Link: </a>; rel="next"
Last-Modified: Mon, 02 Jan 2006 15:04:05 GMT
Authorization: Bearer x
Proxy-Authenticate: Basic
Proxy-Connection: close
WWW-Authenticate: Basic
Keep-Alive: 5
TE: trailers
Trailer: X
Transfer-Encoding: chunked
Upgrade: h2c
Content-Length: 12
Date: Mon, 02 Jan 2006 15:04:05 GMT
Server: x
Age: 1
RateLimit: x
RateLimit-Remaining: 1
X-RateLimit-Limit: 1
Retry-After: 1
Strict-Transport-Security: max-age=1
Cache-Control: public
Traceparent: x
Idempotency-Replayed: true
Idempotency-Expires: x
Idempotent-Replayed: true
Preference-Applied: wait
X-Unlisted: x`

func TestT44_WhichHeadersAreStored(t *testing.T) {
	h := http.Header{}
	for line := range strings.Lines(handlerHeader) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		h.Add(name, value)
	}
	h.Add("Link", `</b>; rel="prev"`)
	want := http.Header{}
	for _, name := range []string{"Location", "ETag", "Content-Type", "Content-Language", "Content-Disposition",
		"Content-Encoding", "Content-Location", "Link", "Last-Modified"} {
		want[http.CanonicalHeaderKey(name)] = h.Values(name)
	}
	equal := func(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }
	if got := StorableHeader(h); !equal(got, want) {
		t.Errorf("stored %v\nwant   %v", got, want)
	}
	// Configuring every header there is adds the harmless ones only.
	all := slices.Collect(maps.Keys(h))
	all = append(all, "x-own", "X-Absent")
	want["X-Own"], want["X-Unlisted"] = []string{"kept"}, []string{"x"}
	got := StorableHeader(h, all...)
	if !equal(got, want) {
		t.Errorf("with everything configured: %v\nwant %v", got, want)
	}
	got["Link"][0] = "changed"
	if h.Get("Link") == "changed" {
		t.Error("the stored header shares memory with the handler's")
	}
	h.Set("Connection", "close, location")
	if StorableHeader(h).Get("Location") != "" {
		t.Error("a header that Connection names is stored")
	}
}

func TestR42_ReplayIsMarkedAndByteIdentical(t *testing.T) {
	a := Answer{
		Status: 201,
		Header: http.Header{"Content-Type": {"application/json"}, "Link": {"</a>", "</b>"}, "Set-Cookie": {"a=1"}, "Date": {"old"}},
		Body:   []byte("{ \"b\":1,\n\"a\":\"\\u0041\xff\" }"),
	}
	var answers []*httptest.ResponseRecorder
	for _, replayed := range []bool{false, true, true} {
		w := httptest.NewRecorder()
		w.Header().Set("Request-Id", "fresh")
		w.Header().Set("Access-Control-Allow-Origin", "https://second.example")
		w.Header().Set("Link", "outer")
		a.Write(w, replayed)
		answers = append(answers, w)
		if w.Code != 201 || !bytes.Equal(w.Body.Bytes(), a.Body) {
			t.Errorf("replayed %v: %d %q", replayed, w.Code, w.Body)
		}
		h := w.Header()
		if h.Get("Request-Id") != "fresh" || h.Get("Access-Control-Allow-Origin") != "https://second.example" ||
			h.Get("Cache-Control") != "no-store" || h.Get("Set-Cookie")+h.Get("Date") != "" ||
			!slices.Equal(h.Values("Link"), a.Header["Link"]) {
			t.Errorf("replayed %v: headers %v", replayed, h)
		}
		mark := ""
		if replayed {
			mark = "true"
		}
		if h.Get(HeaderReplayed) != mark || h.Get(HeaderReplayedStripe) != mark || (h.Get(HeaderStatus) == StatusReplayed) != replayed {
			t.Errorf("replayed %v: marks %v", replayed, h)
		}
	}
	answers[0].Header()["Link"][0] = "changed"
	if a.Header["Link"][0] == "changed" {
		t.Error("a response shares memory with the record")
	}
}

func TestR42_FirstExecutionNeverCarriesTheMark(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set(HeaderReplayed, "true")
	w.Header().Set(HeaderReplayedStripe, "true")
	Answer{Status: 200}.Write(w, false)
	if w.Header().Get(HeaderReplayed)+w.Header().Get(HeaderReplayedStripe) != "" {
		t.Errorf("headers %v", w.Header())
	}
}

func TestR41_StatusPendingStays(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set(HeaderStatus, StatusPending)
	Answer{Status: 202}.Write(w, true)
	if w.Header().Get(HeaderStatus) != StatusPending || w.Header().Get(HeaderReplayed) != "true" {
		t.Errorf("headers %v", w.Header())
	}
}

func TestR43_EmptyAndBinaryBodiesOverASocket(t *testing.T) {
	binary := make([]byte, 70_000)
	for i := range binary {
		binary[i] = byte(i * 7)
	}
	answers := []Answer{
		{Status: 204}, {Status: 204, Body: []byte("dropped")}, {Status: 304}, {Status: 200}, {Status: 200, Body: binary},
		{Status: 402, Body: []byte("<p>"), Header: http.Header{"Content-Type": {"application/json"}}}, {Status: 500, Body: []byte("x")},
	}
	i := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answers[i/2].Write(w, i%2 == 1) }))
	defer s.Close()
	var first http.Header
	for ; i < 2*len(answers); i++ {
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		a := answers[i/2]
		want := a.Body
		if a.Status == 204 || a.Status == 304 {
			want = nil
		}
		if err != nil || resp.StatusCode != a.Status || !bytes.Equal(body, want) || len(resp.TransferEncoding) != 0 {
			t.Errorf("answer %d: %d, %d bytes, %v, %v", i, resp.StatusCode, len(body), resp.TransferEncoding, err)
		}
		h := resp.Header
		for _, name := range []string{"Date", HeaderReplayed, HeaderReplayedStripe, HeaderStatus} {
			h.Del(name)
		}
		if i%2 == 1 && !maps.EqualFunc(first, h, slices.Equal) {
			t.Errorf("answer %d: the replay has headers %v, the first had %v", i, h, first)
		}
		first = h
	}
}

func TestR49_ImpossibleStatusIsACorruptRecord(t *testing.T) {
	for _, status := range []int{0, 100, 199, 600, -1} {
		w := httptest.NewRecorder()
		Answer{Status: status, Body: []byte("x")}.Write(w, true)
		if w.Code != 500 || !strings.Contains(w.Body.String(), CodeRecordCorrupt) || w.Header().Get(HeaderReplayed) != "" {
			t.Errorf("status %d: %d %s", status, w.Code, w.Body)
		}
	}
}

func TestR42_MarksAreExposedToScripts(t *testing.T) {
	h := http.Header{"Access-Control-Expose-Headers": {"X-Own, idempotency-status", "Location"}}
	Expose(h)
	once := h.Get("Access-Control-Expose-Headers")
	Expose(h)
	const want = "X-Own, idempotency-status, Location, Idempotency-Replayed, Idempotent-Replayed, Idempotency-Expires, Retry-After, Link, Preference-Applied"
	if lines := h.Values("Access-Control-Expose-Headers"); len(lines) != 1 || lines[0] != want || once != want {
		t.Errorf("got %q\nwant %q", lines, want)
	}
}

func TestR58_ExpiresIsAnHTTPDate(t *testing.T) {
	h := make(http.Header)
	SetExpires(h, time.Date(2026, 3, 1, 1, 0, 0, 999, time.FixedZone("", 3600)))
	if got := h.Get(HeaderExpires); got != "Sun, 01 Mar 2026 00:00:00 GMT" {
		t.Errorf("%s: %s", HeaderExpires, got)
	}
}
