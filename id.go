package payonce

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"strings"
	"time"
)

// Prefixes of identifiers. An identifier is its prefix and 26 characters of
// Crockford base32: 48 bits of milliseconds and 80 random bits, so that ids
// sort by time and inserts stay at the end of an index.
const (
	PrefixOrder    = "ord_"
	PrefixPayment  = "pay_"
	PrefixRefund   = "ref_"
	PrefixEvent    = "evt_"
	PrefixEndpoint = "whe_"
	PrefixCase     = "case_"
	PrefixToken    = "tok_"
	PrefixEvidence = "evd_"
	PrefixKey      = "key_"
)

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID makes an identifier from the time and ten random bytes that the caller
// hands in.
func NewID(prefix string, at time.Time, random [10]byte) string {
	var raw [16]byte
	ms := uint64(at.UnixMilli())
	binary.BigEndian.PutUint16(raw[0:], uint16(ms>>32))
	binary.BigEndian.PutUint32(raw[2:], uint32(ms))
	copy(raw[6:], random[:])
	var out [26]byte
	hi, lo := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	for i := 25; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return prefix + string(out[:])
}

// ValidID reports whether s has the prefix and the form of an identifier.
func ValidID(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || len(rest) != 26 {
		return false
	}
	for i := range len(rest) {
		if strings.IndexByte(crockford, rest[i]) < 0 {
			return false
		}
	}
	return true
}

// NumberLength is the length of a channel number.
const NumberLength = 20

// ChannelNumber derives the number under which the channel sees a payment: 20
// characters 0-9A-Z, deterministic for (installation, environment, merchant,
// order number, sequence). A row lost by a failover or a restore comes back
// with the same number, and the channel answers with the first charge.
func ChannelNumber(installation string, k OrderKey, sequence int) string {
	return deriveNumber(installation, "v1", string(k.Environment), k.Merchant, k.OrderNo, itoa(sequence))
}

func itoa(n int) string { return big.NewInt(int64(n)).String() }

var numberSpace = new(big.Int).Exp(big.NewInt(36), big.NewInt(NumberLength), nil)

// deriveNumber is HMAC-SHA-256 under the installation id over the
// length-prefixed fields, modulo 36^20, in base 36, zero-padded.
func deriveNumber(installation string, fields ...string) string {
	m := hmac.New(sha256.New, []byte(installation))
	var n [4]byte
	for _, f := range fields {
		binary.BigEndian.PutUint32(n[:], uint32(len(f)))
		m.Write(n[:])
		m.Write([]byte(f))
	}
	v := new(big.Int).SetBytes(m.Sum(nil))
	s := strings.ToUpper(v.Mod(v, numberSpace).Text(36))
	return strings.Repeat("0", NumberLength-len(s)) + s
}
