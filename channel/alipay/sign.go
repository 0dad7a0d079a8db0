package alipay

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// canonical is the text that a request's signature covers: every parameter but
// sign, sorted by its name, joined as name=value with &, values as they are. No
// parameter is ever empty, so that it cannot matter whether empty ones count.
func canonical(params map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(params)) {
		if k == "sign" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(k)
		b.WriteByte('=')
		b.WriteString(params[k])
	}
	return b.String()
}

// signed adds certificate mode's serial numbers and the signature. It is
// deterministic: PKCS #1 v1.5 uses no random numbers.
func (a *Adapter) signed(params map[string]string) (map[string]string, error) {
	out := maps.Clone(params)
	maps.Copy(out, a.certSNs)
	sum := sha256.Sum256([]byte(canonical(out)))
	sig, err := rsa.SignPKCS1v15(nil, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return nil, fmt.Errorf("alipay: the request cannot be signed: %w", err)
	}
	out["sign"] = base64.StdEncoding.EncodeToString(sig)
	return out, nil
}

// form encodes parameters for transport, sorted by name.
func form(params map[string]string) string {
	v := make(url.Values, len(params))
	for k, s := range params {
		v.Set(k, s)
	}
	return v.Encode()
}

var errSignature = errors.New("alipay: the signature is no base64")

// signature decodes base64 strictly: exactly one text stands for given bytes.
func signature(s string) ([]byte, error) {
	if s == "" || len(s) > 1024 || strings.ContainsAny(s, "\r\n") {
		return nil, errSignature
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, errSignature
	}
	return sig, nil
}
