package ingest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/ingest"
	"github.com/payonce/payonce/internal/store"
)

// adapter takes bodies that start with "genuine ", and answers in words.
type adapter struct{ channel.Adapter }

func (adapter) ReadNotice(_ http.Header, body []byte) (channel.Notice, error) {
	event, ok := strings.CutPrefix(string(body), "genuine ")
	if !ok {
		return channel.Notice{}, errors.New("signature does not verify")
	}
	return channel.Notice{EventID: event, Type: "paid", Number: "N1", Fact: payonce.Fact{Kind: payonce.StateSettled}}, nil
}

func (adapter) ReplyNotice(o channel.NoticeOutcome) channel.NoticeReply {
	return map[channel.NoticeOutcome]channel.NoticeReply{
		channel.NoticeStored:    {Status: 200, ContentType: "text/plain", Body: []byte("success")},
		channel.NoticeRefused:   {Status: 400, ContentType: "text/plain", Body: []byte("fail")},
		channel.NoticeNotStored: {Status: 500, ContentType: "text/plain", Body: []byte("fail")},
	}[o]
}

// books remembers what it was given.
type books struct {
	got    []string
	result engine.NoticeResult
	err    error
}

func (b *books) Notice(_ context.Context, account string, n channel.Notice, headers string, _ []byte) (engine.NoticeResult, error) {
	if b.err != nil {
		return 0, b.err
	}
	b.got = append(b.got, account+" "+n.EventID+" "+headers)
	return b.result, nil
}

func serve(t *testing.T, b *books, accounts ...string) *httptest.Server {
	t.Helper()
	var list []engine.Account
	for _, id := range accounts {
		list = append(list, engine.Account{ID: id, Channel: "alipay", Adapter: adapter{}})
	}
	mux := http.NewServeMux()
	ingest.New(ingest.Config{Accounts: list, Engine: b}).Routes(mux)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

func post(t *testing.T, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(out)
}

func TestGenuineNoticeIsStoredThenAcknowledged(t *testing.T) {
	b := &books{}
	srv := serve(t, b, "ali1")
	for _, path := range []string{"/webhooks/alipay/ali1", "/webhooks/alipay"} {
		if code, body := post(t, srv.URL+path, "genuine e1", "Stripe-Signature", "t=1,v1=x", "Cookie", "secret"); code != 200 || body != "success" {
			t.Fatalf("%s: %d %q", path, code, body)
		}
	}
	if len(b.got) != 2 || !strings.Contains(b.got[0], "t=1,v1=x") || strings.Contains(b.got[0], "secret") {
		t.Fatalf("stored %q", b.got)
	}
}

func TestW13_DuplicateAndParkedAreAcknowledged(t *testing.T) {
	for _, result := range []engine.NoticeResult{engine.NoticeDuplicate, engine.NoticeParked} {
		srv := serve(t, &books{result: result}, "ali1")
		if code, body := post(t, srv.URL+"/webhooks/alipay/ali1", "genuine e1"); code != 200 || body != "success" {
			t.Fatalf("%v: %d %q", result, code, body)
		}
	}
}

func TestG06_ForgedNoticeReachesNothing(t *testing.T) {
	b := &books{}
	srv := serve(t, b, "ali1")
	for name, body := range map[string]string{"forged": "forged e1", "empty": "", "json": `{"paid":true}`} {
		if code, answer := post(t, srv.URL+"/webhooks/alipay/ali1", body); code != 400 || answer != "fail" {
			t.Errorf("%s: %d %q", name, code, answer)
		}
	}
	if len(b.got) != 0 {
		t.Fatalf("stored %q", b.got)
	}
}

func TestL06_NothingIsAcknowledgedBeforeItIsStored(t *testing.T) {
	for _, err := range []error{store.ErrUnavailable, store.ErrOutcomeUnknown, errors.New("bug")} {
		srv := serve(t, &books{err: err}, "ali1")
		if code, body := post(t, srv.URL+"/webhooks/alipay/ali1", "genuine e1"); code != 500 || body != "fail" {
			t.Fatalf("%v: %d %q", err, code, body)
		}
	}
}

func TestNoticeLimits(t *testing.T) {
	b := &books{}
	srv := serve(t, b, "ali1")
	if code, body := post(t, srv.URL+"/webhooks/alipay/ali1", "genuine "+strings.Repeat("x", 10<<20)); code != 400 || body != "fail" {
		t.Errorf("10 MiB: %d %q", code, body)
	}
	if code, _ := post(t, srv.URL+"/webhooks/alipay/ali1", "genuine e1", "Content-Encoding", "gzip"); code != 400 {
		t.Errorf("compressed: %d", code)
	}
	if len(b.got) != 0 {
		t.Fatalf("stored %q", b.got)
	}
}

func TestNoticeNeedsOneAccount(t *testing.T) {
	b := &books{}
	srv := serve(t, b, "ali1", "ali2")
	for path, want := range map[string]int{"/webhooks/alipay/ali2": 200, "/webhooks/alipay": 404, "/webhooks/alipay/ali3": 404, "/webhooks/paypal": 404} {
		if code, _ := post(t, srv.URL+path, "genuine e1"); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	if len(b.got) != 1 || !strings.HasPrefix(b.got[0], "ali2 ") {
		t.Fatalf("stored %q", b.got)
	}
}
