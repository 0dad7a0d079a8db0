package wechatpay

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/channel/channeltest"
)

// TestS09_ConfigurationErrors: each says what was expected, and none shows a key.
func TestS09_ConfigurationErrors(t *testing.T) {
	k := keysOnce()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(time.Hour)
	ownCert, ownSerial := certPEM(k.merchant, 1, end)
	platform, platformSerial := certPEM(k.platform, 2, end)
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"account":            {func(c *Config) { c.Account = "" }, "account id"},
		"environment":        {func(c *Config) { c.Environment = "prod" }, "environment"},
		"appid":              {func(c *Config) { c.AppID = "" }, "appid"},
		"mchid":              {func(c *Config) { c.MchID = "1 2" }, "mchid"},
		"serial":             {func(c *Config) { c.MerchantSerial = testKeyID }, "merchant_serial"},
		"api_key_short":      {func(c *Config) { c.APIv3Key = "short" }, "apiv3_key"},
		"private_key":        {func(c *Config) { c.MerchantPrivateKey = publicPEM(k.merchant) }, "merchant_private_key"},
		"private_key_small":  {func(c *Config) { c.MerchantPrivateKey = privatePEM(small) }, "1024 bits"},
		"no_key":             {func(c *Config) { c.PublicKey, c.PublicKeyID = "", "" }, "wechatpay_public_key is missing"},
		"no_key_id":          {func(c *Config) { c.PublicKeyID = "" }, "belong together"},
		"key_id":             {func(c *Config) { c.PublicKeyID = testSerial }, "PUB_KEY_ID_"},
		"own_public_key":     {func(c *Config) { c.PublicKey = publicPEM(k.merchant) }, "the merchant's own key"},
		"certificate_as_key": {func(c *Config) { c.PublicKey = platform }, "belongs into platform_certificate"},
		"private_as_public":  {func(c *Config) { c.PublicKey = privatePEM(k.wechat) }, "no RSA public key"},
		"public_key_small":   {func(c *Config) { c.PublicKey = publicPEM(small) }, "1024 bits"},
		"own_certificate":    {func(c *Config) { c.PlatformCertificate = ownCert }, "the merchant's own certificate"},
		"own_serial":         {func(c *Config) { c.PlatformCertificate, c.MerchantSerial = platform, platformSerial }, "own serial number"},
		"key_as_certificate": {func(c *Config) { c.PlatformCertificate = publicPEM(k.platform) }, "something else than certificates"},
		"no_certificate":     {func(c *Config) { c.PlatformCertificate = "x" }, "no certificate in PEM"},
		"test_without_base":  {func(c *Config) { c.BaseURL = "" }, "no test system"},
		"base":               {func(c *Config) { c.BaseURL = "ftp://x" }, "base_url"},
		"live_http":          {func(c *Config) { c.Environment, c.BaseURL = payonce.Live, "http://pay.example" }, "https"},
	} {
		cfg := testConfig("http://127.0.0.1:1")
		c.change(&cfg)
		_, err := New(cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.want)
			continue
		}
		for _, secret := range []string{testAPIKey, strings.Split(privatePEM(k.merchant), "\n")[1]} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows a secret", name)
			}
		}
	}
	if ownSerial == platformSerial {
		t.Error("the test's certificates have one serial")
	}
}

// rig is an adapter whose WeChat Pay has a list of certificates.
type rig struct {
	a       *Adapter
	wire    *channeltest.Wire
	clock   *time.Time
	serials []string
}

// certRig makes an adapter that knows the first of two platform certificates.
func certRig(t *testing.T, list func(first, second string) channeltest.Reply) rig {
	t.Helper()
	k, now := keysOnce(), time.Now()
	one, serial1 := certPEM(k.platform, 3, now.Add(time.Hour))
	two, serial2 := certPEM(k.wechat, 4, now.Add(5*time.Hour))
	w := channeltest.NewWire(t, nil)
	w.Answer(func(channeltest.Request) channeltest.Reply { return list(one, two) })
	clock := now
	a := newAdapter(t, w.URL, func(c *Config) {
		c.PublicKey, c.PublicKeyID, c.PlatformCertificate = "", "", one
		c.Now = func() time.Time { return clock }
	})
	return rig{a, w, &clock, []string{serial1, serial2}}
}

func (r rig) notice(t *testing.T, signer *rsa.PrivateKey, serial string) error {
	t.Helper()
	_, body := makeNotice(paid(), time.Now())
	_, err := r.a.ReadNotice(signed(signer, serial, *r.clock, "n", body), body)
	return err
}

// list answers GET /v3/certificates, encrypted under key, signed by signer.
func list(key string, signer *rsa.PrivateKey, serial string, certs map[string]string) channeltest.Reply {
	var data []any
	for no, text := range certs {
		data = append(data, map[string]any{"serial_no": no, "effective_time": "2026-01-01T00:00:00+08:00", "expire_time": "2031-01-01T00:00:00+08:00",
			"encrypt_certificate": map[string]any{"algorithm": "AEAD_AES_256_GCM", "nonce": "61f9c719728a", "associated_data": "certificate",
				"ciphertext": seal(key, "61f9c719728a", "certificate", []byte(text))}})
	}
	body := mustJSON(map[string]any{"data": data})
	return channeltest.Reply{Header: signed(signer, serial, time.Now(), "n", body), Body: body}
}

// TestS10_KeysBySerial: each mode takes its own serials; both together take both;
// a serial never falls back to another key.
func TestS10_KeysBySerial(t *testing.T) {
	k := keysOnce()
	cert, serial := certPEM(k.platform, 5, time.Now().Add(time.Hour))
	h := func(key *rsa.PrivateKey, serial string, body []byte) http.Header {
		return signed(key, serial, time.Now(), "n", body)
	}
	_, body := makeNotice(paid(), time.Now())
	for name, c := range map[string]struct {
		change             func(*Config)
		byKey, byCert, asn bool
	}{
		"public key":  {nil, true, false, true},
		"certificate": {func(c *Config) { c.PublicKey, c.PublicKeyID, c.PlatformCertificate = "", "", cert }, false, true, false},
		"both":        {func(c *Config) { c.PlatformCertificate = cert }, true, true, true},
	} {
		a := newAdapter(t, "", c.change)
		if _, err := a.ReadNotice(h(k.wechat, testKeyID, body), body); (err == nil) != c.byKey {
			t.Errorf("%s: under the public key: %v", name, err)
		}
		if _, err := a.ReadNotice(h(k.platform, serial, body), body); (err == nil) != c.byCert {
			t.Errorf("%s: under the certificate: %v", name, err)
		}
		for _, wrong := range []http.Header{h(k.platform, testKeyID, body), h(k.wechat, serial, body), h(k.platform, strings.ToLower(serial), body)} {
			if _, err := a.ReadNotice(wrong, body); err == nil {
				t.Errorf("%s: the key of another serial was taken", name)
			}
		}
		if got, err := (validator{a}).GetAcceptSerial(context.Background()); (err == nil) != c.asn || c.asn && got != testKeyID {
			t.Errorf("%s: asks for answers under %q", name, got)
		}
	}
}

// TestS10_UnknownSerialIsFetchedOnce and then taken, or refused for the next
// minute whatever comes.
func TestS10_UnknownSerialIsFetchedOnce(t *testing.T) {
	k := keysOnce()
	var r rig
	r = certRig(t, func(one, two string) channeltest.Reply {
		return list(testAPIKey, k.wechat, r.serials[1], map[string]string{r.serials[0]: one, r.serials[1]: two})
	})
	if err := r.notice(t, k.platform, r.serials[0]); err != nil || len(r.wire.Take()) != 0 {
		t.Fatalf("a known serial: %v", err)
	}
	if err := r.notice(t, k.wechat, r.serials[1]); err != nil {
		t.Fatalf("a new certificate: %v", err)
	}
	got := r.wire.Take()
	if len(got) != 1 || got[0].Method != "GET" || got[0].URI != "/v3/certificates" || got[0].Header.Get("Wechatpay-Serial") != "" {
		t.Fatalf("fetched by %+v", got)
	}
	authorized(t, got[0], "")
	if err := r.notice(t, k.wechat, strings.Repeat("A", 40)); !errors.Is(err, ErrSerial) || len(r.wire.Take()) != 0 {
		t.Errorf("within a minute: %v", err)
	}
	*r.clock = r.clock.Add(refreshPause)
	if err := r.notice(t, k.wechat, strings.Repeat("A", 40)); !errors.Is(err, ErrSerial) || len(r.wire.Take()) != 1 {
		t.Errorf("a serial that nobody has: %v", err)
	}
	*r.clock = r.clock.Add(refreshPause)
	for _, serial := range []string{testKeyID, "x", strings.Repeat("A", 41)} {
		if err := r.notice(t, k.wechat, serial); !errors.Is(err, ErrSerial) || len(r.wire.Take()) != 0 {
			t.Errorf("%s is no certificate's: %v", serial, err)
		}
	}
	if err := r.notice(t, k.platform, r.serials[0]); err != nil {
		t.Errorf("the old certificate after the fetch: %v", err)
	}
}

// TestS10_ListsThatAreNotBelieved leave the keys as they were.
func TestS10_ListsThatAreNotBelieved(t *testing.T) {
	k := keysOnce()
	for name, answer := range map[string]func(r *rig, one, two string) channeltest.Reply{
		"other_api_key": func(r *rig, one, two string) channeltest.Reply {
			return list(strings.Repeat("x", 32), k.wechat, r.serials[1], map[string]string{r.serials[1]: two})
		},
		"signed_by_stranger": func(r *rig, one, two string) channeltest.Reply {
			return list(testAPIKey, k.stranger, r.serials[1], map[string]string{r.serials[1]: two})
		},
		"unsigned": func(r *rig, one, two string) channeltest.Reply {
			reply := list(testAPIKey, k.wechat, r.serials[1], map[string]string{r.serials[1]: two})
			reply.Header = nil
			return reply
		},
		"other_serial": func(r *rig, one, two string) channeltest.Reply {
			return list(testAPIKey, k.platform, r.serials[0], map[string]string{strings.Repeat("B", 40): two})
		},
		"own_certificate": func(r *rig, one, two string) channeltest.Reply {
			text, serial := certPEM(k.merchant, 9, time.Now().Add(time.Hour))
			return list(testAPIKey, k.platform, r.serials[0], map[string]string{serial: text})
		},
		"over": func(r *rig, one, two string) channeltest.Reply {
			text, serial := certPEM(k.wechat, 4, time.Now().Add(-time.Hour))
			return list(testAPIKey, k.platform, r.serials[0], map[string]string{serial: text})
		},
		"empty":     func(*rig, string, string) channeltest.Reply { return list(testAPIKey, k.wechat, "", nil) },
		"not_found": func(*rig, string, string) channeltest.Reply { return refusal(404, "RESOURCE_NOT_EXISTS") },
		"no_json":   func(*rig, string, string) channeltest.Reply { return channeltest.Reply{Body: []byte("<html>")} },
		"no_cipher": func(*rig, string, string) channeltest.Reply {
			return channeltest.Reply{Body: []byte(`{"data":[{"serial_no":"A"}]}`)}
		},
	} {
		var r rig
		r = certRig(t, func(one, two string) channeltest.Reply { return answer(&r, one, two) })
		if err := r.notice(t, k.wechat, r.serials[1]); !errors.Is(err, ErrSerial) || len(r.wire.Take()) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.notice(t, k.platform, r.serials[0]); err != nil {
			t.Errorf("%s: the known certificate afterwards: %v", name, err)
		}
	}
}

// TestS10_AnswerUnderANewCertificate: the list is fetched for an answer too; the
// question itself is sent once.
func TestS10_AnswerUnderANewCertificate(t *testing.T) {
	k := keysOnce()
	r := certRig(t, nil)
	two, serial := certPEM(k.wechat, 4, time.Now().Add(time.Hour))
	r.wire.Answer(func(q channeltest.Request) channeltest.Reply {
		if q.URI == "/v3/certificates" {
			return list(testAPIKey, k.wechat, serial, map[string]string{serial: two})
		}
		body := mustJSON(order(paid()))
		return channeltest.Reply{Header: signed(k.wechat, serial, time.Now(), "n", body), Body: body}
	})
	ans := r.a.Query(context.Background(), channel.Call{Payment: testPayment(t, r.a, testIntent(MethodNative)), KeyNo: 1})
	if got := r.wire.Take(); ans.Kind != payonce.StateSettled || len(got) != 2 || got[1].URI != "/v3/certificates" {
		t.Errorf("%+v after %d requests", ans, len(got))
	}
}

// TestProbe: an answer proves the address and the merchant's key; a wrong one is
// told apart.
func TestProbe(t *testing.T) {
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, nil)
	w.Answer(func(channeltest.Request) channeltest.Reply { return refusal(404, "ORDER_NOT_EXIST") })
	if err := a.Probe(context.Background()); err != nil {
		t.Error(err)
	}
	w.Answer(func(channeltest.Request) channeltest.Reply { return refusal(401, "SIGN_ERROR") })
	if err := a.Probe(context.Background()); err == nil || !strings.Contains(err.Error(), "SIGN_ERROR") {
		t.Errorf("a wrong key: %v", err)
	}
	r := certRig(t, nil)
	r.wire.Answer(func(q channeltest.Request) channeltest.Reply {
		if q.URI == "/v3/certificates" {
			return list(strings.Repeat("x", 32), keysOnce().platform, r.serials[0], map[string]string{r.serials[0]: "x"})
		}
		return refusal(404, "ORDER_NOT_EXIST")
	})
	if err := r.a.Probe(context.Background()); err == nil || !strings.Contains(err.Error(), "apiv3_key") {
		t.Errorf("a wrong APIv3 key: %v", err)
	}
}
