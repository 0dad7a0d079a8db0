package sim_test

import (
	"fmt"
	"testing"
	"time"
)

func (r *rig) turn(name, value string) {
	r.t.Helper()
	r.control("POST", "/_sim/switches", `{"channel":"stripe","switch":"`+name+`","value":"`+value+`"}`, 200)
}

// TestTwinEvents: one change, two events with ids of their own about the same
// object.
func TestTwinEvents(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	s.endpoint(r, "payment_intent.succeeded")
	r.turn("twin_events", "on")
	id := r.paid("T1")
	a, b := s.next(t, "payment_intent.succeeded"), s.next(t, "payment_intent.succeeded")
	if a.id() == b.id() {
		t.Fatal("one event twice")
	}
	equal(t, "one object", str(a.event, "data", "object", "id")+str(b.event, "data", "object", "id"), id+id)
	equal(t, "one charge", r.line("T1")["status"], any("paid"))
	r.control("DELETE", "/_sim/switches", "", 200)
	r.paid("T2")
	s.next(t, "payment_intent.succeeded")
	equal(t, "events", len(pick(r.control("GET", "/_sim/books", "", 200), "notices", "number", "T2")), 3)
}

// TestShuffledEvents: success comes before creation, without a fault.
func TestShuffledEvents(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	s.endpoint(r, "*")
	r.turn("event_order", "shuffled")
	const payments = 6
	for n := range payments {
		r.paid(fmt.Sprint("S", n))
	}
	seen := map[string][]string{}
	for range 3 * payments {
		d := s.next(t, "payment_intent.created", "payment_intent.succeeded", "charge.succeeded")
		number := str(d.event, "data", "object", "metadata", "payonce_number")
		seen[number] = append(seen[number], d.kind())
	}
	turned := 0
	for _, kinds := range seen {
		if kinds[0] != "payment_intent.created" {
			turned++
		}
	}
	if turned == 0 {
		t.Fatalf("all in order: %v", seen)
	}
}

// TestRetriesOverThreeDays: a merchant that never answers is asked for three
// days of virtual time, with growing gaps, and then no more.
func TestRetriesOverThreeDays(t *testing.T) {
	r := newRig(t)
	s := newShop(t, func(int, delivered) int { return 500 })
	secret := s.endpoint(r, "payment_intent.succeeded")
	r.paid("D1")
	const kind = "payment_intent.succeeded"
	id := s.next(t, kind).id()
	booked := func(n int) {
		until(t, fmt.Sprint(n, " deliveries"), func() bool { return r.notice("D1", kind)["deliveries"] == float64(n) })
	}
	booked(1)
	tries := 1
	var sum time.Duration
	for gap := 5 * time.Second; sum+gap <= 72*time.Hour; gap = min(2*gap, 12*time.Hour) {
		r.control("POST", "/_sim/clock", fmt.Sprintf(`{"advance_s":%d}`, gap/time.Second), 200)
		d := s.next(t, kind)
		equal(t, "the same event", d.id(), id)
		equal(t, "signed anew", d.signedBy(secret), true)
		tries++
		booked(tries)
		sum += gap
	}
	equal(t, "over days", sum > 60*time.Hour, true)
	r.control("POST", "/_sim/clock", `{"advance_s":864000}`, 200)
	equal(t, "no more", len(s.got), 0)
	equal(t, "not acknowledged", r.notice("D1", kind)["acknowledged"], any(false))
	list := r.api("GET", "events?delivery_success=false", "", "", 200).body["data"].([]any)
	equal(t, "listed as undelivered", len(list) > 0, true)
}
