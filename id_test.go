package payonce_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/payonce/payonce"
)

var prefixes = []string{payonce.PrefixOrder, payonce.PrefixPayment, payonce.PrefixRefund, payonce.PrefixEvent, payonce.PrefixEndpoint,
	payonce.PrefixCase, payonce.PrefixToken, payonce.PrefixEvidence, payonce.PrefixKey}

func TestIDs_SortByTimeAndKeepTheirForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom(prefixes).Draw(t, "prefix")
		var r1, r2 [10]byte
		copy(r1[:], rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "random"))
		copy(r2[:], rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "random2"))
		ms := rapid.Int64Range(0, 1<<47).Draw(t, "ms")
		later := ms + rapid.Int64Range(1, 1<<40).Draw(t, "later")
		a, b := payonce.NewID(prefix, time.UnixMilli(ms), r1), payonce.NewID(prefix, time.UnixMilli(later), r2)
		if !payonce.ValidID(prefix, a) || !payonce.ValidID(prefix, b) || len(a) != len(prefix)+26 {
			t.Fatalf("%q or %q has not the form", a, b)
		}
		if a >= b {
			t.Fatalf("%q was made before %q and sorts after it", a, b)
		}
		if same := payonce.NewID(prefix, time.UnixMilli(ms), r2); (same == a) != (r1 == r2) {
			t.Fatalf("the random bits are not all in the id: %q %q", a, same)
		}
	})
}

func TestIDs_GoldenVector(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)
	got := payonce.NewID(payonce.PrefixPayment, at, [10]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 255})
	if want := "pay_01KJMMA2KV000G40R40M30E27Z"; got != want {
		t.Errorf("%s, must be %s", got, want)
	}
}

func TestIDs_ValidIDTable(t *testing.T) {
	good := payonce.NewID("pay_", t0, [10]byte{})
	for s, want := range map[string]bool{
		good: true, "": false, "pay_": false, good[:len(good)-1]: false, good + "0": false, "ref_" + good[4:]: false,
		strings.ToLower(good): false, good[:29] + "I": false, good[:29] + "L": false, good[:29] + "O": false, good[:29] + "U": false,
		good[:29] + " ": false, good[:29] + "'": false, good[:28] + "é": false,
	} {
		if payonce.ValidID("pay_", s) != want {
			t.Errorf("%q: valid is %t", s, !want)
		}
	}
}

var goldenKey = payonce.OrderKey{Merchant: "acme", Environment: payonce.Live, OrderNo: "2026-0001"}

const goldenInstallation = "installation-0123456789"

// TestChannelNumber_GoldenVector: rows lost by a failover come back with these
// numbers, so no release may change them.
func TestChannelNumber_GoldenVector(t *testing.T) {
	for seq, want := range map[int]string{1: "YNWYS27H3FFZYROVBHA8", 2: "SWAF77N5YMRNVKTVY9DH", 1000000: "PBLV965ID48AS0GBN9OZ"} {
		if got := payonce.ChannelNumber(goldenInstallation, goldenKey, seq); got != want {
			t.Errorf("sequence %d: %s, must be %s", seq, got, want)
		}
	}
}

func TestChannelNumber_DiffersWithEachField(t *testing.T) {
	k := goldenKey
	seen := map[string]string{}
	add := func(what, installation string, k payonce.OrderKey, seq int) {
		n := payonce.ChannelNumber(installation, k, seq)
		if len(n) != payonce.NumberLength || strings.Trim(n, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			t.Errorf("%s: %q is not 20 of 0-9A-Z", what, n)
		}
		if other := seen[n]; other != "" {
			t.Errorf("%s and %s have one number", what, other)
		}
		seen[n] = what
	}
	add("first", goldenInstallation, k, 1)
	add("sequence", goldenInstallation, k, 2)
	add("installation", goldenInstallation+"x", k, 1)
	add("environment", goldenInstallation, payonce.OrderKey{Merchant: k.Merchant, Environment: payonce.Test, OrderNo: k.OrderNo}, 1)
	add("merchant", goldenInstallation, payonce.OrderKey{Merchant: "acmf", Environment: k.Environment, OrderNo: k.OrderNo}, 1)
	add("order", goldenInstallation, payonce.OrderKey{Merchant: k.Merchant, Environment: k.Environment, OrderNo: "2026-0002"}, 1)
	// Fields that run into each other are still two fields.
	add("border 1", goldenInstallation, payonce.OrderKey{Merchant: "acme2026", Environment: k.Environment, OrderNo: "-0001"}, 1)
	add("border 2", goldenInstallation, payonce.OrderKey{Merchant: "acme", Environment: k.Environment, OrderNo: "2026-00011"}, 1)
	add("border 3", goldenInstallation, payonce.OrderKey{Merchant: "acme", Environment: k.Environment, OrderNo: "2026-0001"}, 11)
}

// TestChannelNumber_IsSpreadEvenly counts characters over 36 000 numbers.
func TestChannelNumber_IsSpreadEvenly(t *testing.T) {
	const n = 36_000
	var count [payonce.NumberLength][256]int
	seen := make(map[string]bool, n)
	for seq := range n {
		s := payonce.ChannelNumber(goldenInstallation, goldenKey, seq+1)
		seen[s] = true
		for i := range len(s) {
			count[i][s[i]]++
		}
	}
	if len(seen) != n {
		t.Errorf("%d numbers of %d are distinct", len(seen), n)
	}
	for i := range count {
		for _, c := range []byte("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			// 1000 are expected, with a deviation of 31; six of them are chance enough.
			if k := count[i][c]; k < 800 || k > 1200 {
				t.Errorf("place %d: %c stands %d times of %d", i, c, k, n)
			}
		}
	}
}
