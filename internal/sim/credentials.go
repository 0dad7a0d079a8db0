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
	seed core.Seed
	mu   sync.Mutex
	keys map[string]*rsa.PrivateKey
}

func newKeyring(dataDir string, seed core.Seed) *keyring {
	return &keyring{dir: filepath.Join(dataDir, "keys"), seed: seed, keys: map[string]*rsa.PrivateKey{}}
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
	key, err := k.seed.RSA(label)
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
	n, ok := new(big.Int).SetString(serial, 16)
	if !ok {
		return "", errors.New("sim: serial number")
	}
	from := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	t := &x509.Certificate{
		SerialNumber: n, Subject: pkix.Name{CommonName: name, Organization: []string{"Payonce simulator"}},
		NotBefore: from, NotAfter: from.Add(certificateLifetime), SignatureAlgorithm: x509.SHA256WithRSA,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return "", fmt.Errorf("sim: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}

// serial is a certificate number: 40 upper-case hexadecimal digits, positive.
func (k *keyring) serial(label string) string {
	return "5" + strings.ToUpper(k.seed.Hex(label+" serial", 39))
}

func (k *keyring) alipay() (map[string]string, error) {
	keys, err := k.get(keyAlipayApp, keyAlipayPlatform)
	if err != nil {
		return nil, err
	}
	private, err1 := privatePEM(keys[0])
	public, err2 := publicPEM(keys[1])
	return map[string]string{
		"app_id":            "20210" + k.seed.Digits("alipay app id", 11),
		"seller_id":         "2088" + k.seed.Digits("alipay seller id", 12),
		"app_private_key":   private,
		"alipay_public_key": public,
	}, errors.Join(err1, err2)
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
		"appid":                   "wx" + k.seed.Hex("wechatpay appid", 16),
		"mchid":                   k.seed.Digits("wechatpay mchid", 10),
		"merchant_serial":         k.serial(keyWechatMerchant),
		"merchant_private_key":    private,
		"wechatpay_public_key_id": "PUB_KEY_ID_" + k.seed.Digits("wechatpay public key id", 32),
		"wechatpay_public_key":    public,
		"platform_serial":         serial,
		"platform_certificate":    cert,
		"apiv3_key":               k.seed.Text("wechatpay apiv3 key", 0, 32),
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
		"merchant_id":          "SIM" + k.seed.Digits("2c2p merchant id", 9),
		"secret":               strings.ToUpper(k.seed.Hex("2c2p secret", 64)),
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
		"alipay": s.ring.alipay, "wechatpay": s.ring.wechatpay, "2c2p": s.ring.c2p,
		"stripe": s.channels["stripe"].Credentials,
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
		c["base_url"] = base + "/" + name
		if name == "stripe" {
			// Stripe's own clients accept no path in front of /v1.
			c["base_url"] = base
		}
		out[name] = c
	}
	return http.StatusOK, out, nil
}
