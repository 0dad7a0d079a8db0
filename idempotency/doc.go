// Package idempotency lets an HTTP service repeat a request without repeating
// what the request does.
//
// # The idea
//
// A client that loses the answer to "charge this card" has one safe move: to
// send the same request again. The service must then find out that it has seen
// the request, and say what came of it. The client names the operation with a
// key of its own choice in the Idempotency-Key header and keeps that key for
// every repetition.
//
// What the service keeps under that key is not a cached response. It is a
// durable record of who may cause a side effect. Nearly every bug of this kind
// comes from treating it as a cache: the entry is dropped because the response
// was "not cacheable" (a 500, a panic, a body too big, a client that left)
// although money had already moved, and the next attempt moves it again.
//
// # Three outcomes, not two
//
//   - Definite: the operation came to an end, good or bad. The answer is stored
//     and every repetition gets it again. A declined card is definite.
//   - Not started: it is proven that nothing left the process. The record is
//     released and the same key may run again.
//   - Unknown: anything else. The record is kept, never deleted by time, and a
//     repetition resumes by asking what happened. It never starts over.
//
// When in doubt the outcome is unknown. A time-out, a reset connection and a 5xx
// from the other side are unknown.
//
// # Scope
//
// A key belongs to a [Scope]: one tenant in one environment. The tenant comes
// from the authenticated caller, never from the request, and it is the merchant,
// not the credential, so that a credential may be rotated between two attempts.
// [Scope.Record] hashes scope and key into a [RecordID] of 32 bytes; keys of two
// tenants can neither see nor block each other, and no collation, length limit
// or index of a database can confuse them.
//
// # Fingerprint
//
// A key says "this is the same operation"; the [Fingerprint] checks it. It is an
// HMAC over method, path, query, media type and body. The body of a JSON request
// is compared by meaning ([CanonicalJSON]): member order and white space do not
// count, values do, and 1 and 1.0 are different because nobody may guess which of
// the two a client meant. The same key with another fingerprint is refused with
// 422 ([Reused]) in every state, and the first result stays as it is. Versions and
// secrets are stored with the fingerprint, so a deploy or a rotation never turns
// an honest repetition into a refusal.
//
// # Replay
//
// An [Answer] is kept as bytes. A replay has the same status, the same body byte
// for byte, those headers that belong to the result, and Idempotency-Replayed:
// true. Headers that belong to one response alone (cookies, dates, request ids,
// CORS, rate limits) are never stored: [StorableHeader].
//
// # Refusals
//
// Whatever this package refuses, it refuses with a [Problem]: a JSON document
// that tells a program what to do next. "retry" says whether to repeat with the
// same key, with a new one, or not at all; "safe_new_key" says whether a new key
// can be used without the risk of doing the thing twice.
//
// # Order of a request
//
// Authenticate and authorize first, then [ParseKey], [ReadBody], and
// [Fingerprinter.Sum]; only then claim the record. Whatever is refused before the
// claim leaves no record, and the same key may come again with a corrected
// request. On methods that change nothing ([SafeMethod]) the key is not even
// looked at.
//
// The rules are numbered (R1 to R72) in docs/idempotency.md; comments and tests
// cite these numbers.
//
// The package imports the standard library alone. It must not know what an
// operation is: no payment, order, channel or amount, no database, no clock, and
// nothing of the service that uses it.
package idempotency
