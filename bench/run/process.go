package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/payonce/payonce/bench/internal/wire"
)

// process is a measured server: it is started, asked and stopped here, by its
// own process id.
type process struct {
	wire.Ready
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan error
}

const (
	startWithin = 2 * time.Minute // it may have payments to make first
	stopWithin  = 10 * time.Second
)

// start runs a server and waits until it says where it listens.
func start(program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), ended: make(chan error, 1)}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line := make(chan []byte, 1)
	go func() {
		b, _ := bufio.NewReader(out).ReadBytes('\n') // an end without a line is seen below
		line <- b
		p.ended <- p.cmd.Wait()
	}()
	select {
	case b := <-line:
		if err := json.Unmarshal(b, &p.Ready); err != nil {
			return nil, fmt.Errorf("%s did not start: %w", program, p.stop())
		}
		return p, nil
	case <-time.After(startWithin):
		return nil, fmt.Errorf("%s did not start within %v: %w", program, startWithin, p.stop())
	}
}

// stop ends the server. The error says what it said when it had failed.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	var err error
	select {
	case err = <-p.ended:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		err = errors.Join(errors.New("killed"), <-p.ended)
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}

// highWater returns the most memory that the process has held so far, in MiB.
func (p *process) highWater() (float64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("the kernel tells no VmHWM")
}

// count reads the books of the channel inside the server.
func (p *process) count() (wire.Count, error) {
	var c wire.Count
	resp, err := http.Get("http://" + p.Control + wire.PathCount)
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	return c, json.NewDecoder(resp.Body).Decode(&c)
}

// load runs the load client against the server.
func (b *bench) load(ctx context.Context, p *process, mode string, args ...string) (wire.Result, error) {
	var r wire.Result
	cmd := exec.CommandContext(ctx, b.program("load"), append([]string{"--target", p.Addr, "--mode", mode}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("load, mode %s: %w: %s", mode, err, strings.TrimSpace(stderr.String()))
	}
	return r, json.Unmarshal(out, &r)
}
