package alipay

import (
	"strings"
	"time"

	"github.com/payonce/payonce"
)

// china is the zone of every time that Alipay writes and reads. It has had no
// summer time since 1991.
var china = time.FixedZone("UTC+8", 8*60*60)

const clock = "2006-01-02 15:04:05"

// chinaTime prints whole seconds, rounded down.
func chinaTime(t time.Time) string { return t.In(china).Format(clock) }

// expiry prints an end, rounded up: what the channel is told never ends before
// our own end.
func expiry(t time.Time) string {
	if s := t.Truncate(time.Second); s.Before(t) {
		t = s.Add(time.Second)
	}
	return chinaTime(t)
}

// readTime reads a time of Alipay, with or without a fraction; zero when it is
// none.
func readTime(s string) time.Time {
	t, err := time.ParseInLocation(clock, s, china)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// yuan prints an amount as Alipay takes it: decimal, two digits.
func yuan(a payonce.Amount) (string, error) { return cny.Format(a) }

// fen reads decimal text exactly: digits, and at most two after a point. Signs,
// blanks, exponents, grouping and further digits are refused.
func fen(s string) (payonce.Amount, bool) {
	whole, part, point := strings.Cut(s, ".")
	if whole == "" || len(whole) > 12 || len(whole) > 1 && whole[0] == '0' || point && part == "" || len(part) > 2 {
		return 0, false
	}
	part += "00"[len(part):]
	var n int64
	for _, digits := range [...]string{whole, part} {
		for i := range len(digits) {
			if digits[i] < '0' || digits[i] > '9' {
				return 0, false
			}
			n = n*10 + int64(digits[i]-'0')
		}
	}
	return payonce.Amount(n), true
}
