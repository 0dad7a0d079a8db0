package e2e

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// delivery is one notice as a channel sent it.
type delivery struct {
	path                string
	head                http.Header
	body                []byte
	number, event, kind string
}

// relay stands between the channels and the service: a proxy that can keep
// notices for a test, which delivers them itself as it likes. Those that it keeps
// it does not acknowledge.
type relay struct {
	base string

	mu     sync.Mutex
	target string
	held   map[string]bool
	kept   []delivery
}

func newRelay(target string) (*relay, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	r := &relay{base: "http://" + l.Addr().String(), target: target, held: map[string]bool{}}
	srv := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return r, func() { srv.Close(); <-done }, nil
}

// ServeHTTP keeps a notice or passes it on.
func (r *relay) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	d := read(q.URL.Path, q.Header.Clone(), body)
	if r.keep(d) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	res := (&api{base: r.target}).deliver(d)
	if res.err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(res.code)
	_, _ = w.Write(res.body) // the channel that is gone sends it again
}

func (r *relay) keep(d delivery) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held[d.number] {
		return false
	}
	if !slices.ContainsFunc(r.kept, func(k delivery) bool { return k.event == d.event }) {
		r.kept = append(r.kept, d)
	}
	return true
}

// hold keeps the notices of numbers from now on.
func (r *relay) hold(numbers ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range numbers {
		r.held[n] = true
	}
}

// of are the kept notices of a number, in the order of their arrival.
func (r *relay) of(number string) []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []delivery
	for _, d := range r.kept {
		if d.number == number {
			list = append(list, d)
		}
	}
	return list
}

// one waits for the first kept notice of a kind.
func (r *relay) one(t testing.TB, number, kind string) delivery {
	t.Helper()
	var found delivery
	until(t, soon, "the channel sends "+kind+" of "+number, func() bool {
		for _, d := range r.of(number) {
			if d.kind == kind {
				found = d
				return true
			}
		}
		return false
	})
	return found
}

// read tells what a notice is about, without believing it.
func read(path string, head http.Header, body []byte) delivery {
	d := delivery{path: path, head: head, body: body}
	var ev struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		Data struct {
			Object struct {
				Metadata map[string]string `json:"metadata"`
			} `json:"object"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &ev) == nil {
		d.number, d.event, d.kind = ev.Data.Object.Metadata["payonce_number"], ev.ID, ev.Type
	} else if form, err := url.ParseQuery(string(body)); err == nil {
		d.number, d.event, d.kind = form.Get("out_trade_no"), form.Get("notify_id"), form.Get("trade_status")
		if form.Get("gmt_refund") != "" {
			d.kind += " refund"
		}
	}
	return d
}

// deliver sends a notice to the service.
func (a *api) deliver(d delivery) resp {
	head := map[string]string{}
	for _, name := range []string{"Content-Type", "Stripe-Signature", "User-Agent"} {
		if v := d.head.Get(name); v != "" {
			head[name] = v
		}
	}
	return a.do(request{method: "POST", path: d.path, body: d.body, head: head, noAuth: true})
}

// relayed is a node with an account at each simulated channel, whose notices come
// through a relay. The test holds a second key of the channel, as during a change
// of keys, and can sign whatever the channel could.
type relayed struct {
	world
	*relay
	node             *node
	key              *rsa.PrivateKey
	appID, sellerID  string
	secret, database string
}

// accounts of a node at both channels.
const (
	cardAccount   = "s1"
	alipayAccount = "a1"
)

// bothAccounts writes the accounts of both channels to a node's configuration.
func bothAccounts(n *node, sim *simulator, more string) (all map[string]map[string]string, err error) {
	for _, channel := range []string{"stripe", alipay} {
		r := sim.get("/_sim/credentials?channel=" + channel)
		if r.err != nil || json.Unmarshal(r.body, &all) != nil {
			return nil, fmt.Errorf("credentials of the simulator: %s", r)
		}
	}
	c, a := all["stripe"], all[alipay]
	f, err := os.OpenFile(n.config, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(f, "  - id: %s\n    accounts:\n", serveMerchant)
	fmt.Fprintf(f, "      - {id: %s, channel: stripe, environment: test, trusted_date: true, base_url: %q, secret_key: %q, publishable_key: %q, webhook_secret: %q}\n",
		cardAccount, c["base_url"], c["secret_key"], c["publishable_key"], c["webhook_secret"])
	fmt.Fprintf(f, "      - {id: %s, channel: alipay, environment: test, trusted_date: true, base_url: %q, app_id: %q, seller_id: %q, app_private_key: %q, alipay_public_key: %q}\n",
		alipayAccount, a["base_url"], a["app_id"], a["seller_id"], a["app_private_key"], a["alipay_public_key"]+more)
	return all, f.Close()
}

// bothNode is a node on a SQLite database of its own with both channels, not
// started.
func bothNode(t testing.TB, bin string, sim *simulator) (*world, *node) {
	t.Helper()
	database, key := freshSQLite(t)
	n, err := newNode(nodeSettings{name: "a", bin: bin, database: database})
	if err == nil {
		_, err = bothAccounts(n, sim, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	showLogs(t, "node", n.log)
	t.Cleanup(func() {
		if n.proc != nil && n.proc.alive() {
			n.proc.stop()
		}
	})
	return &world{api: &api{base: "http://" + n.addr, key: key}, sim: sim, merchant: serveMerchant, log: n.log}, n
}

func freshSQLite(t testing.TB) (database, key string) {
	t.Helper()
	database, key, err := copiedSQLite()
	if err != nil {
		t.Fatal(err)
	}
	return database, key
}

func copiedSQLite() (database, key string, err error) {
	tmpl, err := sqliteTemplate()
	if err != nil {
		return "", "", err
	}
	dir, err := os.MkdirTemp(tempDir, "sqlite-")
	if err != nil {
		return "", "", err
	}
	return "sqlite://" + dir + "/db/payonce.db", tmpl.key, os.CopyFS(filepath.Join(dir, "db"), os.DirFS(tmpl.dir))
}

// simWithWebhook is startSim for a simulator that knows where Stripe's notices go.
func simWithWebhook(seed, webhook string) (*simulator, *process, error) {
	addr, log := freeAddr(), &logBuffer{}
	dir, err := os.MkdirTemp(tempDir, "sim-")
	if err != nil {
		return nil, nil, err
	}
	p, err := launch("payonce sim", log, nil, plainBin, "sim", "--addr", addr, "--data", dir, "--seed", seed, "--stripe-webhook", webhook)
	if err != nil {
		return nil, nil, err
	}
	s := &simulator{api{base: "http://" + addr}}
	if !poll(startWithin, func() bool { return !p.alive() || s.get("/_sim/clock").code == http.StatusOK }) || !p.alive() {
		p.kill()
		return nil, nil, fmt.Errorf("payonce sim is not ready\n%s", log.tail(3000))
	}
	return s, p, nil
}

// theRelayed is started once. Its channels are as talkative and as confusing as
// their switches allow.
var theRelayed = sync.OnceValues(func() (*relayed, error) {
	m := &relayed{}
	database, apiKey, err := copiedSQLite()
	if err != nil {
		return nil, err
	}
	n, err := newNode(nodeSettings{name: "relayed", bin: plainBin, database: database, answer: 5 * time.Second, call: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	stopRelay := func() {}
	if m.relay, stopRelay, err = newRelay("http://" + n.addr); err != nil {
		return nil, err
	}
	sim, p, err := simWithWebhook("4", m.relay.base+"/webhooks/stripe/"+cardAccount)
	if err != nil {
		return nil, err
	}
	m.node, m.database = n, database
	m.world = world{api: &api{base: "http://" + n.addr, key: apiKey}, sim: sim, merchant: serveMerchant, log: n.log}
	for _, s := range [][3]string{{"stripe", "twin_events", "on"}, {"stripe", "event_order", "shuffled"}, {alipay, "notify_wait_buyer_pay", "on"},
		{alipay, "notify_trade_closed", "on"}, {alipay, "notice_empty_fields", "signed"}, {alipay, "precreate_again", "refused"}} {
		if err := sim.turn(s[0], s[1], s[2]); err != nil {
			return nil, err
		}
	}
	if m.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&m.key.PublicKey)
	if err != nil {
		return nil, err
	}
	all, err := bothAccounts(n, sim, "\n"+string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	if err != nil {
		return nil, err
	}
	m.appID, m.sellerID, m.secret = all[alipay]["app_id"], all[alipay]["seller_id"], all["stripe"]["webhook_secret"]
	if err := n.start("PAYONCE_PUBLIC_URL=" + m.relay.base); err != nil {
		return nil, err
	}
	atEnd(func() []string {
		problems := m.audit()
		if !n.proc.stop() {
			problems = append(problems, "the relayed node did not end on SIGTERM")
		}
		p.stop()
		stopRelay()
		return problems
	})
	return m, nil
})

// relayedNode is the node of all tests that play with notices.
func relayedNode(t testing.TB) *relayed {
	t.Helper()
	m, err := theRelayed()
	if err != nil {
		t.Fatal(err)
	}
	mark := len(m.log.String())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the node during the test:\n%s", tailOf(m.log.String()[mark:], 3000))
		}
	})
	return m
}

// trade are the fields of a genuine notice about a number, still to be signed.
func (m *relayed) trade(number, status string) map[string]string {
	return map[string]string{"notify_type": "trade_status_sync", "notify_id": newKey(), "notify_time": chinaNow(), "charset": "utf-8", "version": "1.0",
		"app_id": m.appID, "seller_id": m.sellerID, "out_trade_no": number, "trade_no": "2026" + number[:16], "trade_status": status,
		"total_amount": "10.00", "gmt_create": chinaNow(), "subject": "end to end"}
}

// settledTrade is trade of one that was paid.
func (m *relayed) settledTrade(number, tradeNo, total string) map[string]string {
	f := m.trade(number, "TRADE_SUCCESS")
	f["trade_no"], f["total_amount"], f["gmt_payment"] = tradeNo, total, chinaNow()
	return f
}

func chinaNow() string {
	return time.Now().In(time.FixedZone("UTC+8", 8*3600)).Format("2006-01-02 15:04:05")
}

// signText signs what the fields' signature covers.
func (m *relayed) signText(text string) string {
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(nil, m.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err) // a key that was made for it
	}
	return base64.StdEncoding.EncodeToString(sig)
}

func signedText(fields map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if k != "sign" && k != "sign_type" {
			parts = append(parts, k+"="+fields[k])
		}
	}
	return strings.Join(parts, "&")
}

// sealed are the fields with the signature of the channel's second key.
func (m *relayed) sealed(fields map[string]string) map[string]string {
	out := maps.Clone(fields)
	out["sign"], out["sign_type"] = m.signText(signedText(fields)), "RSA2"
	return out
}

// form encodes fields as the channel does.
func form(fields map[string]string) []byte {
	v := url.Values{}
	for k, s := range fields {
		v.Set(k, s)
	}
	return []byte(v.Encode())
}

const alipayPath = "/webhooks/alipay/" + alipayAccount

// tells sends raw bytes to Alipay's address.
func (m *relayed) tells(body []byte) resp {
	return m.deliver(delivery{path: alipayPath, body: body, head: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}})
}

// says sends a genuine notice.
func (m *relayed) says(fields map[string]string) resp { return m.tells(form(m.sealed(fields))) }

// stripeSigned is the header of a body, signed at a time with a secret.
func stripeSigned(secret string, at time.Time, body []byte) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return "t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// event sends a body to Stripe's address with a signature header.
func (m *relayed) event(body []byte, signature string) resp {
	return m.deliver(delivery{path: "/webhooks/stripe/" + cardAccount, body: body,
		head: http.Header{"Content-Type": {"application/json"}, "Stripe-Signature": {signature}}})
}

// taken checks the exact answer to a notice that is stored.
func taken(t testing.TB, what, channel string, r resp) {
	t.Helper()
	want := map[string]string{alipay: "success", "stripe": `{"received":true}`}[channel]
	if r.code != http.StatusOK || string(r.body) != want {
		t.Errorf("%s: %s, want 200 %s", what, r, want)
	}
}

// refused checks the exact answer to a notice that is not genuine.
func refused(t testing.TB, what, channel string, r resp) {
	t.Helper()
	if r.code != http.StatusBadRequest || channel == alipay && string(r.body) != "fail" || bytes.Contains(r.body, []byte("success")) {
		t.Errorf("%s: %s, want a refusal", what, r)
	}
}
