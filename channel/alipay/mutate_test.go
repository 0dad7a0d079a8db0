package alipay

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// believed is the oracle: the rule as published, made without the adapter's code.
// Form fields, each once; all but sign and sign_type, sorted, joined, under
// Alipay's key, with the empty ones or without; ours by app_id and seller_id.
func believed(body []byte) bool {
	v, err := url.ParseQuery(string(body))
	if err != nil || len(body) == 0 {
		return false
	}
	f := map[string]string{}
	for k, list := range v {
		if len(list) != 1 {
			return false
		}
		f[k] = list[0]
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(strings.ReplaceAll(f["sign"], " ", "+"))
	if err != nil || strings.ContainsAny(f["sign"], "\r\n") || f["sign_type"] != "RSA2" || f["app_id"] != testApp || f["seller_id"] != testSeller {
		return false
	}
	var empty []string
	for k, s := range f {
		if s == "" {
			empty = append(empty, k)
		}
	}
	for _, skip := range [][]string{{"sign", "sign_type"}, append(empty, "sign", "sign_type")} {
		sum := sha256.Sum256([]byte(published(f, skip...)))
		if rsa.VerifyPKCS1v15(&keysOnce().alipay.PublicKey, crypto.SHA256, sum[:], sig) == nil {
			return true
		}
	}
	return false
}

// pair is one encoded field, as mutations move and change it.
type pair struct{ name, value string }

func joined(list []pair, encode func(string) string) []byte {
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = encode(p.name) + "=" + encode(p.value)
	}
	return []byte(strings.Join(parts, "&"))
}

func pairsOf(body []byte) []pair {
	v, err := url.ParseQuery(string(body))
	if err != nil {
		panic(err) // made by signNotice
	}
	var out []pair
	for k := range v {
		out = append(out, pair{k, v.Get(k)})
	}
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	return out
}

// mutations change a genuine notice. Some may leave it genuine; the oracle says
// whether they do.
var mutations = map[string]func(r *rand.Rand, list []pair) []byte{
	"altered_value": func(r *rand.Rand, list []pair) []byte {
		p := &list[r.IntN(len(list))]
		b := []byte(p.value + " ")
		b[r.IntN(len(b))] ^= byte(1 << r.IntN(8))
		p.value = string(b)
		return joined(list, url.QueryEscape)
	},
	"altered_byte": func(r *rand.Rand, list []pair) []byte {
		b := joined(list, url.QueryEscape)
		b[r.IntN(len(b))] = byte(r.IntN(256))
		return b
	},
	"other_value": func(r *rand.Rand, list []pair) []byte {
		list[r.IntN(len(list))].value = []string{"", "0.01", "TRADE_SUCCESS", "TRADE_CLOSED", testSeller, "2021000000000002", "x&total_amount=0.01"}[r.IntN(7)]
		return joined(list, url.QueryEscape)
	},
	"swapped_values": func(r *rand.Rand, list []pair) []byte {
		i, j := r.IntN(len(list)), r.IntN(len(list))
		list[i].value, list[j].value = list[j].value, list[i].value
		return joined(list, url.QueryEscape)
	},
	"removed": func(r *rand.Rand, list []pair) []byte {
		i := r.IntN(len(list))
		return joined(slices.Delete(list, i, i+1), url.QueryEscape)
	},
	"added": func(r *rand.Rand, list []pair) []byte {
		name := []string{"refund_fee", "gmt_refund", "body", "alipay_cert_sn", "zz", "Sign", " app_id", "sign_type "}[r.IntN(8)]
		return joined(append(list, pair{name, []string{"", "1.00"}[r.IntN(2)]}), url.QueryEscape)
	},
	"doubled": func(r *rand.Rand, list []pair) []byte {
		p := list[r.IntN(len(list))]
		if r.IntN(2) == 0 {
			p.value = "x" + p.value
		}
		return joined(slices.Insert(list, r.IntN(len(list)+1), p), url.QueryEscape)
	},
	"re_encoded": func(r *rand.Rand, list []pair) []byte {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return joined(list, func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				switch c := s[i]; {
				case c == ' ' && r.IntN(2) == 0:
					b.WriteByte('+')
				case (c >= 'a' && c <= 'z' || c >= '0' && c <= '9') && r.IntN(2) == 0:
					b.WriteByte(c)
				case r.IntN(2) == 0:
					fmt.Fprintf(&b, "%%%02x", c)
				default:
					fmt.Fprintf(&b, "%%%02X", c)
				}
			}
			return b.String()
		})
	},
	"not_decoded": func(r *rand.Rand, list []pair) []byte {
		return joined(list, func(s string) string { return url.QueryEscape(url.QueryEscape(s)) })
	},
	"truncated": func(r *rand.Rand, list []pair) []byte {
		b := joined(list, url.QueryEscape)
		return b[:r.IntN(len(b))]
	},
	"moved_border": func(r *rand.Rand, list []pair) []byte {
		i := r.IntN(len(list) - 1)
		list[i].value += "&" + list[i+1].name + "=" + list[i+1].value
		return joined(slices.Delete(list, i+1, i+2), url.QueryEscape)
	},
	"forged": func(r *rand.Rand, list []pair) []byte {
		f := map[string]string{}
		for _, p := range list {
			if p.name != "sign" {
				f[p.name] = p.value
			}
		}
		f["total_amount"] = fmt.Sprintf("%d.00", r.IntN(10))
		key := []*rsa.PrivateKey{keysOnce().app, keysOnce().stranger}[r.IntN(2)]
		return signNotice(key, f)
	},
	"foreign": func(r *rand.Rand, list []pair) []byte {
		f := map[string]string{}
		for _, p := range list {
			if p.name != "sign" {
				f[p.name] = p.value
			}
		}
		f[[]string{"app_id", "seller_id"}[r.IntN(2)]] = fmt.Sprintf("2088%012d", 2+r.IntN(10))
		return signNotice(keysOnce().alipay, f)
	},
	"other_sign": func(r *rand.Rand, list []pair) []byte {
		for i := range list {
			if list[i].name == "sign" {
				list[i].value = signText(keysOnce().alipay, []byte(fmt.Sprint(r.IntN(10))))
			}
		}
		return joined(list, url.QueryEscape)
	},
}

// TestX02_NoMutationIsBelieved: of many thousand changed notices, none is
// believed that the published rule does not believe, none says anything else than
// a genuine one, and none that is genuine is refused.
func TestX02_NoMutationIsBelieved(t *testing.T) {
	const each = 800
	a := newAdapter(t, "", nil)
	bases, facts := genuineNotices(t, a)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	total, accepted := 0, 0
	for _, name := range sortedNames(mutations) {
		for range each {
			i := r.IntN(len(bases))
			body := mutations[name](r, pairsOf(bases[i]))
			n, err := a.ReadNotice(nil, body)
			genuine := believed(body)
			total++
			switch {
			case err == nil && !genuine:
				t.Fatalf("%s: accepted a forgery: %+v\n%s", name, n, body)
			case err == nil && !reflect.DeepEqual(n, facts[i]):
				t.Fatalf("%s: a genuine notice was made to say %+v\nnot %+v\n%s", name, n, facts[i], body)
			case err != nil && genuine && name != "moved_border":
				t.Fatalf("%s: refused a genuine notice (%v)\n%s", name, err, body)
			case err == nil:
				accepted++
			}
		}
	}
	if total < 10_000 || accepted < each/2 || accepted > total/4 {
		t.Errorf("%d of %d were accepted: the mutations are too strong or too weak", accepted, total)
	}
}

// genuineNotices are what the mutations start from, with what they say.
func genuineNotices(t testing.TB, a *Adapter) (bases [][]byte, facts []channel.Notice) {
	var list []map[string]string
	for _, k := range []payonce.FactKind{payonce.StateSettled, payonce.StateWaiting, payonce.StateDead} {
		list = append(list, noticeFields(channeltest.Statement{Kind: k, Number: testNumber, Amount: 1999}, noticeAt))
	}
	refund := with(paidNotice(), "trade_status", "TRADE_CLOSED", "refund_fee", "19.99", "gmt_refund", "2026-12-02 10:00:00", "out_biz_no", "R1")
	for _, f := range append(list, refund) {
		body := signNotice(keysOnce().alipay, f)
		n, err := a.ReadNotice(nil, body)
		if err != nil || !believed(body) {
			t.Fatal("a genuine notice was refused", err)
		}
		bases, facts = append(bases, body), append(facts, n)
	}
	return bases, facts
}

func sortedNames[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// FuzzNotice: whatever is accepted is believed by the published rule and says
// what a genuine notice said.
func FuzzNotice(f *testing.F) {
	a := newAdapter(f, "", nil)
	bases, facts := genuineNotices(f, a)
	for _, b := range bases {
		f.Add(b)
	}
	for _, s := range []string{"", "&", "=", "a=b&a=b", "sign=%2", "app_id=" + testApp + "&sign=", "sign_type=RSA2&sign=AAAA"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := a.ReadNotice(nil, body)
		if err != nil {
			return
		}
		if !believed(body) || !slices.ContainsFunc(facts, func(g channel.Notice) bool { return reflect.DeepEqual(n, g) }) {
			t.Fatalf("accepted %+v\n%s", n, body)
		}
	})
}
