package idempotency

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// The codes of the layer. They are part of the API and never change.
const (
	CodeKeyMissing          = "idempotency-key-missing"
	CodeKeyInvalid          = "idempotency-key-invalid"
	CodeNotFingerprintable  = "request-not-fingerprintable"
	CodeKeyReused           = "idempotency-key-reused"
	CodeInProgress          = "idempotency-in-progress"
	CodeOutcomeUnknown      = "outcome-unknown"
	CodeResultUnavailable   = "result-unavailable"
	CodeResultExpired       = "result-expired"
	CodeUnavailable         = "idempotency-unavailable"
	CodeTooManyUnresolved   = "too-many-unresolved"
	CodeReplayNotAuthorized = "replay-not-authorized"
	CodeRecordCorrupt       = "record-corrupt"
)

// KeyMissing refuses a request without a key on a route that requires one (R2).
// Nothing is recorded.
func KeyMissing() *Problem {
	return &Problem{
		Code: CodeKeyMissing, Status: http.StatusBadRequest,
		Title:  "Idempotency-Key is missing",
		Detail: "This request needs an Idempotency-Key header. Make one random key per operation, and send the same key with every repetition.",
		Retry:  RetryNewKey, SafeNewKey: true,
	}
}

// KeyInvalid refuses a malformed key (R5 to R7). detail must not contain the key.
// Nothing is recorded.
func KeyInvalid(detail string) *Problem {
	return &Problem{
		Code: CodeKeyInvalid, Status: http.StatusBadRequest,
		Title:  "Idempotency-Key is invalid",
		Detail: detail,
		Retry:  RetryNever, SafeNewKey: true,
	}
}

// NotFingerprintable refuses a request that cannot be compared with another one:
// status 400 (form), 413 (size) or 415 (encoding), R15, R16, R19. Nothing is
// recorded.
func NotFingerprintable(status int, detail string, errors ...FieldError) *Problem {
	return &Problem{
		Code: CodeNotFingerprintable, Status: status,
		Title:  "Request cannot be identified",
		Detail: detail,
		Retry:  RetryNewKey, SafeNewKey: true,
		Errors: errors,
	}
}

// Reused refuses a key that belongs to another request (R17). The record stays as
// it is. SafeNewKey is false, since only the client knows whether it meant a new
// operation or changed a repetition by mistake.
func Reused() *Problem {
	return &Problem{
		Code: CodeKeyReused, Status: http.StatusUnprocessableEntity,
		Title:  "Idempotency-Key was used for another request",
		Detail: "This key belongs to a request with another method, path, query or body. Send the original request to repeat it, or use a new key if this is a new operation.",
		Retry:  RetryNever,
	}
}

// InProgress answers while the first request with this key still runs (R32).
// operation may be "", elapsed is how long it has been running.
func InProgress(operation string, elapsed time.Duration) *Problem {
	return &Problem{
		Code: CodeInProgress, Status: http.StatusConflict,
		Title:  "Request is in progress",
		Detail: "The first request with this key has not been answered yet. Send the same request with the same key again after the given time.",
		Retry:  RetrySameKey, Operation: operation,
		RetryAfter: RetryAfterInProgress(elapsed),
	}
}

// RetryAfterInProgress is how long a client waits for a request that has been
// running for elapsed: as long again, in whole seconds, at least 1 and at most
// 10 s; never the whole lease (R32).
func RetryAfterInProgress(elapsed time.Duration) time.Duration {
	return min(max(time.Duration(seconds(elapsed))*time.Second, time.Second), 10*time.Second)
}

// OutcomeUnknown answers a retry while nobody knows what came of the operation
// and it has no resource to show (R41). The record is unchanged.
func OutcomeUnknown(operation string, retryAfter time.Duration) *Problem {
	return &Problem{
		Code: CodeOutcomeUnknown, Status: http.StatusConflict,
		Title:  "Outcome is not known yet",
		Detail: "The operation was started and its result is being found out. Send the same request with the same key again after the given time; a new key could do the operation twice.",
		Retry:  RetrySameKey, Operation: operation, OperationState: "unknown",
		RetryAfter: retryAfter,
	}
}

// OutcomeNotStored answers the first request when its result could not be stored
// (R37): the operation may have happened, and no answer may be given that a retry
// could contradict.
func OutcomeNotStored(operation string, retryAfter time.Duration) *Problem {
	p := OutcomeUnknown(operation, retryAfter)
	p.Status = http.StatusServiceUnavailable
	return p
}

// ResultUnavailable answers a retry of a completed operation whose body was not
// kept (R48). originalStatus is the status of the first answer, location the
// address of the resource or "".
func ResultUnavailable(operation string, originalStatus int, location string) *Problem {
	return &Problem{
		Code: CodeResultUnavailable, Status: http.StatusConflict,
		Title:  "Result is not available",
		Detail: "The operation is completed, but its answer was not kept. Read the operation instead; a new key would do it again.",
		Retry:  RetryNever, Operation: operation, OperationState: "completed",
		OriginalStatus: originalStatus, Location: location,
	}
}

// ResultExpired is [ResultUnavailable] for a body whose time of keeping is over
// (R59).
func ResultExpired(operation string, originalStatus int, location string) *Problem {
	p := ResultUnavailable(operation, originalStatus, location)
	p.Code = CodeResultExpired
	p.Title = "Result is no longer available"
	p.Detail = "The operation is completed, but its answer is no longer kept. Read the operation instead; a new key would do it again."
	return p
}

// Unavailable answers when the claim failed or its result is uncertain (R63).
// Nothing was run. Retry-After is 1 to 3 s, at random, so that waiting clients do
// not come back all at once.
func Unavailable() *Problem {
	return &Problem{
		Code: CodeUnavailable, Status: http.StatusServiceUnavailable,
		Title:  "Service is temporarily unavailable",
		Detail: "The request could not be recorded, so it was not run. Send the same request with the same key again after the given time.",
		Retry:  RetrySameKey, RetryAfter: time.Duration(1+rand.IntN(3)) * time.Second,
	}
}

// TooManyUnresolved refuses new operations of a tenant that has too many of
// unknown outcome (R66). Nothing is recorded.
func TooManyUnresolved() *Problem {
	return &Problem{
		Code: CodeTooManyUnresolved, Status: http.StatusTooManyRequests,
		Title:  "Too many operations have no known outcome",
		Detail: "No new operation is started until earlier ones are resolved. Send the same request with the same key again later.",
		Retry:  RetrySameKey,
	}
}

// ReplayNotAuthorized refuses the stored answer to a caller who may not see it
// now (R11). The record is unchanged.
func ReplayNotAuthorized() *Problem {
	return &Problem{
		Code: CodeReplayNotAuthorized, Status: http.StatusForbidden,
		Title:  "Not allowed to see this result",
		Detail: "The operation was done for another caller. The result is shown only to callers who are allowed to see it now.",
		Retry:  RetryNever,
	}
}

// RecordCorrupt answers when the stored record cannot be read (R49). Nothing is
// run; an operator has to look at it.
func RecordCorrupt(operation string) *Problem {
	return &Problem{
		Code: CodeRecordCorrupt, Status: http.StatusInternalServerError,
		Title:  "Record cannot be read",
		Detail: "The stored result of this operation cannot be read. Nothing was run. Do not use a new key; ask the operator of this service.",
		Retry:  RetrySameKey, Operation: operation,
	}
}
