package stripe

import (
	"strings"
	"testing"

	"github.com/payonce/payonce/channel"
)

// TestX10_Redaction: evidence keeps everything but secrets, also where the text
// breaks off inside one.
func TestX10_Redaction(t *testing.T) {
	r := newRedactor([]string{testKey, "", testHook})
	for in, want := range map[string]string{
		`{"client_secret": "opaque","id":"pi_1"}`: `{"client_secret": "[hidden]","id":"pi_1"}`,
		`{"client_secret":"op\"aque","id":"x"}`:   `{"client_secret":"[hidden]","id":"x"}`,
		`{"client_secret":"opaq`:                  `{"client_secret":"[hidden]`,
		`{"clientSecret":"opaque"}`:               `{"clientSecret":"[hidden]"}`,
		`{"client_secret":null}`:                  `{"client_secret":null}`,
		`https://a/?x=pi_1_secret_abc-D_9&y=1`:    `https://a/?x=pi_1_secret_[hidden]&y=1`,
		`key ` + testKey + ` hook ` + testHook:    `key [hidden] hook [hidden]`,
		`{"message":"nothing to hide"}`:           `{"message":"nothing to hide"}`,
	} {
		if got := string(r.evidence([]byte(in))); got != want {
			t.Errorf("%s\n became %s\n want   %s", in, got, want)
		}
	}
	// A secret that lies across the bound is hidden before the cut.
	long := strings.Repeat("x", channel.MaxEvidence-5) + testKey
	if got := string(r.evidence([]byte(long))); len(got) != channel.MaxEvidence || strings.Contains(got, testKey[:5]) {
		t.Errorf("%d bytes, ending %q", len(got), got[len(got)-10:])
	}
	if r.evidence(nil) != nil {
		t.Error("evidence of nothing")
	}
}
