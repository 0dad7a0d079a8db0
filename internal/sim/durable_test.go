package sim_test

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

func TestReopenFindsEverythingAgain(t *testing.T) {
	r := newRig(t)
	first := r.api("POST", "payment_intents", "k", pay+"Q1", 200)
	r.create("Q2", "payment_method=pm_card_authenticationRequired&confirm=true")
	r.api("POST", "refunds", "", "payment_intent="+str(first.body, "id")+"&amount=5", 200)
	r.control("POST", "/_sim/clock", `{"advance_s":60}`, 200)
	before := must(r.do("GET", "/_sim/books", "", "", "", "")).raw
	key := r.key
	r.opts.Seed = 0 // the stored one
	r.reopen()
	equal(t, "key", r.key, key)
	bytesEqual(t, "books", before, must(r.do("GET", "/_sim/books", "", "", "", "")).raw)
	bytesEqual(t, "replay", first.raw, r.api("POST", "payment_intents", "k", pay+"Q1", 200).raw)
	r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"Q2"}`, 200)
	if _, err := sim.Open(r.opts); err == nil {
		t.Fatal("two simulators on one folder")
	}
	r.close()
	r.opts.Seed = 8
	if _, err := sim.Open(r.opts); err == nil {
		t.Fatal("a folder was opened with another seed")
	}
}

// childFolder tells a copy of the test binary to be a simulator.
const childFolder = "PAYONCE_SIM_TEST_FOLDER"

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

// TestKilledInTheMiddle kills the process while payments come in: every
// answer that was given is on the books afterwards, its key replays it, and
// what was not answered can be repeated without a second charge.
func TestKilledInTheMiddle(t *testing.T) {
	r := newRig(t)
	r.close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+r.opts.DataDir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	base, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base = strings.TrimSpace(base)

	const workers, killAfter = 8, 200
	var mu sync.Mutex
	answers := map[string]string{} // number → body
	sent := map[string]bool{}
	enough := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			c := &rig{t: t, http: client, key: r.key}
			for n := 0; ; n++ {
				number := fmt.Sprintf("Z%d-%d", w, n)
				mu.Lock()
				sent[number] = true
				mu.Unlock()
				a, err := c.doAt(base, number)
				if err != nil || a.status != 200 {
					return // killed
				}
				mu.Lock()
				answers[number] = a.raw
				full := len(answers) >= killAfter
				mu.Unlock()
				if full {
					once.Do(func() { close(enough) })
				}
			}
		})
	}
	<-enough
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	wg.Wait()

	r.open()
	for number := range sent {
		a := r.api("POST", "payment_intents", "key-"+number, pay+number, 200)
		if was, answered := answers[number]; answered {
			bytesEqual(t, "answer of "+number, was, a.raw)
			equal(t, "replayed", a.header.Get("Idempotent-Replayed"), "true")
		}
		equal(t, "charges of "+number, len(r.lines(number)), 1)
	}
	t.Logf("%d sent, %d answered before the kill", len(sent), len(answers))
}

func (r *rig) doAt(base, number string) (reply, error) {
	req, err := http.NewRequest("POST", base+"/v1/payment_intents", strings.NewReader(pay+number))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+r.key)
	req.Header.Set("Idempotency-Key", "key-"+number)
	res, err := r.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b := new(strings.Builder)
	if _, err := bufio.NewReader(res.Body).WriteTo(b); err != nil {
		return reply{}, err
	}
	return reply{status: res.StatusCode, raw: b.String()}, nil
}
