package sim_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce/internal/sim"
)

func TestClock(t *testing.T) {
	heard := make(chan string, 10)
	listener := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		heard <- string(b)
	}))
	defer listener.Close()
	r := newRig(t, func(o *sim.Options) { o.ClockListeners = []string{listener.URL} })
	got := r.control("POST", "/_sim/clock", `{"advance_s":3600}`, 200)
	equal(t, "offset", got["offset_s"], any(3600.0))
	equal(t, "heard", <-heard, `{"offset_s":3600}`)
	equal(t, "again", r.control("POST", "/_sim/clock", `{"advance_s":400}`, 200)["offset_s"], any(4000.0))
	equal(t, "heard", <-heard, `{"offset_s":4000}`)
	now, err := time.Parse(time.RFC3339Nano, str(r.control("GET", "/_sim/clock", "", 200), "now"))
	if d := time.Until(now); err != nil || d < 3990*time.Second || d > 4010*time.Second {
		t.Fatalf("now is %v ahead (%v)", d, err)
	}
	date, err := http.ParseTime(r.api("GET", "account", "", "", 200).header.Get("Date"))
	if d := time.Until(date); err != nil || d < 3980*time.Second || d > 4010*time.Second {
		t.Fatalf("Date is %v ahead (%v)", d, err)
	}
	r.reopen()
	equal(t, "kept", r.control("GET", "/_sim/clock", "", 200)["offset_s"], any(4000.0))
	for _, body := range []string{`{}`, `{"advance_s":1.5}`, `{"advance_s":"1"}`, `{"advance_s":1,"x":2}`, `[]`, ``, `{"advance_s":99999999999}`} {
		r.control("POST", "/_sim/clock", body, 400)
	}
	r.control("DELETE", "/_sim/clock", "", 405)
}

func TestClockDoesNotWaitForADeadListener(t *testing.T) {
	r := newRig(t, func(o *sim.Options) { o.ClockListeners = []string{"http://127.0.0.1:1/"} })
	begin := time.Now()
	r.control("POST", "/_sim/clock", `{"advance_s":1}`, 200)
	if d := time.Since(begin); d < 1900*time.Millisecond || d > 4*time.Second {
		t.Fatalf("answered after %v", d)
	}
}

func TestPayIsRefusedUnlessForced(t *testing.T) {
	r := newRig(t)
	r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"nobody"}`, 404)
	r.control("POST", "/_sim/pay", `{"channel":"paypal","number":"nobody"}`, 400)
	id := r.create("P1", "")
	r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"P1"}`, 409)
	r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"P1","outcome":"eaten"}`, 400)
	r.api("POST", "payment_intents/"+id+"/cancel", "", "", 200)
	got := r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"P1","force":true}`, 200)
	equal(t, "arrived", str(got, "status"), "paid")
	lines := r.lines("P1")
	equal(t, "rows", len(lines), 2)
	equal(t, "old", lines[0]["status"], any("closed"))
	equal(t, "new", lines[1]["status"], any("paid"))
	if lines[0]["payment_id"] == lines[1]["payment_id"] {
		t.Fatal("two rows of one object")
	}
	r.create("P2", "payment_method=pm_card_authenticationRequired&confirm=true")
	got = r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"P2","amount":1}`, 200)
	equal(t, "amount", got["amount"], any(1.0))
	r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"P2"}`, 409)
	r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"P2","force":true}`, 200)
	equal(t, "paid twice", len(r.lines("P2")), 2)
	open := r.create("P3", "")
	r.control("POST", "/_sim/pay", `{"channel":"stripe","number":"P3","force":true}`, 200)
	equal(t, "the same object", str(r.api("GET", "payment_intents/"+open, "", "", 200).body, "status"), "succeeded")
	equal(t, "one row", len(r.lines("P3")), 1)
}

func TestDashboard(t *testing.T) {
	r := newRig(t)
	r.paid("H1")
	equal(t, "refund", r.control("POST", "/_sim/refund", `{"channel":"stripe","number":"H1","amount":400}`, 200)["refunded"], any(400.0))
	r.control("POST", "/_sim/refund", `{"channel":"stripe","number":"H1","amount":601}`, 409)
	r.control("POST", "/_sim/refund", `{"channel":"stripe","number":"nobody"}`, 404)
	equal(t, "rest", r.control("POST", "/_sim/refund", `{"channel":"stripe","number":"H1"}`, 200)["status"], any("refunded"))
	r.paid("H2")
	r.control("POST", "/_sim/dispute", `{"channel":"stripe","number":"H2"}`, 200)
	r.control("POST", "/_sim/dispute", `{"channel":"stripe","number":"H2"}`, 409)
	orphan := r.control("POST", "/_sim/charge", `{"channel":"stripe","amount":77,"currency":"CNY"}`, 200)
	equal(t, "orphan", str(orphan, "number"), str(orphan, "payment_id"))
	got := r.api("GET", "payment_intents/"+str(orphan, "payment_id"), "", "", 200).body
	equal(t, "on the wire", str(got, "status"), "succeeded")
	r.control("POST", "/_sim/charge", `{"channel":"stripe","amount":0,"currency":"CNY"}`, 400)
	r.control("GET", "/_sim/nothing", "", 404)
}

func TestBooksHaveTheContractsMembers(t *testing.T) {
	r := newRig(t)
	id := r.paid("K1")
	r.api("POST", "refunds", "", "payment_intent="+id+"&amount=1", 200)
	books := r.control("GET", "/_sim/books", "", 200)
	keys := func(v any) string {
		b, _ := json.Marshal(v)
		var m map[string]json.RawMessage
		_ = json.Unmarshal(b, &m)
		names := make([]string, 0, len(m))
		for k := range m {
			names = append(names, k)
		}
		return strings.Join(sorted(names), " ")
	}
	equal(t, "books", keys(books), "calls charges notices")
	charge := books["charges"].([]any)[0].(map[string]any)
	equal(t, "charge", keys(charge), "amount channel currency number paid_at payment_id refunded refunds status")
	equal(t, "refund", keys(charge["refunds"].([]any)[0]), "amount refund_id refund_number status")
	equal(t, "call", keys(books["calls"].([]any)[0]), "channel count number operation")
	equal(t, "notice", keys(books["notices"].([]any)[0]), "acknowledged channel deliveries event_id number type")
	equal(t, "currency", charge["currency"], any("USD"))
}

func sorted(names []string) []string {
	for a := range names {
		for b := a + 1; b < len(names); b++ {
			if names[b] < names[a] {
				names[a], names[b] = names[b], names[a]
			}
		}
	}
	return names
}

func TestCredentialsFollowTheSeed(t *testing.T) {
	r := newRig(t)
	begin := time.Now()
	all := r.control("GET", "/_sim/credentials", "", 200)
	t.Logf("made in %v", time.Since(begin))
	base := func(c map[string]any) { // the port differs
		for name, v := range c {
			want := r.srv.URL + "/" + name
			switch name {
			case "stripe":
				want = r.srv.URL
			case "alipay":
				want += "/gateway.do"
			}
			equal(t, "base_url", str(v.(map[string]any), "base_url"), want)
			delete(v.(map[string]any), "base_url")
		}
	}
	base(all)
	r.reopen()
	cached := r.control("GET", "/_sim/credentials", "", 200)
	base(cached)
	if !reflect.DeepEqual(all, cached) {
		t.Fatal("credentials changed when the folder was opened again")
	}
	r.close()
	r.opts.DataDir = t.TempDir()
	r.open()
	fresh := r.control("GET", "/_sim/credentials", "", 200)
	base(fresh)
	if !reflect.DeepEqual(all, fresh) {
		t.Fatal("the same seed gave other credentials in another folder")
	}
	for _, pair := range [][3]string{{"alipay", "app_private_key", "alipay_public_key"}, {"wechatpay", "merchant_private_key", "wechatpay_public_key"}} {
		private, _ := pem.Decode([]byte(str(all, pair[0], pair[1])))
		if _, err := x509.ParsePKCS8PrivateKey(private.Bytes); err != nil {
			t.Error(pair, err)
		}
		public, _ := pem.Decode([]byte(str(all, pair[0], pair[2])))
		if _, err := x509.ParsePKIXPublicKey(public.Bytes); err != nil {
			t.Error(pair, err)
		}
	}
	for _, c := range [][2]string{{"wechatpay", "platform_certificate"}, {"2c2p", "merchant_certificate"}, {"2c2p", "channel_certificate"}} {
		block, _ := pem.Decode([]byte(str(all, c[0], c[1])))
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(c, err)
		}
		if err := cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature); err != nil {
			t.Error(c, err)
		}
	}
	equal(t, "apiv3_key", len(str(all, "wechatpay", "apiv3_key")), 32)
	r.control("GET", "/_sim/credentials?channel=paypal", "", 400)
}
