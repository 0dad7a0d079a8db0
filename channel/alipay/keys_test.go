package alipay

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"math/big"
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
	app, alipay, root := testCerts(t)
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"account":       {func(c *Config) { c.Account = "" }, "account id"},
		"environment":   {func(c *Config) { c.Environment = "prod" }, "test or live"},
		"app_id":        {func(c *Config) { c.AppID = "" }, "app_id must"},
		"seller_id":     {func(c *Config) { c.SellerID = "20 88" }, "seller_id must"},
		"no_key":        {func(c *Config) { c.AppPrivateKey = "" }, "app_private_key: want one RSA private key"},
		"public_as_key": {func(c *Config) { c.AppPrivateKey = barePublic(k.app) }, "app_private_key: is no RSA private key"},
		"small_key":     {func(c *Config) { c.AppPrivateKey = bareKey(small) }, "1024 bits"},
		"small_public":  {func(c *Config) { c.AlipayPublicKey = barePublic(small) }, "1024 bits"},
		"no_public":     {func(c *Config) { c.AlipayPublicKey = "" }, "alipay_public_key is missing"},
		"own_public":    {func(c *Config) { c.AlipayPublicKey = barePublic(k.app) }, "own public key"},
		"private_there": {func(c *Config) { c.AlipayPublicKey = bareKey(k.alipay) }, "alipay_public_key: is no RSA public key"},
		"cert_there":    {func(c *Config) { c.AlipayPublicKey = alipay }, "alipay_cert"},
		"garbage":       {func(c *Config) { c.AlipayPublicKey = "!!" }, "neither PEM nor base64"},
		"both_modes":    {func(c *Config) { c.AppCert = app }, "not both"},
		"app_cert":      {certMode("x", alipay, root), "app_cert: holds no certificate"},
		"foreign_cert":  {certMode(alipay, alipay, root), "not the certificate of app_private_key"},
		"own_cert":      {certMode(app, app, root), "own certificate"},
		"alipay_cert":   {certMode(app, "", root), "alipay_cert: holds no certificate"},
		"only_ca":       {certMode(app, root, root), "authorities only"},
		"root_cert":     {certMode(app, alipay, ""), "root_cert: holds no RSA certificate"},
		"product":       {func(c *Config) { c.QRProductCode = "X" }, "qr_product_code"},
		"base_url":      {func(c *Config) { c.BaseURL = "openapi.alipay.com" }, "base_url"},
		"live_http":     {func(c *Config) { c.BaseURL, c.Environment = "http://proxy.example", payonce.Live }, "must be https"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig("")
			c.change(&cfg)
			_, err := New(cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `alipay account "`) {
				t.Fatalf("error is %v, want one with %q", err, c.want)
			}
			if strings.Contains(err.Error(), bareKey(k.app)[:64]) {
				t.Error("the error shows the key")
			}
		})
	}
}

// TestKeyForms: every form that Alipay's tools write.
func TestKeyForms(t *testing.T) {
	k := keysOnce()
	pkcs1 := x509.MarshalPKCS1PrivateKey(k.app)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k.app)
	if err != nil {
		t.Fatal(err)
	}
	bare := base64.StdEncoding.EncodeToString(pkcs1)
	for name, s := range map[string]string{
		"pkcs8_pem": pemOf("PRIVATE KEY", pkcs8), "pkcs1_pem": pemOf("RSA PRIVATE KEY", pkcs1), "pkcs8_line": bareKey(k.app), "pkcs1_line": bare,
		"broken_lines": bare[:64] + "\r\n" + bare[64:] + "\n",
	} {
		if got, err := privateKey(s); err != nil || !got.Equal(k.app) {
			t.Errorf("%s: %v", name, err)
		}
	}
	spki, err := x509.MarshalPKIXPublicKey(&k.alipay.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	two := pemOf("PUBLIC KEY", spki) + pemOf("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&k.stranger.PublicKey))
	got, err := publicKeys(two)
	if err != nil || len(got) != 2 || !got[0].Equal(&k.alipay.PublicKey) || !got[1].Equal(&k.stranger.PublicKey) {
		t.Errorf("two keys: %v", err)
	}
	// During a change of keys both sign.
	a := newAdapter(t, "", func(c *Config) { c.AlipayPublicKey = two })
	for _, key := range []*rsa.PrivateKey{k.alipay, k.stranger} {
		if _, err := a.ReadNotice(nil, signNotice(key, paidNotice())); err != nil {
			t.Error(err)
		}
	}
}

func certMode(app, alipay, root string) func(*Config) {
	return func(c *Config) { c.AlipayPublicKey, c.AppCert, c.AlipayCert, c.RootCert = "", app, alipay, root }
}

// testCerts makes the three files of certificate mode. The root file also holds
// a certificate on another curve and one that cannot be read.
func testCerts(t testing.TB) (app, alipay, root string) {
	t.Helper()
	k := keysOnce()
	issue := func(serial int64, name string, ca bool, pub *rsa.PublicKey, by *x509.Certificate) (*x509.Certificate, string) {
		c := &x509.Certificate{SerialNumber: new(big.Int).Mul(big.NewInt(serial), big.NewInt(1<<62)), Subject: pkix.Name{Country: []string{"CN"}, Organization: []string{"Ant " + name}, CommonName: name + ", R1"},
			NotBefore: time.Unix(1_700_000_000, 0), NotAfter: time.Unix(2_000_000_000, 0), IsCA: ca, BasicConstraintsValid: true, SignatureAlgorithm: x509.SHA256WithRSA}
		if by == nil {
			by = c
		}
		der, err := x509.CreateCertificate(rand.Reader, c, by, pub, k.stranger)
		if err != nil {
			t.Fatal(err)
		}
		return c, pemOf("CERTIFICATE", der)
	}
	ca, rootOne := issue(1, "Root", true, &k.stranger.PublicKey, nil)
	_, rootTwo := issue(2, "Other", true, &k.stranger.PublicKey, nil)
	_, app = issue(3, "App", false, &k.app.PublicKey, ca)
	_, alipay = issue(4, "Alipay", false, &k.alipay.PublicKey, ca)
	return app, alipay + rootOne, rootOne + pemOf("CERTIFICATE", []byte("no certificate")) + rootTwo
}

// TestCertificateMode: serial numbers in requests and forms, the certificate that
// an answer or notice names, and one that is not known.
func TestCertificateMode(t *testing.T) {
	app, alipay, root := testCerts(t)
	w := channeltest.NewWire(t, nil)
	a := newAdapter(t, w.URL, certMode(app, alipay, root))
	p := testPayment(t, a, testIntent(MethodQR))
	node := mustJSON(failed("ACQ.TRADE_NOT_EXIST"))
	sign := signText(keysOnce().alipay, node)
	for sn, want := range map[string]payonce.FactKind{a.alipay.keys[0].sn: payonce.StateAbsent, "": payonce.StateAbsent, strings.Repeat("0", 32): payonce.StateUnknown} {
		w.Answer(func(channeltest.Request) channeltest.Reply {
			return channeltest.Reply{Body: []byte(`{"alipay_trade_query_response":` + string(node) + `,"alipay_cert_sn":"` + sn + `","sign":"` + sign + `"}`)}
		})
		if ans := a.Query(context.Background(), channel.Call{Payment: p}); ans.Kind != want {
			t.Errorf("serial %q: %s (%v), want %s", sn, ans.Kind, ans.Err, want)
		}
	}
	sent := params(t, w.Take()[0])
	if len(sent["app_cert_sn"]) != 32 || len(sent["alipay_root_cert_sn"]) != 65 || sent["sign"] != signText(keysOnce().app, []byte(published(sent, "sign"))) {
		t.Errorf("sent %v", sent)
	}
	act, err := a.Sign(testPayment(t, a, testIntent(MethodPage)))
	if err != nil || act.Fields["app_cert_sn"] != sent["app_cert_sn"] {
		t.Errorf("form: %v", err)
	}
	f := with(paidNotice(), "alipay_cert_sn", a.alipay.keys[0].sn)
	unsigned := append(signNotice(keysOnce().alipay, paidNotice()), "&alipay_cert_sn="+a.alipay.keys[0].sn...)
	for name, body := range map[string][]byte{"signed": signNotice(keysOnce().alipay, f), "not_signed": unsigned, "none": signNotice(keysOnce().alipay, paidNotice())} {
		if _, err := a.ReadNotice(nil, body); err != nil {
			t.Errorf("notice with its serial %s: %v", name, err)
		}
	}
	if _, err := a.ReadNotice(nil, signNotice(keysOnce().alipay, with(f, "alipay_cert_sn", "00"))); err == nil {
		t.Error("a notice of an unknown certificate was accepted")
	}
}
