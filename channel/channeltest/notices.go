package channeltest

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// Notices declares the channel's messages.
type Notices struct {
	Kinds []payonce.FactKind
	// Make signs a genuine notice as the channel does.
	Make func(t testing.TB, s Statement, at time.Time) (http.Header, []byte)
	// Signed are the headers without which the notice proves nothing.
	Signed []string
	// Tolerance of the signature's time stamp; zero: it has none.
	Tolerance time.Duration
	// Alter returns changed copies of a genuine body; nil: bytes are flipped.
	Alter func(body []byte) [][]byte
	// Forged makes further notices that must be refused.
	Forged func(t testing.TB, s Statement, at time.Time) []Forgery
}

// Forgery is a notice that must be refused.
type Forgery struct {
	Name   string
	Header http.Header
	Body   []byte
}

func notices(t *testing.T, s Suite) {
	n, in := s.Notices, s.Methods[0].Intent
	now := time.Now().Truncate(time.Second)
	a := s.New(t, Env{BaseURL: "http://127.0.0.1:1", Now: func() time.Time { return now }})
	say := func(k payonce.FactKind) Statement {
		return Statement{Kind: k, Number: in.Number, Object: s.Methods[0].Object, Amount: in.Amount, Currency: in.Currency}
	}
	for _, k := range n.Kinds {
		t.Run("genuine/"+k.String(), func(t *testing.T) {
			h, body := n.Make(t, say(k), now)
			genuine(t, a, say(k), h, body)
		})
	}
	first := say(n.Kinds[0])
	t.Run("foreign", func(t *testing.T) {
		st := first
		st.Foreign = true
		h, body := n.Make(t, st, now)
		if got, err := a.ReadNotice(h, body); err == nil && got.Fact.Account == a.Account() {
			t.Errorf("another account's notice was read as ours: %+v", got)
		}
	})
	refuse := func(name string, h http.Header, body []byte) {
		t.Helper()
		t.Run("refused/"+name, func(t *testing.T) {
			got, err := a.ReadNotice(h, body)
			if err == nil {
				t.Fatalf("accepted: %+v", got)
			}
			for _, secret := range s.Secrets {
				if strings.Contains(err.Error(), secret) {
					t.Error("the error shows a secret")
				}
			}
		})
	}
	h, body := n.Make(t, first, now)
	for _, f := range headerForgeries(n, h, body) {
		refuse(f.Name, f.Header, f.Body)
	}
	for _, f := range bodyForgeries(n, h, body) {
		refuse(f.Name, f.Header, f.Body)
	}
	if n.Forged != nil {
		for _, f := range n.Forged(t, first, now) {
			refuse(f.Name, f.Header, f.Body)
		}
	}
	if n.Tolerance > 0 {
		age(t, n, a, first, now)
	}
}

// age: time stamps count in both directions (Z06).
func age(t *testing.T, n *Notices, a channel.Adapter, s Statement, now time.Time) {
	for _, c := range []struct {
		name string
		at   time.Duration
		ok   bool
	}{
		{"old_within", -n.Tolerance, true}, {"old_beyond", -n.Tolerance - time.Second, false},
		{"future_within", n.Tolerance, true}, {"future_beyond", n.Tolerance + time.Second, false},
		{"far_future", 100 * 365 * 24 * time.Hour, false},
	} {
		t.Run("Z06_"+c.name, func(t *testing.T) {
			h, body := n.Make(t, s, now.Add(c.at))
			if _, err := a.ReadNotice(h, body); (err == nil) != c.ok {
				t.Errorf("error is %v, accepted should be %t", err, c.ok)
			}
		})
	}
}

func genuine(t *testing.T, a channel.Adapter, s Statement, h http.Header, body []byte) {
	got, err := a.ReadNotice(h, body)
	if err != nil {
		t.Fatalf("a genuine notice was refused: %v", err)
	}
	if got.EventID == "" || got.Type == "" {
		t.Errorf("notice without id or type: %+v", got)
	}
	f := got.Fact
	if f.Kind != s.Kind || f.Source != "notice" || f.Account != a.Account() || f.Fence != 0 {
		t.Errorf("fact %s from %q of %q, want %s from notice of %q", f.Kind, f.Source, f.Account, s.Kind, a.Account())
	}
	if got.Number != f.Number || (got.Number != s.Number && (got.Number != "" || f.Object != s.Object)) {
		t.Errorf("notice names number %q, object %q", got.Number, f.Object)
	}
	if s.Kind == payonce.StateSettled && (f.Amount != s.Amount || f.Currency != s.Currency || f.PaymentRef == "") {
		t.Errorf("settled %d %s ref %q", f.Amount, f.Currency, f.PaymentRef)
	}
	again, err := a.ReadNotice(h, body)
	if err != nil || again.EventID != got.EventID {
		t.Errorf("the same bytes read twice differ: %v", err)
	}
}

// headerForgeries: each proof missing, empty, doubled, altered (X02).
func headerForgeries(n *Notices, h http.Header, body []byte) []Forgery {
	var out []Forgery
	add := func(name string, change func(http.Header)) {
		c := h.Clone()
		change(c)
		out = append(out, Forgery{Name: name, Header: c, Body: body})
	}
	for _, name := range n.Signed {
		key := http.CanonicalHeaderKey(name)
		good := h.Get(name)
		add("X02_no_"+name, func(c http.Header) { c.Del(name) })
		add("X02_empty_"+name, func(c http.Header) { c.Set(name, "") })
		add("X02_doubled_"+name, func(c http.Header) { c[key] = []string{good, good} })
		add("X02_doubled_other_first_"+name, func(c http.Header) { c[key] = []string{"x", good} })
		add("X02_doubled_other_last_"+name, func(c http.Header) { c[key] = []string{good, "x"} })
		// The last characters may be padding that decodes to the same bytes.
		for i := 0; i < len(good)-2; i += 1 + len(good)/24 {
			add("X02_altered_"+name, func(c http.Header) { c.Set(name, good[:i]+string(flip(good[i]))+good[i+1:]) })
		}
	}
	return out
}

func flip(c byte) byte {
	switch {
	case c == '0':
		return '1'
	case c >= '1' && c <= '9':
		return '0'
	case c == 'a' || c == 'A':
		return c + 1
	case c >= 'b' && c <= 'z':
		return 'a'
	case c >= 'B' && c <= 'Z':
		return 'A'
	}
	return 'x'
}

// bodyForgeries: any other body under a genuine signature.
func bodyForgeries(n *Notices, h http.Header, body []byte) []Forgery {
	altered := [][]byte{nil, body[:len(body)-1], append(bytes.Clone(body), '\n'), append([]byte{' '}, body...)}
	if n.Alter != nil {
		altered = append(altered[:1:1], n.Alter(body)...)
	} else {
		for i := 0; i < len(body); i += 1 + len(body)/32 {
			c := bytes.Clone(body)
			c[i] ^= 1
			altered = append(altered, c)
		}
	}
	out := make([]Forgery, len(altered))
	for i, b := range altered {
		out[i] = Forgery{Name: "altered_body", Header: h, Body: b}
	}
	return out
}
