package e2e

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// cut says where the proxy breaks the service's connection to PostgreSQL.
type cut int

const (
	cutNothing       cut = iota
	cutBefore            // in the transaction, before COMMIT is sent
	cutNotCommitted      // COMMIT was sent and never reached the server
	cutCommitted         // COMMIT was done, its answer is lost
	cutAfter             // the answer to COMMIT arrived, then the connection ends
	cutSerialization     // the server refuses COMMIT with 40001
)

var cutNames = map[cut]string{cutBefore: "before", cutNotCommitted: "during-not-committed", cutCommitted: "during-committed",
	cutAfter: "after", cutSerialization: "refused-40001"}

// pgProxy stands between the service and PostgreSQL. It reads enough of the wire
// protocol to see transactions begin and commit, and cuts one of them.
type pgProxy struct {
	target   string
	listener net.Listener

	mu    sync.Mutex
	addr  string
	conns map[net.Conn]struct{}
	// The next cut: of the transaction that is so many ahead.
	plan  cut
	ahead int
	fired bool
}

func newPGProxy(t testing.TB, target string) *pgProxy {
	t.Helper()
	p := &pgProxy{target: target, conns: map[net.Conn]struct{}{}}
	p.open(t, "127.0.0.1:0")
	t.Cleanup(p.stop)
	return p
}

func (p *pgProxy) open(t testing.TB, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.listener, p.addr = l, l.Addr().String()
	p.mu.Unlock()
	go p.accept(l)
}

// stop is a database that went away: nobody listens, all connections are cut.
func (p *pgProxy) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.Close()
	for c := range p.conns {
		c.Close()
	}
}

// again is the database coming back at the same address.
func (p *pgProxy) again(t testing.TB) { p.open(t, p.addr) }

// arm plans one cut: of the n-th transaction that commits (or, for cutBefore,
// begins) from now on.
func (p *pgProxy) arm(what cut, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.ahead, p.fired = what, n, false
}

// struck reports whether the planned cut has happened.
func (p *pgProxy) struck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired
}

// due asks what to do with a transaction's begin or commit.
func (p *pgProxy) due(begin bool) cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan == cutNothing || (p.plan == cutBefore) != begin {
		return cutNothing
	}
	if p.ahead--; p.ahead > 0 {
		return cutNothing
	}
	what := p.plan
	p.plan, p.fired = cutNothing, true
	return what
}

func (p *pgProxy) keep(c net.Conn, in bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if in {
		p.conns[c] = struct{}{}
	} else {
		delete(p.conns, c)
	}
}

func (p *pgProxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", p.target)
		if err != nil {
			c.Close()
			continue
		}
		p.keep(c, true)
		p.keep(s, true)
		go (&pgLink{proxy: p, client: c, server: s}).run()
	}
}

// pgLink is one connection of the service.
type pgLink struct {
	proxy          *pgProxy
	client, server net.Conn

	mu     sync.Mutex
	ending cut // what happens to the next answer to COMMIT
}

func (l *pgLink) run() {
	var wg sync.WaitGroup
	wg.Go(func() { l.upstream(); l.close() })
	wg.Go(func() { l.downstream(); l.close() })
	wg.Wait()
	l.proxy.keep(l.client, false)
	l.proxy.keep(l.server, false)
}

func (l *pgLink) close() { l.client.Close(); l.server.Close() }

// message reads one message: its type (0 for the first one of a connection) and
// its bytes as they were sent.
func message(r *bufio.Reader, first bool) (kind byte, raw []byte, err error) {
	head := 5
	if first {
		head = 4
	}
	raw = make([]byte, head)
	if _, err := io.ReadFull(r, raw); err != nil {
		return 0, nil, err
	}
	if !first {
		kind = raw[0]
	}
	n := int(binary.BigEndian.Uint32(raw[head-4:])) - 4
	if n < 0 || n > 1<<26 {
		return 0, nil, errors.New("not a message")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, err
	}
	return kind, append(raw, body...), nil
}

// upstream passes the service's messages on until it sees the one to cut.
func (l *pgLink) upstream() {
	r := bufio.NewReader(l.client)
	prepared := map[string]string{} // names of prepared statements that begin or commit
	for first := true; ; first = false {
		kind, raw, err := message(r, first)
		if err != nil {
			return
		}
		what := statement(kind, raw, prepared)
		switch {
		case what == "begin" && l.proxy.due(true) == cutBefore:
			return
		case what == "commit":
			switch c := l.proxy.due(false); c {
			case cutNotCommitted:
				return
			case cutCommitted, cutAfter:
				l.end(c)
			case cutSerialization:
				l.end(c)
				raw = simpleQuery("rollback")
			}
		}
		if _, err := l.server.Write(raw); err != nil {
			return
		}
	}
}

func (l *pgLink) end(c cut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = c
}

func (l *pgLink) ends() cut {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending
}

// statement tells whether a message begins or commits a transaction. Parse
// messages are remembered by name, so that a Bind of them is recognised.
func statement(kind byte, raw []byte, prepared map[string]string) string {
	if len(raw) < 6 {
		return ""
	}
	body := raw[5:]
	switch kind {
	case 'Q':
		return verb(cstring(body))
	case 'P':
		name := cstring(body)
		prepared[name] = verb(cstring(body[len(name)+1:]))
	case 'B':
		portal := cstring(body)
		return prepared[cstring(body[len(portal)+1:])]
	}
	return ""
}

func cstring(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

func verb(sql string) string {
	sql = strings.ToLower(strings.Trim(sql, " ;\n\t"))
	switch {
	case strings.HasPrefix(sql, "begin"), strings.HasPrefix(sql, "start transaction"):
		return "begin"
	case sql == "commit", sql == "end":
		return "commit"
	}
	return ""
}

func simpleQuery(sql string) []byte {
	b := append([]byte{'Q', 0, 0, 0, 0}, sql...)
	b = append(b, 0)
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-1))
	return b
}

// serializationFailure is the server's refusal of a commit.
func serializationFailure() []byte {
	body := "SERROR\x00VERROR\x00C40001\x00Mcould not serialize access\x00\x00"
	b := append([]byte{'E', 0, 0, 0, 0}, body...)
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-1))
	return b
}

// downstream passes the server's messages on; what comes after a COMMIT that is
// to be cut is lost, cut behind, or replaced.
func (l *pgLink) downstream() {
	r := bufio.NewReader(l.server)
	for {
		kind, raw, err := message(r, false)
		if err != nil {
			return
		}
		ending := l.ends()
		switch {
		case ending == cutCommitted && kind == 'C':
			return // committed, and nobody is told
		case ending == cutSerialization && kind == 'C':
			raw = serializationFailure()
			l.end(cutNothing)
		}
		if _, err := l.client.Write(raw); err != nil {
			return
		}
		if ending == cutAfter && kind == 'Z' {
			return
		}
	}
}
