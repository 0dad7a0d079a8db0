package wechatpay

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/signers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"
	"github.com/wechatpay-apiv3/wechatpay-go/utils"
)

const (
	minBits     = 2048
	keyIDPrefix = "PUB_KEY_ID_"

	// refreshPause lies between two fetches of the certificates: anybody can send a
	// notice with a serial that nobody knows.
	refreshPause = time.Minute
	// refreshLimit keeps a notice within the five seconds that WeChat waits.
	refreshLimit = 3 * time.Second
)

// keyring holds what WeChat Pay's signatures are verified with, by the exact
// serial that they name.
type keyring struct {
	// certificates: platform certificates are in use, so their list may be fetched.
	certificates bool
	merchant     *rsa.PublicKey

	mu    sync.RWMutex
	known map[string]auth.Verifier

	fetch   sync.Mutex // held while the list is fetched; guards fetched
	fetched time.Time
}

func (k *keyring) get(serial string) auth.Verifier {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.known[serial]
}

// loadKeys reads the merchant's key and WeChat Pay's.
func (a *Adapter) loadKeys() error {
	c := &a.cfg
	key, err := privateKey(c.MerchantPrivateKey)
	if err != nil {
		return fmt.Errorf("merchant_private_key: %w", err)
	}
	a.signer = &signers.SHA256WithRSASigner{MchID: c.MchID, CertificateSerialNo: c.MerchantSerial, PrivateKey: key}
	a.keys.merchant, a.keys.known = &key.PublicKey, map[string]auth.Verifier{}
	if (c.PublicKeyID == "") != (c.PublicKey == "") {
		return errors.New("wechatpay_public_key and wechatpay_public_key_id belong together: copy both from the merchant site")
	}
	if c.PublicKey == "" && c.PlatformCertificate == "" {
		return errors.New("wechatpay_public_key is missing: download WeChat Pay's public key from the merchant site (older merchants: platform_certificate)")
	}
	if c.PublicKey != "" {
		pub, err := publicKey(c.PublicKey)
		switch {
		case err != nil:
			return fmt.Errorf("wechatpay_public_key: %w", err)
		case !strings.HasPrefix(c.PublicKeyID, keyIDPrefix) || !printable(c.PublicKeyID, 64):
			return errors.New("wechatpay_public_key_id must be " + keyIDPrefix + " and digits, as the merchant site shows it")
		case pub.Equal(a.keys.merchant):
			return errors.New("wechatpay_public_key is the merchant's own key: answers are signed with WeChat Pay's, download it from the merchant site")
		}
		a.keys.known[c.PublicKeyID] = verifiers.NewSHA256WithRSAPubkeyVerifier(c.PublicKeyID, *pub)
	}
	if c.PlatformCertificate == "" {
		return nil
	}
	a.keys.certificates = true
	certs, err := certificates(c.PlatformCertificate)
	if err != nil {
		return fmt.Errorf("platform_certificate: %w", err)
	}
	for _, cert := range certs {
		serial, v, err := a.keys.platform(cert)
		if err != nil {
			return fmt.Errorf("platform_certificate: %w", err)
		}
		if strings.EqualFold(serial, c.MerchantSerial) {
			return errors.New("platform_certificate has the merchant's own serial number (apiclient_cert.pem?): want WeChat Pay's certificate")
		}
		a.keys.known[serial] = v
	}
	return nil
}

// platform makes the verifier of a platform certificate.
func (k *keyring) platform(cert *x509.Certificate) (string, auth.Verifier, error) {
	pub, ok := cert.PublicKey.(*rsa.PublicKey)
	if !ok || pub.N.BitLen() < minBits {
		return "", nil, fmt.Errorf("want an RSA key of at least %d bits", minBits)
	}
	if pub.Equal(k.merchant) {
		return "", nil, errors.New("is the merchant's own certificate (apiclient_cert.pem): answers are signed with WeChat Pay's")
	}
	list := core.NewCertificateMapWithList([]*x509.Certificate{cert})
	return utils.GetCertificateSerialNumber(*cert), verifiers.NewSHA256WithRSAVerifier(list), nil
}

// refresh fetches the platform certificates and adds those that are new. Each is
// encrypted and authenticated under the APIv3 key; the answer's own signature is
// then checked with what it brought. Nothing is retried, and a try costs the next
// minute whatever comes of it.
func (a *Adapter) refresh(ctx context.Context) error {
	a.keys.fetch.Lock()
	defer a.keys.fetch.Unlock()
	now := a.now()
	if d := now.Sub(a.keys.fetched); !a.keys.fetched.IsZero() && d >= 0 && d < refreshPause {
		return errors.New("wechatpay: the platform certificates were fetched a moment ago")
	}
	a.keys.fetched = now
	ctx, cancel := context.WithTimeout(ctx, refreshLimit)
	defer cancel()
	ex := a.exchange(ctx, func(ctx context.Context) error {
		_, err := a.bare.Get(ctx, a.target("/v3/certificates"))
		return err
	})
	if ex.reason() != "" || ex.status != 200 {
		return fmt.Errorf("wechatpay: the platform certificates cannot be fetched: %w", a.cause(ex))
	}
	fresh, err := a.opened(ex.body, now)
	if err != nil {
		return err
	}
	a.keys.mu.RLock()
	maps.Copy(fresh, a.keys.known) // a serial that is known keeps its key
	a.keys.mu.RUnlock()
	find := func(serial string) auth.Verifier { return fresh[serial] }
	if err := a.verify(ctx, ex.header, ex.body, find); err != nil {
		return err
	}
	a.keys.mu.Lock()
	a.keys.known = fresh
	a.keys.mu.Unlock()
	return nil
}

var errCertificates = errors.New("wechatpay: the list of platform certificates cannot be read (is apiv3_key right?)")

// opened decrypts and reads the list.
func (a *Adapter) opened(body []byte, now time.Time) (map[string]auth.Verifier, error) {
	list, err := object(body)
	if err != nil {
		return nil, errCertificates
	}
	items, ok := list.list("data")
	if !ok || len(items) == 0 || len(items) > 32 {
		return nil, errCertificates
	}
	out := map[string]auth.Verifier{}
	for _, item := range items {
		enc, err := item.object("encrypt_certificate")
		if err != nil {
			return nil, errCertificates
		}
		text, err := a.decrypt(enc)
		if err != nil {
			return nil, errCertificates
		}
		certs, err := certificates(string(text))
		if err != nil || len(certs) != 1 || now.After(certs[0].NotAfter) {
			continue // one that is over or unreadable helps nobody, the others count
		}
		serial, v, err := a.keys.platform(certs[0])
		if err == nil && serial == item.text("serial_no") {
			out[serial] = v
		}
	}
	return out, nil
}

// privateKey reads PEM, PKCS#8 or PKCS#1.
func privateKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("want a private key as PEM (apiclient_key.pem)")
	}
	var key *rsa.PrivateKey
	if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		key, _ = k.(*rsa.PrivateKey)
	} else if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		key = k
	}
	if key == nil {
		return nil, errors.New("is no RSA private key in PKCS#8 or PKCS#1 (apiclient_key.pem)")
	}
	if key.N.BitLen() < minBits {
		return nil, fmt.Errorf("has %d bits, WeChat Pay's certificates have at least %d", key.N.BitLen(), minBits)
	}
	return key, nil
}

func publicKey(text string) (*rsa.PublicKey, error) {
	if strings.Contains(text, "CERTIFICATE") {
		return nil, errors.New("is a certificate: it belongs into platform_certificate if it is WeChat Pay's, nowhere if it is the merchant's")
	}
	key, err := utils.LoadPublicKey(text)
	if err != nil {
		return nil, errors.New("is no RSA public key as PEM (pub_key.pem)")
	}
	if key.N.BitLen() < minBits {
		return nil, fmt.Errorf("has %d bits, want at least %d", key.N.BitLen(), minBits)
	}
	return key, nil
}

func certificates(text string) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	rest := []byte(text)
	for {
		block, more := pem.Decode(rest)
		if block == nil {
			break
		}
		rest = more
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("holds something else than certificates")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("holds a certificate that cannot be read")
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("holds no certificate in PEM")
	}
	return out, nil
}
