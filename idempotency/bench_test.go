package idempotency

import (
	"net/http"
	"testing"
)

// benchBody is a payment request of about 300 bytes as a client writes it: not in
// order, with white space.
var benchBody = []byte(`{"order_no": "2026-03-01-000123", "channel": "stripe", "method": "card", "amount": 129900, ` +
	`"currency": "CNY", "subject": "Fahrradhelm, Größe M", "payer": {"payment_method": "pm_card_visa", "client_ip": "203.0.113.7"}, ` +
	`"return_url": "https://shop.example/return?order=2026-03-01-000123", "capture": true}`)

func BenchmarkSum(b *testing.B) {
	f := newFingerprinter(b)
	r := payment()
	r.Body = benchBody
	b.SetBytes(int64(len(benchBody)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Sum(testScope, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCanonicalJSON(b *testing.B) {
	b.SetBytes(int64(len(benchBody)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CanonicalJSON(benchBody); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseKeyAndRecord(b *testing.B) {
	h := http.Header{HeaderKey: {`"8e03978e-40d5-43dd-bc93-6894a57f9324"`}}
	b.ReportAllocs()
	for b.Loop() {
		k, _, err := ParseKey(h, KeyOptions{})
		if err != nil {
			b.Fatal(err)
		}
		testScope.Record(k)
	}
}

// The hot path of every keyed request has a budget of memory, so that it cannot
// grow unseen. Times are for the benchmarks; allocations are the same everywhere.
func TestR13_AllocationBudget(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates by itself and empties pools; only the result is checked")
		sumOf(t, newFingerprinter(t), payment())
		return
	}
	f := newFingerprinter(t)
	r := payment()
	r.Body = benchBody
	if n := testing.AllocsPerRun(200, func() { sumOf(t, f, r) }); n > 1 {
		t.Errorf("Sum makes %v allocations, at most 1 is meant", n)
	}
	if n := testing.AllocsPerRun(200, func() { _, _ = CanonicalJSON(benchBody) }); n > 1 {
		t.Errorf("CanonicalJSON makes %v allocations, only the result is meant", n)
	}
}
