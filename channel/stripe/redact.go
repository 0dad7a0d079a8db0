package stripe

import (
	"regexp"
	"strings"

	"github.com/payonce/payonce/channel"
)

const hidden = "[hidden]"

// clientSecret finds what lets a browser act on an intent, as a member of its
// own and inside addresses, also when the text breaks off in the middle.
var clientSecret = regexp.MustCompile(`(?i)("client_?secret"\s*:\s*")(?:[^"\\]|\\.)*`)
var secretValue = regexp.MustCompile(`_secret_[A-Za-z0-9_\-]+`)

// redactor takes secrets out of evidence and log texts.
type redactor struct{ own *strings.Replacer }

func newRedactor(secrets []string) redactor {
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, hidden)
		}
	}
	return redactor{own: strings.NewReplacer(pairs...)}
}

func (r redactor) text(s string) string {
	s = r.own.Replace(s)
	s = clientSecret.ReplaceAllString(s, "${1}"+hidden)
	return secretValue.ReplaceAllString(s, "_secret_"+hidden)
}

// evidence is the answer as received, without secrets, within the bound.
func (r redactor) evidence(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	s := r.text(string(b))
	if len(s) > channel.MaxEvidence {
		s = s[:channel.MaxEvidence]
	}
	return []byte(s)
}
