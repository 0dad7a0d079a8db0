package main

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/payonce/payonce/bench/internal/wire"
)

// settings of one run.
type settings struct {
	target  string
	mode    string
	conns   int
	length  time.Duration
	keys    int
	prefix  string // of keys and order numbers; nothing else uses it
	token   string
	account string
	path    string        // of modes get and notices
	pause   time.Duration // between two requests of a connection
	// Of mode notices: where the bodies are, which of them are sent how often,
	// and how each is to be answered.
	file       string
	skip, take int
	rounds     int
	word       string
}

// slack is how much longer than planned a run may take.
const slack = 120 * time.Second

// run opens the connections and lets the mode use them.
func (s *settings) run() (wire.Result, error) {
	modes := map[string]func([]*conn, []*recorder) (time.Duration, error){
		"first": s.first, "replay": s.replay, "hold": s.hold, "get": s.get, "notices": s.notices,
	}
	if s.mode == "twins" {
		return s.twins()
	}
	mode, ok := modes[s.mode]
	if !ok {
		return wire.Result{}, fmt.Errorf("there is no mode %q", s.mode)
	}
	conns, recorders, err := s.open()
	if err != nil {
		return wire.Result{}, err
	}
	took, err := mode(conns, recorders)
	return summarize(s.mode, recorders, took), err
}

func (s *settings) open() ([]*conn, []*recorder, error) {
	conns, recorders := make([]*conn, s.conns), make([]*recorder, s.conns)
	deadline := time.Now().Add(s.length + slack)
	for i := range conns {
		var err error
		if conns[i], err = dial(s.target, deadline); err != nil {
			return nil, nil, err
		}
		recorders[i] = newRecorder()
	}
	return conns, recorders, nil
}

// each runs f for all connections at once and returns how long that took.
func each(conns []*conn, f func(i int, c *conn)) time.Duration {
	var wg sync.WaitGroup
	began := time.Now()
	for i, c := range conns {
		wg.Go(func() { f(i, c) })
	}
	wg.Wait()
	return time.Since(began)
}

// measure sends what next makes until the time is over or the connection breaks.
func (s *settings) measure(c *conn, r *recorder, end time.Time, next func(buf []byte, n int) []byte) {
	var buf []byte
	for n := 0; ; n++ {
		began := time.Now()
		if began.After(end) {
			return
		}
		buf = next(buf[:0], n)
		resp, err := c.roundTrip(buf)
		r.add(time.Since(began), resp, err)
		if err != nil {
			return
		}
		if s.pause > 0 {
			time.Sleep(s.pause)
		}
	}
}

// first: every request is a new payment of a new order.
func (s *settings) first(conns []*conn, recorders []*recorder) (time.Duration, error) {
	end := time.Now().Add(s.length)
	return each(conns, func(i int, c *conn) {
		own := s.prefix + strconv.Itoa(i) + "-"
		s.measure(c, recorders[i], end, func(buf []byte, n int) []byte {
			return s.payment(buf, own+strconv.Itoa(n))
		})
	}), nil
}

// replay: payments that are made before the measured time are asked for again.
func (s *settings) replay(conns []*conn, recorders []*recorder) (time.Duration, error) {
	requests := make([][]byte, s.keys)
	for i := range requests {
		requests[i] = s.payment(nil, s.prefix+"r"+strconv.Itoa(i))
	}
	made := make([]*recorder, len(conns))
	each(conns, func(i int, c *conn) {
		made[i] = newRecorder()
		for k := i; k < len(requests); k += len(conns) {
			resp, err := c.roundTrip(requests[k])
			made[i].add(0, resp, err)
		}
	})
	if r := summarize("", made, 0); r.Errors > 0 {
		return 0, fmt.Errorf("making the known keys: %s", r.FirstError)
	}
	end := time.Now().Add(s.length)
	return each(conns, func(i int, c *conn) {
		s.measure(c, recorders[i], end, func(buf []byte, n int) []byte {
			return append(buf, requests[(i*31+n)%len(requests)]...)
		})
	}), nil
}

// hold: every connection sends one payment and waits for its answer.
func (s *settings) hold(conns []*conn, recorders []*recorder) (time.Duration, error) {
	return each(conns, func(i int, c *conn) {
		began := time.Now()
		resp, err := c.roundTrip(s.payment(nil, s.prefix+strconv.Itoa(i)))
		recorders[i].add(time.Since(began), resp, err)
	}), nil
}

// get asks for one path again and again.
func (s *settings) get(conns []*conn, recorders []*recorder) (time.Duration, error) {
	request := []byte("GET " + s.path + " HTTP/1.1\r\nHost: " + s.target + "\r\nAuthorization: Bearer " + s.token + "\r\n\r\n")
	end := time.Now().Add(s.length)
	return each(conns, func(i int, c *conn) {
		s.measure(c, recorders[i], end, func(buf []byte, _ int) []byte { return append(buf, request...) })
	}), nil
}

// twins: for each key all connections send the same request at the same moment;
// 409 is a proper answer to a twin. When all have answered the key is asked once
// more, and must have succeeded.
func (s *settings) twins() (wire.Result, error) {
	conns, recorders, err := s.open()
	if err != nil {
		return wire.Result{}, err
	}
	succeeded := 0
	began := time.Now()
	for k := range s.keys {
		request := s.payment(nil, s.prefix+"t"+strconv.Itoa(k))
		gate := make(chan struct{})
		var ready, done sync.WaitGroup
		for i, c := range conns {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-gate
				sent := time.Now()
				resp, err := c.roundTrip(request)
				recorders[i].add(time.Since(sent), resp, err, 409)
			})
		}
		ready.Wait()
		close(gate)
		done.Wait()
		resp, err := conns[0].roundTrip(request)
		if err != nil {
			return wire.Result{}, err
		}
		if resp.status/100 == 2 {
			succeeded++
		}
	}
	res := summarize("twins", recorders, time.Since(began))
	res.Succeeded = succeeded
	return res, nil
}

// payment appends the request for a payment; the name is its key and its order.
func (s *settings) payment(buf []byte, name string) []byte {
	body := `{"order_no":"` + name + `","channel":"stripe","method":"card","account":"` + s.account +
		`","amount":1999,"currency":"USD","subject":"Benchmark","payer":{"payment_method":"pm_card_visa"}}`
	buf = append(buf, "POST /v1/payments HTTP/1.1\r\nHost: "...)
	buf = append(buf, s.target...)
	buf = append(buf, "\r\nAuthorization: Bearer "...)
	buf = append(buf, s.token...)
	buf = append(buf, "\r\nContent-Type: application/json\r\nIdempotency-Key: "...)
	buf = append(buf, name...)
	buf = append(buf, "\r\nContent-Length: "...)
	buf = strconv.AppendInt(buf, int64(len(body)), 10)
	buf = append(buf, "\r\n\r\n"...)
	return append(buf, body...)
}
