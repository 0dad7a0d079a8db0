package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience with processes.
const (
	startWithin = 30 * time.Second
	stopWithin  = 20 * time.Second
)

// process is one child of the test.
type process struct {
	name   string
	cmd    *exec.Cmd
	ended  chan struct{}
	log    *logBuffer
	stdout chan string // first line, where it is asked for
}

// logBuffer keeps what processes say, to be shown when a test fails.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tail is the end of the log.
func (l *logBuffer) tail(n int) string { return tailOf(l.String(), n) }

// tailOf is the end of what processes said, without the line for each request.
func tailOf(s string, n int) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if !strings.Contains(line, "msg=request ") && !strings.Contains(line, `"msg":"request"`) {
			b.WriteString(line)
		}
	}
	s = b.String()
	if len(s) > n {
		s = "…" + s[len(s)-n:]
	}
	return s
}

var starter = make(chan func())

func init() {
	// The kernel's signal on the parent's death belongs to the thread that
	// started the child: one thread that never ends starts them all.
	go func() {
		runtime.LockOSThread()
		for f := range starter {
			f()
		}
	}()
}

// launch starts a program. Its standard input stays open until it is stopped.
func launch(name string, log *logBuffer, env []string, bin string, args ...string) (*process, error) {
	p := &process{name: name, ended: make(chan struct{}), log: log, stdout: make(chan string, 1)}
	p.cmd = exec.Command(bin, args...)
	p.cmd.Env = append(cleanEnv(), env...)
	p.cmd.Dir = tempDir
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = childAttr()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if _, err := p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	started := make(chan error)
	starter <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	go func() {
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n')
		p.stdout <- line
		_, _ = io.Copy(log, r)
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// cleanEnv is the environment without the service's settings.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PAYONCE_") {
			env = append(env, kv)
		}
	}
	return env
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop asks the process to end and reports whether it did in time.
func (p *process) stop() bool {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return true
	case <-time.After(stopWithin):
		p.kill()
		return false
	}
}

// dies waits until the process has ended.
func (p *process) dies(t testing.TB, within time.Duration) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		t.Fatalf("%s lives on after %v", p.name, within)
	}
}

// command runs a short command of the binary and returns its standard output.
func command(log *logBuffer, env []string, bin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env, cmd.Dir, cmd.Stderr = append(cleanEnv(), env...), tempDir, log
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("payonce %s: %w\n%s%s", strings.Join(args, " "), err, out, log.tail(2000))
	}
	return string(out), nil
}

// jsonLine finds the JSON object that a command printed.
func jsonLine(out string, v any) error {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(strings.TrimSpace(line), "{") {
			return json.Unmarshal([]byte(line), v)
		}
	}
	return fmt.Errorf("no JSON line in %q", out)
}

var ports struct {
	mu   sync.Mutex
	used map[int]bool
}

// freeAddr is a loopback address that nobody listens on and that was given to
// nobody else.
func freeAddr() string {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	if ports.used == nil {
		ports.used = map[int]bool{}
	}
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err) // no loopback, no tests
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if !ports.used[port] {
			ports.used[port] = true
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
}

// showLogs prints the log when the test failed.
func showLogs(t testing.TB, name string, log *logBuffer) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, log.tail(6000))
		}
	})
}
