package channeltest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/payonce/payonce"
)

// notExecuted: of begin and prepare, proof that nothing left is required; a
// question that was not asked is no knowledge either way.
func notExecuted(t *testing.T, s Step, got payonce.FactKind) {
	t.Helper()
	if got == payonce.StateNotSent || ((s == Query || s == Close) && got == payonce.StateUnknown) {
		return
	}
	t.Errorf("%s = %s, want not-sent", s, got)
}

// neverSent: no connection, or none that is the channel's, proves that nothing
// was sent.
func (r *runner) neverSent(t *testing.T) {
	_, pool := Certificate(t)
	for _, s := range r.steps() {
		t.Run(string(s)+"/closed_port", func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ln.Close()
			b := r.on(t, nil, Env{BaseURL: "http://" + ln.Addr().String()})
			notExecuted(t, s, b.call(s, 1).Kind)
		})
		t.Run(string(s)+"/X09_wrong_certificate", func(t *testing.T) {
			cert, _ := Certificate(t)
			w := NewWire(t, cert)
			b := r.on(t, w, Env{BaseURL: w.URL, Roots: pool})
			w.Answer(b.good(s))
			notExecuted(t, s, b.call(s, 1).Kind)
			b.arrived(0)
		})
		t.Run(string(s)+"/X09_right_certificate", func(t *testing.T) {
			cert, own := Certificate(t)
			w := NewWire(t, cert)
			b := r.on(t, w, Env{BaseURL: w.URL, Roots: own})
			w.Answer(b.good(s))
			if a := b.call(s, 1); a.Kind != r.m.Says[s][0] {
				t.Errorf("%s = %s (%v), want %s", s, a.Kind, a.Err, r.m.Says[s][0])
			}
			b.arrived(1)
		})
		t.Run(string(s)+"/context_over", func(t *testing.T) {
			b := r.bench(t)
			b.wire.Answer(b.good(s))
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			notExecuted(t, s, b.callCtx(ctx, s, 1).Kind)
			b.arrived(0)
		})
	}
}

// oneRequest: nothing below the adapter follows, waits and repeats, or asks
// again.
func (r *runner) oneRequest(t *testing.T) {
	for _, s := range r.steps() {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprintf("%s/%d", s, status), func(t *testing.T) {
				b := r.bench(t)
				b.wire.Answer(func(req Request) Reply {
					if strings.HasPrefix(req.URI, "/elsewhere") {
						return b.good(s)(req)
					}
					return Reply{Status: status, Header: http.Header{"Location": {b.wire.URL + "/elsewhere"}}}
				})
				b.unknown(s)
				b.arrived(1)
			})
		}
		for _, status := range []int{408, 421, 425, 500, 502, 503, 504} {
			t.Run(fmt.Sprintf("%s/%d_R12", s, status), func(t *testing.T) {
				b := r.bench(t)
				h := http.Header{"Retry-After": {"0"}, "Stripe-Should-Retry": {"true"}}
				b.wire.Answer(func(Request) Reply { return Reply{Status: status, Header: h, Body: []byte("{}")} })
				b.unknown(s)
				b.arrived(1)
			})
		}
		t.Run(string(s)+"/R10_html_502", func(t *testing.T) {
			b := r.bench(t)
			b.wire.Answer(func(Request) Reply {
				return Reply{Status: 502, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<html>Bad Gateway</html>")}
			})
			b.unknown(s)
			b.arrived(1)
		})
	}
}

// unknown makes the call and wants no knowledge.
func (b *bench) unknown(s Step) {
	b.t.Helper()
	if a := b.call(s, 1); a.Kind != payonce.StateUnknown {
		b.t.Errorf("%s = %s, want unknown", s, a.Kind)
	}
}

// keptAlive: when a connection that was used before dies under a request, the
// HTTP library must not send it again on a new one (R05, R12).
func (r *runner) keptAlive(t *testing.T) {
	for _, s := range r.steps() {
		for _, how := range []string{"closed", "reset"} {
			t.Run(string(s)+"/R12_"+how, func(t *testing.T) {
				b := r.bench(t)
				b.wire.Answer(b.good(s))
				if a := b.call(s, 1); a.Kind != r.m.Says[s][0] {
					t.Fatalf("first call = %s (%v)", a.Kind, a.Err)
				}
				first := b.arrived(1)
				b.wire.Handle(func(c net.Conn, req Request) bool {
					if how == "reset" {
						_ = c.(*net.TCPConn).SetLinger(0) // only makes the close a reset
					}
					if req.Conn == first[0].Conn {
						return false
					}
					_, _ = c.Write(b.good(s)(req).bytes()) // a repeat would be answered
					return false
				})
				b.unknown(s)
				b.arrived(1)
			})
		}
		t.Run(string(s)+"/fresh_connection_closed", func(t *testing.T) {
			b := r.bench(t)
			b.wire.Handle(func(net.Conn, Request) bool { return false })
			b.unknown(s)
			b.arrived(1)
		})
	}
}

// broken: an answer that ends early, is not what it should be, or never ends is
// no knowledge, and is bounded.
func (r *runner) broken(t *testing.T) {
	write := func(c net.Conn, parts ...[]byte) bool {
		for _, p := range parts {
			if _, err := c.Write(p); err != nil {
				break
			}
		}
		return false
	}
	for _, s := range r.steps() {
		b0 := r.bench(t)
		good := func(req Request) (head, body []byte) { return b0.good(s)(req).split() }
		type fault struct {
			name string
			do   func(c net.Conn, req Request) bool
		}
		cut := []fault{
			{"after_the_header", func(c net.Conn, q Request) bool { h, _ := good(q); return write(c, h) }},
			{"in_the_body", func(c net.Conn, q Request) bool { h, b := good(q); return write(c, h, b[:len(b)/2]) }},
			{"before_the_last_byte", func(c net.Conn, q Request) bool { h, b := good(q); return write(c, h, b[:len(b)-1]) }},
			{"truncated_json", func(c net.Conn, q Request) bool {
				rep := b0.good(s)(q)
				rep.Body = rep.Body[:len(rep.Body)/2]
				return write(c, rep.bytes())
			}},
		}
		if r.m.NoBody[s] {
			cut = nil
		}
		faults := append(cut, []fault{
			{"in_the_status_line", func(c net.Conn, _ Request) bool { return write(c, []byte("HTTP/1.1 20")) }},
			{"in_the_header", func(c net.Conn, _ Request) bool { return write(c, []byte("HTTP/1.1 200 OK\r\nContent-Ty")) }},
			{"no_http", func(c net.Conn, _ Request) bool { return write(c, []byte("SSH-2.0-nothing\r\n\r\n")) }},
			{"html_200", func(c net.Conn, _ Request) bool { return write(c, Reply{Body: []byte("<html>OK</html>")}.bytes()) }},
			{"empty_200", func(c net.Conn, _ Request) bool { return write(c, Reply{}.bytes()) }},
			{"json_null", func(c net.Conn, _ Request) bool { return write(c, Reply{Body: []byte("null")}.bytes()) }},
			{"json_array", func(c net.Conn, _ Request) bool { return write(c, Reply{Body: []byte("[]")}.bytes()) }},
			{"json_empty", func(c net.Conn, _ Request) bool { return write(c, Reply{Body: []byte("{}")}.bytes()) }},
			{"X08_deep", func(c net.Conn, _ Request) bool {
				return write(c, Reply{Body: []byte(`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`)}.bytes())
			}},
			{"X08_huge", func(c net.Conn, _ Request) bool {
				return write(c, Reply{Body: bytes.Repeat([]byte("x"), 16<<20)}.bytes())
			}},
			{"X08_endless_body", func(c net.Conn, _ Request) bool {
				return flood(t, c, "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n")
			}},
			{"X08_endless_header", func(c net.Conn, _ Request) bool { return flood(t, c, "HTTP/1.1 200 OK\r\nX: ") }},
		}...)
		for _, f := range faults {
			t.Run(string(s)+"/"+f.name, func(t *testing.T) {
				b := r.bench(t)
				b.wire.Handle(f.do)
				b.unknown(s)
				b.arrived(1)
			})
		}
	}
}

// flood writes until the caller hangs up. A caller that takes far more than
// sockets buffer has no limit.
func flood(t *testing.T, c net.Conn, head string) bool {
	const limit, part = 64 << 20, 64 << 10
	if _, err := c.Write([]byte(head)); err != nil {
		return false
	}
	junk := bytes.Repeat([]byte("x"), part)
	for n := 0; n < limit; n += part {
		if _, err := c.Write(junk); err != nil {
			return false
		}
	}
	t.Errorf("more than %d bytes of one answer were taken", limit)
	return false
}

// deadline: the call ends soon after its context, wherever the channel hangs,
// and what was sent stays unknown.
func (r *runner) deadline(t *testing.T) {
	for _, s := range r.steps() {
		for _, where := range []string{"no_answer", "in_the_body"} {
			if where == "in_the_body" && r.m.NoBody[s] {
				continue
			}
			t.Run(string(s)+"/"+where, func(t *testing.T) {
				b := r.bench(t)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				b.wire.Handle(func(c net.Conn, req Request) bool {
					if where == "in_the_body" {
						head, body := b.good(s)(req).split()
						_, _ = c.Write(append(head, body[:len(body)/2]...)) // the caller may be gone
					}
					cancel() // the request is there: now the caller's time is over
					b.wire.hang()
					return false
				})
				start := time.Now()
				if a := b.callCtx(ctx, s, 1); a.Kind != payonce.StateUnknown {
					t.Errorf("%s = %s, want unknown", s, a.Kind)
				}
				if d := time.Since(start); d > patience {
					t.Errorf("returned after %v", d)
				}
				b.arrived(1)
			})
		}
		t.Run(string(s)+"/timeout", func(t *testing.T) {
			b := r.bench(t)
			b.wire.Handle(func(net.Conn, Request) bool { b.wire.hang(); return false })
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			start := time.Now()
			if a := b.callCtx(ctx, s, 1); a.Kind != payonce.StateUnknown {
				t.Errorf("%s = %s, want unknown", s, a.Kind)
			}
			if d := time.Since(start); d > patience {
				t.Errorf("returned after %v", d)
			}
		})
	}
}

// secrets: a channel (or a proxy) that echoes what it got must not bring our
// secrets into logs and evidence (X10).
func (r *runner) secrets(t *testing.T) {
	for _, s := range r.steps() {
		for _, status := range []int{200, 400, 401, 502} {
			t.Run(fmt.Sprintf("%s/X10_%d", s, status), func(t *testing.T) {
				b := r.bench(t)
				echo := strings.Join(r.suite.Secrets, " ")
				for _, body := range []string{echo, `{"error":{"type":"x","code":"` + echo + `","message":"` + echo + `"},"code":"` + echo + `","message":"` + echo + `"}`} {
					b.wire.Answer(func(Request) Reply { return Reply{Status: status, Body: []byte(body)} })
					b.call(s, 1)
					b.wire.Handle(func(c net.Conn, _ Request) bool {
						_, _ = c.Write([]byte("HTTP/1.1 " + echo + "\r\n" + echo)) // not HTTP: the error would quote it
						return false
					})
					b.call(s, 1)
				}
				b.arrived(4)
			})
		}
	}
}

// concurrent: the adapter is used from many goroutines, and answers do not
// cross. Run it with the race detector.
func (r *runner) concurrent(t *testing.T) {
	b := r.bench(t)
	s := r.steps()[0]
	b.wire.Answer(b.good(s))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if a := b.call(s, 1); a.Kind != r.m.Says[s][0] {
				t.Errorf("%s = %s (%v)", s, a.Kind, a.Err)
			}
		})
	}
	wg.Wait()
	b.arrived(16)
}
