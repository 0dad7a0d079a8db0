package stripe

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what a forger might try
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v84/webhook"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

const (
	sigHeader  = "Stripe-Signature"
	secondHook = "whsec_canarySecondSecret"
)

// sent is one delivery: a genuine one, and what a mutation makes of it.
type sent struct {
	header http.Header
	body   []byte
	at     time.Time // when it was signed
	secret string
	others [][]byte // the bodies of the other genuine events
}

func (s *sent) sign(header string) { s.header.Set(sigHeader, header) }

// parts are those of the signature header.
func (s *sent) parts() []string { return strings.Split(s.header.Get(sigHeader), ",") }

func (s *sent) join(parts ...string) { s.sign(strings.Join(parts, ",")) }

// believed is the oracle: the official verifier with the values that a server
// which reads the header once would see, under either of the secrets.
func (s *sent) believed() bool {
	header := s.header.Get(sigHeader)
	return webhook.ValidatePayload(s.body, header, testHook) == nil || webhook.ValidatePayload(s.body, header, secondHook) == nil
}

// edit changes one byte: flipped, inserted, deleted, or everything after it cut.
func edit(r *rand.Rand, kind string, b []byte) []byte {
	i := r.IntN(len(b))
	switch b = bytes.Clone(b); kind {
	case "flipped":
		b[i] ^= byte(1 << r.IntN(8))
	case "inserted":
		b = slices.Insert(b, i, byte(r.IntN(256)))
	case "deleted":
		b = slices.Delete(b, i, i+1)
	case "truncated":
		b = b[:i]
	}
	return b
}

// replaced puts new text for the old one into the body, or fails: a mutation
// that changes nothing would prove nothing.
func (s *sent) replaced(old, text string) {
	if !bytes.Contains(s.body, []byte(old)) {
		panic("the event has no " + old)
	}
	s.body = bytes.Replace(s.body, []byte(old), []byte(text), 1)
}

// bodyMutations leave the header as it was.
var bodyMutations = map[string]func(*rand.Rand, *sent){
	"body_flipped":   func(r *rand.Rand, s *sent) { s.body = edit(r, "flipped", s.body) },
	"body_inserted":  func(r *rand.Rand, s *sent) { s.body = edit(r, "inserted", s.body) },
	"body_deleted":   func(r *rand.Rand, s *sent) { s.body = edit(r, "deleted", s.body) },
	"body_truncated": func(r *rand.Rand, s *sent) { s.body = edit(r, "truncated", s.body) },
	"body_swapped":   func(r *rand.Rand, s *sent) { s.body = s.others[r.IntN(len(s.others))] },
	"body_padded": func(r *rand.Rand, s *sent) {
		pad := []byte([]string{" ", "\n", "\r\n", "\t", "\x00", "{}", "."}[r.IntN(7)])
		s.body = [][]byte{append(bytes.Clone(s.body), pad...), append(bytes.Clone(pad), s.body...)}[r.IntN(2)]
	},
	"body_indented": func(r *rand.Rand, s *sent) {
		var b bytes.Buffer
		if err := json.Indent(&b, s.body, "", strings.Repeat(" ", r.IntN(5))); err != nil {
			panic(err) // made by event
		}
		s.body = b.Bytes()
	},
	"body_amount": func(r *rand.Rand, s *sent) { s.replaced(":1999", ":"+strconv.Itoa(r.IntN(1999))) },
	"body_number": func(r *rand.Rand, s *sent) {
		s.replaced(testNumber, fmt.Sprintf("%020d", r.IntN(1_000_000)))
	},
	"body_mode": func(_ *rand.Rand, s *sent) {
		s.replaced(`"livemode":false,"object":"event"`, `"livemode":true,"object":"event"`)
	},
	"body_double_member": func(r *rand.Rand, s *sent) {
		s.replaced(`"object":"event"`, fmt.Sprintf(`"id":"evt_%d","object":"event"`, r.IntN(1000)))
	},
	"body_moved_dot": func(r *rand.Rand, s *sent) { // the border between stamp and body
		stamp, v1 := s.parts()[0], s.parts()[1]
		n := 1 + r.IntN(len(stamp)-3)
		s.body = append([]byte(stamp[len(stamp)-n:]+"."), s.body...)
		s.join(stamp[:len(stamp)-n], v1)
	},
}

// headMutations leave the body as it was.
var headMutations = map[string]func(*rand.Rand, *sent){
	"head_flipped":   func(r *rand.Rand, s *sent) { s.sign(string(edit(r, "flipped", []byte(s.header.Get(sigHeader))))) },
	"head_inserted":  func(r *rand.Rand, s *sent) { s.sign(string(edit(r, "inserted", []byte(s.header.Get(sigHeader))))) },
	"head_deleted":   func(r *rand.Rand, s *sent) { s.sign(string(edit(r, "deleted", []byte(s.header.Get(sigHeader))))) },
	"head_truncated": func(r *rand.Rand, s *sent) { s.sign(string(edit(r, "truncated", []byte(s.header.Get(sigHeader))))) },
	"parts_doubled": func(r *rand.Rand, s *sent) {
		p := s.parts()
		s.join(slices.Insert(p, r.IntN(3), p[r.IntN(2)])...)
	},
	"parts_reordered": func(_ *rand.Rand, s *sent) { p := s.parts(); s.join(p[1], p[0]) },
	"parts_dropped":   func(r *rand.Rand, s *sent) { s.join(s.parts()[r.IntN(2)]) },
	"parts_renamed": func(r *rand.Rand, s *sent) {
		p, i := s.parts(), r.IntN(2)
		_, value, _ := strings.Cut(p[i], "=")
		p[i] = []string{"v0", "v2", "V1", "T", "ts", "v01", "", "v1 ", "v"}[r.IntN(9)] + "=" + value
		s.join(p...)
	},
	"v0_for_v1": func(_ *rand.Rand, s *sent) { s.sign(strings.Replace(s.header.Get(sigHeader), "v1=", "v0=", 1)) },
	"upper_hex": func(_ *rand.Rand, s *sent) { p := s.parts(); s.join(p[0], "v1="+strings.ToUpper(p[1][3:])) },
	"spaces": func(r *rand.Rand, s *sent) {
		head := s.header.Get(sigHeader)
		at := []int{0, strings.Index(head, "="), strings.Index(head, ","), strings.Index(head, ",") + 1, strings.Index(head, "v1=") + 3, len(head)}[r.IntN(6)]
		s.sign(head[:at] + []string{" ", "\t", "  ", "\u00a0"}[r.IntN(4)] + head[at:])
	},
	"several_v1": func(r *rand.Rand, s *sent) { // as during a roll; genuine as long as one is right
		p := s.parts()
		for range 1 + r.IntN(40) {
			p = slices.Insert(p, r.IntN(len(p)+1), fmt.Sprintf("v1=%064x", r.Uint64()))
		}
		s.join(p...)
	},
	"several_wrong_v1": func(r *rand.Rand, s *sent) {
		p := s.parts()[:1]
		for range 1 + r.IntN(40) {
			p = append(p, fmt.Sprintf("v1=%064x", r.Uint64()))
		}
		s.join(p...)
	},
	"unknown_parts": func(r *rand.Rand, s *sent) { // genuine: other schemes are ignored
		p := s.parts()
		s.join(slices.Insert(p, r.IntN(3), fmt.Sprintf("v%d=%x", []int{0, 2, 9}[r.IntN(3)], r.Uint64()))...)
	},
	"several_t": func(r *rand.Rand, s *sent) {
		p := s.parts()
		s.join(slices.Insert(p, r.IntN(3), "t="+strconv.FormatInt(s.at.Unix()+int64(r.IntN(600)-300), 10))...)
	},
	"rewritten_t": func(r *rand.Rand, s *sent) { // the same moment in other letters, or another one
		p, t := s.parts(), strconv.FormatInt(s.at.Unix(), 10)
		p[0] = "t=" + []string{"0" + t, "+" + t, "-" + t, t + ".0", t + "e0", "0x" + strconv.FormatInt(s.at.Unix(), 16), t + "000",
			strconv.FormatInt(s.at.Unix()+1+int64(r.IntN(200)), 10)}[r.IntN(8)]
		s.join(p...)
	},
	"header_twice": func(r *rand.Rand, s *sent) {
		other := []string{s.header.Get(sigHeader), sign("whsec_other", s.at, s.body), "", "t=1,v1=00"}[r.IntN(4)]
		s.header[sigHeader] = [][]string{{s.header.Get(sigHeader), other}, {other, s.header.Get(sigHeader)}}[r.IntN(2)]
	},
	"header_merged": func(r *rand.Rand, s *sent) { // what a proxy makes of two of them
		other := sign([]string{s.secret, "whsec_other"}[r.IntN(2)], s.at.Add(-time.Duration(r.IntN(400))*time.Second), s.body)
		s.sign([]string{s.header.Get(sigHeader) + "," + other, other + "," + s.header.Get(sigHeader), s.header.Get(sigHeader) + ", " + other}[r.IntN(3)])
	},
	"header_moved": func(r *rand.Rand, s *sent) {
		value := s.header.Get(sigHeader)
		s.header.Del(sigHeader)
		name := []string{"X-Stripe-Signature", "Stripe_signature", "Authorization", "Signature", "Stripe-Signature ", "stripe-signature", ""}[r.IntN(7)]
		s.header[name] = []string{value}
	},
}

// signMutations are signed anew, as a forger or another account would.
var signMutations = map[string]func(*rand.Rand, *sent){
	"other_secret": func(r *rand.Rand, s *sent) {
		bare := strings.TrimPrefix(s.secret, "whsec_")
		s.sign(sign([]string{"", "whsec_", "whsec_other", bare, s.secret + " ", strings.ToUpper(s.secret), testKey, testHook + secondHook}[r.IntN(8)], s.at, s.body))
	},
	"other_time": func(r *rand.Rand, s *sent) { // with the right secret, too old or from the future
		age := time.Duration(310+r.IntN(1_000_000)) * time.Second
		s.sign(sign(s.secret, s.at.Add([]time.Duration{age, -age}[r.IntN(2)]), s.body))
	},
	"other_text": func(r *rand.Rand, s *sent) { // the right secret over less, or otherwise
		t := strconv.FormatInt(s.at.Unix(), 10)
		text := []string{string(s.body), t + string(s.body), "." + string(s.body), t + ".", t + ":" + string(s.body), string(s.body) + "." + t, ""}[r.IntN(7)]
		s.join("t="+t, "v1="+macOf(sha256.New, s.secret, text))
	},
	"other_hash": func(r *rand.Rand, s *sent) {
		t := strconv.FormatInt(s.at.Unix(), 10)
		text := t + "." + string(s.body)
		plain := sha256.Sum256([]byte(s.secret + text))
		v1 := []string{macOf(sha1.New, s.secret, text), macOf(sha512.New, s.secret, text), macOf(sha512.New512_256, s.secret, text),
			hex.EncodeToString(plain[:]), macOf(sha256.New, s.secret, text)[:2*(1+r.IntN(31))], macOf(sha256.New, s.secret, text) + "00"}[r.IntN(6)]
		s.join("t="+t, "v1="+v1)
	},
	"foreign_mode": func(_ *rand.Rand, s *sent) { // genuine, of the live side with one secret for both
		s.replaced(`"livemode":false,"object":"event"`, `"livemode":true,"object":"event"`)
		s.sign(sign(s.secret, s.at, s.body))
	},
	"foreign_event": func(r *rand.Rand, s *sent) { // whole, with amounts of its own, signed by a stranger
		s.replaced(":1999", ":"+strconv.Itoa(r.IntN(1999)))
		s.sign(sign("whsec_stranger", s.at, s.body))
	},
}

func macOf(h func() hash.Hash, secret, text string) string {
	m := hmac.New(h, []byte(secret))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

// stricter are the mutations whose result the official verifier may take and this
// package refuses: a header that can be read in two ways, a moment in the future,
// the other mode. Everywhere else a genuine delivery must be taken.
var stricter = map[string]bool{"head_flipped": true, "head_inserted": true, "parts_doubled": true, "upper_hex": true, "several_t": true,
	"rewritten_t": true, "header_twice": true, "header_merged": true, "other_time": true, "foreign_mode": true}

// always are the refusals that only this package's own, stricter rules make.
var always = map[string]error{"upper_hex": ErrSignature, "several_t": ErrHeader, "header_twice": ErrNotSigned, "other_time": ErrTimestamp,
	"foreign_mode": ErrEnvironment}

// TestX02_NoMutationIsBelieved: of many thousand changed deliveries none is
// believed that the published rule does not believe or whose bytes are not the
// ones that were signed, none says anything else than the genuine one, and none
// that is genuine is refused.
func TestX02_NoMutationIsBelieved(t *testing.T) {
	const each = 350
	now := time.Now().Truncate(time.Second) // the oracle knows only the real clock
	a := newAdapter(t, "http://127.0.0.1:1", func(c *Config) {
		c.WebhookSecrets, c.Now = []string{testHook, secondHook}, func() time.Time { return now }
	})
	bases, facts := genuineEvents(t, a, now)
	all := maps.Clone(bodyMutations)
	maps.Copy(all, headMutations)
	maps.Copy(all, signMutations)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable on purpose
	total, accepted := 0, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for range each {
			i := r.IntN(len(bases))
			s := sent{bases[i].header.Clone(), bytes.Clone(bases[i].body), bases[i].at, bases[i].secret, bases[i].others}
			all[name](r, &s)
			n, err := a.ReadNotice(s.header, s.body)
			genuine := s.believed()
			total++
			switch {
			case err == nil && !genuine:
				t.Fatalf("%s: accepted a forgery: %+v\n%q\n%s", name, n, s.header, s.body)
			case err == nil && !bytes.Equal(s.body, bases[i].body):
				t.Fatalf("%s: accepted bytes that were not signed\n%q\n%s", name, s.header, s.body)
			case err == nil && !reflect.DeepEqual(n, facts[i]):
				t.Fatalf("%s: a genuine delivery was made to say %+v\nnot %+v", name, n, facts[i])
			case err != nil && genuine && !stricter[name]:
				t.Fatalf("%s: refused a genuine delivery (%v)\n%q\n%s", name, err, s.header, s.body)
			case always[name] != nil && !errors.Is(err, always[name]):
				t.Fatalf("%s: %v, want %v\n%q", name, err, always[name], s.header)
			case err == nil:
				accepted[name]++
			}
		}
	}
	taken := 0
	for _, n := range accepted {
		taken += n
	}
	t.Logf("%d mutations, %d of them genuine still: %v", total, taken, accepted)
	whole := accepted["parts_reordered"] == each && accepted["several_v1"] == each && accepted["unknown_parts"] == each
	if total < 10_000 || !whole || taken > total/4 {
		t.Errorf("%d of %d were accepted: the mutations are too strong or too weak", taken, total)
	}
}

// genuineEvents are what the mutations start from, with what they say.
func genuineEvents(t *testing.T, a *Adapter, now time.Time) (bases []sent, facts []channel.Notice) {
	t.Helper()
	intent := func(k payonce.FactKind) map[string]any {
		return object(channeltest.Statement{Kind: k, Number: testNumber, Object: testObject, Amount: 1999, Currency: "EUR"})
	}
	var bodies [][]byte
	for i, e := range []struct {
		typ string
		obj map[string]any
	}{
		{"payment_intent.succeeded", intent(payonce.StateSettled)}, {"payment_intent.payment_failed", intent(payonce.StateDeclined)},
		{"payment_intent.requires_action", intent(payonce.StateWaiting)}, {"payment_intent.canceled", intent(payonce.StateDead)},
		{"charge.refunded", map[string]any{"id": "ch_1", "amount": 1999, "payment_intent": testObject, "metadata": map[string]any{"payonce_number": testNumber}}},
	} {
		bodies = append(bodies, event("evt_"+strconv.Itoa(i), e.typ, false, e.obj))
	}
	for i, body := range bodies {
		secret := []string{testHook, secondHook}[i%2]
		at := now.Add(time.Duration(-120*(i%3)) * time.Second)
		s := sent{http.Header{sigHeader: {sign(secret, at, body)}}, body, at, secret, slices.Delete(slices.Clone(bodies), i, i+1)}
		n, err := a.ReadNotice(s.header, s.body)
		if err != nil || !s.believed() {
			t.Fatal("a genuine delivery was refused", err)
		}
		bases, facts = append(bases, s), append(facts, n)
	}
	return bases, facts
}
