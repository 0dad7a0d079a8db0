package e2e

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// failpoints are those that the binary lists.
var failpoints = sync.OnceValues(func() ([]string, error) {
	out, err := command(&logBuffer{}, nil, faultBin, "failpoints")
	return strings.Fields(out), err
})

func pointList(t *testing.T) []string {
	t.Helper()
	points, err := failpoints()
	if err != nil || len(points) < 15 {
		t.Fatalf("failpoints %v: %v", points, err)
	}
	return points
}

// story is how a failpoint is reached.
type story int

const (
	plain  story = iota // a payment that goes well
	lost                // the answer to confirm is lost, so that a worker takes over and asks
	ending              // a payment that waits for its payer is cancelled
)

func storyOf(point string) story {
	name, _, _ := strings.Cut(point, ".")
	switch name {
	case "claim", "query", "apply":
		return lost
	case "close":
		return ending
	}
	return plain
}

// crashed drives a payment into the failpoint, and waits for the process to die.
func crashed(t *testing.T, w *world, n *node, no, key, point string) {
	t.Helper()
	if err := n.start("PAYONCE_FAILPOINT=" + point + ":kill"); err != nil {
		t.Fatal(err)
	}
	switch storyOf(point) {
	case plain:
		notFailed(t, w.pay(pay{order: no, key: key}))
	case lost:
		w.fault(t, no, "confirm", "lose_response", 1)
		notFailed(t, w.pay(pay{order: no, key: key}))
	case ending:
		r := w.pay(pay{order: no, key: key, card: threeDS})
		if r.code != http.StatusCreated {
			t.Fatalf("before the end: %s", r)
		}
		notFailed(t, w.cancel(r.payment().ID))
	}
	n.proc.dies(t, 20*time.Second)
	n.mustStart(t)
}

// recovers checks that the order is charged exactly once when its shop repeats
// the request under its key, or (key "") when its payer starts again with a new
// one: that shows the first result, as the payment or in the refusal of a paid
// order.
func recovers(t *testing.T, w *world, no, key, point string) {
	t.Helper()
	again := key == ""
	if storyOf(point) == ending {
		id := w.order(no).Payments[0].ID
		until(t, soon, "the payment is cancelled", func() bool {
			r := w.cancel(id)
			notFailed(t, r)
			return r.payment().Status == "CANCELLED"
		})
		w.notCharged(t, no)
		again = true
	}
	if again {
		key = newKey()
	}
	r := w.retry(t, pay{order: no, key: key}, soon)
	if paid := r.problem().Code == "order-already-paid" && r.payment().Status == "SUCCEEDED"; r.code != http.StatusCreated && !(again && (paid || r.code == http.StatusOK)) {
		t.Errorf("the end: %s", r)
	}
	w.paidOnce(t, no)
	for _, c := range w.sim.books(t).of(w.numbers(no)...) {
		if !c.took() && c.Status != "closed" && c.Status != "created" {
			t.Errorf("a second object is %s", c.Status)
		}
	}
}

// killedAt kills the process at a failpoint twice: an order is repeated with its
// own key, another with a new key, as a payer does who starts again.
func killedAt(t *testing.T, w *world, n *node, point string) {
	t.Helper()
	no, key := newOrder("kill"), newKey()
	crashed(t, w, n, no, key, point)
	recovers(t, w, no, key, point)
	n.proc.kill()
	no = newOrder("kill")
	crashed(t, w, n, no, newKey(), point)
	recovers(t, w, no, "", point)
}

// The process is killed at every point between two steps: one charge, nothing
// lost, nobody is told that a payment failed.
func TestT30_F03_R04_KilledOnSQLite(t *testing.T) {
	t.Parallel()
	for _, point := range pointList(t) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, n := sqliteNode(t, faultBin)
			killedAt(t, w, n, point)
		})
	}
}

// The same around the commits on PostgreSQL.
func TestT30_F03_R04_KilledOnPostgres(t *testing.T) {
	t.Parallel()
	w, n := postgresNode(t, faultBin)
	for _, point := range pointList(t) {
		name, _, _ := strings.Cut(point, ".")
		if !slices.Contains([]string{"t1", "object", "t2", "commit"}, name) {
			continue
		}
		t.Run(point, func(t *testing.T) {
			t.Cleanup(func() { n.proc.kill() }) // the next one starts it again
			killedAt(t, w, n, point)
		})
	}
}

// postgresNode is a node on a PostgreSQL database of its own, not started.
func postgresNode(t testing.TB, bin string) (*world, *node) {
	t.Helper()
	dsn, drop := newPostgres(t)
	t.Cleanup(drop)
	return migratedNode(t, bin, dsn)
}

func migratedNode(t testing.TB, bin, dsn string) (*world, *node) {
	t.Helper()
	w, n := nodeOn(t, bin, dsn, "")
	if err := n.migrate(); err != nil {
		t.Fatal(err)
	}
	_, key, err := n.newAPIKey(serveMerchant, "test")
	if err != nil {
		t.Fatal(err)
	}
	w.key = key
	return w, n
}

// `payonce dev` starts its service again by itself.
func TestT30_R04_KilledUnderDev(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"begin.after-receive", "answer.before"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			d := ownDev(t, faultBin, "PAYONCE_FAILPOINT="+point+":kill")
			no := newOrder("R04")
			if r := d.pay(pay{order: no}); r.err == nil {
				t.Errorf("the service did not die: %s", r)
			}
			d.retry(t, pay{order: no, key: newKey()}, soon)
			d.paidOnce(t, no)
			if n := d.calls(t, "confirm", no); n != 1 {
				t.Errorf("%d confirms, want 1", n)
			}
		})
	}
}

// A step reports an error where it can: the answer may be that nobody knows, but
// the same key ends in one charge without a restart.
func TestF03_ErrorAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, point := range pointList(t) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, n := sqliteNode(t, faultBin)
			n.mustStart(t, "PAYONCE_FAILPOINT="+point+":error")
			no, key := newOrder("error"), newKey()
			p := pay{order: no, key: key}
			switch storyOf(point) {
			case lost:
				w.fault(t, no, "confirm", "lose_response", 1)
			case ending:
				p.card = threeDS
			}
			r := w.pay(p)
			if storyOf(point) == ending {
				notFailed(t, r)
				r = w.cancel(r.payment().ID)
			}
			notFailed(t, r)
			if r.err != nil || r.code >= 500 && (r.problem().Retry != "same-key" || r.problem().SafeNewKey == nil || *r.problem().SafeNewKey) {
				t.Errorf("first answer: %s", r)
			}
			recovers(t, w, no, key, point)
		})
	}
}

// A step hangs: the caller is answered in time all the same, and after a restart
// the payment ends.
func TestF03_HangingStep(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"begin.before-send", "begin.after-receive", "t2.before", "prepare.before-send"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, n := sqliteNode(t, faultBin)
			n.mustStart(t, "PAYONCE_FAILPOINT="+point+":hang")
			no, key := newOrder("hang"), newKey()
			r := w.pay(pay{order: no, key: key})
			notFailed(t, r)
			if r.code != http.StatusAccepted || r.took > answerWithin+2*time.Second {
				t.Errorf("after %v: %s", r.took, r)
			}
			n.proc.kill()
			n.mustStart(t)
			recovers(t, w, no, key, point)
		})
	}
}

// One of two processes is killed for good in the middle of a payment. Nobody
// restarts it; the other takes the payment over when the lease ends, so that no
// lock outlives its lease.
func TestJ10_A05_OtherNodeTakesOver(t *testing.T) {
	t.Parallel()
	w, a := postgresNode(t, faultBin)
	b, err := newNode(nodeSettings{name: "b", bin: plainBin, database: a.database, accounts: []account{{serveMerchant, "s1", w.sim}}})
	if err != nil {
		t.Fatal(err)
	}
	b.mustStart(t)
	showLogs(t, "node b", b.log)
	t.Cleanup(func() { b.proc.stop() })
	a.mustStart(t, "PAYONCE_FAILPOINT=begin.after-receive:kill")
	no, key := newOrder("J10"), newKey()
	if r := w.pay(pay{order: no, key: key}); r.err == nil {
		t.Errorf("the node did not die: %s", r)
	}
	other := &world{api: &api{base: "http://" + b.addr, key: w.key}, sim: w.sim, merchant: w.merchant}
	r := other.pay(pay{order: no, key: key})
	notFailed(t, r)
	if r.code != http.StatusConflict && r.code != http.StatusAccepted {
		t.Errorf("at once, at the other node: %s", r)
	}
	other.retry(t, pay{order: no, key: key}, callTimeout+20*time.Second+soon)
	other.paidOnce(t, no)
	if n := other.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
}
