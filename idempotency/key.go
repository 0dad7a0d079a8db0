package idempotency

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
)

// MaxKeyLength is the greatest number of characters of a decoded key (R7).
const MaxKeyLength = 255

// redactedKey stands for a key wherever one would be printed. It contains
// spaces, so it can never be taken for a key itself.
const redactedKey = "[idempotency key]"

// Key is a decoded idempotency key: 1 to 255 characters, each 0x21 to 0x7E,
// compared byte by byte. It means nothing to the layer: no path, no pattern, no
// case folding (R7, R8).
//
// A key may be the secret that gives access to a stored answer, and clients put
// all kinds of things into it. Printing, formatting with any verb, logging with
// slog and encoding as text or JSON therefore give a fixed text; [Key.Value]
// alone gives the key. fmt does not ask the methods of unexported struct fields,
// so a Key in an unexported field must not be printed with its struct, and
// encoding/json writes the raw text of a Key that is the key of a map.
type Key string

// Value returns the raw key, for hashing and for comparison. It must not be
// logged or shown (R8).
func (k Key) Value() string { return string(k) }

// String returns a fixed text instead of the key.
func (k Key) String() string { return redactedKey }

// GoString returns a fixed text instead of the key.
func (k Key) GoString() string { return redactedKey }

// Format writes a fixed text for every verb, so that %x or %q shows nothing.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redactedKey) }

// LogValue gives slog a fixed text instead of the key.
func (k Key) LogValue() slog.Value { return slog.StringValue(redactedKey) }

// MarshalText returns a fixed text that is not a valid key; a key that must be
// stored is stored as its [RecordID].
func (k Key) MarshalText() ([]byte, error) { return []byte(redactedKey), nil }

// KeyOptions are the settings of [ParseKey]. The zero value accepts what R5 to R7
// accept.
type KeyOptions struct {
	// StrictStructuredField refuses the bare form: the key must be written as a
	// String of RFC 9651, in double quotes (R6).
	StrictStructuredField bool
	// Validate may refuse more, for instance everything but UUIDs (R7). It gets
	// the decoded key. The text of its error is shown to the client, and replaced
	// by a general one when it quotes the key.
	Validate func(string) error
}

// ParseKey reads the Idempotency-Key header. The key may be written bare (abc) or
// as a String of RFC 9651 ("abc", whose parameters are ignored); both name the
// same key (R6).
//
// present says whether the header was sent at all. A header that was sent but
// holds no single valid key gives present and a [*Problem] with the code
// [CodeKeyInvalid]; the error never contains the key.
func ParseKey(h http.Header, opt KeyOptions) (k Key, present bool, err error) {
	lines := h.Values(HeaderKey)
	switch len(lines) {
	case 0:
		return "", false, nil
	case 1:
		k, err = ParseKeyText(lines[0], opt)
		return k, true, err
	}
	return "", true, KeyInvalid("The Idempotency-Key header was sent more than once; send exactly one.")
}

// ParseKeyText reads one key from text, by the rules of [ParseKey], for places
// that are not the header, such as the query parameter of a look-up (R72). The
// error is a [*Problem].
func ParseKeyText(s string, opt KeyOptions) (Key, error) {
	text := strings.Trim(s, " \t")
	var refusal string
	switch {
	case text == "":
		refusal = "The idempotency key is empty."
	case text[0] == '"':
		text, refusal = decodeQuoted(text)
	case opt.StrictStructuredField:
		refusal = `The idempotency key must be written in double quotes, as a String of RFC 9651, for example "abc".`
	default:
		refusal = checkBare(text)
	}
	if refusal == "" {
		refusal = checkDecoded(text)
	}
	if refusal == "" && opt.Validate != nil {
		if err := opt.Validate(text); err != nil {
			refusal = validatorText(err, text)
		}
	}
	if refusal != "" {
		return "", KeyInvalid(refusal)
	}
	return Key(text), nil
}

// decodeQuoted decodes an item whose value is a String (RFC 9651, section 3.3.3).
func decodeQuoted(s string) (text, refusal string) {
	text, rest, ok := sfString(s)
	if !ok {
		return "", "The quoted idempotency key is not a String of RFC 9651: it needs a closing quote, printable ASCII characters, and no escapes other than \\\" and \\\\."
	}
	if !sfParameters(rest) {
		return "", "There is something after the quoted idempotency key that is no parameter; send exactly one key."
	}
	return text, ""
}

// checkBare names the characters that the bare form excludes because they mean
// something in a header: a list, a parameter, a quoted string (R5, R7).
func checkBare(s string) string {
	if strings.IndexByte(s, ',') >= 0 {
		return "The idempotency key contains a comma, which separates two keys; send exactly one, or write it in double quotes."
	}
	if i := strings.IndexAny(s, `";\`); i >= 0 {
		return "The character at position " + strconv.Itoa(i+1) + " of the idempotency key is allowed in double quotes only."
	}
	return ""
}

// checkDecoded applies R7 to the decoded key.
func checkDecoded(s string) string {
	if s == "" {
		return "The idempotency key is empty."
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return "The character at position " + strconv.Itoa(i+1) + " of the idempotency key is not allowed; use printable ASCII characters without spaces."
		}
	}
	if len(s) > MaxKeyLength {
		return "The idempotency key is longer than " + strconv.Itoa(MaxKeyLength) + " characters."
	}
	return ""
}

// validatorText keeps a validator's explanation unless it would show the key, as
// it is or as %q writes it (R8).
func validatorText(err error, key string) string {
	const general = "The idempotency key does not have the form that this service asks for."
	text := err.Error()
	quoted := strconv.Quote(key)
	if text == "" || strings.Contains(text, key) || strings.Contains(text, quoted[1:len(quoted)-1]) {
		return general
	}
	return text
}
