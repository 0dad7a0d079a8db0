package idempotency

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxWait is the usual upper limit of Prefer: wait (R33).
const MaxWait = 30 * time.Second

// Names of the preferences that this package knows.
const (
	PreferWait         = "wait"
	PreferRespondAsync = "respond-async"
)

// Preference is what the client asked for in Prefer headers (RFC 7240).
type Preference struct {
	// Wait is how long the client would wait for a result; 0 when it did not ask.
	Wait time.Duration
	// RespondAsync asks for an answer before the work is done.
	RespondAsync bool
}

// ParsePrefer reads all Prefer headers. A preference is a wish: what is unknown or
// malformed is ignored, and of two with one name the first counts, as the RFC
// says. Wait is cut to maxWait.
func ParsePrefer(h http.Header, maxWait time.Duration) Preference {
	var p Preference
	var seenWait, seenAsync bool
	for _, line := range h.Values("Prefer") {
		for line != "" {
			var element string
			element, line = cutOutsideQuotes(line, ',')
			name, value, ok := preference(element)
			switch {
			case !ok:
			case strings.EqualFold(name, PreferWait):
				if !seenWait {
					p.Wait, seenWait = waitOf(value, maxWait), true
				}
			case strings.EqualFold(name, PreferRespondAsync):
				if !seenAsync {
					p.RespondAsync, seenAsync = value == "", true
				}
			}
		}
	}
	return p
}

// MarkApplied tells the client which preferences were followed, in
// Preference-Applied. Calling it again with the same name changes nothing.
func MarkApplied(h http.Header, names ...string) {
	addList(h, "Preference-Applied", names)
}

// preference reads one element of the list. Its parameters are ignored.
func preference(element string) (name, value string, ok bool) {
	element, _ = cutOutsideQuotes(element, ';')
	name, value, valued := strings.Cut(element, "=")
	name = strings.Trim(name, " \t")
	if !isToken(name) {
		return "", "", false
	}
	if !valued {
		return name, "", true
	}
	value, ok = word(strings.Trim(value, " \t"))
	return name, value, ok
}

// word decodes a token or a quoted string.
func word(s string) (string, bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, isToken(s)
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), i == len(s)-1
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", false
}

// waitOf turns delta-seconds into a duration between 0 and maxWait.
func waitOf(value string, maxWait time.Duration) time.Duration {
	if value == "" || digits(value) != len(value) || maxWait <= 0 {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n > int64(maxWait/time.Second) {
		return maxWait // too large for us or for an integer is the same wish
	}
	return time.Duration(n) * time.Second
}

// cutOutsideQuotes cuts s at the first separator that is in no quoted string.
func cutOutsideQuotes(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == separator && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func isToken(s string) bool {
	for i := range len(s) {
		if !isTokenChar(s[i]) {
			return false
		}
	}
	return s != ""
}

// addList adds those names to a list-valued header that are not in it yet.
func addList(h http.Header, header string, names []string) {
	var present []string
	for _, line := range h.Values(header) {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.Trim(name, " \t"); name != "" {
				present = append(present, name)
			}
		}
	}
	before := len(present)
	for _, name := range names {
		same := func(other string) bool { return strings.EqualFold(name, other) }
		if !slices.ContainsFunc(present, same) {
			present = append(present, name)
		}
	}
	if len(present) > before {
		h.Set(header, strings.Join(present, ", "))
	}
}
