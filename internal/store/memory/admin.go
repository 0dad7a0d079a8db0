package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/payonce/payonce/internal/store"
)

// APIKey implements store.Reader.
func (s *Store) APIKey(ctx context.Context, hash [32]byte) (*store.APIKey, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, k := range s.apiKeys {
		if k.Hash == hash {
			return &k, nil
		}
	}
	return nil, store.ErrNotFound
}

// APIKeys implements store.Admin, oldest first.
func (s *Store) APIKeys(ctx context.Context) ([]store.APIKey, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := slices.Clone(s.apiKeys)
	slices.SortFunc(out, func(a, b store.APIKey) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

// AddAPIKey implements store.Admin.
func (s *Store) AddAPIKey(ctx context.Context, k store.APIKey) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	role := k.Role == "api" || k.Role == "operator" || k.Role == "read"
	if !role || !environment(k.Environment) {
		return fmt.Errorf("%w: api_keys: role %q, environment %q", store.ErrConflict, k.Role, k.Environment)
	}
	for _, have := range s.apiKeys {
		switch {
		case have.Hash == k.Hash && have.Merchant == k.Merchant && have.Environment == k.Environment && have.Role == k.Role:
			return nil
		case have.Hash == k.Hash:
			return fmt.Errorf("%w: this key is stored for another purpose", store.ErrConflict)
		case have.ID == k.ID:
			return fmt.Errorf("%w: the id %s belongs to another key", store.ErrConflict, k.ID)
		}
	}
	if k.CreatedAt.IsZero() {
		k.CreatedAt = s.now()
	}
	k.CreatedAt, k.RevokedAt = stamp(k.CreatedAt), stamp(k.RevokedAt)
	s.apiKeys = append(s.apiKeys, k)
	return nil
}

// RevokeAPIKey implements store.Admin. Revoking again keeps the first time.
func (s *Store) RevokeAPIKey(ctx context.Context, id string) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for i := range s.apiKeys {
		if k := &s.apiKeys[i]; k.ID == id {
			if k.RevokedAt.IsZero() {
				k.RevokedAt = s.now()
			}
			return nil
		}
	}
	return store.ErrNotFound
}

// Installation implements store.Admin.
func (s *Store) Installation(ctx context.Context) (string, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	return s.installation, nil
}
