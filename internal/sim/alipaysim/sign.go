package alipaysim

import (
	"crypto"
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// canonical is the text that is signed: key=value of all parameters except
// the dropped ones, sorted by key in byte order, joined by &, nothing escaped.
func canonical(params map[string]string, empties bool, drop ...string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(params)) {
		value := params[key]
		if slices.Contains(drop, key) || !empties && value == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(key + "=" + value)
	}
	return b.String()
}

// sign is SHA-256 with RSA PKCS #1 v1.5 in standard base64.
func sign(key *rsa.PrivateKey, text string) (string, error) {
	sum := sha256.Sum256([]byte(text))
	raw, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	return base64.StdEncoding.EncodeToString(raw), err
}

func verify(key *rsa.PublicKey, text, signature string) bool {
	raw, err := base64.StdEncoding.Strict().DecodeString(signature)
	if err != nil {
		return false
	}
	sum := sha256.Sum256([]byte(text))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], raw) == nil
}

// genuine tells whether a request was signed with the application's key: all
// parameters of query and body except sign; sign_type stays in. Parameters
// without a value are left out, but texts differ about that, so that a
// signature over all of them is taken too.
func genuine(key *rsa.PublicKey, params map[string]string) bool {
	signature := params["sign"]
	return verify(key, canonical(params, false, "sign"), signature) ||
		verify(key, canonical(params, true, "sign"), signature)
}

// SerialOf is what Alipay calls the SN of a certificate: MD5 of the issuer's
// name and the decimal serial number. It names a key, it protects nothing.
func SerialOf(c *x509.Certificate) string {
	sum := md5.Sum([]byte(c.Issuer.String() + c.SerialNumber.String()))
	return hex.EncodeToString(sum[:])
}
