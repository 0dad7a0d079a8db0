package alipay

import (
	"strings"

	"github.com/payonce/payonce/channel"
)

const hidden = "[hidden]"

// redactor takes our private key out of evidence and log texts. It is never sent,
// but a proxy or an error text must not show it whatever they do.
type redactor struct{ own *strings.Replacer }

func newRedactor(key string) redactor {
	var pairs []string
	add := func(s string) {
		if len(s) >= 16 {
			pairs = append(pairs, s, hidden)
		}
	}
	add(strings.TrimSpace(key))
	var bare strings.Builder
	lines := strings.Fields(strings.NewReplacer("-----BEGIN", "\n-----BEGIN").Replace(key))
	for _, l := range lines {
		if !strings.Contains(l, "-") && len(l) > 7 {
			bare.WriteString(l)
		}
	}
	add(bare.String())
	for _, l := range lines {
		if !strings.Contains(l, "-") {
			add(l)
		}
	}
	return redactor{own: strings.NewReplacer(pairs...)}
}

func (r redactor) text(s string) string { return r.own.Replace(s) }

// evidence is the answer as received, within the bound.
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
