package alipaysim_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/payonce/payonce/internal/sim"
)

// childFolder tells a copy of the test binary to be a simulator.
const childFolder = "PAYONCE_ALIPAYSIM_TEST_FOLDER"

func runChild() bool {
	dir := os.Getenv(childFolder)
	if dir == "" {
		return false
	}
	s, err := sim.Open(sim.Options{DataDir: dir, Seed: 7})
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + l.Addr().String())
	panic(http.Serve(l, s.Handler())) // ends by SIGKILL
}

// life orders, pays and refunds one number, and returns how far it came.
func (r *rig) life(base, number string) (steps int) {
	for _, step := range []string{"precreate", "pay", "refund"} {
		var res *http.Response
		var err error
		switch step {
		case "pay":
			res, err = r.http.Post(base+"/_sim/pay", "application/json", strings.NewReader(`{"channel":"alipay","number":"`+number+`"}`))
		case "precreate":
			res, err = r.http.PostForm(base+"/alipay/gateway.do", r.params("alipay.trade.precreate", order(number, "")))
		default:
			res, err = r.http.PostForm(base+"/alipay/gateway.do", r.params("alipay.trade.refund",
				`{"out_trade_no":"`+number+`","refund_amount":"4.00","out_request_no":"R1"}`))
		}
		if err != nil {
			return steps
		}
		answer, err := bufio.NewReader(res.Body).ReadString('}')
		res.Body.Close()
		if err != nil || !strings.Contains(answer, "10000") && step != "pay" {
			return steps
		}
		steps++
	}
	return steps
}

// TestKilledInTheMiddle kills the process while numbers are ordered, paid and
// refunded: what was answered is on the books, and all can be repeated
// without a second charge or refund.
func TestKilledInTheMiddle(t *testing.T) {
	r := newRig(t)
	r.close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+r.opts.DataDir)
	out, err := cmd.StdoutPipe()
	r.ok(err)
	r.ok(cmd.Start())
	base, err := bufio.NewReader(out).ReadString('\n')
	r.ok(err)
	base = strings.TrimSpace(base)

	const workers, killAfter = 4, 30
	var mu sync.Mutex
	done := map[string]int{} // number → answered steps
	whole := 0
	enough := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := 0; ; n++ {
				number := fmt.Sprintf("K%d_%d", w, n)
				steps := r.life(base, number)
				mu.Lock()
				done[number] = steps
				if steps == 3 {
					whole++
				}
				full := whole >= killAfter
				mu.Unlock()
				if full {
					once.Do(func() { close(enough) })
				}
				if steps < 3 {
					return // killed
				}
			}
		})
	}
	<-enough
	r.ok(cmd.Process.Kill())
	_ = cmd.Wait() // "signal: killed"
	wg.Wait()

	r.open()
	for number, steps := range done {
		lines := r.books("charges", number)
		switch {
		case steps >= 1 && len(lines) != 1, len(lines) > 1:
			t.Fatalf("%s: %d lines after %d answered steps", number, len(lines), steps)
		case steps >= 2:
			equal(t, number+" is paid", lines[0]["paid_at"] != nil, true)
		}
		if steps == 3 {
			equal(t, number+" is refunded", lines[0]["refunded"], any(400.0))
		}
		if steps >= 2 {
			r.api("refund", `{"out_trade_no":"`+number+`","refund_amount":"4.00","out_request_no":"R1"}`, "10000")
			equal(t, number+" is refunded once", r.line(number)["refunded"], any(400.0))
		}
	}
}
