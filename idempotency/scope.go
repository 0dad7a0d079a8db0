package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// recordVersion is the first hashed field of a record id. Changing it, or the
// order of the fields, would make every stored record unreachable; a golden
// vector in the tests forbids that.
const recordVersion = "record-v1"

// ErrNoScope says that the caller's environment or tenant is empty. It is a fault
// of the service, not of the client: without a scope all nameless callers would
// share one bucket of keys and could replay each other's answers (R10).
var ErrNoScope = errors.New("idempotency: the scope has no environment or no tenant")

// Scope is where a key is unique: one tenant in one environment (R9, R10).
type Scope struct {
	// Environment is for instance "live" or "test".
	Environment string
	// Tenant is the merchant of the authenticated caller: not the credential,
	// and never anything that the client wrote into the request.
	Tenant string
}

// Validate returns [ErrNoScope] when a part of the scope is empty.
func (s Scope) Validate() error {
	if s.Environment == "" || s.Tenant == "" {
		return ErrNoScope
	}
	return nil
}

// RecordID names the record of one key in one scope. It is stored as 32 raw bytes
// (BYTEA, BINARY(32), BLOB), so that no collation or index limit matters (R12).
type RecordID [sha256.Size]byte

// String returns the id as 64 lower-case hexadecimal digits.
func (id RecordID) String() string { return hex.EncodeToString(id[:]) }

// Record returns the id of the key's record in this scope: SHA-256 over version,
// environment, tenant and key, each with its length in front, so that no two
// different sets of fields hash the same bytes (R9).
//
// It panics when the scope or the key is empty, since carrying on would put
// strangers into one record; [Scope.Validate] and [ParseKey] come first.
func (s Scope) Record(k Key) RecordID {
	if err := s.Validate(); err != nil {
		panic(err)
	}
	if k == "" {
		panic("idempotency: record of an empty key")
	}
	buf := make([]byte, 0, 512)
	buf = appendField(buf, recordVersion)
	buf = appendField(buf, s.Environment)
	buf = appendField(buf, s.Tenant)
	buf = appendField(buf, string(k))
	return sha256.Sum256(buf)
}

// appendField appends the length of field (8 bytes, big endian) and field.
func appendField[T string | []byte](dst []byte, field T) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(field)))
	return append(dst, field...)
}

// openField appends room for a length that is not known yet; closeField fills it
// in. Together they append a field that is built in place.
func openField(dst []byte) (_ []byte, start int) {
	dst = append(dst, make([]byte, 8)...)
	return dst, len(dst)
}

func closeField(dst []byte, start int) []byte {
	binary.BigEndian.PutUint64(dst[start-8:start], uint64(len(dst)-start))
	return dst
}
