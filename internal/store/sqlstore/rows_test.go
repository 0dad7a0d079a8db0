package sqlstore

import (
	"encoding/hex"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/payonce/payonce"
)

// TestKeyHashVector: the lock name of an order is stored in every database; it
// must never come out otherwise.
func TestKeyHashVector(t *testing.T) {
	h := KeyHash(payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: "A-1"})
	if got := hex.EncodeToString(h[:]); got != "40cc122e2089047b091a5e33ede0d3f64c69ec75b4513fef19ffe58e58eab398" {
		t.Errorf("key hash %s", got)
	}
}

// TestKeyHashIsInjective: moving characters between the fields makes another key.
func TestKeyHashIsInjective(t *testing.T) {
	part := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 0, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) payonce.OrderKey {
			return payonce.OrderKey{Merchant: part.Draw(t, name+" merchant"), Environment: payonce.Environment(part.Draw(t, name+" environment")), OrderNo: part.Draw(t, name+" order")}
		}
		a, b := draw("a"), draw("b")
		if (a == b) != (KeyHash(a) == KeyHash(b)) {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

func TestDialectStaysSmall(t *testing.T) {
	if n := reflect.TypeFor[Dialect]().NumMethod(); n > 10 {
		t.Errorf("the dialect has %d methods; ten is the limit", n)
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"node/": "node0", "a": "b", "": "", "\x7f": "", "a\x7f": "b"} {
		if got := after(prefix); got != want {
			t.Errorf("after(%q) = %q, want %q", prefix, got, want)
		}
	}
}

// TestScanRefusesOtherTypes: a column of another type is an error, not a zero.
func TestScanRefusesOtherTypes(t *testing.T) {
	var s string
	var n int64
	var h [4]byte
	for name, err := range map[string]error{
		"float as integer": intTo(&n)(1.5), "float as text": textTo(&s)(1.5), "text as integer": intTo(&n)("x"),
		"short hash": fixedTo(h[:])([]byte{1}), "broken JSON": jsonTo(&n)("{"),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
