package idempotency

import (
	"net/http"
	"testing"
	"time"
)

func TestR33_Prefer(t *testing.T) {
	const s = time.Second
	cases := []struct {
		lines []string
		want  Preference
	}{
		{nil, Preference{}},
		{[]string{""}, Preference{}},
		{[]string{"wait=10"}, Preference{Wait: 10 * s}},
		{[]string{"Wait=10"}, Preference{Wait: 10 * s}},
		{[]string{"wait = 10"}, Preference{Wait: 10 * s}},
		{[]string{`wait="10"`}, Preference{Wait: 10 * s}},
		{[]string{`wait="1\0"`}, Preference{Wait: 10 * s}},
		{[]string{"wait=010"}, Preference{Wait: 10 * s}},
		{[]string{"wait=30"}, Preference{Wait: 30 * s}},
		{[]string{"wait=31"}, Preference{Wait: 30 * s}},
		{[]string{"wait=99999999999999999999999"}, Preference{Wait: 30 * s}},
		{[]string{"wait=9223372036854775807"}, Preference{Wait: 30 * s}},
		{[]string{"wait=0"}, Preference{}},
		{[]string{"wait=-1"}, Preference{}},
		{[]string{"wait=1.5"}, Preference{}},
		{[]string{"wait=1e9"}, Preference{}},
		{[]string{"wait=10s"}, Preference{}},
		{[]string{"wait=１０"}, Preference{}},
		{[]string{"wait"}, Preference{}},
		{[]string{"wait="}, Preference{}},
		{[]string{`wait=""`}, Preference{}},
		{[]string{`wait="10`}, Preference{}},
		{[]string{`wait="10\`}, Preference{}},
		{[]string{`wait="10"x`}, Preference{}},
		{[]string{"wait=10 20"}, Preference{}},
		{[]string{"=10"}, Preference{}},
		{[]string{"respond-async"}, Preference{RespondAsync: true}},
		{[]string{"Respond-Async"}, Preference{RespondAsync: true}},
		{[]string{`respond-async=""`}, Preference{RespondAsync: true}},
		{[]string{"respond-async=no"}, Preference{}},
		{[]string{"respond-asynchronous"}, Preference{}},
		{[]string{"respond-async, wait=5"}, Preference{Wait: 5 * s, RespondAsync: true}},
		{[]string{"respond-async", "wait=5"}, Preference{Wait: 5 * s, RespondAsync: true}},
		{[]string{"respond-async;x=1;y=\",\" , wait=5;a"}, Preference{Wait: 5 * s, RespondAsync: true}},
		{[]string{", ,respond-async,,wait=5,"}, Preference{Wait: 5 * s, RespondAsync: true}},
		// What is unknown or malformed is ignored, not its neighbours.
		{[]string{`return=minimal, foo="a,wait=9", handling=lenient, wait=5`}, Preference{Wait: 5 * s}},
		{[]string{`foo="a\",wait=9", wait=5`}, Preference{Wait: 5 * s}},
		{[]string{`b@d, wait=5`}, Preference{Wait: 5 * s}},
		{[]string{`foo="open, wait=5`, "respond-async"}, Preference{RespondAsync: true}},
		// The first of one name counts.
		{[]string{"wait=5, wait=9"}, Preference{Wait: 5 * s}},
		{[]string{"wait=5", "wait=9"}, Preference{Wait: 5 * s}},
		{[]string{"wait=x, wait=9"}, Preference{}},
	}
	for _, c := range cases {
		if got := ParsePrefer(http.Header{"Prefer": c.lines}, MaxWait); got != c.want {
			t.Errorf("Prefer %q: %+v, want %+v", c.lines, got, c.want)
		}
	}
	for _, maxWait := range []time.Duration{0, -s} {
		if got := ParsePrefer(http.Header{"Prefer": {"wait=5"}}, maxWait); got.Wait != 0 {
			t.Errorf("a route that allows no wait: %v", got.Wait)
		}
	}
	if got := ParsePrefer(http.Header{"Prefer": {"wait=5"}}, 1500*time.Millisecond); got.Wait != 1500*time.Millisecond {
		t.Errorf("a limit of 1.5 s: %v", got.Wait)
	}
}

func TestR33_PreferenceApplied(t *testing.T) {
	h := make(http.Header)
	MarkApplied(h)
	if len(h) != 0 {
		t.Errorf("nothing was applied: %v", h)
	}
	MarkApplied(h, PreferWait)
	MarkApplied(h, PreferWait, PreferRespondAsync)
	if got := h.Values("Preference-Applied"); len(got) != 1 || got[0] != "wait, respond-async" {
		t.Errorf("Preference-Applied: %q", got)
	}
}
