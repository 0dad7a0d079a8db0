package main

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestReadUnderstandsLengthAndChunks(t *testing.T) {
	for _, tc := range []struct{ name, raw, body string }{
		{"length", "HTTP/1.1 201 Created\r\ncontent-length: 5\r\nIdempotency-Replayed: true\r\n\r\nhello", "hello"},
		{"chunks", "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nIdempotency-Replayed: true\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", "hello"},
		{"empty", "HTTP/1.1 201 Created\r\nContent-Length: 0\r\nIdempotency-Replayed: true\r\n\r\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &conn{br: bufio.NewReader(strings.NewReader(tc.raw + tc.raw))}
			for range 2 { // the second answer begins where the first ended
				r, err := c.read()
				if err != nil || r.status != 201 || !r.replayed || string(r.body) != tc.body {
					t.Fatalf("read %+v %q, %v", r, r.body, err)
				}
			}
		})
	}
}

func TestReadRefusesWhatItCannotFollow(t *testing.T) {
	for _, raw := range []string{
		"HTTP/1.0 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nlong\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	} {
		c := &conn{br: bufio.NewReader(strings.NewReader(raw))}
		if r, err := c.read(); err == nil {
			t.Errorf("%q was read as %+v", raw, r)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]uint32, 100)
	for i := range hundred {
		hundred[i] = uint32(i+1) * 1000
	}
	for p, want := range map[float64]float64{50: 50, 95: 95, 99: 99, 100: 100} {
		if got := percentile(hundred, p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
	if got := percentile([]uint32{7000}, 99); got != 7 {
		t.Errorf("of one value: %v, want 7", got)
	}
}

// TestTwinsAreEqualAndTogether: each key reaches the server from all connections
// while none of them has been answered.
func TestTwinsAreEqualAndTogether(t *testing.T) {
	const conns, keys = 4, 3
	var mu sync.Mutex
	seen := map[string]int{}
	together := map[string]chan struct{}{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		mu.Lock()
		seen[key]++
		if together[key] == nil {
			together[key] = make(chan struct{})
		}
		all := together[key]
		if seen[key] == conns {
			close(all)
		}
		mu.Unlock()
		<-all // returns only when all twins are here
		w.WriteHeader(http.StatusConflict)
	}))
	defer server.Close()
	s := settings{target: strings.TrimPrefix(server.URL, "http://"), mode: "twins", conns: conns, keys: keys, length: time.Second}
	res, err := s.run()
	if err != nil || res.Requests != conns*keys || res.Errors != 0 || res.Statuses["409"] != conns*keys {
		t.Errorf("%+v, %v", res, err)
	}
	if len(seen) != keys || res.Succeeded != 0 {
		t.Errorf("%d keys, %d of them succeeded; want %d and none", len(seen), res.Succeeded, keys)
	}
}
