package idempotency

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"sync"
)

// fingerprintVersion is the version that new fingerprints get. A change of what is
// hashed is a new version; the old one stays readable in [Fingerprinter.Match] for
// as long as records of it may exist (R18).
const fingerprintVersion = 1

// Errors of [Fingerprinter.Match]. They say that the record cannot be compared,
// which is neither equal nor different: the service answers 5xx and runs nothing.
// It must not answer 422, which would blame an honest repetition.
var (
	ErrUnknownVersion = errors.New("idempotency: fingerprint of an unknown version")
	ErrUnknownSecret  = errors.New("idempotency: fingerprint under an unknown secret")
)

// Request is what makes two requests the same (R14). What changes between honest
// attempts is left out: User-Agent, tracing, Date, Authorization, Accept, the key.
type Request struct {
	Method      string
	EscapedPath string // the concrete path as received, not the route's template
	RawQuery    string // as received, without the question mark
	ContentType string // as received; its parameters do not count
	APIVersion  string // of the API-version header, "" if the API has none
	// Extra are values of further headers that the service configured, always in
	// the same order and number, "" for an absent one.
	Extra []string
	Body  []byte
	// RawBody compares the bytes of the body whatever its type is (R15).
	RawBody bool
}

// RequestOf takes from an HTTP request what every service compares. The path comes
// from the request line, so that a prefix stripped by a router still counts. body
// is what [ReadBody] returned. APIVersion, Extra and RawBody are the caller's.
func RequestOf(r *http.Request, body []byte) Request {
	path, query := r.URL.EscapedPath(), r.URL.RawQuery
	if strings.HasPrefix(r.RequestURI, "/") {
		path, query, _ = strings.Cut(r.RequestURI, "?")
	}
	return Request{
		Method:      r.Method,
		EscapedPath: path,
		RawQuery:    query,
		ContentType: r.Header.Get("Content-Type"),
		Body:        body,
	}
}

// Fingerprint is stored with the record. Version and Secret say how Sum was made.
type Fingerprint struct {
	Version int
	Secret  string // the id of the secret, not the secret
	Sum     [sha256.Size]byte
}

// Secret is one HMAC key with the id that is stored beside its fingerprints.
type Secret struct {
	ID  string // 1 to 64 bytes, unique for ever
	Key []byte // at least 16 bytes, better 32 random ones
}

// Format writes the id and hides the key for every verb.
func (s Secret) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{ID:%q Key:[secret]}", s.ID)
}

// MarshalText refuses, so that a secret never gets into JSON or a log by accident.
func (s Secret) MarshalText() ([]byte, error) {
	return nil, errors.New("idempotency: a secret is not to be encoded")
}

const (
	minSecretKey = 16
	maxSecretID  = 64
)

// Fingerprinter computes and compares fingerprints. It is safe for concurrent use.
type Fingerprinter struct {
	current string
	secrets map[string]*sync.Pool // of *macState
}

// macState is a keyed hash that is used again, with room for its result.
type macState struct {
	h   hash.Hash
	sum [sha256.Size]byte
}

// NewFingerprinter returns a Fingerprinter that writes under current and still
// compares under the older secrets. To rotate: put the new secret in front and
// keep the old one until no record under it is left. On several nodes, deploy the
// new secret as an older one first, so that every node can read it before one
// node writes under it (R18).
//
// It fails when an id is empty, longer than 64 bytes or used twice, or a key has
// fewer than 16 bytes.
func NewFingerprinter(current Secret, older ...Secret) (*Fingerprinter, error) {
	f := &Fingerprinter{current: current.ID, secrets: make(map[string]*sync.Pool, 1+len(older))}
	for _, s := range append([]Secret{current}, older...) {
		switch _, twice := f.secrets[s.ID]; {
		case s.ID == "" || len(s.ID) > maxSecretID:
			return nil, fmt.Errorf("idempotency: the id of a fingerprint secret needs 1 to %d bytes, it has %d", maxSecretID, len(s.ID))
		case twice:
			return nil, fmt.Errorf("idempotency: two fingerprint secrets have the id %q", s.ID)
		case len(s.Key) < minSecretKey:
			return nil, fmt.Errorf("idempotency: the fingerprint secret %q needs at least %d bytes, it has %d", s.ID, minSecretKey, len(s.Key))
		}
		key := append([]byte(nil), s.Key...)
		f.secrets[s.ID] = &sync.Pool{New: func() any { return &macState{h: hmac.New(sha256.New, key)} }}
	}
	return f, nil
}

// Sum returns the fingerprint of the request in the scope, under the current
// version and secret.
//
// The error is a [*Problem] with the code [CodeNotFingerprintable] when the body
// has no canonical form, or [ErrNoScope].
func (f *Fingerprinter) Sum(s Scope, r Request) (Fingerprint, error) {
	sum, err := f.sum(f.secrets[f.current], s, r)
	if err != nil {
		return Fingerprint{}, err
	}
	return Fingerprint{Version: fingerprintVersion, Secret: f.current, Sum: sum}, nil
}

// Match reports whether the request is the one that the stored fingerprint was
// made of. It computes by the stored version and under the stored secret, and
// compares in constant time.
//
// An error means that there is no answer: [ErrUnknownVersion], [ErrUnknownSecret],
// or an error of [Fingerprinter.Sum].
func (f *Fingerprinter) Match(stored Fingerprint, s Scope, r Request) (bool, error) {
	if stored.Version != fingerprintVersion {
		return false, fmt.Errorf("%w: %d", ErrUnknownVersion, stored.Version)
	}
	macs, ok := f.secrets[stored.Secret]
	if !ok {
		return false, fmt.Errorf("%w: %q", ErrUnknownSecret, stored.Secret)
	}
	sum, err := f.sum(macs, s, r)
	if err != nil {
		return false, err
	}
	return hmac.Equal(sum[:], stored.Sum[:]), nil
}

// requestBuffers hold canonical requests while they are hashed.
var requestBuffers = sync.Pool{New: func() any { return new([]byte) }}

func (f *Fingerprinter) sum(macs *sync.Pool, s Scope, r Request) (sum [sha256.Size]byte, err error) {
	if err := s.Validate(); err != nil {
		return sum, err
	}
	buf := requestBuffers.Get().(*[]byte)
	canonical, err := appendRequestV1((*buf)[:0], s, r)
	if err == nil {
		m := macs.Get().(*macState)
		m.h.Reset()
		_, _ = m.h.Write(canonical) // a hash never fails
		m.h.Sum(m.sum[:0])
		sum = m.sum
		macs.Put(m)
	}
	if cap(canonical) <= keptBuffer {
		*buf = canonical[:0]
		requestBuffers.Put(buf)
	}
	return sum, err
}

// appendRequestV1 appends the canonical request (R14): every field with its length
// in front. The body is canonical JSON, a list of parts or the bytes as they are;
// which one follows from the media type and RawBody, both hashed before it.
func appendRequestV1(dst []byte, s Scope, r Request) ([]byte, error) {
	media := mediaType(r.ContentType)
	dst = appendField(dst, "request-v1")
	dst = appendField(dst, s.Environment)
	dst = appendField(dst, s.Tenant)
	dst = appendField(dst, r.Method)
	dst = appendField(dst, r.EscapedPath)
	dst = appendField(dst, r.RawQuery)
	dst = appendField(dst, media)
	dst = appendField(dst, r.APIVersion)
	dst, start := openField(dst)
	for _, value := range r.Extra {
		dst = appendField(dst, value)
	}
	dst = closeField(dst, start)
	dst = append(dst, boolByte(r.RawBody))
	dst, start = openField(dst)
	var err error
	switch {
	case r.RawBody || len(r.Body) == 0:
		// No body at all is the same for every type; the handler judges whether
		// it wanted one. No JSON document and no multipart body is empty.
		dst = append(dst, r.Body...)
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		var refusal *JSONError
		if dst, refusal = appendCanonical(dst, r.Body); refusal != nil {
			return dst, notJSON(refusal)
		}
	case strings.HasPrefix(media, "multipart/"):
		if dst, err = appendParts(dst, r.ContentType, r.Body); err != nil {
			return dst, err
		}
	default:
		dst = append(dst, r.Body...)
	}
	return closeField(dst, start), nil
}

func notJSON(e *JSONError) *Problem {
	p := NotFingerprintable(http.StatusBadRequest, "The request body is not a JSON document with exactly one meaning.",
		FieldError{Pointer: e.Pointer, Message: e.Reason})
	p.cause = e
	return p
}

// mediaType returns the type of a Content-Type value, lower case, without its
// parameters.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.Trim(media, " \t"))
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// readField appends what is left in r as one field.
func readField(dst []byte, r io.Reader) ([]byte, error) {
	dst, start := openField(dst)
	w := appender{dst}
	_, err := io.Copy(&w, r)
	return closeField(w.buf, start), err
}

type appender struct{ buf []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.buf = append(a.buf, p...)
	return len(p), nil
}
