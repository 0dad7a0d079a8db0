package payonce_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"pgregory.net/rapid"

	"github.com/payonce/payonce"
)

// TestA01_ExponentsAgreeWithAnIndependentTable: a wrong exponent charges a
// hundred times too much or too little.
func TestA01_ExponentsAgreeWithAnIndependentTable(t *testing.T) {
	for _, code := range currency.GetCurrencyCodes() {
		want, _ := currency.GetDigits(code)
		got, ok := payonce.Currency(code).Exponent()
		if !ok || got != int(want) {
			t.Errorf("%s: %d (known %t), must be %d", code, got, ok, want)
		}
	}
	for _, code := range allCodes() {
		if _, ok := payonce.Currency(code).Exponent(); ok && !currency.IsValid(code) {
			t.Errorf("%s: only we know it", code)
		}
	}
	for _, code := range []string{"", "cny", "CN", "CNYX", "XXX", "XTS", "XAU", "BGN", "ANG", "EURUSD", " EUR", "ABC"} {
		if _, ok := payonce.Currency(code).Exponent(); ok {
			t.Errorf("%q is no currency with a minor unit", code)
		}
	}
}

// allCodes are all words of three capital letters.
func allCodes() (out []string) {
	for i := range 26 * 26 * 26 {
		out = append(out, string([]byte{byte('A' + i/676), byte('A' + i/26%26), byte('A' + i%26)}))
	}
	return out
}

// TestA01_A04_FormatVectors: decimals by the currency's exponent, no grouping, no
// exponent notation.
func TestA01_A04_FormatVectors(t *testing.T) {
	for _, v := range []struct {
		amount   payonce.Amount
		currency payonce.Currency
		want     string
	}{
		{1, "CNY", "0.01"}, {1990, "CNY", "19.90"}, {100, "USD", "1.00"}, {0, "EUR", "0.00"}, {-5, "USD", "-0.05"},
		{1, "JPY", "1"}, {1999, "JPY", "1999"}, {1999, "KRW", "1999"}, {0, "JPY", "0"}, {-7, "JPY", "-7"},
		{1000, "KWD", "1.000"}, {1, "KWD", "0.001"}, {999, "BHD", "0.999"}, {12345, "CLF", "1.2345"},
		{payonce.MaxAmount, "CNY", "90000000000000.00"}, {payonce.MaxAmount, "JPY", "9000000000000000"}, {payonce.MaxAmount, "KWD", "9000000000000.000"},
		{math.MaxInt64, "USD", "92233720368547758.07"}, {-math.MaxInt64, "USD", "-92233720368547758.07"},
	} {
		if got, err := v.currency.Format(v.amount); err != nil || got != v.want {
			t.Errorf("%d %s: %q, %v, must be %q", v.amount, v.currency, got, err, v.want)
		}
	}
	if got, err := payonce.Currency("XXX").Format(1); err == nil {
		t.Errorf("an unknown currency was printed as %q", got)
	}
	if got, err := payonce.Currency("USD").Format(math.MinInt64); err == nil {
		t.Errorf("an amount that has no positive twin was printed as %q", got)
	}
}

// TestA05_EveryCentSurvivesTheRoundTrip: 0.00 … 9999.99, digit by digit.
func TestA05_EveryCentSurvivesTheRoundTrip(t *testing.T) {
	for fen := range payonce.Amount(1_000_000) {
		text, err := payonce.Currency("CNY").Format(fen)
		if err != nil {
			t.Fatal(err)
		}
		if back := minor(t, text, 2); back != fen {
			t.Fatalf("%d became %q and %d", fen, text, back)
		}
	}
}

// TestA05_AnyAmountInAnyCurrency is the same for every exponent and size.
func TestA05_AnyAmountInAnyCurrency(t *testing.T) {
	codes := currency.GetCurrencyCodes()
	rapid.Check(t, func(t *rapid.T) {
		c := payonce.Currency(rapid.SampledFrom(codes).Draw(t, "currency"))
		a := payonce.Amount(rapid.Int64Range(0, int64(payonce.MaxAmount)).Draw(t, "amount"))
		e, _ := c.Exponent()
		text, err := c.Format(a)
		if err != nil || minor(t, text, e) != a {
			t.Fatalf("%d %s became %q, %v", a, c, text, err)
		}
	})
}

// minor reads major units back as integers alone.
func minor(t interface{ Fatalf(string, ...any) }, text string, exponent int) payonce.Amount {
	whole, part, dot := strings.Cut(text, ".")
	if dot != (exponent > 0) || len(part) != exponent || whole == "" || len(whole) > 1 && whole[0] == '0' {
		t.Fatalf("%q is not the canonical form with %d decimals", text, exponent)
	}
	n, err := strconv.ParseInt(whole+part, 10, 64)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return payonce.Amount(n)
}

// TestR09_SumsNeverWrap: money that does not fit is an error, never another sum.
func TestR09_SumsNeverWrap(t *testing.T) {
	const maxA, minA = payonce.Amount(math.MaxInt64), payonce.Amount(math.MinInt64)
	for _, v := range []struct {
		a, b    payonce.Amount
		addFits bool
		subFits bool
	}{
		{1, 2, true, true}, {maxA, 0, true, true}, {maxA, 1, false, true}, {maxA, maxA, false, true}, {maxA, -1, true, false},
		{minA, 0, true, true}, {minA, -1, false, true}, {minA, 1, true, false}, {0, minA, true, false}, {-1, minA, false, true},
		{payonce.MaxAmount, payonce.MaxAmount, true, true},
	} {
		sum, err := v.a.Add(v.b)
		if (err == nil) != v.addFits || err == nil && sum != v.a+v.b {
			t.Errorf("%d + %d: %d, %v", v.a, v.b, sum, err)
		}
		diff, err := v.a.Sub(v.b)
		if (err == nil) != v.subFits || err == nil && diff != v.a-v.b {
			t.Errorf("%d - %d: %d, %v", v.a, v.b, diff, err)
		}
	}
	for a, want := range map[payonce.Amount]bool{0: false, 1: true, -1: false, payonce.MaxAmount: true, payonce.MaxAmount + 1: false, maxA: false, minA: false} {
		if a.Valid() != want {
			t.Errorf("%d: valid is %t", a, a.Valid())
		}
	}
	if payonce.MaxAmount >= 1<<53 {
		t.Error(fmt.Sprint(int64(payonce.MaxAmount), " is more than a JavaScript client reads without loss"))
	}
}
