package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// SIGTERM during a slow call: the caller gets its answer, and the process ends.
func TestT32_StoppedDuringACall(t *testing.T) {
	t.Parallel()
	w, n := patientNode(t)
	no, key := newOrder("T32"), newKey()
	w.slow(t, no, "confirm", 1500*time.Millisecond, 1)
	first := make(chan resp, 1)
	go func() { first <- w.pay(pay{order: no, key: key}) }()
	until(t, soon, "the call is under way", func() bool { return w.calls(t, "confirm", no) == 1 })
	if !n.proc.stop() {
		t.Errorf("the process did not end within %v", stopWithin)
	}
	if r := <-first; r.code != http.StatusCreated {
		t.Errorf("the caller: %s", r)
	}
	if code := n.proc.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	n.mustStart(t)
	if r := w.pay(pay{order: no, key: key}); r.code != http.StatusCreated || !r.replayed() {
		t.Errorf("afterwards: %s", r)
	}
	w.paidOnce(t, no)
}

// One command, soon ready. The goal is five seconds on a machine that does
// nothing else.
func TestReach_DevIsReady(t *testing.T) {
	d, err := newDev(plainBin)
	if err != nil {
		t.Fatal(err)
	}
	d.prepared = true // an empty folder, as after unpacking
	began := time.Now()
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.proc.stop() })
	took := time.Since(began)
	t.Logf("ready after %v (goal 5s)", took.Round(time.Millisecond))
	if took > 15*time.Second {
		t.Errorf("ready after %v", took)
	}
	if r := d.pay(pay{order: newOrder("ready")}); r.code != http.StatusCreated {
		t.Errorf("the first payment: %s", r)
	}
}

// A second start of `payonce dev` on the same folder finds orders, keys and the
// channel's books.
func TestF03_DevStartsAgain(t *testing.T) {
	t.Parallel()
	d := ownDev(t, plainBin)
	no, key := newOrder("again"), newKey()
	a := d.pay(pay{order: no, key: key})
	waiting := newOrder("again")
	p := d.pending(t, waiting)
	if !d.proc.stop() {
		t.Error("payonce dev did not end on SIGTERM")
	}
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	if b := d.pay(pay{order: no, key: key}); b.code != http.StatusCreated || !b.replayed() || string(a.body) != string(b.body) {
		t.Errorf("the same key after the restart: %s", b)
	}
	d.paidOnce(t, no)
	d.sim.pays(t, p.Number)
	d.sync(p.ID)
	d.paidOnce(t, waiting)
}

// The channel takes long and a hundred payers wait: health, queries and other
// payers are answered at once, since no database connection waits with them.
func TestP01_NoConnectionIsHeldDuringCalls(t *testing.T) {
	t.Parallel()
	dsn, drop := newPostgres(t)
	t.Cleanup(drop)
	w, first := migratedNode(t, plainBin, dsn)
	n, err := newNode(nodeSettings{name: "p01", bin: plainBin, database: dsn, accounts: first.accounts, answer: 20 * time.Second, call: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w.base = "http://" + n.addr
	n.mustStart(t)
	t.Cleanup(func() { n.proc.stop() })
	const payers, pause = 100, 8 * time.Second
	nos := make([]string, payers)
	for i := range nos {
		nos[i] = newOrder("P01")
		w.slow(t, nos[i], "confirm", pause, 1)
	}
	known := w.pay(pay{order: newOrder("P01")}).payment()
	done := make(chan []resp, 1)
	go func() { done <- together(payers, func(i int) resp { return w.pay(pay{order: nos[i]}) }) }()
	until(t, soon, "many calls are under way", func() bool {
		b, n := w.sim.books(t), 0
		for _, no := range nos {
			n += b.calls("confirm", w.numbers(no)...)
		}
		return n > payers*3/4
	})
	for range 3 {
		for name, r := range map[string]resp{
			"healthz": w.get("/healthz"), "readyz": w.get("/readyz"), "payment": w.get("/v1/payments/" + known.ID), "pay": w.pay(pay{order: newOrder("P01")}),
		} {
			// The goal is a second; the channel's own pause is what nobody may wait for.
			if r.code/100 != 2 || r.took > pause*3/4 {
				t.Errorf("%s after %v: %s", name, r.took, r)
			}
		}
	}
	rs := <-done
	no5xx(t, rs)
	for i := range nos {
		until(t, soon, fmt.Sprintf("order %s is paid", nos[i]), func() bool { return w.order(nos[i]).Status == "PAID" })
		w.paidOnce(t, nos[i])
	}
}

// Several processes that only work (`payonce worker`) beside one that serves:
// n handlers for one job, one charge.
func TestJ01_J02_ManyWorkers(t *testing.T) {
	t.Parallel()
	w, n := postgresNode(t, plainBin)
	n.mustStart(t)
	for i := range 3 {
		extra, err := newNode(nodeSettings{name: fmt.Sprintf("w%d", i), bin: plainBin, database: n.database, accounts: n.accounts})
		if err != nil {
			t.Fatal(err)
		}
		p, err := launch("payonce worker", extra.log, nil, plainBin, "worker", "--config", extra.config)
		if err != nil {
			t.Fatal(err)
		}
		showLogs(t, extra.name, extra.log)
		t.Cleanup(func() {
			if !p.alive() {
				t.Errorf("worker %s ended early", extra.name)
			}
			p.stop()
		})
	}
	const orders = 12
	for range orders {
		no := newOrder("J02")
		w.fault(t, no, "confirm", "lose_request", 1)
		r := w.pay(pay{order: no})
		notFailed(t, r)
		w.until(t, r.payment().ID, soon, "SUCCEEDED")
		w.paidOnce(t, no)
		if n := w.calls(t, "confirm", no); n != 2 {
			t.Errorf("%d confirms, want 2: the lost one and one more", n)
		}
	}
}

// The service on MariaDB: keys that differ only in case are different keys, and
// a crowd with one key executes once.
func TestT57_MariaDB(t *testing.T) {
	dsn, drop := newMySQL(t)
	t.Cleanup(drop)
	w, n := migratedNode(t, plainBin, dsn)
	n.mustStart(t)
	stem := newKey()
	lower, upper := newOrder("T57"), newOrder("T57")
	a, b := w.pay(pay{order: lower, key: stem + "key"}), w.pay(pay{order: upper, key: stem + "Key"})
	if a.code != http.StatusCreated || b.code != http.StatusCreated || a.replayed() || b.replayed() || a.payment().ID == b.payment().ID {
		t.Errorf("keys that differ in case: %s\n%s", a, b)
	}
	w.paidOnce(t, lower)
	w.paidOnce(t, upper)
	one := newOrder("T57-a")
	two := newOrder("T57-A")
	if r := w.pay(pay{order: one}); r.code != http.StatusCreated {
		t.Errorf("order: %s", r)
	}
	if r := w.pay(pay{order: two}); r.code != http.StatusCreated {
		t.Errorf("order that differs in case: %s", r)
	}
	no, key := newOrder("T57"), newKey()
	no5xx(t, together(64, func(int) resp { return w.pay(pay{order: no, key: key}) }))
	w.retry(t, pay{order: no, key: key}, soon)
	w.paidOnce(t, no)
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
	no = newOrder("T57")
	no5xx(t, together(64, func(int) resp { return w.pay(pay{order: no}) }))
	until(t, soon, "the order is paid", func() bool { return w.order(no).Status == "PAID" })
	w.paidOnce(t, no)
	n.proc.kill()
	n.mustStart(t)
	if r := w.pay(pay{order: lower, key: stem + "key"}); r.code != http.StatusCreated || !r.replayed() {
		t.Errorf("after a kill: %s", r)
	}
}
