package sim

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/payonce/payonce/internal/sim/core"
)

// Labels of the RSA keys; the same seed gives the same keys.
const (
	keyAlipayApp        = "alipay-app"
	keyAlipayPlatform   = "alipay-platform"
	keyAlipayRoot       = "alipay-root"
	keyWechatMerchant   = "wechatpay-merchant"
	keyWechatPublic     = "wechatpay-public"
	keyWechatPlatform   = "wechatpay-platform"
	key2c2pMerchant     = "2c2p-merchant"
	key2c2pChannel      = "2c2p-channel"
	keyGenerators       = 2 // at once
	certificateLifetime = 30 * 365 * 24 * time.Hour
)

// keyring makes the RSA keys when they are first needed, which takes about a
// second for all of them, and keeps them in the data folder.
type keyring struct {
	dir  string
	w    *core.World // has the seed once it is open
	mu   sync.Mutex
	keys map[string]*rsa.PrivateKey
}

func newKeyring(dataDir string, w *core.World) *keyring {
	return &keyring{dir: filepath.Join(dataDir, "keys"), w: w, keys: map[string]*rsa.PrivateKey{}}
}

// get returns the keys of the labels, in their order.
func (k *keyring) get(labels ...string) ([]*rsa.PrivateKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]*rsa.PrivateKey, len(labels))
	errs := make([]error, len(labels))
	slots := make(chan struct{}, keyGenerators)
	var wg sync.WaitGroup
	for n, label := range labels {
		if out[n] = k.keys[label]; out[n] != nil {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[n], errs[n] = k.loadOrMake(label)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for n, label := range labels {
		k.keys[label] = out[n]
	}
	return out, nil
}

func (k *keyring) loadOrMake(label string) (*rsa.PrivateKey, error) {
	path := filepath.Join(k.dir, label+".pem")
	if b, err := os.ReadFile(path); err == nil {
		if block, _ := pem.Decode(b); block != nil {
			if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
				if key, ok := key.(*rsa.PrivateKey); ok {
					return key, nil
				}
			}
		}
		// A file that was cut off by a crash is made again.
	}
	key, err := k.w.Seed.RSA(label)
	if err != nil {
		return nil, fmt.Errorf("sim: key %s: %w", label, err)
	}
	text, err := privatePEM(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return key, nil
}

func privatePEM(key *rsa.PrivateKey) (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("sim: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

func publicPEM(key *rsa.PrivateKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return "", fmt.Errorf("sim: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

// certificate is the self-signed certificate of a key; it too is the same for
// the same seed, since PKCS #1 v1.5 signatures have no randomness.
func certificate(key *rsa.PrivateKey, name, serial string) (string, error) {
	der, err := issue(nil, key, key, name, serial)
	if err != nil {
		return "", err
	}
	return certificatePEM(der), nil
}

func certificatePEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// issue makes the certificate of a key, signed by an issuer with its key;
// without an issuer it is an authority that signs itself.
func issue(issuer *x509.Certificate, signer, key *rsa.PrivateKey, name, serial string) ([]byte, error) {
	n, ok := new(big.Int).SetString(serial, 16)
	if !ok {
		return nil, errors.New("sim: serial number")
	}
	from := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	t := &x509.Certificate{
		SerialNumber: n, Subject: pkix.Name{CommonName: name, Organization: []string{"Payonce simulator"}},
		NotBefore: from, NotAfter: from.Add(certificateLifetime), SignatureAlgorithm: x509.SHA256WithRSA,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	if issuer == nil {
		issuer = t
		t.IsCA, t.BasicConstraintsValid, t.KeyUsage = true, true, t.KeyUsage|x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, t, issuer, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return der, nil
}

// serial is a certificate number: 40 upper-case hexadecimal digits, positive.
func (k *keyring) serial(label string) string {
	return "5" + strings.ToUpper(k.w.Seed.Hex(label+" serial", 39))
}

func (k *keyring) wechatpay() (map[string]string, error) {
	keys, err := k.get(keyWechatMerchant, keyWechatPublic, keyWechatPlatform)
	if err != nil {
		return nil, err
	}
	private, err1 := privatePEM(keys[0])
	public, err2 := publicPEM(keys[1])
	serial := k.serial(keyWechatPlatform)
	cert, err3 := certificate(keys[2], "Tenpay.com Root CA (simulated)", serial)
	return map[string]string{
		"appid":                   "wx" + k.w.Seed.Hex("wechatpay appid", 16),
		"mchid":                   k.w.Seed.Digits("wechatpay mchid", 10),
		"merchant_serial":         k.serial(keyWechatMerchant),
		"merchant_private_key":    private,
		"wechatpay_public_key_id": "PUB_KEY_ID_" + k.w.Seed.Digits("wechatpay public key id", 32),
		"wechatpay_public_key":    public,
		"platform_serial":         serial,
		"platform_certificate":    cert,
		"apiv3_key":               k.w.Seed.Text("wechatpay apiv3 key", 0, 32),
	}, errors.Join(err1, err2, err3)
}

func (k *keyring) c2p() (map[string]string, error) {
	keys, err := k.get(key2c2pMerchant, key2c2pChannel)
	if err != nil {
		return nil, err
	}
	private, err1 := privatePEM(keys[0])
	merchant, err2 := certificate(keys[0], "SIM merchant", k.serial(key2c2pMerchant))
	channel, err3 := certificate(keys[1], "2C2P (simulated)", k.serial(key2c2pChannel))
	return map[string]string{
		"merchant_id":          "SIM" + k.w.Seed.Digits("2c2p merchant id", 9),
		"secret":               strings.ToUpper(k.w.Seed.Hex("2c2p secret", 64)),
		"currency":             "SGD",
		"merchant_private_key": private,
		"merchant_certificate": merchant,
		"channel_certificate":  channel,
	}, errors.Join(err1, err2, err3)
}

// credentials answers with those of all channels, or of ?channel= alone, which
// spares the making of the others' keys.
func (s *Sim) credentials(r *http.Request) (int, any, error) {
	base := s.opts.BaseURL
	if base == "" {
		base = "http://" + r.Host
	}
	sources := map[string]func() (map[string]string, error){
		"alipay":    func() (map[string]string, error) { return s.ring.alipay(r.URL.Query().Get("certificates") == "1") },
		"wechatpay": s.ring.wechatpay, "2c2p": s.ring.c2p,
		"stripe": s.stripe.Credentials,
	}
	if only := r.URL.Query().Get("channel"); only != "" {
		source, ok := sources[only]
		if !ok {
			return 0, nil, fmt.Errorf("%w: unknown channel %q", core.ErrBad, only)
		}
		sources = map[string]func() (map[string]string, error){only: source}
	}
	if _, all := sources["alipay"]; all && len(sources) > 1 {
		// Make all keys at once: two at a time is faster than one by one.
		if _, err := s.ring.get(keyAlipayApp, keyAlipayPlatform, keyWechatMerchant, keyWechatPublic,
			keyWechatPlatform, key2c2pMerchant, key2c2pChannel); err != nil {
			return 0, nil, err
		}
	}
	out := map[string]map[string]string{}
	for name, source := range sources {
		c, err := source()
		if err != nil {
			return 0, nil, err
		}
		c["base_url"] = base + basePath(name)
		out[name] = c
	}
	return http.StatusOK, out, nil
}

// basePath is what follows the host in a channel's base_url.
func basePath(channel string) string {
	switch channel {
	case "stripe":
		return "" // Stripe's own clients accept no path in front of /v1
	case "alipay":
		return "/alipay/gateway.do"
	}
	return "/" + channel
}
