package stripe

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/payonce/payonce"
)

// TestI02_StoredBytes is the golden form of a stored request. A change here
// breaks repeats of payments that are under way: it needs a new frame version.
func TestI02_StoredBytes(t *testing.T) {
	const golden = "stripe-card/1\n" +
		"create amount=1999&currency=eur&payment_method=pm_card_visa&payment_method_types[]=card&confirm=false" +
		"&capture_method=automatic&description=Tea+%26+cake+%E8%8C%B6&metadata[payonce_number]=0A1B2C3D4E5F6G7H8J9K" +
		"&metadata[merchant]=m1&metadata[order_no]=order-1&metadata[sequence]=1&metadata[environment]=test\n" +
		"confirm return_url=https%3A%2F%2Fshop.example%2Fback%3Forder%3D1%26x%3D%C3%A4&expand[]=latest_charge\n"
	a := newAdapter(t, "http://127.0.0.1:1", nil)
	got, err := a.Compose(testIntent())
	if err != nil || string(got) != golden {
		t.Errorf("Compose = %v\n%s\nwant\n%s", err, got, golden)
	}
	in := testIntent()
	in.ReturnURL, in.Capture = "", "manual"
	got, err = a.Compose(in)
	if err != nil || !strings.HasSuffix(string(got), "\nconfirm expand[]=latest_charge\n") || !strings.Contains(string(got), "capture_method=manual&") {
		t.Errorf("without return_url, manual: %v\n%s", err, got)
	}
}

// TestS12_Subject: whatever a subject holds, the body parses back to one value
// per member and no line breaks the frame.
func TestS12_Subject(t *testing.T) {
	a := newAdapter(t, "http://127.0.0.1:1", nil)
	for _, subject := range []string{"茶とケーキ", "a&b=c&amount=1", "line\nconfirm amount=1\n", "nul\x00x", "emoji 🍰", "bad \xff bytes", "quote\"'\\"} {
		in := testIntent()
		in.Subject = subject
		got, err := a.Compose(in)
		if err != nil {
			t.Fatalf("%q: %v", subject, err)
		}
		create, confirm, err := steps(got)
		if err != nil {
			t.Fatalf("%q: %v", subject, err)
		}
		v, err := url.ParseQuery(create)
		if err != nil || len(v["amount"]) != 1 || v.Get("amount") != "1999" || strings.ContainsAny(v.Get("description"), "\x00\n") {
			t.Errorf("%q: %v %q", subject, err, v)
		}
		if !strings.HasPrefix(confirm, "return_url=") {
			t.Errorf("%q: confirm is %q", subject, confirm)
		}
	}
}

// TestI02_DamagedFrame: bytes that are not exactly a frame are never sent.
func TestI02_DamagedFrame(t *testing.T) {
	good, err := newAdapter(t, "http://127.0.0.1:1", nil).Compose(testIntent())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := steps(good); err != nil {
		t.Errorf("a good frame: %v", err)
	}
	s := string(good)
	for _, bad := range []string{"", "stripe-card/1\n", s[1:], s[:len(s)-1], s + "x", s + "\n", strings.Replace(s, "card/1", "card/2", 1),
		strings.Replace(s, "create ", "confirm ", 1), "stripe-card/1\ncreate \nconfirm a=b\n", "stripe-card/1\ncreate a=b\nconfirm \n"} {
		if c, f, err := steps([]byte(bad)); err == nil {
			t.Errorf("%q was read as %q and %q", bad, c, f)
		}
	}
}

// TestA01_Units compares both directions with vectors that were written by hand
// from Stripe's currency page: 12 major units, and what the page makes of them.
func TestA01_Units(t *testing.T) {
	for _, c := range []struct {
		currency payonce.Currency
		iso      payonce.Amount // 12 major units in ISO minor units
		stripe   int64
	}{
		{"USD", 1200, 1200}, {"EUR", 1200, 1200}, {"CNY", 1200, 1200}, {"HUF", 1200, 1200}, {"TWD", 1200, 1200},
		{"JPY", 12, 12}, {"KRW", 12, 12}, {"VND", 12, 12}, {"CLP", 12, 12}, {"XPF", 12, 12}, {"XAF", 12, 12},
		{"BIF", 12, 12}, {"DJF", 12, 12}, {"GNF", 12, 12}, {"KMF", 12, 12}, {"PYG", 12, 12}, {"RWF", 12, 12}, {"VUV", 12, 12}, {"XOF", 12, 12},
		{"ISK", 12, 1200}, {"UGX", 12, 1200},
		{"MGA", 1200, 12},
		{"BHD", 12000, 12000}, {"JOD", 12000, 12000}, {"KWD", 12000, 12000}, {"OMR", 12000, 12000}, {"TND", 12000, 12000},
	} {
		if got, ok := toStripe(c.iso, c.currency); !ok || got != c.stripe {
			t.Errorf("%s: sent %d, %t; want %d", c.currency, got, ok, c.stripe)
		}
		if got, ok := fromStripe(c.stripe, c.currency); !ok || got != c.iso {
			t.Errorf("%s: read %d, %t; want %d", c.currency, got, ok, c.iso)
		}
	}
	for _, c := range []payonce.Currency{"IQD", "LYD", "CLF", "UYW", "UYI", "XXX", ""} {
		if _, ok := toStripe(1200, c); ok {
			t.Errorf("%q: its unit is not certain, but it was taken", c)
		}
	}
	for c, bad := range map[payonce.Currency]payonce.Amount{"KWD": 12001, "MGA": 1250} {
		if _, ok := toStripe(bad, c); ok {
			t.Errorf("%s %d was taken", c, bad)
		}
	}
	for c, bad := range map[payonce.Currency]int64{"ISK": 1250, "UGX": 1, "USD": -1} {
		if v, ok := fromStripe(bad, c); ok {
			t.Errorf("%s %d was read as %d", c, bad, v)
		}
	}
	if _, ok := toStripe(payonce.Amount(1<<62), "ISK"); ok {
		t.Error("an overflow was taken")
	}
}

// TestA01_OfficialCurrencies: every currency of the SDK that is still current
// can be charged, and its step is at least one of its minor units.
func TestA01_OfficialCurrencies(t *testing.T) {
	pkg, err := build.Import("github.com/stripe/stripe-go/v84", ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, "currency.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		s, err := strconv.Unquote(lit.Value)
		c := payonce.Currency(strings.ToUpper(s))
		if _, current := c.Exponent(); err != nil || !current {
			return true
		}
		seen++
		if v, ok := toStripe(1_000_000, c); !ok || v%units100(c) != 0 {
			t.Errorf("%s: %d, %t", c, v, ok)
		}
		return true
	})
	if seen < 120 {
		t.Errorf("only %d currencies found in the SDK", seen)
	}
}

func units100(c payonce.Currency) int64 {
	u, _, _ := unitOf(c)
	return u.step
}
