package core

import (
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Seed gives names, numbers and keys that are the same whenever the seed is.
type Seed struct{ key [32]byte }

func newSeed(n int64) Seed {
	return Seed{key: sha256.Sum256(binary.BigEndian.AppendUint64([]byte("payonce simulator 1:"), uint64(n)))}
}

// randomSeed is never 0, which means "none given".
func randomSeed() int64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // never fails (see its documentation)
	return int64(binary.BigEndian.Uint64(b[:])>>1) | 1
}

// stream is an endless row of bytes that follows from the seed and a label.
type stream struct {
	seed  Seed
	label string
	block uint64
	rest  []byte
}

func (s *stream) read(n int) []byte {
	out := make([]byte, 0, n)
	for len(out) < n {
		if len(s.rest) == 0 {
			mac := hmac.New(sha256.New, s.seed.key[:])
			mac.Write([]byte(s.label))
			mac.Write(binary.BigEndian.AppendUint64([]byte{0}, s.block))
			s.rest = mac.Sum(nil)
			s.block++
		}
		take := min(n-len(out), len(s.rest))
		out = append(out, s.rest[:take]...)
		s.rest = s.rest[take:]
	}
	return out
}

// Text is n letters and digits for the serial-th use of a label.
func (s Seed) Text(label string, serial int64, n int) string {
	return s.pick(label, serial, n, base62)
}

// Digits is n decimal digits, the first one not 0.
func (s Seed) Digits(label string, n int) string {
	return s.pick(label, 0, 1, "123456789") + s.pick(label+" rest", 0, n-1, "0123456789")
}

// Hex is n lower-case hexadecimal digits.
func (s Seed) Hex(label string, n int) string { return s.HexOf(label, 0, n) }

// HexOf is n lower-case hexadecimal digits for the serial-th use of a label.
func (s Seed) HexOf(label string, serial int64, n int) string {
	return s.pick(label, serial, n, "0123456789abcdef")
}

func (s Seed) pick(label string, serial int64, n int, letters string) string {
	st := stream{seed: s, label: string(binary.BigEndian.AppendUint64([]byte(label+"\x00"), uint64(serial)))}
	out := make([]byte, 0, n)
	for len(out) < n {
		for _, b := range st.read(n) {
			// Bytes above the largest multiple would favour the first letters.
			if len(out) < n && int(b) < 256/len(letters)*len(letters) {
				out = append(out, letters[int(b)%len(letters)])
			}
		}
	}
	return string(out)
}

// RSA is the 2048-bit key of a label. The standard library's generator does
// not promise equal keys for equal randomness, so the primes are searched
// here. It takes some tenths of a second.
func (s Seed) RSA(label string) (*rsa.PrivateKey, error) {
	e := big.NewInt(65537)
	one := big.NewInt(1)
	st := &stream{seed: s, label: "rsa " + label}
	for {
		p, q := prime(st), prime(st)
		n := new(big.Int).Mul(p, q)
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		d := new(big.Int).ModInverse(e, phi)
		if d == nil || n.BitLen() != 2048 || p.Cmp(q) == 0 {
			continue
		}
		key := &rsa.PrivateKey{
			PublicKey: rsa.PublicKey{N: n, E: 65537},
			D:         d,
			Primes:    []*big.Int{p, q},
		}
		key.Precompute()
		return key, key.Validate()
	}
}

// prime finds a 1024-bit prime whose two highest bits are set: it starts at a
// random odd number, sieves the next ones by small primes and tests the rest.
func prime(st *stream) *big.Int {
	const window = 4096 // odd numbers looked at from one start
	b := st.read(128)
	b[0] |= 0xc0
	b[127] |= 1
	start := new(big.Int).SetBytes(b)
	var composite [window]bool
	for _, p := range smallPrimes {
		r := int(new(big.Int).Mod(start, big.NewInt(int64(p))).Int64())
		// start + 2i = 0 mod p
		for i := (p - r) % p * ((p + 1) / 2) % p; i < window; i += p {
			composite[i] = true
		}
	}
	for i, c := range composite {
		if c {
			continue
		}
		candidate := new(big.Int).Add(start, big.NewInt(int64(2*i)))
		if candidate.ProbablyPrime(0) && candidate.ProbablyPrime(8) && candidate.BitLen() == 1024 {
			return candidate
		}
	}
	return prime(st)
}

// smallPrimes are the odd primes below 2000.
var smallPrimes = func() []int {
	var primes []int
	var composite [2000]bool
	for n := 3; n < len(composite); n += 2 {
		if composite[n] {
			continue
		}
		primes = append(primes, n)
		for m := n * n; m < len(composite); m += n {
			composite[m] = true
		}
	}
	return primes
}()
