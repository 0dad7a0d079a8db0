package channeltest

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Wire is a fake channel on a loopback socket. It reads HTTP/1 requests, keeps
// them, and lets a handler do with the connection what it likes.
type Wire struct {
	URL string

	ln      net.Listener
	wg      sync.WaitGroup
	done    chan struct{} // closed at the end: handlers that hang wait for it
	mu      sync.Mutex
	handle  func(c net.Conn, r Request) (keep bool)
	taken   []Request
	conns   map[net.Conn]bool
	accepts int
	arrival chan struct{} // one token per request, for waits
}

// NewWire starts a fake channel, with TLS where a certificate is given. It ends
// with the test.
func NewWire(t testing.TB, cert *tls.Certificate) *Wire {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{URL: "http://" + ln.Addr().String(), ln: ln, done: make(chan struct{}), conns: map[net.Conn]bool{}, arrival: make(chan struct{}, 1024)}
	if cert != nil {
		w.URL = "https://" + ln.Addr().String()
		w.ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{*cert}})
	}
	w.Answer(func(Request) Reply { return Reply{Status: http.StatusNotImplemented} })
	w.wg.Go(w.accept)
	t.Cleanup(w.stop)
	return w
}

func (w *Wire) stop() {
	close(w.done)
	w.ln.Close()
	w.mu.Lock()
	for c := range w.conns {
		c.Close()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// Answer makes every request get a whole answer on a connection that stays.
func (w *Wire) Answer(f func(Request) Reply) {
	w.Handle(func(c net.Conn, r Request) bool {
		_, err := c.Write(f(r).bytes())
		return err == nil
	})
}

// Handle gives every request to f with its connection; f says whether the
// connection is read on.
func (w *Wire) Handle(f func(c net.Conn, r Request) (keep bool)) {
	w.mu.Lock()
	w.handle = f
	w.mu.Unlock()
}

// Take returns the requests since the last look.
func (w *Wire) Take() []Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.taken
	w.taken = nil
	return got
}

func (w *Wire) accept() {
	for {
		c, err := w.ln.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.accepts++
		no := w.accepts
		w.conns[c] = true
		w.mu.Unlock()
		w.wg.Go(func() { w.serve(c, no) })
	}
}

func (w *Wire) serve(c net.Conn, no int) {
	defer func() {
		c.Close()
		w.mu.Lock()
		delete(w.conns, c)
		w.mu.Unlock()
	}()
	br := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r := Request{Conn: no, Method: req.Method, URI: req.RequestURI, Header: req.Header, Body: body}
		w.mu.Lock()
		w.taken = append(w.taken, r)
		handle := w.handle
		w.mu.Unlock()
		select {
		case w.arrival <- struct{}{}:
		default:
		}
		if !handle(c, r) {
			return
		}
	}
}

// hang holds the connection until the test ends.
func (w *Wire) hang() { <-w.done }

// bytes prints the reply with its length.
func (r Reply) bytes() []byte {
	head, body := r.split()
	return append(head, body...)
}

func (r Reply) split() (head, body []byte) {
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	h := r.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if h.Get("Date") == "" {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	if h.Get("Content-Length") == "" {
		h.Set("Content-Length", fmt.Sprint(len(r.Body)))
	}
	_ = h.Write(&b) // a buffer takes every write
	b.WriteString("\r\n")
	return b.Bytes(), r.Body
}

// Certificate makes a certificate for 127.0.0.1 and the pool that trusts it.
func Certificate(t testing.TB) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "channeltest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}
