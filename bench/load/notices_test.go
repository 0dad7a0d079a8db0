package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestNoticesSendsEachLineOnceARound, and counts every answer that is not exactly
// the word as an error.
func TestNoticesSendsEachLineOnceARound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notices")
	var content strings.Builder
	for i := range 10 {
		fmt.Fprintf(&content, "n=%d\n", i)
	}
	if err := os.WriteFile(file, []byte(content.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	got := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing is missed below
		mu.Lock()
		got[r.Method+" "+r.URL.Path+" "+string(body)]++
		mu.Unlock()
		switch string(body) {
		case "n=5":
			_, _ = io.WriteString(w, "success\n")
		case "n=6":
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "success")
		case "n=7":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "fail")
		default:
			_, _ = io.WriteString(w, "success")
		}
	}))
	defer server.Close()
	s := settings{target: strings.TrimPrefix(server.URL, "http://"), mode: "notices", conns: 3, length: time.Second,
		path: "/webhooks/alipay", file: file, word: "success", skip: 2, take: 6, rounds: 2}
	res, err := s.run()
	if err != nil || res.Requests != 12 || res.Errors != 6 {
		t.Errorf("%+v, %v: want 12 requests, 6 errors", res, err)
	}
	for i := range 10 {
		want := 0
		if i >= 2 && i < 8 {
			want = 2
		}
		if n := got[fmt.Sprintf("POST /webhooks/alipay n=%d", i)]; n != want {
			t.Errorf("line %d was posted %d times, want %d", i, n, want)
		}
	}
	s.take = 9
	if res, err := s.run(); err == nil {
		t.Errorf("lines that the file does not have: %+v", res)
	}
}
