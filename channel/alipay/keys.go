package alipay

import (
	"crypto"
	"crypto/md5" //nolint:gosec // the serial number of a certificate is defined with it, it protects nothing
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// minBits is what RSA2 demands.
const minBits = 2048

// keyring is what Alipay's signatures are verified with.
type keyring struct {
	keys []alipayKey
	// bySerial: certificate mode, where an answer may name its certificate.
	bySerial bool
}

type alipayKey struct {
	sn  string // "" in public-key mode
	key *rsa.PublicKey
}

// verify reports whether one of the keys signed the text. A serial number, where
// one is named, chooses among the keys that are already trusted and brings no
// other one in.
func (k keyring) verify(text, sig []byte, sn string) bool {
	sum := sha256.Sum256(text)
	for _, c := range k.keys {
		if k.bySerial && sn != "" && sn != c.sn {
			continue
		}
		if rsa.VerifyPKCS1v15(c.key, crypto.SHA256, sum[:], sig) == nil {
			return true
		}
	}
	return false
}

// loadKeys reads our key and Alipay's, in the one mode that is configured.
func (a *Adapter) loadKeys() error {
	c := &a.cfg
	key, err := privateKey(c.AppPrivateKey)
	if err != nil {
		return fmt.Errorf("app_private_key: %w", err)
	}
	a.key = key
	certs := c.AppCert != "" || c.AlipayCert != "" || c.RootCert != ""
	switch {
	case certs && c.AlipayPublicKey != "":
		return errors.New("give either alipay_public_key or the three certificates, as the console shows for this application, not both")
	case certs:
		return a.loadCerts()
	case c.AlipayPublicKey == "":
		return errors.New("alipay_public_key is missing: copy \"Alipay public key\" from the console's page of interface signing")
	}
	keys, err := publicKeys(c.AlipayPublicKey)
	if err != nil {
		return fmt.Errorf("alipay_public_key: %w", err)
	}
	for _, k := range keys {
		if k.Equal(&key.PublicKey) {
			return errors.New("alipay_public_key is the application's own public key: answers are signed with Alipay's, copy \"Alipay public key\" from the console")
		}
		a.alipay.keys = append(a.alipay.keys, alipayKey{key: k})
	}
	return nil
}

func (a *Adapter) loadCerts() error {
	c := &a.cfg
	app, err := certificates(c.AppCert)
	if err != nil {
		return fmt.Errorf("app_cert: %w (want appCertPublicKey_*.crt from the console)", err)
	}
	if pub, ok := app[0].PublicKey.(*rsa.PublicKey); !ok || !pub.Equal(&a.key.PublicKey) {
		return errors.New("app_cert is not the certificate of app_private_key")
	}
	alipay, err := certificates(c.AlipayCert)
	if err != nil {
		return fmt.Errorf("alipay_cert: %w (want alipayCertPublicKey_RSA2.crt from the console)", err)
	}
	for _, cert := range alipay {
		if cert.IsCA {
			continue // a file may bring its issuer along, which signs no answers
		}
		pub, ok := cert.PublicKey.(*rsa.PublicKey)
		if !ok || pub.N.BitLen() < minBits {
			return fmt.Errorf("alipay_cert: want an RSA key of at least %d bits", minBits)
		}
		if pub.Equal(&a.key.PublicKey) {
			return errors.New("alipay_cert is the application's own certificate: answers are signed with Alipay's")
		}
		a.alipay.keys = append(a.alipay.keys, alipayKey{sn: serialOf(cert), key: pub})
	}
	if len(a.alipay.keys) == 0 {
		return errors.New("alipay_cert: want alipayCertPublicKey_RSA2.crt, this holds authorities only")
	}
	root, err := rootSerial(c.RootCert)
	if err != nil {
		return fmt.Errorf("root_cert: %w (want alipayRootCert.crt from the console)", err)
	}
	a.alipay.bySerial = true
	a.certSNs = map[string]string{"app_cert_sn": serialOf(app[0]), "alipay_root_cert_sn": root}
	return nil
}

// privateKey takes PEM or bare base64, PKCS#8 or PKCS#1.
func privateKey(text string) (*rsa.PrivateKey, error) {
	blocks, err := blocksOf(text)
	if err != nil || len(blocks) != 1 {
		return nil, errors.New("want one RSA private key, as PEM or as the one line of base64 that the key tool writes")
	}
	der := blocks[0]
	var key *rsa.PrivateKey
	if k, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		key, _ = k.(*rsa.PrivateKey)
	} else if k, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		key = k
	}
	if key == nil {
		return nil, errors.New("is no RSA private key in PKCS#8 or PKCS#1")
	}
	if key.N.BitLen() < minBits {
		return nil, fmt.Errorf("has %d bits, RSA2 needs at least %d", key.N.BitLen(), minBits)
	}
	return key, nil
}

// publicKeys takes PEM or bare base64, SPKI or PKCS#1.
func publicKeys(text string) ([]*rsa.PublicKey, error) {
	blocks, err := blocksOf(text)
	if err != nil {
		return nil, err
	}
	var out []*rsa.PublicKey
	for _, der := range blocks {
		var key *rsa.PublicKey
		if k, err := x509.ParsePKIXPublicKey(der); err == nil {
			key, _ = k.(*rsa.PublicKey)
		} else if k, err := x509.ParsePKCS1PublicKey(der); err == nil {
			key = k
		}
		if key == nil {
			return nil, errors.New("is no RSA public key (a certificate belongs into alipay_cert)")
		}
		if key.N.BitLen() < minBits {
			return nil, fmt.Errorf("has %d bits, RSA2 needs at least %d", key.N.BitLen(), minBits)
		}
		out = append(out, key)
	}
	return out, nil
}

// blocksOf returns the DER of each PEM block, or of one line of base64.
func blocksOf(text string) ([][]byte, error) {
	var out [][]byte
	rest := []byte(strings.TrimSpace(text))
	for {
		block, more := pem.Decode(rest)
		if block == nil {
			break
		}
		out, rest = append(out, block.Bytes), more
	}
	if len(out) > 0 {
		return out, nil
	}
	bare := strings.Join(strings.Fields(text), "")
	der, err := base64.StdEncoding.DecodeString(bare)
	if err != nil || len(der) == 0 {
		return nil, errors.New("is neither PEM nor base64")
	}
	return [][]byte{der}, nil
}

// certificates returns those of a PEM file that can be read; the first has to.
func certificates(text string) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	rest := []byte(text)
	for {
		block, more := pem.Decode(rest)
		if block == nil {
			break
		}
		rest = more
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil {
			out = append(out, cert)
		} else if len(out) == 0 {
			return nil, errors.New("the first certificate cannot be read")
		}
	}
	if len(out) == 0 {
		return nil, errors.New("holds no certificate in PEM")
	}
	return out, nil
}

// serialOf is Alipay's serial number of a certificate: MD5, in lower-case hex, of
// the issuer's name and the serial number in decimal.
func serialOf(c *x509.Certificate) string {
	sum := md5.Sum([]byte(c.Issuer.String() + c.SerialNumber.String())) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// rootSerial joins the serial numbers of the RSA certificates in the root file.
// Certificates that Go cannot read (the file holds one on a Chinese curve) do
// not count either.
func rootSerial(text string) (string, error) {
	var sns []string
	rest := []byte(text)
	for {
		block, more := pem.Decode(rest)
		if block == nil {
			break
		}
		rest = more
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (c.SignatureAlgorithm == x509.SHA1WithRSA || c.SignatureAlgorithm == x509.SHA256WithRSA) {
			sns = append(sns, serialOf(c))
		}
	}
	if len(sns) == 0 {
		return "", errors.New("holds no RSA certificate in PEM")
	}
	return strings.Join(sns, "_"), nil
}
