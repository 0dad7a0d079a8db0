package alipaysim_test

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce/internal/sim"
	"go.uber.org/goleak"
	"golang.org/x/text/encoding/simplifiedchinese"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

var beijing = time.FixedZone("CST", 8*3600)

const layout = "2006-01-02 15:04:05"

// rig is a simulator behind a real socket, and a client of its Alipay that is
// written for the tests alone.
type rig struct {
	t      *testing.T
	sim    *sim.Sim
	srv    *httptest.Server
	http   *http.Client
	opts   sim.Options
	app    string
	seller string
	key    *rsa.PrivateKey
	alipay *rsa.PublicKey
	creds  map[string]any
}

// seededKeys holds the RSA keys of seed 7, which take most of a second to make.
var seededKeys = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "alipaysim")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := sim.Open(sim.Options{DataDir: dir, Seed: 7, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/_sim/credentials?channel=alipay&certificates=1", nil))
	if err := s.Close(); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "keys", "*"))
	out := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		out[filepath.Base(f)] = b
	}
	return out, err
})

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, opts: sim.Options{DataDir: t.TempDir(), Seed: 7, Logger: slog.New(slog.DiscardHandler)},
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	keys, err := seededKeys()
	r.ok(err)
	dir := filepath.Join(r.opts.DataDir, "keys")
	r.ok(os.MkdirAll(dir, 0o700))
	for name, b := range keys {
		r.ok(os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	r.open()
	t.Cleanup(r.close)
	return r
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) open() {
	r.t.Helper()
	s, err := sim.Open(r.opts)
	r.ok(err)
	r.sim, r.srv = s, httptest.NewServer(s.Handler())
	c := r.control("GET", "/_sim/credentials?channel=alipay", "", 200)["alipay"].(map[string]any)
	r.creds, r.app, r.seller = c, c["app_id"].(string), c["seller_id"].(string)
	block, _ := pem.Decode([]byte(c["app_private_key"].(string)))
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	r.ok(err)
	block, _ = pem.Decode([]byte(c["alipay_public_key"].(string)))
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	r.ok(err)
	r.key, r.alipay = private.(*rsa.PrivateKey), public.(*rsa.PublicKey)
}

func (r *rig) close() {
	if r.srv == nil {
		return
	}
	r.srv.Close()
	r.srv = nil
	if err := r.sim.Close(); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) reopen() {
	r.close()
	r.open()
}

// reply is an answer of the gateway. node is the signed text.
type reply struct {
	status int
	header http.Header
	raw    string
	node   string
	body   map[string]any // of the node
	signed bool           // rightly
	sign   string
}

func (a reply) str(name string) string { s, _ := a.body[name].(string); return s }

// code is the sub_code, or the code without one.
func (a reply) code() string {
	if s := a.str("sub_code"); s != "" {
		return s
	}
	return a.str("code")
}

// params signs a request as the public rule says.
func (r *rig) params(method, biz string, more ...string) url.Values {
	v := url.Values{"app_id": {r.app}, "method": {method}, "format": {"JSON"}, "charset": {"utf-8"}, "sign_type": {"RSA2"},
		"timestamp": {time.Now().In(beijing).Format(layout)}, "version": {"1.0"}, "biz_content": {biz}}
	for n := 0; n < len(more); n += 2 {
		v.Set(more[n], more[n+1])
		if more[n+1] == "-" {
			v.Del(more[n])
		}
	}
	if more := v.Get("sign"); more == "" {
		v.Set("sign", r.signature(v))
	}
	return v
}

func (r *rig) signature(v url.Values) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if name != "sign" {
			parts = append(parts, name+"="+v.Get(name))
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "&")))
	raw, err := rsa.SignPKCS1v15(nil, r.key, crypto.SHA256, sum[:])
	r.ok(err)
	return base64.StdEncoding.EncodeToString(raw)
}

// send posts to the gateway.
func (r *rig) send(v url.Values) (reply, error) {
	res, err := r.http.PostForm(r.srv.URL+"/alipay/gateway.do", v)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	out := reply{status: res.StatusCode, header: res.Header, raw: string(b)}
	if err == nil {
		r.take(&out, v.Get("method"), v.Get("charset"))
	}
	return out, err
}

// take cuts the node out of the raw bytes and verifies them.
func (r *rig) take(a *reply, method, charset string) {
	var whole map[string]json.RawMessage
	text := a.raw
	if charset == "gbk" {
		text, _ = simplifiedchinese.GB18030.NewDecoder().String(text)
	}
	if json.Unmarshal([]byte(text), &whole) != nil {
		return
	}
	for _, name := range []string{strings.ReplaceAll(method, ".", "_") + "_response", "error_response"} {
		if node, found := whole[name]; found {
			_ = json.Unmarshal(node, &a.body)
			a.node = string(node)
		}
	}
	_ = json.Unmarshal(whole["sign"], &a.sign)
	signedBytes := a.node
	if charset == "gbk" {
		signedBytes, _ = simplifiedchinese.GB18030.NewEncoder().String(a.node)
	}
	a.signed = r.genuine(signedBytes, a.sign)
}

func (r *rig) genuine(text, signature string) bool {
	raw, err := base64.StdEncoding.DecodeString(signature)
	sum := sha256.Sum256([]byte(text))
	return err == nil && rsa.VerifyPKCS1v15(r.alipay, crypto.SHA256, sum[:], raw) == nil
}

// api calls a method and expects a code: "10000" or a sub_code.
func (r *rig) api(method, biz, want string, more ...string) reply {
	r.t.Helper()
	a, err := r.send(r.params("alipay.trade."+method, biz, more...))
	r.ok(err)
	if a.code() != want || a.status != 200 {
		r.t.Fatalf("%s %s: %d %s, want %s", method, biz, a.status, a.raw, want)
	}
	return a
}

func order(number string, more string) string {
	return `{"out_trade_no":"` + number + `","total_amount":"10.00","subject":"测试"` + more + `}`
}

func about(number string) string { return `{"out_trade_no":"` + number + `"}` }

// qr makes a QR text for 10.00 and returns it.
func (r *rig) qr(number string, more ...string) string {
	r.t.Helper()
	return r.api("precreate", order(number, ""), "10000", more...).str("qr_code")
}

func (r *rig) get(address string) (int, http.Header, string) {
	r.t.Helper()
	res, err := r.http.Get(address)
	r.ok(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	r.ok(err)
	return res.StatusCode, res.Header, string(b)
}

func (r *rig) control(method, path, body string, want int) map[string]any {
	r.t.Helper()
	req, err := http.NewRequest(method, r.srv.URL+path, strings.NewReader(body))
	r.ok(err)
	res, err := r.http.Do(req)
	r.ok(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	r.ok(err)
	if res.StatusCode != want {
		r.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, res.StatusCode, b, want)
	}
	var out map[string]any
	r.ok(json.NewDecoder(bytes.NewReader(b)).Decode(&out))
	return out
}

func (r *rig) pay(number, more string, want int) map[string]any {
	r.t.Helper()
	return r.control("POST", "/_sim/pay", `{"channel":"alipay","number":"`+number+`"`+more+`}`, want)
}

func (r *rig) fault(operation, fault, more string) {
	r.t.Helper()
	r.control("POST", "/_sim/faults", `{"channel":"alipay","operation":"`+operation+`","fault":"`+fault+`"`+more+`}`, 201)
}

func (r *rig) turn(name, value string) {
	r.t.Helper()
	r.control("POST", "/_sim/switches", `{"channel":"alipay","switch":"`+name+`","value":"`+value+`"}`, 200)
}

func (r *rig) advance(seconds string) {
	r.t.Helper()
	r.control("POST", "/_sim/clock", `{"advance_s":`+seconds+`}`, 200)
}

// virtual is the simulator's time as text, some seconds later.
func (r *rig) virtual(plus time.Duration) string {
	r.t.Helper()
	now, err := time.Parse(time.RFC3339Nano, r.control("GET", "/_sim/clock", "", 200)["now"].(string))
	r.ok(err)
	return now.Add(plus).In(beijing).Format(layout)
}

// books picks lines of a list of the books by number.
func (r *rig) books(list, number string) []map[string]any {
	r.t.Helper()
	var out []map[string]any
	for _, v := range r.control("GET", "/_sim/books", "", 200)[list].([]any) {
		if m := v.(map[string]any); m["number"] == number {
			out = append(out, m)
		}
	}
	return out
}

func (r *rig) line(number string) map[string]any {
	r.t.Helper()
	l := r.books("charges", number)
	if len(l) != 1 {
		r.t.Fatalf("%d lines of %s on the books, want 1: %v", len(l), number, l)
	}
	return l[0]
}

func (r *rig) calls(operation, number string) int {
	r.t.Helper()
	for _, c := range r.books("calls", number) {
		if c["operation"] == operation {
			return int(c["count"].(float64))
		}
	}
	return 0
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// until polls a condition that a real socket decides.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatal("never happened: " + what)
		}
		<-tick.C
	}
}

// shop receives notices; answer is what it says to the n-th.
type shop struct {
	srv *httptest.Server
	got chan notice
}

type notice struct {
	raw  string
	form url.Values
}

func newShop(t *testing.T, answer func(n int, d notice) (int, string)) *shop {
	t.Helper()
	s := &shop{got: make(chan notice, 1000)}
	var mu sync.Mutex
	seen := 0
	s.srv = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		d := notice{raw: string(b)}
		d.form, _ = url.ParseQuery(d.raw)
		mu.Lock()
		defer mu.Unlock()
		status, body := 200, "success"
		if answer != nil {
			status, body = answer(seen, d)
		}
		seen++
		s.got <- d
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}))
	t.Cleanup(s.srv.Close)
	return s
}

func (s *shop) next(t *testing.T) notice {
	t.Helper()
	select {
	case d := <-s.got:
		return d
	case <-time.After(20 * time.Second):
		t.Fatal("no notice")
		return notice{}
	}
}

// genuineNotice verifies over all received fields but sign and sign_type.
func (r *rig) genuineNotice(d notice) bool {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(d.form)) {
		if name != "sign" && name != "sign_type" {
			parts = append(parts, name+"="+d.form.Get(name))
		}
	}
	return r.genuine(strings.Join(parts, "&"), d.form.Get("sign"))
}
