package storetest

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// cut is what a proxy does to one COMMIT.
type cut int

const (
	cutBefore    cut = iota // both sides are closed, the request never arrives
	cutAfter                // the request arrives, its answer does not
	cutSwallowed            // the client is cut off, the server never hears and still holds its locks
	cutLate                 // the client is cut off, the request arrives while it reads back
)

// lockWait is how long a read-back is given to run into the old transaction's
// locks: no server tells a bystander that a statement waits.
const lockWait = 150 * time.Millisecond

// proxy stands between a store and its server and cuts one COMMIT when armed.
type proxy struct {
	t      testing.TB
	ln     net.Listener
	target string

	mu      sync.Mutex
	armed   bool
	how     cut
	refuse  bool // no connections after the cut
	silent  bool // whatever comes is swallowed
	hook    *hook
	onProbe func() // when another connection asks about orders
	conns   map[net.Conn]bool
	cuts    int
	wg      sync.WaitGroup
}

// hook is something that happens while a request is under way.
type hook struct {
	part string
	run  func()
}

func newProxy(t testing.TB, target string) *proxy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, ln: ln, target: target, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// arm cuts the next COMMIT.
func (p *proxy) arm(how cut, refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.how, p.refuse, p.onProbe = true, how, refuse, nil
}

// before runs f, once, before a request with these words reaches the server; after
// the cut when one is armed.
func (p *proxy) before(part string, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = &hook{part, f}
}

// silence makes every connection, old or new, lead nowhere.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

func (p *proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		if p.refuse && !p.armed {
			p.mu.Unlock()
			_, _ = client.Close(), server.Close()
			continue
		}
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		muted := make(chan struct{})
		p.wg.Go(func() { p.up(client, server, muted) })
		p.wg.Go(func() { p.down(client, server, muted) })
	}
}

// up carries requests. A request is small and comes in one piece.
func (p *proxy) up(client, server net.Conn, muted chan struct{}) {
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			p.mu.Lock()
			keep := p.onProbe != nil
			p.mu.Unlock()
			if !keep {
				_ = server.Close()
			}
			return
		}
		lower := bytes.ToLower(buf[:n])
		p.mu.Lock()
		if p.silent {
			p.mu.Unlock()
			continue
		}
		if p.armed && bytes.Contains(lower, []byte("commit")) && !bytes.Contains(lower, []byte("committed")) {
			p.armed = false
			p.cuts++
			p.cut(client, server, muted, bytes.Clone(buf[:n]))
			p.mu.Unlock()
			return
		}
		probe := p.onProbe
		if probe != nil && bytes.Contains(lower, []byte("orders")) {
			p.onProbe = nil
			time.AfterFunc(lockWait, probe)
		}
		h := p.hook
		if h != nil && !p.armed && bytes.Contains(lower, []byte(h.part)) {
			p.hook = nil
		} else {
			h = nil
		}
		p.mu.Unlock()
		if h != nil {
			h.run()
		}
		if _, err := server.Write(buf[:n]); err != nil {
			_ = client.Close()
			return
		}
	}
}

func (p *proxy) cut(client, server net.Conn, muted chan struct{}, request []byte) {
	switch p.how {
	case cutBefore:
		_, _ = client.Close(), server.Close()
	case cutAfter:
		close(muted)
		_, _ = server.Write(request)
	case cutSwallowed:
		p.onProbe = func() { _ = server.Close() }
		_ = client.Close()
	case cutLate:
		close(muted)
		p.onProbe = func() { _, _ = server.Write(request) }
		_ = client.Close()
	}
}

// down carries answers. When the connection is muted, the answer to COMMIT shows
// that it is done, and ends the connection.
func (p *proxy) down(client, server net.Conn, muted chan struct{}) {
	buf := make([]byte, 1<<20)
	for {
		n, err := server.Read(buf)
		select {
		case <-muted:
			_, _ = client.Close(), server.Close()
			return
		default:
		}
		if err == nil {
			_, err = client.Write(buf[:n])
		}
		if err != nil && !errors.Is(err, net.ErrClosed) {
			_ = client.Close()
			return
		}
		if err != nil {
			// The client was cut off; the server may go on until it is told.
			select {
			case <-muted:
				continue
			default:
				return
			}
		}
	}
}

func (p *proxy) close() {
	_ = p.ln.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
