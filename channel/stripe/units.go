package stripe

import (
	"strings"

	"github.com/payonce/payonce"
)

// unit says how Stripe counts a currency whose ISO 4217 exponent does not tell.
type unit struct {
	exponent int // decimals of Stripe's amount
	step     int64
}

// units lists what differs from two decimals. step is the granule of Stripe's
// amount: 100 for currencies that Stripe writes with two decimals but takes in
// whole units only, 10 where the third decimal must be 0.
var units = func() map[payonce.Currency]unit {
	m := map[payonce.Currency]unit{"ISK": {2, 100}, "UGX": {2, 100}}
	for _, c := range strings.Fields("BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF") {
		m[payonce.Currency(c)] = unit{0, 1}
	}
	for _, c := range strings.Fields("BHD JOD KWD OMR TND") {
		m[payonce.Currency(c)] = unit{3, 10}
	}
	return m
}()

// minimum charges in Stripe's unit. They are judged in the settlement currency,
// so this catches the plain cases only. COP, IDR and PHP are left out: the
// documented figures are not credible.
var minimum = map[payonce.Currency]int64{
	"USD": 50, "AED": 200, "AUD": 50, "BRL": 50, "CAD": 50, "CHF": 50, "CZK": 1500, "DKK": 250, "EUR": 50,
	"GBP": 30, "HKD": 400, "HUF": 17500, "INR": 50, "JPY": 50, "KRW": 50, "MXN": 1000, "MYR": 200, "NOK": 300,
	"NZD": 50, "PLN": 200, "RON": 200, "SEK": 300, "SGD": 50, "THB": 1000, "ZAR": 50,
}

// unitOf returns how Stripe counts a currency, and false where that is not
// certain: a currency that ISO does not count in hundredths and Stripe's page
// does not list.
func unitOf(c payonce.Currency) (u unit, iso int, ok bool) {
	iso, ok = c.Exponent()
	if !ok {
		return unit{}, 0, false
	}
	if u, listed := units[c]; listed {
		return u, iso, true
	}
	return unit{2, 1}, iso, iso == 2
}

// toStripe converts ISO minor units to Stripe's.
func toStripe(a payonce.Amount, c payonce.Currency) (int64, bool) {
	u, iso, ok := unitOf(c)
	if !ok {
		return 0, false
	}
	v, ok := rescale(int64(a), iso, u.exponent)
	return v, ok && v%u.step == 0
}

// fromStripe converts Stripe's amount to ISO minor units; false when it cannot
// be said in them.
func fromStripe(v int64, c payonce.Currency) (payonce.Amount, bool) {
	u, iso, ok := unitOf(c)
	if !ok {
		// Not ours anyway: the currency differs, and that will be seen.
		return payonce.Amount(v), v >= 0
	}
	r, ok := rescale(v, u.exponent, iso)
	return payonce.Amount(r), ok && r >= 0
}

// rescale moves an integer between decimal exponents, without loss or not at
// all.
func rescale(v int64, from, to int) (int64, bool) {
	for ; from < to; from++ {
		if v > (1<<63-1)/10 || v < -(1<<63-1)/10 {
			return 0, false
		}
		v *= 10
	}
	for ; from > to; from-- {
		if v%10 != 0 {
			return 0, false
		}
		v /= 10
	}
	return v, true
}
