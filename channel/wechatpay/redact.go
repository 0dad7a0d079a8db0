package wechatpay

import (
	"encoding/pem"
	"strings"

	"github.com/payonce/payonce/channel"
)

const hidden = "[hidden]"

// redactor takes our own secrets out of evidence and log texts. None of them is
// ever sent, but an echo or an error text must not show them whatever happens.
type redactor struct{ own *strings.Replacer }

func newRedactor(privateKey, apiv3Key string) redactor {
	var pairs []string
	add := func(s string) {
		if len(s) >= 16 {
			pairs = append(pairs, s, hidden)
		}
	}
	add(strings.TrimSpace(privateKey))
	if block, _ := pem.Decode([]byte(privateKey)); block != nil {
		var lines []string
		for l := range strings.Lines(string(pem.EncodeToMemory(block))) {
			if !strings.HasPrefix(l, "-") {
				lines = append(lines, strings.TrimSpace(l))
			}
		}
		add(strings.Join(lines, ""))
		for _, l := range lines {
			add(l)
		}
	}
	add(apiv3Key)
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

// word keeps an identifier of the channel fit for logs and callers.
func word(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	b := []byte(s)
	for i, c := range b {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
		if !ok {
			b[i] = '?'
		}
	}
	return string(b)
}
