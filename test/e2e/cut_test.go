package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// behindProxy is a node whose PostgreSQL can be cut off.
func behindProxy(t testing.TB) (*world, *node, *pgProxy) {
	t.Helper()
	dsn, drop := newPostgres(t)
	t.Cleanup(drop)
	proxy := newPGProxy(t, hostOf(t, dsn))
	w, n := migratedNode(t, plainBin, through(t, dsn, proxy.addr))
	n.mustStart(t)
	return w, n, proxy
}

// commits of a card payment: intent, object and permit, evidence.
var commits = []string{"T1", "object", "T2"}

// The connection to PostgreSQL is cut before, during and after each commit of a
// payment, and each commit is refused once. The shop repeats with the same key,
// or its payer starts again with a new one: one charge each.
func TestF03_R01_R13_CutAroundEveryCommit(t *testing.T) {
	t.Parallel()
	postgresAdmin(t).Close()
	for i, name := range commits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, proxy := behindProxy(t)
			for _, what := range []cut{cutBefore, cutNotCommitted, cutCommitted, cutAfter, cutSerialization} {
				for _, sameKey := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s/same key %v", cutNames[what], sameKey), func(t *testing.T) {
						cutOnce(t, w, proxy, what, i+1, sameKey)
					})
				}
			}
		})
	}
}

func cutOnce(t *testing.T, w *world, proxy *pgProxy, what cut, commit int, sameKey bool) {
	no, key := newOrder("cut"), newKey()
	proxy.arm(what, commit)
	r := w.pay(pay{order: no, key: key})
	notFailed(t, r)
	if !proxy.struck() {
		t.Errorf("commit %d was not cut: %s", commit, r)
	}
	if r.err != nil || r.code >= 500 && (r.problem().Retry != "same-key" || r.problem().SafeNewKey == nil || *r.problem().SafeNewKey) {
		t.Errorf("first answer: %s", r)
	}
	if !sameKey {
		key = newKey()
	}
	w.retry(t, pay{order: no, key: key}, soon)
	w.paidOnce(t, no)
	if n := len(w.sim.books(t).taken(w.numbers(no)...)); n != 1 {
		t.Errorf("%d charges on the books, want 1", n)
	}
}

// The database is gone before a payment: refused at once, nothing sent; it comes
// back, and the same key pays.
func TestT50_DatabaseGone(t *testing.T) {
	t.Parallel()
	w, _, proxy := behindProxy(t)
	no, key := newOrder("T50"), newKey()
	proxy.stop()
	r := w.pay(pay{order: no, key: key})
	notFailed(t, r)
	if r.code != http.StatusServiceUnavailable || r.problem().Code != "idempotency-unavailable" || r.retryAfter() < 1 || r.retryAfter() > 5 || r.took > 4*time.Second {
		t.Errorf("after %v, Retry-After %d: %s", r.took, r.retryAfter(), r)
	}
	if r := w.get("/readyz"); r.code == http.StatusOK {
		t.Errorf("ready without a database: %s", r)
	}
	if r := w.get("/healthz"); r.code != http.StatusOK {
		t.Errorf("not alive without a database: %s", r)
	}
	if n := w.calls(t, "create", no) + w.calls(t, "confirm", no); n != 0 {
		t.Errorf("%d calls to the channel", n)
	}
	proxy.again(t)
	if r := w.retry(t, pay{order: no, key: key}, soon); r.code != http.StatusCreated {
		t.Errorf("with the database: %s", r)
	}
	w.paidOnce(t, no)
}

// The database goes while the channel is being called, and comes back later:
// what the channel said is not lost.
func TestT51_L04_DatabaseGoneDuringTheCall(t *testing.T) {
	t.Parallel()
	w, _, proxy := behindProxy(t)
	no, key := newOrder("T51"), newKey()
	w.slow(t, no, "confirm", time.Second, 1)
	first := make(chan resp, 1)
	go func() { first <- w.pay(pay{order: no, key: key}) }()
	until(t, soon, "the call is under way", func() bool { return w.calls(t, "confirm", no) == 1 })
	proxy.stop()
	until(t, soon, "the channel has charged", func() bool { return len(w.taken(t, no)) == 1 })
	pace(500 * time.Millisecond)
	proxy.again(t)
	r := <-first
	notFailed(t, r)
	if r.err != nil || r.code >= 500 && (r.code != http.StatusServiceUnavailable || r.problem().Retry != "same-key") {
		t.Errorf("first answer: %s", r)
	}
	w.retry(t, pay{order: no, key: key}, soon)
	w.paidOnce(t, no)
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
}
