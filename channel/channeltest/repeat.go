package channeltest

import (
	"bytes"
	"testing"
)

// repeat: a re-send carries the same number, the same bytes and the same key;
// the next key number makes another key and changes nothing else (R05, R06,
// I01, I02).
func (r *runner) repeat(t *testing.T) {
	keys := map[string]Step{}
	for _, s := range r.steps() {
		t.Run(string(s), func(t *testing.T) {
			b := r.bench(t)
			b.wire.Answer(b.good(s))
			var reqs []Request
			for _, keyNo := range []int{1, 1, 2, 2, 3} {
				b.call(s, keyNo)
				reqs = append(reqs, b.arrived(1)...)
			}
			if t.Failed() {
				return
			}
			write := s == Prepare || s == Begin
			for i, q := range reqs {
				if q.Method != reqs[0].Method || q.URI != reqs[0].URI {
					t.Errorf("send %d went to %s %s, the first to %s %s", i+1, q.Method, q.URI, reqs[0].Method, reqs[0].URI)
				}
				if write && !bytes.Equal(r.sent(q), r.sent(reqs[0])) {
					t.Errorf("send %d has other bytes", i+1)
				}
			}
			if write {
				r.bytes(t, s, b.payment.Request, reqs[0])
			}
			if r.m.Key == nil || s == Query {
				return
			}
			got := make([]string, len(reqs))
			for i, q := range reqs {
				got[i] = r.m.Key(q)
			}
			if got[0] == "" || got[0] != got[1] || got[2] != got[3] {
				t.Errorf("one key number, several keys: %q", got)
			}
			if got[0] == got[2] || got[2] == got[4] || got[0] == got[4] {
				t.Errorf("another key number, the same key: %q", got)
			}
			for _, k := range got {
				if other, ok := keys[k]; ok && other != s {
					t.Errorf("I01: key %q is used by %s and %s", k, other, s)
				}
				keys[k] = s
			}
		})
	}
}

func (r *runner) bytes(t *testing.T, s Step, stored []byte, q Request) {
	want := stored
	if r.m.Bytes != nil {
		want = r.m.Bytes(s, stored)
	}
	if got := r.sent(q); !bytes.Equal(got, want) {
		t.Errorf("%s sent\n%s\nstored is\n%s", s, got, want)
	}
}

// sent is what of a request must be the stored bytes.
func (r *runner) sent(q Request) []byte {
	if r.m.Sent != nil {
		return r.m.Sent(q)
	}
	return q.Body
}
