package wechatpay

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/notify"
)

// believed is the oracle: the official SDK's own notice handler, which panics on
// some contents. It knows nothing of whose notice it is.
func believed(h http.Header, body []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	v := verifiers.NewSHA256WithRSAPubkeyVerifier(testKeyID, keysOnce().wechat.PublicKey)
	handler := must(notify.NewRSANotifyHandler(testAPIKey, v))
	r := &http.Request{Method: "POST", Header: h.Clone(), Body: io.NopCloser(bytes.NewReader(body))}
	var content map[string]any
	_, err := handler.ParseNotifyRequest(context.Background(), r, &content)
	return err == nil
}

type message struct {
	header http.Header
	body   []byte
}

// genuineMessages are different genuine notices of one moment.
func genuineMessages(at time.Time) []message {
	k := keysOnce()
	other := paid()
	other.Number, other.Amount = "ZZZZZZZZZZZZZZZZZZZZ", 500
	first := envelope("TRANSACTION.SUCCESS", "transaction", order(paid()))
	second := bytes.Replace(envelope("TRANSACTION.SUCCESS", "transaction", order(other)), []byte("EV-2018"), []byte("EV-2019"), 1)
	refund := envelope("REFUND.SUCCESS", "refund", map[string]any{"mchid": testMch, "out_trade_no": testNumber, "refund_status": "SUCCESS"})
	return []message{
		{signed(k.wechat, testKeyID, at, "nonce-a", first), first},
		{signed(k.wechat, testKeyID, at, "nonce-b", second), second},
		{signed(k.wechat, testKeyID, at.Add(-time.Second), "nonce-c", refund), refund},
	}
}

// mutation changes a genuine notice so that it must be refused. lax marks those
// that the SDK takes: it is less strict about spelling and knows no account.
type mutation struct {
	lax bool
	do  func(r *rand.Rand, m message, all []message) message
}

func header(m message, name string, change func(string) string) message {
	m.header = m.header.Clone()
	m.header.Set(name, change(m.header.Get(name)))
	return m
}

// anew signs a changed body as WeChat Pay would.
func anew(m message, body []byte) message {
	at := time.Unix(must64(m.header), 0)
	return message{signed(keysOnce().wechat, testKeyID, at, "nonce-x", body), body}
}

// rewritten changes the JSON of the envelope.
func rewritten(m message, change func(env, resource map[string]any)) []byte {
	var env map[string]any
	if err := json.Unmarshal(m.body, &env); err != nil {
		panic(err) // made by the tests
	}
	resource := env["resource"].(map[string]any)
	change(env, resource)
	return mustJSON(env)
}

var headerNames = []string{"Wechatpay-Timestamp", "Wechatpay-Nonce", "Wechatpay-Serial", "Wechatpay-Signature"}

var mutations = map[string]mutation{
	"byte": {do: func(r *rand.Rand, m message, _ []message) message {
		m.body = bytes.Clone(m.body)
		m.body[r.IntN(len(m.body))] ^= byte(1 + r.IntN(255))
		return m
	}},
	"byte_removed": {do: func(r *rand.Rand, m message, _ []message) message {
		i := r.IntN(len(m.body))
		m.body = append(bytes.Clone(m.body[:i]), m.body[i+1:]...)
		return m
	}},
	"byte_added": {do: func(r *rand.Rand, m message, _ []message) message {
		m.body = slices.Insert(bytes.Clone(m.body), r.IntN(len(m.body)+1), byte(r.IntN(256)))
		return m
	}},
	"cut": {do: func(r *rand.Rand, m message, _ []message) message {
		m.body = m.body[:r.IntN(len(m.body))]
		return m
	}},
	"printed_again": {do: func(r *rand.Rand, m message, _ []message) message {
		var b bytes.Buffer
		if err := json.Indent(&b, m.body, "", strings.Repeat(" ", 1+r.IntN(8))); err != nil {
			panic(err) // made by the tests
		}
		m.body = b.Bytes()
		return m
	}},
	"value_in_the_envelope": {do: func(r *rand.Rand, m message, _ []message) message {
		m.body = rewritten(m, func(env, res map[string]any) {
			target := []map[string]any{env, res}[r.IntN(2)]
			names := slices.Sorted(maps.Keys(target))
			target[names[r.IntN(len(names))]] = []any{"", "x", "REFUND.CLOSED", "transactions", 1, nil}[r.IntN(6)]
		})
		return m
	}},
	"other_content": {do: func(r *rand.Rand, m message, all []message) message {
		o := all[r.IntN(len(all))]
		for bytes.Equal(o.body, m.body) {
			o = all[r.IntN(len(all))]
		}
		m.body = o.body
		return m
	}},
	"other_header": {do: func(r *rand.Rand, m message, all []message) message {
		for {
			o, name := all[r.IntN(len(all))], headerNames[r.IntN(4)]
			if o.header.Get(name) != m.header.Get(name) {
				return header(m, name, func(string) string { return o.header.Get(name) })
			}
		}
	}},
	"header_character": {do: func(r *rand.Rand, m message, _ []message) message {
		name := headerNames[r.IntN(4)]
		return header(m, name, func(s string) string {
			// The last three of a signature may decode to the same bytes: base64_twin.
			i := r.IntN(max(1, len(s)-3))
			c := "0123456789ABCDEF"[r.IntN(16)]
			for c == s[i] {
				c = "0123456789ABCDEF"[r.IntN(16)]
			}
			return s[:i] + string(c) + s[i+1:]
		})
	}},
	"header_gone": {do: func(r *rand.Rand, m message, _ []message) message {
		m.header = m.header.Clone()
		m.header.Del(headerNames[r.IntN(4)])
		return m
	}},
	"header_twice": {lax: true, do: func(r *rand.Rand, m message, _ []message) message {
		m.header = m.header.Clone()
		name := headerNames[r.IntN(4)]
		good := m.header.Get(name)
		m.header[name] = [][]string{{good, good}, {good, "x"}, {"x", good}}[r.IntN(3)]
		return m
	}},
	"header_spelling": {lax: true, do: func(r *rand.Rand, m message, _ []message) message {
		if r.IntN(2) == 0 {
			return header(m, "Wechatpay-Timestamp", func(s string) string { return []string{"+", "0", " ", "00"}[r.IntN(4)] + s })
		}
		return header(m, "Wechatpay-Signature", func(s string) string {
			i := 1 + r.IntN(len(s)-2)
			return s[:i] + []string{"\n", "\r\n"}[r.IntN(2)] + s[i:]
		})
	}},
	"base64_twin": {lax: true, do: func(r *rand.Rand, m message, _ []message) message {
		return header(m, "Wechatpay-Signature", func(s string) string {
			const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
			b := []byte(strings.TrimRight(s, "="))
			b[len(b)-1] = alphabet[strings.IndexByte(alphabet, b[len(b)-1])^(1+r.IntN(3))]
			return string(b) + s[len(b):]
		})
	}},
	"signed_by_another": {do: func(r *rand.Rand, m message, _ []message) message {
		k := keysOnce()
		m.header = m.header.Clone()
		key := []*rsa.PrivateKey{k.merchant, k.stranger, k.platform}[r.IntN(3)]
		m.header.Set("Wechatpay-Signature", signText(key, signedTextOf(m)))
		return m
	}},
	"signtest": {do: func(r *rand.Rand, m message, _ []message) message {
		return header(m, "Wechatpay-Signature", func(s string) string { return "WECHATPAY/SIGNTEST/" + s[r.IntN(19):] })
	}},
	"other_serial": {do: func(r *rand.Rand, m message, _ []message) message {
		return header(m, "Wechatpay-Serial", func(string) string {
			return []string{testSerial, testKeyID + "1", strings.ToLower(testKeyID), testKeyID[:len(testKeyID)-1], fmt.Sprint(r.Uint64())}[r.IntN(5)]
		})
	}},
	"too_old": {do: func(r *rand.Rand, m message, _ []message) message {
		d := []time.Duration{-310, 400, -3600, 3600, -86400}[r.IntN(5)] * time.Second
		return message{signed(keysOnce().wechat, testKeyID, time.Unix(must64(m.header), 0).Add(d), "n", m.body), m.body}
	}},
	"other_key_of_the_content": {do: func(r *rand.Rand, m message, _ []message) message {
		key := strings.Repeat(string(rune('a'+r.IntN(4))), 32)
		return anew(m, rewritten(m, func(_, res map[string]any) {
			res["ciphertext"] = seal(key, "abcdefghijkl", "transaction", mustJSON(order(paid())))
		}))
	}},
	"broken_resource": {do: func(r *rand.Rand, m message, _ []message) message {
		return anew(m, rewritten(m, func(env, res map[string]any) {
			switch r.IntN(4) {
			case 0:
				delete(env, "resource") // the SDK panics
			case 1:
				res["nonce"] = strings.Repeat("a", r.IntN(12)) // and here
			case 2:
				res["associated_data"] = []any{"", "refund", nil}[r.IntN(3)]
			default:
				res["algorithm"] = []any{"", "AEAD_SM4_GCM", 1}[r.IntN(3)]
			}
		}))
	}},
	"foreign": {lax: true, do: func(r *rand.Rand, m message, _ []message) message {
		content := with(order(paid()), []string{"mchid", "appid", "out_trade_no"}[r.IntN(3)], []any{nil, "", "1900000002 "}[r.IntN(3)])
		return anew(m, envelope("TRANSACTION.SUCCESS", "transaction", content))
	}},
}

func signedTextOf(m message) string {
	return m.header.Get("Wechatpay-Timestamp") + "\n" + m.header.Get("Wechatpay-Nonce") + "\n" + string(m.body) + "\n"
}

// TestX02_NoMutationIsBelieved: of more than ten thousand changed notices none is
// accepted; the official SDK agrees, but for what it is known to be lax about.
func TestX02_NoMutationIsBelieved(t *testing.T) {
	const each = 550
	a := newAdapter(t, "", nil)
	all := genuineMessages(time.Now())
	for _, m := range all {
		if _, err := a.ReadNotice(m.header, m.body); err != nil || !believed(m.header, m.body) {
			t.Fatalf("a genuine notice was refused: %v", err)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	total, laxly := 0, 0
	for _, name := range slices.Sorted(maps.Keys(mutations)) {
		for range each {
			m := mutations[name].do(r, all[r.IntN(len(all))], all)
			total++
			if n, err := a.ReadNotice(m.header, m.body); err == nil {
				t.Fatalf("%s: accepted %+v\n%v\n%s", name, n, m.header, m.body)
			}
			switch sdk := believed(m.header, m.body); {
			case sdk && !mutations[name].lax:
				t.Fatalf("%s: the SDK takes it: is it a mutation?\n%v\n%s", name, m.header, m.body)
			case sdk:
				laxly++
			}
		}
	}
	if total < 10_000 || laxly < each {
		t.Errorf("%d mutations, %d of them taken by the SDK", total, laxly)
	}
	for _, m := range all {
		if _, err := a.ReadNotice(m.header, m.body); err != nil {
			t.Errorf("a genuine notice is refused afterwards: %v", err)
		}
	}
}

// FuzzNotice: what is accepted is exactly a genuine notice, and the SDK takes it.
func FuzzNotice(f *testing.F) {
	at := time.Now()
	a := newAdapter(f, "", func(c *Config) { c.Now = func() time.Time { return at } })
	all := genuineMessages(at)
	for _, m := range all {
		f.Add(m.header.Get("Wechatpay-Timestamp"), m.header.Get("Wechatpay-Nonce"), m.header.Get("Wechatpay-Serial"), m.header.Get("Wechatpay-Signature"), m.body)
	}
	f.Add("", "", "", "", []byte(nil))
	f.Add("0", "n", testKeyID, "AAAA", []byte(`{"resource":{}}`))
	f.Fuzz(func(t *testing.T, stamp, nonce, serial, sig string, body []byte) {
		h := http.Header{}
		for i, v := range []string{stamp, nonce, serial, sig} {
			h.Set(headerNames[i], v)
		}
		if n, err := a.ReadNotice(h, body); err == nil && !slices.ContainsFunc(all, func(m message) bool {
			return bytes.Equal(m.body, body) && m.header.Get("Wechatpay-Signature") == sig && m.header.Get("Wechatpay-Nonce") == nonce
		}) {
			t.Fatalf("accepted %+v\n%v\n%s", n, h, body)
		}
	})
}

// FuzzObject: what is read as an object is one for the standard decoder too, and
// no member is lost.
func FuzzObject(f *testing.F) {
	for _, s := range []string{"", "{}", "[]", "null", `{"a":1,"a":2}`, `{"a":{"b":[1,"}"]},"c":"\u0000"}`, `{"a":1}x`, `{"a"`, `{"a":1,}`, " {\"a\" : true } \n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := object(b)
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || len(want) != len(m) {
			t.Fatalf("%q is read as %v", b, m)
		}
		for k, v := range want {
			if !reflect.DeepEqual([]byte(v), []byte(m[k])) {
				t.Fatalf("%q: member %q is %q, want %q", b, k, m[k], v)
			}
		}
		_, _ = m.list("a")
		_, _ = m.fen("a")
		_, _ = m.object("a")
		_ = m.text("a")
	})
}
