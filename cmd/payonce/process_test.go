package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for a real process.
const patience = 30 * time.Second

// proc is a started payonce. Its standard error ends when it and all its
// children have.
type proc struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader
	mu     sync.Mutex
	log    bytes.Buffer
	silent chan struct{} // closed when nobody holds the log any more
}

func startPayonce(t *testing.T, env []string, args ...string) *proc {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	// Settings of whoever runs the tests are not settings of the process.
	inherited := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PAYONCE_") })
	cmd.Env = append(append(inherited, asPayonce+"=1"), env...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	p := &proc{t: t, cmd: cmd, out: bufio.NewReader(stdout), silent: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() {
		defer close(p.silent)
		defer r.Close()
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		p.gone()
		if t.Failed() {
			t.Logf("log of %v:\n%s", args, p.logged())
		}
	})
	return p
}

func (p *proc) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// gone waits until the process and all its children are.
func (p *proc) gone() {
	select {
	case <-p.silent:
	case <-time.After(patience):
		p.t.Errorf("processes are left over: %v", p.cmd.Args)
	}
}

// ends waits for the end and returns the exit code.
func (p *proc) ends() int {
	p.gone()
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

func (p *proc) signal(s os.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// addresses is the one line of payonce dev.
type addresses struct{ API, Sim, Shop, Metrics, Key string }

func (p *proc) readyLine() addresses {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("no ready line: %v\n%s", err, p.logged())
	}
	var m map[string]string
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		p.t.Fatalf("%q: %v", line, err)
	}
	if len(m) != 5 {
		p.t.Errorf("the ready line has %d members: %s", len(m), line)
	}
	return addresses{m["api"], m["sim"], m["shop"], m["metrics"], m["api_key"]}
}

func ask(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body) // a part is enough for the message
	return res.StatusCode, string(b)
}

func (a addresses) pay(t *testing.T, order, key string) (int, string) {
	t.Helper()
	return ask(t, http.MethodPost, a.API+"/v1/payments",
		`{"order_no":"`+order+`","channel":"stripe","method":"card","amount":1000,"currency":"USD","subject":"x","payer":{"payment_method":"pm_card_visa"}}`,
		"Authorization", "Bearer "+a.Key, "Idempotency-Key", key, "Content-Type", "application/json", "Prefer", "wait=20")
}

func (a addresses) order(t *testing.T, order string) (int, string) {
	t.Helper()
	return ask(t, http.MethodGet, a.API+"/v1/orders/"+order, "", "Authorization", "Bearer "+a.Key)
}

func (a addresses) charges(t *testing.T) int {
	t.Helper()
	_, books := ask(t, http.MethodGet, a.Sim+"/_sim/books", "")
	return strings.Count(books, `"status":"paid"`)
}

var devArgs = []string{"dev", "--addr", "127.0.0.1:0", "--sim", "127.0.0.1:0", "--data"}

func startDev(t *testing.T, data string, env ...string) (*proc, addresses) {
	t.Helper()
	p := startPayonce(t, env, append(devArgs[:len(devArgs):len(devArgs)], data)...)
	return p, p.readyLine()
}

func TestA04_DevFindsEverythingAgain(t *testing.T) {
	data := t.TempDir()
	p, a := startDev(t, data)
	if a.Key != "sk_dev_payonce" || a.Shop != a.API+"/shop" || !strings.HasSuffix(a.Metrics, "/metrics") {
		t.Errorf("ready line: %+v", a)
	}
	if code, body := a.pay(t, "A1", "k1"); code != http.StatusCreated {
		t.Fatalf("pay: %d %s", code, body)
	}
	if code, body := ask(t, http.MethodGet, a.Metrics, ""); code != 200 || !strings.Contains(body, "payonce_channel_calls_total") || strings.Contains(body, "A1") {
		t.Errorf("metrics: %d", code)
	}
	eventually(t, "the channel's notices are taken in", func() bool {
		_, books := ask(t, http.MethodGet, a.Sim+"/_sim/books", "")
		return strings.Contains(books, `"acknowledged":true`) && !strings.Contains(books, `"acknowledged":false`)
	})
	// The parent is killed and cannot clean up.
	p.signal(os.Kill)
	p.gone()
	again, b := startDev(t, data)
	if code, body := b.order(t, "A1"); code != 200 || !strings.Contains(body, `"status":"PAID"`) {
		t.Errorf("the order: %d %s", code, body)
	}
	if code, _ := b.pay(t, "A1", "k1"); code != http.StatusCreated || b.charges(t) != 1 {
		t.Errorf("replay: %d, charges %d", code, b.charges(t))
	}
	again.signal(syscall.SIGTERM)
	if code := again.ends(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestA04_TheServiceIsKilledInTheMiddleOfAPayment(t *testing.T) {
	_, a := startDev(t, t.TempDir())
	if code, body := ask(t, http.MethodPost, a.Sim+"/_sim/faults", `{"channel":"stripe","operation":"confirm","fault":"delay","delay_ms":1000,"times":1}`); code != http.StatusCreated {
		t.Fatalf("fault: %d %s", code, body)
	}
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		a.pay(t, "A2", "k2")
	}()
	eventually(t, "the payment is under way", func() bool {
		_, body := a.order(t, "A2")
		return strings.Contains(body, `"status":"PROCESSING"`)
	})
	_, before := ask(t, http.MethodGet, a.API+"/shop", "")
	if code, body := ask(t, http.MethodPost, a.API+"/shop/kill", "order=A2", "Content-Type", "application/x-www-form-urlencoded"); code != http.StatusSeeOther {
		t.Fatalf("kill: %d %s", code, body)
	}
	<-lost
	eventually(t, "the payment succeeds after the restart", func() bool {
		_, body := a.order(t, "A2")
		return strings.Contains(body, `"status":"PAID"`)
	})
	_, after := ask(t, http.MethodGet, a.API+"/shop", "")
	if process(before) == process(after) {
		t.Error("the service was not started again")
	}
	if n := a.charges(t); n != 1 {
		t.Errorf("%d charges", n)
	}
}

func process(page string) string {
	_, after, _ := strings.Cut(page, "Service process ")
	pid, _, _ := strings.Cut(after, "<")
	return pid
}

func TestDevFollowsTheSimulatorsClock(t *testing.T) {
	data := t.TempDir()
	p, a := startDev(t, data)
	day := func(order string) string {
		code, body := ask(t, http.MethodPost, a.API+"/v1/orders", `{"order_no":"`+order+`","amount":1,"currency":"USD","subject":"x"}`,
			"Authorization", "Bearer "+a.Key, "Content-Type", "application/json")
		var o struct {
			CreatedAt time.Time `json:"created_at"`
		}
		if err := json.Unmarshal([]byte(body), &o); err != nil || code != http.StatusCreated {
			t.Fatalf("order: %d %s", code, body)
		}
		return o.CreatedAt.Format(time.DateOnly)
	}
	if code, body := ask(t, http.MethodPost, a.Sim+"/_sim/clock", `{"advance_s":864000}`); code != 200 {
		t.Fatalf("clock: %d %s", code, body)
	}
	want := time.Now().UTC().Add(10 * 24 * time.Hour).Format(time.DateOnly)
	if got := day("C1"); got != want {
		t.Errorf("after the move: %s, want %s", got, want)
	}
	p.signal(syscall.SIGTERM)
	p.ends()
	_, a = startDev(t, data)
	if got := day("C2"); got != want {
		t.Errorf("after the restart: %s, want %s", got, want)
	}
}

func TestDevSaysWhatIsTaken(t *testing.T) {
	data := t.TempDir()
	_, a := startDev(t, data)
	addr := strings.TrimPrefix(a.API, "http://")
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"folder":   {[]string{"dev", "--addr", "127.0.0.1:0", "--sim", "127.0.0.1:0", "--data", data}, exitConfig, "is in use by another payonce dev"},
		"port":     {[]string{"dev", "--addr", addr, "--sim", "127.0.0.1:0", "--data", t.TempDir()}, exitPort, "--addr: the port of " + addr + " is taken"},
		"sim port": {[]string{"dev", "--addr", "127.0.0.1:0", "--sim", addr, "--data", t.TempDir()}, exitPort, "--sim: the port of " + addr + " is taken"},
		"address":  {[]string{"dev", "--addr", "nowhere", "--data", t.TempDir()}, exitConfig, "--addr: cannot listen on nowhere"},
		"sim":      {[]string{"sim", "--addr", addr, "--data", t.TempDir()}, exitPort, "is taken"},
	} {
		p := startPayonce(t, nil, tc.args...)
		if code := p.ends(); code != tc.code || !strings.Contains(p.logged(), tc.want) || strings.Count(p.logged(), "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d\n%s", name, code, tc.code, p.logged())
		}
	}
}

func TestServeHasNothingOfTheDemo(t *testing.T) {
	dir := t.TempDir()
	env := []string{"PAYONCE_DATABASE_URL=sqlite://" + filepath.Join(dir, "p.db"), "PAYONCE_ADDR=127.0.0.1:0", "PAYONCE_ADMIN_ADDR=127.0.0.1:0",
		"PAYONCE_NODE_ID=a", "PAYONCE_STATE_DIR=" + dir}
	if code := startPayonce(t, env, "migrate", "up").ends(); code != exitOK {
		t.Fatalf("migrate: %d", code)
	}
	p := startPayonce(t, env, "serve")
	eventually(t, "ready", func() bool { return strings.Contains(p.logged(), `"msg":"ready"`) })
	api, admin := listening(t, p)
	if code, body := ask(t, http.MethodGet, api+"/readyz", ""); code != 200 {
		t.Errorf("readyz: %d %s", code, body)
	}
	for _, path := range []string{api + "/shop", admin + "/_dev/clock"} {
		if code, _ := ask(t, http.MethodGet, path, ""); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, _ := ask(t, http.MethodPost, admin+"/_dev/clock", `{"offset_s":5}`); code == http.StatusNoContent {
		t.Error("the clock of serve can be moved")
	}
	second := startPayonce(t, env, "worker")
	eventually(t, "the second process of the node warns and runs", func() bool {
		return strings.Contains(second.logged(), "another process runs under this node_id") && strings.Contains(second.logged(), `"msg":"ready"`)
	})
	for _, x := range []*proc{second, p} {
		x.signal(syscall.SIGTERM)
		if code := x.ends(); code != exitOK {
			t.Errorf("%v: exit code %d", x.cmd.Args[1:], code)
		}
	}
}

// listening reads the addresses of a service from its log.
func listening(t *testing.T, p *proc) (api, admin string) {
	t.Helper()
	for line := range strings.Lines(p.logged()) {
		var l struct{ Msg, API, Admin string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "ready" {
			return l.API, l.Admin
		}
	}
	t.Fatal("no ready line in the log")
	return "", ""
}
