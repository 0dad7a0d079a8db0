package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/payonce/payonce/internal/store"
)

// touchNothing is a write that finds no row.
func (s *Store) touchNothing(ctx context.Context) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM installation WHERE one = 2")
		return err
	}
}

// APIKey implements store.Reader. A revoked key is found, with its time.
func (s *Store) APIKey(ctx context.Context, hash [32]byte) (*store.APIKey, error) {
	return one(query(ctx, s, apiKeyRows, "WHERE t.hash = ?", hash[:]))
}

// APIKeys implements store.Admin, oldest first.
func (s *Store) APIKeys(ctx context.Context) ([]store.APIKey, error) {
	found, err := query(ctx, s, apiKeyRows, "ORDER BY t.created_at, t.id")
	return values(found), err
}

// AddAPIKey implements store.Admin.
func (s *Store) AddAPIKey(ctx context.Context, k store.APIKey) error {
	if k.CreatedAt.IsZero() {
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		k.CreatedAt = now
	}
	text, args := s.d.Insert(apiKeyRows.table, [][]any{apiKeyRows.values(&k)}, true)
	if err := s.change(ctx, text, args...); err != nil {
		return err
	}
	have, err := s.APIKey(ctx, k.Hash)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: the id %s belongs to another key", store.ErrConflict, k.ID)
	}
	if err == nil && (have.Merchant != k.Merchant || have.Environment != k.Environment || have.Role != k.Role) {
		return fmt.Errorf("%w: this key is stored for another purpose", store.ErrConflict)
	}
	return err
}

// RevokeAPIKey implements store.Admin. Revoking again keeps the first time.
func (s *Store) RevokeAPIKey(ctx context.Context, id string) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	if err = s.change(ctx, s.d.Rebind("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at = 0"), micros(now), id); err != nil {
		return err
	}
	_, err = one(query(ctx, s, apiKeyRows, "WHERE t.id = ?", id))
	return err
}

// change runs one statement of a command in a transaction. A command that hears
// of no success is given again; its statements may run twice.
func (s *Store) change(ctx context.Context, text string, args ...any) error {
	return s.within(ctx, func(ctx context.Context) error {
		return s.onConn(ctx, func(conn *sql.Conn) error {
			tx, err := conn.BeginTx(ctx, s.txOptions())
			if err != nil {
				return err
			}
			if _, err = tx.ExecContext(ctx, text, args...); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		})
	})
}

// Installation implements store.Admin.
func (s *Store) Installation(ctx context.Context) (string, error) {
	var id []byte
	err := s.row(ctx, "SELECT id FROM installation WHERE one = 1", nil, &id)
	return string(id), err
}
