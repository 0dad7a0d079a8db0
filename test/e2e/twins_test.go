package e2e

import (
	"bytes"
	"net/http"
	"testing"
	"time"
)

// Crowds are not parallel tests: they run before those, one after another, so
// that what they meet is the service's own contention.
const crowd = 50

// Fifty requests with one key over two processes while the channel is slow:
// exactly one executes, the others are told to wait, all get its answer later.
func TestT19_F02_CrowdWithOneKey(t *testing.T) {
	w, no, key := twoNodes(t), newOrder("T19"), newKey()
	w.slow(t, no, "confirm", time.Second, always)
	rs := together(crowd, func(int) resp { return w.pay(pay{order: no, key: key}) })
	no5xx(t, rs)
	first := 0
	for _, r := range rs {
		switch {
		case r.code == http.StatusCreated && !r.replayed():
			first++
		case r.code == http.StatusCreated:
		case r.code == http.StatusConflict && r.problem().Code == "idempotency-in-progress":
			if n := r.retryAfter(); n < 1 || n > 10 {
				t.Errorf("Retry-After is %d", n)
			}
			if r.payment().ID == "" && !bytes.Contains(r.body, []byte("pay_")) {
				t.Errorf("the payment is not named: %s", r)
			}
		default:
			t.Errorf("answer: %s", r)
		}
	}
	if first != 1 {
		t.Errorf("%d first executions, want 1: %v", first, tally(rs))
	}
	if n := w.calls(t, "confirm", no); n != 1 {
		t.Errorf("%d confirms, want 1", n)
	}
	w.paidOnce(t, no)
	var body []byte
	for _, r := range together(crowd, func(int) resp { return w.pay(pay{order: no, key: key}) }) {
		if body == nil {
			body = r.body
		}
		if r.code != http.StatusCreated || !r.replayed() || !bytes.Equal(r.body, body) {
			t.Fatalf("a later repetition: %s", r)
		}
	}
}

// The same crowd, willing to wait: all get the one answer.
func TestT20_CrowdThatWaits(t *testing.T) {
	w, no, key := twoNodes(t), newOrder("T20"), newKey()
	w.slow(t, no, "confirm", time.Second, always)
	rs := together(crowd, func(int) resp { return w.pay(pay{order: no, key: key, prefer: "wait=10"}) })
	no5xx(t, rs)
	marked := 0
	for _, r := range rs {
		if r.code != http.StatusCreated || !bytes.Equal(r.body, rs[0].body) {
			t.Fatalf("answer: %s\nwant: %s", r, rs[0])
		}
		if r.replayed() {
			marked++
		}
	}
	if marked != crowd-1 {
		t.Errorf("%d marked replayed, want %d", marked, crowd-1)
	}
	w.paidOnce(t, no)
}

// Fifty requests with fifty keys for one order over two processes: one charge,
// counted by the channel; nobody is told that the service is broken.
func TestT55_F02_CrowdWithManyKeys(t *testing.T) {
	w, no := twoNodes(t), newOrder("T55")
	w.slow(t, no, "create", 300*time.Millisecond, always)
	w.slow(t, no, "confirm", 700*time.Millisecond, always)
	keys := make([]string, crowd)
	for i := range keys {
		keys[i] = newKey()
	}
	rs := together(crowd, func(i int) resp { return w.pay(pay{order: no, key: keys[i]}) })
	no5xx(t, rs)
	first, id := 0, ""
	for _, r := range rs {
		notFailed(t, r)
		switch r.code {
		case http.StatusCreated:
			first++
		case http.StatusOK, http.StatusAccepted, http.StatusConflict:
		default:
			t.Errorf("answer: %s", r)
		}
		if got := r.payment().ID; got != "" && id != "" && got != id {
			t.Errorf("two payments: %s and %s", id, got)
		} else if got != "" {
			id = got
		}
	}
	if first > 1 {
		t.Errorf("%d answers of a first execution: %v", first, tally(rs))
	}
	w.until(t, id, soon, "SUCCEEDED")
	w.paidOnce(t, no)
	for _, op := range []string{"create", "confirm"} {
		if n := w.calls(t, op, no); n != 1 {
			t.Errorf("%d calls of %s, want 1", n, op)
		}
	}
	for _, k := range keys {
		r := w.pay(pay{order: no, key: k})
		if got := r.payment().ID; got != "" && got != id {
			t.Errorf("a key shows another payment: %s", r)
		}
	}
}

// What two ports of a published sample charged twice for every key: eight equal
// requests at once, over two processes, for many keys.
func TestG01_G11_EqualRequestsTogether(t *testing.T) {
	w := twoNodes(t)
	const orders, twins = 30, 8
	var nos, keys []string
	for range orders {
		nos, keys = append(nos, newOrder("G01")), append(keys, newKey())
	}
	rs := together(orders*twins, func(i int) resp { return w.pay(pay{order: nos[i%orders], key: keys[i%orders]}) })
	no5xx(t, rs)
	for _, r := range rs {
		if r.code != http.StatusCreated && r.code != http.StatusAccepted && r.problem().Code != "idempotency-in-progress" {
			t.Errorf("an honest twin: %s", r)
		}
	}
	for i := range orders {
		w.retry(t, pay{order: nos[i], key: keys[i]}, soon)
		w.paidOnce(t, nos[i])
	}
	b := w.sim.books(t)
	for _, no := range nos {
		if n := b.calls("confirm", w.numbers(no)...); n != 1 {
			t.Errorf("order %s: %d confirms, want 1", no, n)
		}
	}
}

// Many callers see PROCESSING without a channel id: none of them calls.
func TestG04_ProcessingWithoutChannelID(t *testing.T) {
	w, no, key := twoNodes(t), newOrder("G04"), newKey()
	w.slow(t, no, "create", time.Second, always)
	first := make(chan resp, 1)
	go func() { first <- w.pay(pay{order: no, key: key}) }()
	until(t, soon, "create is under way", func() bool { return w.calls(t, "create", no) == 1 })
	rs := together(20, func(i int) resp {
		if i%2 == 0 {
			return w.pay(pay{order: no, key: key})
		}
		return w.pay(pay{order: no})
	})
	no5xx(t, rs)
	for _, r := range rs {
		notFailed(t, r)
	}
	if r := <-first; r.code != http.StatusCreated {
		t.Errorf("the first: %s", r)
	}
	w.paidOnce(t, no)
	for _, op := range []string{"create", "confirm"} {
		if n := w.calls(t, op, no); n != 1 {
			t.Errorf("%d calls of %s, want 1", n, op)
		}
	}
}

// Two processes with their workers and many callers take one unknown attempt
// over: they ask one after another, and one of them sends at most.
func TestA05_J01_W09_TwoWorkersOneAttempt(t *testing.T) {
	w, no, key := twoNodes(t), newOrder("A05"), newKey()
	w.fault(t, no, "confirm", "lose_request", 1)
	w.fault(t, no, "query", "http_500_before", 1)
	p := w.pay(pay{order: no, key: key}).payment()
	rs := together(30, func(i int) resp {
		switch i % 3 {
		case 0:
			return w.sync(p.ID)
		case 1:
			return w.pay(pay{order: no, key: key})
		}
		return w.pay(pay{order: no})
	})
	no5xx(t, rs)
	for _, r := range rs {
		notFailed(t, r)
	}
	w.retry(t, pay{order: no, key: key}, soon)
	w.paidOnce(t, no)
	if n := w.calls(t, "confirm", no); n != 2 {
		t.Errorf("%d confirms, want 2: the lost one and one more", n)
	}
}

// Payer, customer service, a job and a poller act on one order at once: one
// change of state, and it is what the books say.
func TestA08_EverybodyAtOnce(t *testing.T) {
	w := twoNodes(t)
	for round := range 6 {
		no, key := newOrder("A08"), newKey()
		p := w.pay(pay{order: no, key: key, card: threeDS}).payment()
		if p.Status != "PENDING" {
			t.Fatalf("the payment is %q", p.Status)
		}
		rs := together(16, func(i int) resp {
			switch (i + round) % 8 {
			case 0:
				return w.sim.payer(p.Number, "paid", false)
			case 1:
				return w.cancel(p.ID)
			case 2:
				return w.closeOrder(no)
			case 3:
				return w.pay(pay{order: no, card: master})
			case 4:
				return w.pay(pay{order: no, key: key, card: threeDS})
			case 5:
				return w.post("/v1/orders/"+no+"/amend", map[string]any{"amount": 1200})
			}
			return w.sync(p.ID)
		})
		no5xx(t, rs)
		settles(t, &w.world, no)
	}
}

// settles waits until nothing of an order is live, and compares it with the
// books: at most one charge, and each side says the same.
func settles(t *testing.T, w *world, no string) {
	t.Helper()
	live := map[string]bool{"CREATED": true, "PROCESSING": true, "PENDING": true, "UNKNOWN": true}
	var o order
	until(t, soon, "nothing of the order is live", func() bool {
		o = w.order(no)
		for _, p := range o.Payments {
			if live[p.Status] {
				w.sync(p.ID)
				return false
			}
		}
		return o.Status != "CLOSING"
	})
	took := w.taken(t, no)
	onBooks := map[string]bool{}
	for _, c := range took {
		onBooks[c.Number] = true
	}
	for _, p := range o.Payments {
		if onBooks[p.Number] != (p.Status == "SUCCEEDED") {
			t.Errorf("payment %s (%s) is %s, on the books: %v", p.ID, p.Number, p.Status, onBooks[p.Number])
		}
	}
	if len(took) > 1 {
		t.Errorf("order %s: %d charges on the books: %+v", no, len(took), took)
	}
	if (o.Status == "PAID") != (len(took) == 1) {
		t.Errorf("order %s is %s with %d charges", no, o.Status, len(took))
	}
}

// Payments of two different attempts of one order become known at the same
// instant: the order row puts them one after another.
func TestC06_TwoAttemptsKnownAtOnce(t *testing.T) {
	w, no := twoNodes(t), newOrder("C06")
	a := w.pay(pay{order: no, card: threeDS}).payment()
	b := w.pay(pay{order: no, card: "pm_card_threeDSecure2Required"}).payment()
	if a.ID == b.ID || b.Status != "PENDING" {
		t.Fatalf("no second attempt: %+v", b)
	}
	w.sim.pays(t, b.Number)
	no5xx(t, together(20, func(i int) resp { return w.sync([]string{a.ID, b.ID}[i%2]) }))
	w.until(t, b.ID, soon, "SUCCEEDED")
	w.paidOnce(t, no)
	if got := w.payment(a.ID); got.Status != "CANCELLED" {
		t.Errorf("the first attempt is %s", got.Status)
	}
}

// Many orders at once, each with two keys, while status polls run: every order
// is charged once (return page, poller and first answer race).
func TestW01_PollersRaceWithAnswers(t *testing.T) {
	w := twoNodes(t)
	const orders = 25
	var nos []string
	for range orders {
		nos = append(nos, newOrder("W01"))
	}
	rs := together(orders*4, func(i int) resp {
		no := nos[i%orders]
		if i/orders < 2 {
			return w.pay(pay{order: no})
		}
		if id := w.order(no).Payments; len(id) > 0 {
			return w.sync(id[0].ID)
		}
		return w.get("/v1/orders?limit=5")
	})
	no5xx(t, rs)
	for _, no := range nos {
		until(t, soon, "order "+no+" is paid", func() bool { return w.order(no).Status == "PAID" })
		w.paidOnce(t, no)
	}
}

// One key of two merchants: two payments, two charges, no trace of each other.
func TestT15_G15_OneKeyOfTwoMerchants(t *testing.T) {
	t.Parallel()
	w, no, key := twoNodes(t), newOrder("T15"), newKey()
	a, b := w.pay(pay{order: no, key: key}), w.other.pay(pay{order: no, key: key})
	for _, r := range []resp{a, b} {
		if r.code != http.StatusCreated || r.replayed() {
			t.Fatalf("answer: %s", r)
		}
	}
	pa, pb := a.payment(), b.payment()
	if pa.ID == pb.ID || pa.Number == pb.Number {
		t.Errorf("one payment for both: %+v %+v", pa, pb)
	}
	if r := w.other.get("/v1/payments/" + pa.ID); r.code != http.StatusNotFound {
		t.Errorf("the other merchant sees it: %s", r)
	}
	if r := w.other.post("/v1/payments/"+pa.ID+"/cancel", map[string]any{}); r.code != http.StatusNotFound {
		t.Errorf("the other merchant may act on it: %s", r)
	}
	if r := w.other.get("/v1/payments?idempotency_key=" + key); bytes.Contains(r.body, []byte(pa.ID)) {
		t.Errorf("the other merchant finds it: %s", r)
	}
	if r := w.other.pay(pay{order: newOrder("T15"), key: key}); r.code != http.StatusUnprocessableEntity {
		t.Errorf("its own reuse: %s", r)
	}
	w.paidOnce(t, no)
	if n := len(w.second.books(t).taken(pb.Number)); n != 1 {
		t.Errorf("%d charges of the second merchant, want 1", n)
	}
}

// A test key and a live key of one merchant share nothing.
func TestT16_TestAndLive(t *testing.T) {
	t.Parallel()
	w, no, key := twoNodes(t), newOrder("T16"), newKey()
	id := w.pay(pay{order: no, key: key}).payment().ID
	// There is no live account, so that the request has to be refused by what the
	// live environment is, not by what the test environment knows.
	r := w.live.pay(pay{order: no, key: key})
	if r.code != http.StatusUnprocessableEntity || r.problem().Code != "channel-not-configured" || r.replayed() {
		t.Errorf("live: %s", r)
	}
	for _, path := range []string{"/v1/payments/" + id, "/v1/orders/" + no} {
		if r := w.live.get(path); r.code != http.StatusNotFound {
			t.Errorf("live %s: %s", path, r)
		}
	}
	w.paidOnce(t, no)
}

// A rotated API key of the same merchant finds what the old one did.
func TestT17_RotatedAPIKey(t *testing.T) {
	t.Parallel()
	w, no, key := twoNodes(t), newOrder("T17"), newKey()
	oldID, oldKey, err := w.nodes[0].newAPIKey(serveMerchant, "test")
	if err != nil {
		t.Fatal(err)
	}
	old := &api{base: w.base, key: oldKey}
	a := old.pay(pay{order: no, key: key})
	if a.code != http.StatusCreated {
		t.Fatalf("first: %s", a)
	}
	if _, err := command(w.nodes[0].log, nil, plainBin, "keys", "revoke", oldID, "--config", w.nodes[0].config); err != nil {
		t.Fatal(err)
	}
	if b := w.pay(pay{order: no, key: key}); b.code != a.code || !b.replayed() || !bytes.Equal(a.body, b.body) {
		t.Errorf("with the other API key: %s", b)
	}
	until(t, soon, "the revoked key is refused", func() bool { return old.get("/v1/orders/"+no).code == http.StatusUnauthorized })
	w.paidOnce(t, no)
}

// Shops that all check out at once: bounded connections, and whoever is refused
// was refused before anything was sent.
func TestP02_ManyCheckoutsAtOnce(t *testing.T) {
	w := twoNodes(t)
	const checkouts = 200
	nos := make([]string, checkouts)
	for i := range nos {
		nos[i] = newOrder("P02")
	}
	most := 0
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		poll(patience, func() bool {
			most = max(most, w.connections())
			select {
			case <-stop:
				return true
			default:
				return false
			}
		})
	}()
	rs := together(checkouts, func(i int) resp { return w.pay(pay{order: nos[i]}) })
	close(stop)
	<-watched
	b := w.sim.books(t)
	for i, r := range rs {
		took := len(b.taken(w.numbers(nos[i])...))
		switch {
		case r.err != nil:
			t.Errorf("no answer: %v", r.err)
		case r.code == http.StatusCreated && took != 1, took > 1:
			t.Errorf("%d charges after %s", took, r)
		case (r.code == http.StatusServiceUnavailable || r.code == http.StatusTooManyRequests) && (took != 0 || r.retryAfter() < 1):
			t.Errorf("refused with %d charges, Retry-After %d", took, r.retryAfter())
		case r.code != http.StatusCreated && r.code != http.StatusAccepted && r.code != http.StatusServiceUnavailable && r.code != http.StatusTooManyRequests:
			t.Errorf("answer: %s", r)
		}
	}
	t.Logf("%d checkouts: %v, at most %d database connections", checkouts, tally(rs), most)
	if most > 80 {
		t.Errorf("%d database connections of two processes", most)
	}
}
