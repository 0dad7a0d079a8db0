package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/payonce/payonce/bench/internal/wire"
)

// slowCase: many payments wait for a slow account while others use the service.
type slowCase struct {
	Held       int         `json:"held"`        // payments that wait
	WaitSecs   float64     `json:"wait_s"`      // how long their account takes
	Pool       int         `json:"pool"`        // database connections
	Throughout bool        `json:"throughout"`  // all of them waited while the others were measured
	Health     wire.Result `json:"healthz"`     // GET /healthz
	Get        wire.Result `json:"get_payment"` // GET /v1/payments/{id}
	Pay        wire.Result `json:"pay"`         // a new payment on another account
	First      wire.Result `json:"first"`       // the answers of those that wait
	Again      wire.Result `json:"again"`       // the same requests after the wait
	Charges    int64       `json:"charges"`     // of the slow account
	HighWater  float64     `json:"vmhwm_mib"`
}

const (
	slowHeld = 1000
	slowWait = 30 * time.Second
	slowPool = 10
)

// slow measures the case. The probes pause between requests: they ask how long
// one takes, not how many there could be.
func (b *bench) slow(ctx context.Context) (slowCase, error) {
	s := slowCase{Held: slowHeld, WaitSecs: slowWait.Seconds(), Pool: slowPool}
	args := []string{"--conns", strconv.Itoa(slowPool), "--slow", slowWait.String()}
	err := b.with(ctx, theService, args, func(proc *process) error {
		known, err := payOnce(proc)
		if err != nil {
			return err
		}
		held := []string{"--conns", strconv.Itoa(slowHeld), "--account", "slow", "--prefix", "s-"}
		var holding sync.WaitGroup
		var holdErr error
		holding.Go(func() { s.First, holdErr = b.load(ctx, proc, "hold", held...) })
		defer holding.Wait()
		if err := until(ctx, proc, slowWait/2, func(c wire.Count) bool { return c.CallsWaiting == slowHeld }); err != nil {
			return fmt.Errorf("payments of the slow account: %w", err)
		}
		if err := b.probe(ctx, proc, known, &s); err != nil {
			return err
		}
		c, err := proc.count()
		if err != nil {
			return err
		}
		s.Throughout = c.CallsWaiting == slowHeld
		holding.Wait()
		if err := errors.Join(holdErr, until(ctx, proc, 2*slowWait, func(c wire.Count) bool { return c.CallsWaiting == 0 })); err != nil {
			return err
		}
		if s.Again, err = b.again(ctx, proc, held); err != nil {
			return err
		}
		if c, err = proc.count(); err != nil {
			return err
		}
		s.Charges = c.Charges - int64(s.Pay.Requests) - 1
		s.HighWater, err = proc.highWater()
		return err
	})
	if err != nil {
		return s, fmt.Errorf("slow channel: %w", err)
	}
	b.say("slow channel: p99 of /healthz %.1f ms, of a GET %.1f ms, of a payment elsewhere %.1f ms", s.Health.P99, s.Get.P99, s.Pay.P99)
	return s, nil
}

// again sends the requests once more, until all are answered by their result: the
// channel has answered, but the last of its answers may not be stored yet.
func (b *bench) again(ctx context.Context, proc *process, held []string) (wire.Result, error) {
	deadline := time.Now().Add(slowWait)
	for {
		r, err := b.load(ctx, proc, "hold", held...)
		if err != nil || r.Statuses["201"] == slowHeld || time.Now().After(deadline) {
			return r, err
		}
	}
}

// probe measures three kinds of requests at the same time.
func (b *bench) probe(ctx context.Context, proc *process, known string, s *slowCase) error {
	common := []string{"--conns", "4", "--pause", "5ms", "--for", b.probing.String()}
	runs := []struct {
		into *wire.Result
		mode string
		args []string
	}{
		{&s.Health, "get", []string{"--path", "/healthz"}},
		{&s.Get, "get", []string{"--path", "/v1/payments/" + known}},
		{&s.Pay, "first", []string{"--prefix", "p-"}},
	}
	errs := make([]error, len(runs))
	var wg sync.WaitGroup
	for i, r := range runs {
		wg.Go(func() { *r.into, errs[i] = b.load(ctx, proc, r.mode, append(r.args, common...)...) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// payOnce makes one payment and returns its id.
func payOnce(p *process) (string, error) {
	body := `{"order_no":"known","channel":"stripe","method":"card","account":"fast","amount":1999,"currency":"USD","subject":"Benchmark"}`
	req, err := http.NewRequest(http.MethodPost, "http://"+p.Addr+"/v1/payments", bytes.NewReader([]byte(body)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer sk_test_bench")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "known")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var payment struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&payment); err != nil || resp.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("one payment: %s, %w", resp.Status, err)
	}
	return payment.ID, nil
}

// until looks at the books until they are as wanted.
func until(ctx context.Context, p *process, limit time.Duration, wanted func(wire.Count) bool) error {
	deadline := time.Now().Add(limit)
	for {
		c, err := p.count()
		if err != nil {
			return err
		}
		if wanted(c) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v the books say %+v", limit, c)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
