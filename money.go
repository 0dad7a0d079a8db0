package payonce

import (
	"fmt"
	"math"
)

// Amount is money in minor units of its currency (cents, fen, yen). It is
// always an integer; nothing in this module computes money in floating point.
type Amount int64

// MaxAmount is the largest amount of one order. It stays below 2^53, so that a
// JavaScript client reads it without loss.
const MaxAmount Amount = 9_000_000_000_000_000

// Valid reports whether a can be the amount of an order, payment or refund:
// 1 … MaxAmount.
func (a Amount) Valid() bool { return a >= 1 && a <= MaxAmount }

// Add returns a+b, or an error when the sum does not fit. Sums of valid amounts
// that stay within an order always fit; an error means corrupted data.
func (a Amount) Add(b Amount) (Amount, error) {
	if (b > 0 && a > math.MaxInt64-b) || (b < 0 && a < math.MinInt64-b) {
		return 0, fmt.Errorf("amount overflow: %d + %d", a, b)
	}
	return a + b, nil
}

// Sub returns a-b, or an error when the difference does not fit.
func (a Amount) Sub(b Amount) (Amount, error) {
	if (b < 0 && a > math.MaxInt64+b) || (b > 0 && a < math.MinInt64+b) {
		return 0, fmt.Errorf("amount overflow: %d - %d", a, b)
	}
	return a - b, nil
}

// Currency is an ISO 4217 alphabetic code in upper case.
type Currency string

// Exponent returns how many decimal digits the currency's minor unit has
// (ISO 4217: CNY 2, JPY 0, KWD 3), and false for a code that is not a current
// currency with a minor unit. A channel may count otherwise; such differences
// live in its adapter.
func (c Currency) Exponent() (int, bool) {
	e, ok := currencyExponents[c]
	return int(e), ok
}

// Format prints an amount in major units with exactly the currency's decimals,
// without grouping and without an exponent: 1999 CNY is "19.99", 1999 JPY is
// "1999". Channels that take decimal text are given this form.
func (c Currency) Format(a Amount) (string, error) {
	e, ok := c.Exponent()
	if !ok {
		return "", fmt.Errorf("unknown currency %q", string(c))
	}
	if e == 0 {
		return fmt.Sprintf("%d", int64(a)), nil
	}
	unit := int64(1)
	for range e {
		unit *= 10
	}
	sign, v := "", int64(a)
	if v < 0 {
		if v == math.MinInt64 {
			return "", fmt.Errorf("amount out of range")
		}
		sign, v = "-", -v
	}
	return fmt.Sprintf("%s%d.%0*d", sign, v/unit, e, v%unit), nil
}

// currencyExponents lists the currencies of ISO 4217 that have a minor unit.
// A test compares it with an independent table.
var currencyExponents = func() map[Currency]int8 {
	groups := map[int8]string{
		0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
		3: "BHD IQD JOD KWD LYD OMR TND",
		4: "CLF UYW",
		2: "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD " +
			"CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS " +
			"GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL " +
			"MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK " +
			"PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS " +
			"TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG",
	}
	m := make(map[Currency]int8, 180)
	for e, list := range groups {
		for i := 0; i+3 <= len(list); i += 4 {
			m[Currency(list[i:i+3])] = e
		}
	}
	return m
}()
