package httpapi

import (
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// Roles of an API key. A key of role read may only look.
const (
	roleAPI      = "api"
	roleOperator = "operator"
	roleRead     = "read"
)

// keyPrefixes says which environment a key claims by its first characters.
var keyPrefixes = []struct {
	prefix      string
	environment payonce.Environment
}{
	{"sk_live_", payonce.Live},
	{"sk_test_", payonce.Test},
	{"sk_dev_", payonce.Test},
}

// maxKeyLength bounds what is hashed for a stranger.
const maxKeyLength = 256

// unauthorized says nothing about what was wrong: a stranger learns neither that
// a key exists nor that it was revoked.
func unauthorized() error {
	return payonce.Errorf(payonce.CodeUnauthorized, "A valid API key is needed: Authorization: Bearer sk_…")
}

// authenticate finds merchant, environment and role by the API key alone, then
// asks the rate limit, then the role.
func (x *exchange) authenticate() error {
	k, err := x.credential()
	if err != nil {
		return err
	}
	x.scope = store.Scope{Merchant: k.Merchant, Environment: k.Environment}
	if x.Allow != nil {
		if wait := x.Allow(x.scope); wait > 0 {
			return limited(wait)
		}
	}
	if !permitted(k.Role, x.route.access) {
		return payonce.Errorf(payonce.CodeForbidden, "The role of this API key does not allow this call.")
	}
	return nil
}

func permitted(role string, a access) bool {
	switch a {
	case accessRead:
		return role == roleRead || role == roleAPI || role == roleOperator
	case accessWrite:
		return role == roleAPI || role == roleOperator
	case accessOperator:
		return role == roleOperator
	}
	return false
}

// credential returns the stored key that the request carries.
func (x *exchange) credential() (*store.APIKey, error) {
	lines := x.r.Header["Authorization"]
	if len(lines) != 1 {
		return nil, unauthorized()
	}
	scheme, secret, _ := strings.Cut(lines[0], " ")
	secret = strings.TrimSpace(secret)
	environment := claimed(secret)
	if !strings.EqualFold(scheme, "Bearer") || environment == "" {
		return nil, unauthorized()
	}
	now := x.Runner.Now()
	hash := sha256.Sum256([]byte(secret))
	k := x.keys.get(hash, now)
	if k == nil {
		var err error
		k, err = x.Reader.APIKey(x.r.Context(), hash)
		if errors.Is(err, store.ErrNotFound) || (err == nil && k == nil) {
			return nil, unauthorized()
		}
		if err != nil {
			return nil, err
		}
		x.keys.put(hash, k, now)
	}
	revoked := !k.RevokedAt.IsZero() && !now.Before(k.RevokedAt)
	if revoked || k.Environment != environment || k.Merchant == "" {
		return nil, unauthorized()
	}
	return k, nil
}

// claimed returns the environment that the key's prefix names, "" for a text
// that cannot be a key.
func claimed(secret string) payonce.Environment {
	if len(secret) > maxKeyLength {
		return ""
	}
	for _, p := range keyPrefixes {
		if rest, ok := strings.CutPrefix(secret, p.prefix); ok && rest != "" {
			return p.environment
		}
	}
	return ""
}

const (
	keyCacheTime = 10 * time.Second
	keyCacheSize = 4096
)

// keyCache spares a read for each request. A key that is revoked works for at
// most keyCacheTime longer on each process; a key that is not known is asked for
// every time, so a new key works at once.
type keyCache struct {
	mu      sync.RWMutex
	entries map[[32]byte]cachedKey
}

type cachedKey struct {
	key   *store.APIKey
	until time.Time
}

func newKeyCache() *keyCache { return &keyCache{entries: make(map[[32]byte]cachedKey)} }

func (c *keyCache) get(hash [32]byte, now time.Time) *store.APIKey {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e, ok := c.entries[hash]; ok && now.Before(e.until) {
		return e.key
	}
	return nil
}

func (c *keyCache) put(hash [32]byte, k *store.APIKey, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= keyCacheSize {
		for h, e := range c.entries {
			if !now.Before(e.until) {
				delete(c.entries, h)
			}
		}
		if len(c.entries) >= keyCacheSize {
			clear(c.entries) // more keys in use than fit: correct, only slower
		}
	}
	c.entries[hash] = cachedKey{k, now.Add(keyCacheTime)}
}
