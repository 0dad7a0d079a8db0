package core

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Answer is a whole HTTP answer, held back until it may be sent.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Posted []*Posted // notices that this call caused
	Lost   bool      // the connection is dropped without a byte
}

// HTML502 is what a proxy in front of the channel answers.
func HTML502Answer() Answer {
	return Answer{
		Status: http.StatusBadGateway,
		Header: http.Header{"Content-Type": {"text/html"}},
		Body:   []byte("<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"),
	}
}

// Send writes the answer as the fault, which may be nil, wants it. What the
// answer shows must be durable already.
func (w *World) Send(rw http.ResponseWriter, a Answer, f *Fault) {
	w.holdForNotices(a, f)
	switch {
	case a.Lost || f.Is(LoseRequest) || f.Is(LoseResponse):
		drop(rw)
		return
	case f.Is(Truncated):
		a.Body = a.Body[:len(a.Body)/2]
	}
	a.Header.Set("Date", w.Now().Format(http.TimeFormat))
	a.Header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	if f.Is(ResetMidBody) {
		w.resetMidBody(rw, a)
		return
	}
	h := rw.Header()
	for name, values := range a.Header {
		h[name] = values
	}
	rw.WriteHeader(a.Status)
	if _, err := rw.Write(a.Body); err != nil {
		w.Log.Debug("the client did not read its answer", "error", err)
	}
}

// holdForNotices lets the notices arrive first when a fault says so.
func (w *World) holdForNotices(a Answer, f *Fault) {
	hold := f.Is(BeforeResponse)
	for _, p := range a.Posted {
		hold = hold || p.fault.Is(BeforeResponse)
	}
	if !hold {
		return
	}
	limit := time.NewTimer(noticeAtMost)
	defer limit.Stop()
	for _, p := range a.Posted {
		select {
		case <-p.done:
		case <-limit.C:
			return
		case <-w.ctx.Done():
			return
		}
	}
}

// drop ends the connection without an answer.
func drop(rw http.ResponseWriter) {
	conn, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		// HTTP/2 cannot be hijacked; aborting the handler resets the stream.
		panic(http.ErrAbortHandler)
	}
	conn.Close()
}

// resetMidBody promises the whole body, sends half and resets the connection.
func (w *World) resetMidBody(rw http.ResponseWriter, a Answer) {
	conn, buf, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	fmt.Fprintf(buf, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	_ = a.Header.Write(buf)
	_, _ = buf.WriteString("\r\n")
	_, _ = buf.Write(a.Body[:len(a.Body)/2])
	_ = buf.Flush()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // close then sends RST instead of FIN
	}
}
