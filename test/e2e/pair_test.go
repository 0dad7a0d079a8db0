package e2e

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pair is two processes on one PostgreSQL behind one address, with two merchants
// whose accounts are at two simulators.
type pair struct {
	world
	nodes    [2]*node
	second   *simulator // of merchant m2
	other    *api       // merchant m2
	live     *api       // merchant m1, live
	database string
	admin    *sql.DB
}

const secondMerchant = "m2"

var (
	pairOnce sync.Mutex
	thePair  *pair
	pairErr  error
)

// twoNodes is the pair of all tests that do not kill.
func twoNodes(t testing.TB) *pair {
	t.Helper()
	pairOnce.Lock()
	defer pairOnce.Unlock()
	if thePair == nil && pairErr == nil {
		thePair, pairErr = startPair(t)
	}
	if pairErr != nil {
		t.Fatal(pairErr)
	}
	for _, n := range thePair.nodes {
		showLogs(t, n.name, n.log)
	}
	return thePair
}

func startPair(t testing.TB) (*pair, error) {
	dsn, drop := newPostgres(t)
	p := &pair{database: dsn}
	second, err := secondSim()
	if err != nil {
		return nil, err
	}
	if p.sim, err = pairSim(); err != nil {
		return nil, err
	}
	p.second, p.merchant = second, serveMerchant
	accounts := []account{{serveMerchant, "s1", p.sim}, {secondMerchant, "s2", second}}
	for i := range p.nodes {
		p.nodes[i], err = newNode(nodeSettings{name: fmt.Sprintf("n%d", i+1), bin: plainBin, database: dsn, accounts: accounts, answer: 5 * time.Second, call: 10 * time.Second})
		if err != nil {
			return nil, err
		}
	}
	if err := p.nodes[0].migrate(); err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for _, who := range [][2]string{{serveMerchant, "test"}, {secondMerchant, "test"}, {serveMerchant, "live"}} {
		if _, keys[who[0]+who[1]], err = p.nodes[0].newAPIKey(who[0], who[1]); err != nil {
			return nil, err
		}
	}
	for _, n := range p.nodes {
		if err := n.start(); err != nil {
			return nil, err
		}
	}
	base, stopBalancer, err := balance(p.nodes[0].addr, p.nodes[1].addr)
	if err != nil {
		return nil, err
	}
	p.api = &api{base: base, key: keys[serveMerchant+"test"]}
	p.other = &api{base: base, key: keys[secondMerchant+"test"]}
	p.live = &api{base: base, key: keys[serveMerchant+"live"]}
	if p.admin, err = openWithin("pgx", dsn); err != nil {
		return nil, err
	}
	atEnd(func() []string {
		var problems []string
		for _, n := range p.nodes {
			if !n.proc.stop() {
				problems = append(problems, n.name+" did not end on SIGTERM")
			}
		}
		stopBalancer()
		p.admin.Close()
		drop()
		return problems
	})
	return p, nil
}

// connections counts the service's connections to its database.
func (p *pair) connections() int {
	var n int
	_ = p.admin.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&n)
	return n
}

// gatewayGone is the status of a node that did not answer, told apart from any
// that the service gives.
const gatewayGone = 599

// balance sends requests to the nodes in turn.
func balance(addrs ...string) (base string, stop func(), err error) {
	var turn atomic.Uint64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			n := turn.Add(1)
			r.SetURL(&url.URL{Scheme: "http", Host: addrs[n%uint64(len(addrs))]})
		},
		Transport:    &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(gatewayGone) },
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return "http://" + l.Addr().String(), func() { srv.Close(); <-done }, nil
}

// together runs n requests at the same moment and returns their answers.
func together(n int, f func(i int) resp) []resp {
	out := make([]resp, n)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-begin
			out[i] = f(i)
		})
	}
	close(begin)
	wg.Wait()
	return out
}

// tally counts answers by status code.
func tally(rs []resp) map[int]int {
	m := map[int]int{}
	for _, r := range rs {
		m[r.code]++
	}
	return m
}

// no5xx fails on answers that say that the service is broken, and on none.
func no5xx(t testing.TB, rs []resp) {
	t.Helper()
	for _, r := range rs {
		if r.err != nil || r.code >= 500 {
			t.Fatalf("answers %v, one is %s", tally(rs), r)
		}
	}
}
