package alipaysim

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// beijing is the zone of all of Alipay's times.
var beijing = time.FixedZone("CST", 8*3600)

const timeLayout = "2006-01-02 15:04:05"

func clockText(sec int64) string { return time.Unix(sec, 0).In(beijing).Format(timeLayout) }

func parseTime(text string) (time.Time, error) {
	return time.ParseInLocation(timeLayout, text, beijing)
}

// chinese are the charsets beside UTF-8. GB18030 contains the others.
var chinese = map[string]bool{"gbk": true, "gb2312": true, "gb18030": true}

func knownCharset(name string) bool {
	name = strings.ToLower(name)
	return name == "utf-8" || chinese[name]
}

var errCharset = errors.New("text is not in its charset")

// decode turns bytes of a charset into UTF-8.
func decode(text, charset string) (string, error) {
	if !chinese[strings.ToLower(charset)] {
		if !utf8.ValidString(text) {
			return "", errCharset
		}
		return text, nil
	}
	out, err := simplifiedchinese.GB18030.NewDecoder().String(text)
	if err != nil || strings.ContainsRune(out, utf8.RuneError) {
		return "", errCharset
	}
	return out, nil
}

// encode turns UTF-8 into the bytes of a charset. GB18030 has all of Unicode.
func encode(text, charset string) string {
	if !chinese[strings.ToLower(charset)] {
		return text
	}
	out, err := simplifiedchinese.GB18030.NewEncoder().String(text)
	if err != nil {
		return text
	}
	return out
}

// maxAmount is 100000000.00 yuan in fen.
const maxAmount = 100_000_000_00

// parseYuan reads yuan as decimal text: digits and at most two decimals, no
// sign, no exponent, no grouping. The result is in fen.
func parseYuan(text string) (int64, bool) {
	whole, part, dotted := strings.Cut(text, ".")
	if whole == "" || len(whole) > 9 || len(part) > 2 || dotted && part == "" || !digits(whole) || !digits(part) {
		return 0, false
	}
	part = (part + "00")[:2]
	fen, err := strconv.ParseInt(whole+part, 10, 64)
	return fen, err == nil && fen > 0 && fen <= maxAmount
}

func digits(text string) bool {
	return strings.Trim(text, "0123456789") == ""
}

// yuan prints fen as yuan with two decimals.
func yuan(fen int64) string {
	text := strconv.FormatInt(fen, 10)
	for len(text) < 3 {
		text = "0" + text
	}
	return text[:len(text)-2] + "." + text[len(text)-2:]
}

// parseTimeout reads timeout_express: 1m to 15d, or 1c for the end of today.
func parseTimeout(text string, from time.Time) (time.Time, bool) {
	if text == "1c" {
		y, m, d := from.In(beijing).Date()
		return time.Date(y, m, d+1, 0, 0, 0, 0, beijing), true
	}
	if len(text) < 2 || len(text) > 6 {
		return time.Time{}, false
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
	n, err := strconv.Atoi(text[:len(text)-1])
	if err != nil || unit == 0 || n < 1 || time.Duration(n)*unit > longestLife {
		return time.Time{}, false
	}
	return from.Add(time.Duration(n) * unit), true
}
