package payonce

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// AuditEntry is one link of an order's hash chain: everything that one
// transaction changed. Its hash covers the hash of the entry before it, so a
// changed, missing or inserted entry shows.
type AuditEntry struct {
	OrderID string
	N       int64 // 1, 2, … within the order
	At      time.Time
	Actor   string // request, worker, notice, operator:<id>
	Changes []Change
	Hash    [32]byte
}

// Chain appends the changes of one transaction to the order's chain and moves
// its head; no changes make no entry. The salt makes entries of different writers differ, so that a
// writer whose commit answer was lost can tell its own entries from another's.
func (o *Order) Chain(changes []Change, actor string, salt [16]byte, at time.Time) []AuditEntry {
	if len(changes) == 0 {
		return nil
	}
	o.AuditLength++
	e := AuditEntry{OrderID: o.ID, N: o.AuditLength, At: at, Actor: actor, Changes: changes}
	e.Hash = auditHash(o.AuditHead, salt, &e)
	o.AuditHead = e.Hash
	return []AuditEntry{e}
}

// VerifyAudit recomputes the hash of an entry from its predecessor's.
func VerifyAudit(prev [32]byte, salt [16]byte, e *AuditEntry) bool {
	return auditHash(prev, salt, e) == e.Hash
}

func auditHash(prev [32]byte, salt [16]byte, e *AuditEntry) [32]byte {
	buf := make([]byte, 0, 320)
	buf = append(buf, prev[:]...)
	buf = append(buf, salt[:]...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(e.N))
	buf = binary.BigEndian.AppendUint64(buf, uint64(e.At.UnixMicro()))
	text := func(fields ...string) {
		for _, f := range fields {
			buf = binary.BigEndian.AppendUint32(buf, uint32(len(f)))
			buf = append(buf, f...)
		}
	}
	text(e.OrderID, e.Actor)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(e.Changes)))
	for _, c := range e.Changes {
		text(c.PaymentID, c.From, c.To, c.Cause, c.EvidenceID)
	}
	return sha256.Sum256(buf)
}
