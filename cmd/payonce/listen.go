package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/payonce/payonce/internal/httpapi"
)

// Times of the servers. A request that waits for the channel or for a change
// takes up to a minute; a stream goes on as long as its client keeps reading.
const (
	headerTime = 10 * time.Second // for the head of a request
	bodyTime   = 30 * time.Second // for its body
	answerTime = 2 * time.Minute  // from there to the end of the answer
	streamTime = 30 * time.Second // for each write of a stream
	idleTime   = 2 * time.Minute
	maxHeader  = 32 << 10
)

// portPatience is how long a port that an earlier process had may take to be
// free.
const portPatience = 2 * time.Second

// listen opens a socket. With patience, a taken port is tried again for a while.
func listen(ctx context.Context, setting, addr string, patience time.Duration) (net.Listener, error) {
	deadline := time.Now().Add(patience)
	for {
		ln, err := net.Listen("tcp", addr)
		if err == nil {
			return ln, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || !time.Now().Before(deadline) {
			return nil, listenError(setting, addr, err)
		}
		select {
		case <-ctx.Done():
			return nil, listenError(setting, addr, err)
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// inherited returns the socket that the parent opened as this descriptor.
func inherited(fd uintptr, name string) (net.Listener, error) {
	f := os.NewFile(fd, name)
	if f == nil {
		return nil, exit(exitUsage, "descriptor %d is not open", fd)
	}
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, exit(exitUsage, "descriptor %d is no socket: %v", fd, err)
	}
	return ln, nil
}

// urlOf is how this machine reaches a socket.
func urlOf(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return "http://" + (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}).String()
	}
	return "http://" + addr.String()
}

// addressOf is for the log; "" for no socket.
func addressOf(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	return urlOf(ln.Addr())
}

// serve starts the servers. What ends one early goes to failed.
func (s *service) serve(api http.Handler, failed chan<- error) []*http.Server {
	if s.api == nil {
		return nil
	}
	admin := http.NewServeMux()
	admin.Handle("/", httpapi.NewAdmin(s.registry))
	if s.dev != nil {
		admin.HandleFunc("POST /_dev/clock", s.dev.setClock)
	}
	servers := []*http.Server{newServer(api, s.log), newServer(admin, s.log)}
	servers[1].WriteTimeout = 0 // a profile takes as long as it is asked to
	for i, ln := range []net.Listener{s.api, s.admin} {
		go func() {
			if err := servers[i].Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				failed <- coded(exitFault, err)
			}
		}()
	}
	return servers
}

// newServer is a server that slow clients cannot hold. There is no ReadTimeout:
// it would go on during the handler and end a long poll.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: deadlines(h), ReadHeaderTimeout: headerTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// deadlines bounds the reading of bodies and the writing of streams.
func deadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if r.Body != nil && r.Body != http.NoBody {
			if rc.SetReadDeadline(time.Now().Add(bodyTime)) == nil {
				r.Body = &timedBody{ReadCloser: r.Body, rc: rc}
			}
		}
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			w = &stream{ResponseWriter: w, rc: rc}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody takes the deadline off when the body has been read: the server goes
// on reading to learn that the client left.
type timedBody struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{}) // it could be set, so it can be taken off
	}
	return n, err
}

// stream gives every write of an event stream its own time.
type stream struct {
	http.ResponseWriter
	rc *http.ResponseController
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	_ = s.rc.SetWriteDeadline(time.Now().Add(streamTime)) // without it the server's own stays
	return s.ResponseWriter.Write(p)
}

// FlushError is called by http.ResponseController.
func (s *stream) FlushError() error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(streamTime)) // as in Write
	return s.rc.Flush()
}

// Unwrap gives http.ResponseController the rest.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }
