package web

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/payonce/payonce"
)

// Signer makes and reads the addresses of checkouts. An address names its order
// and carries a tag that only this installation can make, so that nobody finds
// an order by guessing.
type Signer struct {
	key  []byte
	base string
}

const (
	tokenVersion = 1
	tagSize      = 16
	maxToken     = 512
)

// NewSigner derives the signing key from the installation id. base is the
// public address of the service without a slash at the end.
func NewSigner(installation, base string) (*Signer, error) {
	key, err := hkdf.Key(sha256.New, []byte(installation), nil, "payonce checkout v1", sha256.Size)
	if err != nil {
		return nil, err
	}
	return &Signer{key: key, base: strings.TrimRight(base, "/")}, nil
}

// CheckoutURL returns the address of an order's checkout. It is the same for
// the life of the installation.
func (s *Signer) CheckoutURL(k payonce.OrderKey) string {
	return s.base + "/checkout/" + s.token(k)
}

// CheckoutURL is the function that API answers are given.
func CheckoutURL(s *Signer) func(payonce.OrderKey) string { return s.CheckoutURL }

func (s *Signer) token(k payonce.OrderKey) string {
	body := []byte{tokenVersion}
	for _, f := range [...]string{k.Merchant, string(k.Environment), k.OrderNo} {
		body = append(body, byte(len(f)))
		body = append(body, f...)
	}
	return base64.RawURLEncoding.EncodeToString(append(body, s.tag(body)...))
}

func (s *Signer) tag(body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("token"))
	m.Write(body)
	return m.Sum(nil)[:tagSize]
}

// order returns the order that a token names, and false for a token that this
// installation did not make.
func (s *Signer) order(token string) (payonce.OrderKey, bool) {
	var k payonce.OrderKey
	if len(token) > maxToken {
		return k, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) < 1+tagSize {
		return k, false
	}
	body, tag := raw[:len(raw)-tagSize], raw[len(raw)-tagSize:]
	if !hmac.Equal(tag, s.tag(body)) || body[0] != tokenVersion {
		return k, false
	}
	rest, fields := body[1:], [3]string{}
	for i := range fields {
		if len(rest) < 1 || len(rest) < 1+int(rest[0]) {
			return k, false
		}
		fields[i], rest = string(rest[1:1+rest[0]]), rest[1+rest[0]:]
	}
	k = payonce.OrderKey{Merchant: fields[0], Environment: payonce.Environment(fields[1]), OrderNo: fields[2]}
	return k, len(rest) == 0
}

// intentKey is the idempotency key of one wish of a payer: the same for all who
// wish it while the same number of attempts has ended. Callers of the API cannot
// guess it.
func (s *Signer) intentKey(k payonce.OrderKey, w wish) string {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("intent"))
	for _, f := range [...]string{k.Merchant, string(k.Environment), k.OrderNo, w.replace} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(f)))
		m.Write(n[:])
		m.Write([]byte(f))
	}
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(w.ended))
	m.Write(n[:])
	return "checkout-" + hex.EncodeToString(m.Sum(nil)[:24])
}
