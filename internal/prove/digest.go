package prove

import (
	"time"
)

// digest is a running hash (FNV-1a, 64 bits): cheap, and the same in every
// process.
type digest uint64

const digestStart digest = 14695981039346656037

func (d digest) num(n int64) digest {
	x := uint64(n)
	for range 8 {
		d = (d ^ digest(x&0xff)) * 1099511628211
		x >>= 8
	}
	return d
}

func (d digest) text(s string) digest {
	for i := range len(s) {
		d = (d ^ digest(s[i])) * 1099511628211
	}
	return (d ^ 0xff) * 1099511628211
}

func (d digest) flag(b bool) digest {
	if b {
		return d.num(1)
	}
	return d.num(0)
}

func (d digest) time(t time.Time) digest {
	if t.IsZero() {
		return d.num(-1)
	}
	return d.num(t.UnixMicro())
}

// mix is splitmix64: a good spread out of a counter.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
