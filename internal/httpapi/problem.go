package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

// fail answers with the problem that the error stands for. Causes go to the log
// and never to the client.
func (x *exchange) fail(err error) {
	if isHangUp(x.r.Context(), err) {
		x.status = statusClientGone
		return
	}
	p := x.toProblem(asInvalid(err))
	h := x.Header()
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if p.Status >= http.StatusInternalServerError {
		x.Logger.LogAttrs(x.r.Context(), slog.LevelError, "request failed",
			slog.String("request_id", x.id), slog.String("code", p.Code), slog.String("error", cause(errors.Join(err, x.printErr))))
	}
	p.Write(x, x.Encoder.docsURL())
}

// toProblem is the one place where errors become problems.
func (x *exchange) toProblem(err error) *idempotency.Problem {
	var refusal *engine.Refusal
	if errors.As(err, &refusal) {
		return x.refusal(refusal)
	}
	var e *payonce.Error
	if errors.As(err, &e) {
		return x.ownProblem(e)
	}
	var p *idempotency.Problem
	if errors.As(err, &p) {
		if p.Code == idempotency.CodeKeyReused && x.printErr != nil {
			return idempotency.RecordCorrupt("") // never blame an honest repetition (R18)
		}
		q := *p // the engine's may be shared
		return &q
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return x.Encoder.problem(payonce.CodeNotFound, "There is no such object.")
	case errors.Is(err, store.ErrOutcomeUnknown) && x.keyed():
		return idempotency.OutcomeNotStored("", pollAfter)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrOutcomeUnknown),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if x.keyed() {
			return idempotency.Unavailable()
		}
		p := x.Encoder.problem(payonce.CodeStoreUnavailable, "The store cannot be used now. Try again after the given time.")
		p.RetryAfter = idempotency.Unavailable().RetryAfter // the same jitter
		return p
	}
	return x.Encoder.problem(payonce.CodeInternal, "Something went wrong inside the service. What the request had done until then is kept; repeat it with the same key.")
}

// keyed reports whether the caller sent a key to a method that uses one; it may
// be asked before the key was looked at.
func (x *exchange) keyed() bool {
	return x.route.key != keyIgnored && len(x.r.Header.Values(idempotency.HeaderKey)) > 0
}

func (x *exchange) ownProblem(e *payonce.Error) *idempotency.Problem {
	p := x.Encoder.problem(e.Code, e.Detail)
	for _, f := range e.Fields {
		p.Errors = append(p.Errors, idempotency.FieldError(f))
	}
	switch e.Code {
	case payonce.CodeRateLimited, payonce.CodeOutcomeUnknown, payonce.CodeChannelUnreachable, payonce.CodeStoreUnavailable:
		p.RetryAfter = pollAfter
	}
	var l *limitError
	if errors.As(e, &l) {
		p.RetryAfter = l.wait
	}
	return p
}

// refusal adds what the engine knows about the payment in the way.
func (x *exchange) refusal(r *engine.Refusal) *idempotency.Problem {
	p := x.toProblem(asInvalid(r.Err))
	if r.RetryAfter > 0 {
		p.RetryAfter = r.RetryAfter
	}
	extra := make(map[string]json.RawMessage, 3)
	if r.Payment != nil {
		p.Location = paymentLocation(r.Payment)
		if p.Code == idempotency.CodeInProgress && p.Operation == "" {
			p.Operation, p.OperationState = r.Payment.ID, string(r.Payment.Status)
		}
		extra["payment"] = appendPayment(nil, r.Order, r.Payment, view{now: x.Runner.Now()})
	}
	if !r.ProvableAt.IsZero() || r.Why != "" {
		extra["provable_at"] = appendTime(nil, r.ProvableAt)
		extra["why"] = appendTextOrNull(nil, r.Why)
	}
	p.Extra = extra
	return p
}

// limitError carries how long a caller has to wait.
type limitError struct{ wait time.Duration }

func (*limitError) Error() string { return "rate limit" }

func limited(wait time.Duration) error {
	return &payonce.Error{
		Code: payonce.CodeRateLimited, Detail: "There are too many requests. Try again after the given time.",
		Err: &limitError{wait},
	}
}

// statusClientGone stands in log and metrics for requests whose client left
// before there was an answer; it is never sent.
const statusClientGone = 499

// isHangUp: nobody is left to answer, and nothing went wrong here.
func isHangUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// cause is the innermost text that helps an operator.
func cause(err error) string {
	var p *idempotency.Problem
	if errors.As(err, &p) && p.Unwrap() != nil {
		return p.Error() + ": " + p.Unwrap().Error()
	}
	return err.Error()
}
