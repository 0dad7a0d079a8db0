package stripesim

import (
	"fmt"
	"strings"
)

// maxAmount is eight digits, as the API reference says.
const maxAmount = 99_999_999

// currencies are those that are accepted; see minimums and threeDecimal for
// what is special about some.
var currencies = func() map[string]bool {
	m := map[string]bool{}
	for c := range strings.FieldsSeq(`
		aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf
		clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel ghs gip gmd gnf gtq gyd hkd hnl htg huf
		idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop
		mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd
		scr sek sgd shp sle sos srd std szl thb tjs tnd top try ttd twd tzs uah ugx usd uyu uzs vnd vuv wst xaf xcd
		xcg xof xpf yer zar zmw`) {
		m[c] = true
	}
	return m
}()

// minimums are in the smallest unit. A currency that is not listed has none of
// its own (Stripe judges it in the settlement currency).
var minimums = map[string]int64{
	"usd": 50, "aed": 200, "aud": 50, "brl": 50, "cad": 50, "chf": 50, "cop": 50, "czk": 1500, "dkk": 250,
	"eur": 50, "gbp": 30, "hkd": 400, "huf": 17500, "idr": 50, "inr": 50, "jpy": 50, "krw": 50, "mxn": 1000,
	"myr": 200, "nok": 300, "nzd": 50, "php": 50, "pln": 200, "ron": 200, "sek": 300, "sgd": 50, "thb": 1000,
	"zar": 50,
}

// granules: the last digits of these must be 0.
var granules = map[string]int64{
	"isk": 100, "ugx": 100,
	"bhd": 10, "jod": 10, "kwd": 10, "omr": 10, "tnd": 10,
}

// checkAmount applies the amount rules to a new or changed amount.
func checkAmount(amount int64, currency string) *apiError {
	switch {
	case !currencies[currency]:
		return invalid("parameter_invalid", "currency", fmt.Sprintf("Invalid currency: %s.", currency))
	case amount < 1:
		return invalid("parameter_invalid_integer", "amount", "This value must be greater than or equal to 1.")
	case amount > maxAmount:
		return invalid("amount_too_large", "amount", fmt.Sprintf("Amount must be no more than %d.", maxAmount))
	case amount < minimums[currency]:
		return invalid("amount_too_small", "amount", fmt.Sprintf("Amount must be at least %d %s.", minimums[currency], currency))
	}
	if g := granules[currency]; g != 0 && amount%g != 0 {
		return invalid("parameter_invalid_integer", "amount", fmt.Sprintf("Amounts in %s must be multiples of %d.", currency, g))
	}
	return nil
}

// zeroDecimal have no minor unit; threeDecimal have a thousandth.
const (
	zeroDecimal  = " bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf "
	threeDecimal = " bhd jod kwd omr tnd "
)

// display writes an amount for the payer's page.
func display(amount int64, currency string) string {
	unit, digits := int64(100), 2
	switch name := " " + currency + " "; {
	case strings.Contains(zeroDecimal, name):
		return fmt.Sprintf("%s %d", strings.ToUpper(currency), amount)
	case strings.Contains(threeDecimal, name):
		unit, digits = 1000, 3
	}
	return fmt.Sprintf("%s %d.%0*d", strings.ToUpper(currency), amount/unit, digits, amount%unit)
}
