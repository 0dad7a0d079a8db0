package stripesim

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"

	"github.com/payonce/payonce/internal/sim/core"
)

const (
	// keyLife is how long a finished key replays, on the virtual clock. After
	// it the same key executes again.
	keyLife      = 24 * 3600
	maxKeyLength = 255
)

// keyRow is a finished idempotency key; its answer is a blob of the same id.
type keyRow struct {
	Hash    string `json:"hash"`
	Created int64  `json:"created"` // virtual Unix seconds of the first request
	Status  int    `json:"status"`
	Request string `json:"request"` // id of the first request
	Number  string `json:"number"`  // what the first request was about
	Seq     int64  `json:"seq"`
}

type keyAge struct {
	key     string
	created int64
}

// requestHash is what a key is bound to: method, path and the body's bytes.
func requestHash(method, path string, body []byte) string {
	h := sha256.New()
	h.Write([]byte(method + "\n" + path + "\n"))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

func (s *Stripe) resumeKeys() {
	for key, row := range s.keys.Rows {
		s.keyAges = append(s.keyAges, keyAge{key: key, created: row.Created})
	}
	slices.SortFunc(s.keyAges, func(a, b keyAge) int { return cmp.Compare(a.created, b.created) })
	s.pruneKeys()
}

// pruneKeys forgets keys that are older than keyLife.
func (s *Stripe) pruneKeys() {
	now := s.now()
	for len(s.keyAges) > 0 && now-s.keyAges[0].created >= keyLife {
		oldest := s.keyAges[0]
		s.keyAges = s.keyAges[1:]
		if row := s.keys.Get(oldest.key); row != nil && row.Created == oldest.created {
			s.forgetKey(oldest.key)
		}
	}
}

func (s *Stripe) forgetKey(key string) {
	s.keys.Delete(key)
	s.answers.Delete(key)
}

// finishedKey is the living row of a key, or nil.
func (s *Stripe) finishedKey(key string) *keyRow {
	row := s.keys.Get(key)
	if row == nil || s.now()-row.Created >= keyLife {
		return nil
	}
	return row
}

// reserve decides what a key means for this call: nil, run it; or the answer
// that takes its place. Only inside Update.
func (s *Stripe) reserve(c *call) *result {
	s.pruneKeys()
	if len(c.key) > maxKeyLength {
		return fail(invalid("parameter_invalid", "", "Idempotency keys have at most 255 characters."))
	}
	hash, busy := s.running[c.key]
	row := s.finishedKey(c.key)
	if !busy && row != nil {
		hash = row.Hash
	}
	switch {
	case (busy || row != nil) && hash != c.hash:
		e := &apiError{Type: typeIdempotency, status: http.StatusBadRequest,
			Message: "Keys for idempotent requests can only be used with the same parameters they were first used with. " +
				"Try using a key other than '" + c.key + "' if you meant to execute a different request."}
		return fail(e)
	case busy:
		return fail(keyInUse(c.key))
	case row != nil:
		return &result{status: row.Status, replay: true, ref: s.answers.Ref(c.key), first: row.Request}
	}
	s.running[c.key] = c.hash
	c.reserved = true
	return nil
}

func keyInUse(key string) *apiError {
	e := coded("idempotency_key_in_use")
	e.Message = "There is currently another in-progress request using this Idempotent Key (" + key + "). Please try again later."
	return e
}

// finish ends a reservation; answers of requests that began to execute are
// kept. Only inside Update.
func (s *Stripe) finish(c *call, res *result) {
	if !c.reserved {
		return
	}
	delete(s.running, c.key)
	if !res.executed {
		return
	}
	row := &keyRow{Hash: c.hash, Created: c.received, Status: res.status, Request: c.request, Number: c.number, Seq: s.w.Sequence()}
	s.keys.Put(c.key, row)
	s.answers.Put(c.key, res.body)
	s.keyAges = append(s.keyAges, keyAge{key: c.key, created: row.Created})
}

// abandon frees a key whose request was cut off before it began.
func (s *Stripe) abandon(c *call) {
	s.w.View(func() { delete(s.running, c.key) })
}

// replayed marks an answer that was given before.
func replayed(a *core.Answer, first string) {
	a.Header.Set("Idempotent-Replayed", "true")
	a.Header.Set("Original-Request", first)
}
