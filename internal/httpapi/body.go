package httpapi

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
)

// readBody reads the whole body within its limits, before anything is claimed
// (R16, R19).
func (x *exchange) readBody() error {
	if x.r.ContentLength != 0 && !isJSON(x.r.Header) {
		return payonce.Errorf(payonce.CodeUnsupportedMedia, "The request body must be JSON: Content-Type: application/json.")
	}
	x.buffer = x.r.ContentLength
	if x.buffer < 0 || x.buffer > x.MaxBody {
		x.buffer = x.MaxBody
	}
	if x.buffered.Add(x.buffer) > x.MaxBuffers {
		return idempotency.Unavailable()
	}
	body, err := idempotency.ReadBody(x.ResponseWriter, x.r, x.MaxBody)
	if err != nil {
		return err
	}
	x.body = body
	return nil
}

// releaseBody gives the body's share of the memory budget back.
func (x *exchange) releaseBody() {
	x.buffered.Add(-x.buffer)
	x.buffer = 0
}

// isJSON accepts application/json in UTF-8, said once.
func isJSON(h http.Header) bool {
	lines := h["Content-Type"]
	if len(lines) != 1 {
		return false
	}
	if lines[0] == mediaJSON {
		return true
	}
	media, params, err := mime.ParseMediaType(lines[0])
	if err != nil || media != mediaJSON {
		return false
	}
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}

// identify finds out whether the body has exactly one meaning, and with a key
// also record and fingerprint of the request.
func (x *exchange) identify(key idempotency.Key) error {
	if key == "" {
		if len(x.body) == 0 {
			return nil
		}
		_, err := idempotency.CanonicalJSON(x.body)
		return err
	}
	s := idempotency.Scope{Environment: string(x.scope.Environment), Tenant: x.scope.Merchant}
	request := idempotency.RequestOf(x.r, x.body)
	print, err := x.Fingerprinter.Sum(s, request)
	if err != nil {
		return err
	}
	record := [32]byte(s.Record(key))
	x.key, x.print = &record, print
	x.same = func(stored idempotency.Fingerprint) bool {
		same, err := x.Fingerprinter.Match(stored, s, request)
		if err != nil {
			x.printErr = err
		}
		return same
	}
	return nil
}

// parseQuery refuses parameters that are not documented, sent twice, or cannot
// be decoded.
func (x *exchange) parseQuery() error {
	raw := x.r.URL.RawQuery
	if raw == "" {
		return nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return payonce.Errorf(payonce.CodeInvalidRequest, "The query cannot be decoded.")
	}
	var wrong []payonce.Field
	for name, values := range query {
		switch {
		case !x.route.allowsQuery(name):
			wrong = append(wrong, payonce.Field{Pointer: queryPointer(name), Message: "There is no such parameter."})
		case len(values) > 1:
			wrong = append(wrong, payonce.Field{Pointer: queryPointer(name), Message: "The parameter was sent more than once."})
		}
	}
	if len(wrong) > 0 {
		return invalid(wrong)
	}
	x.query = query
	return nil
}

func queryPointer(name string) string { return "/query/" + pointerToken(name) }

// asInvalid turns what the idempotency layer refuses about a body into the
// service's own codes: 400, 413 and 415 are the same for every route, keyed or
// not.
func asInvalid(err error) error {
	var p *idempotency.Problem
	if errors.As(err, &p) && p.Code == idempotency.CodeNotFingerprintable {
		e := &payonce.Error{Code: payonce.CodeInvalidRequest, Detail: p.Detail, Err: p.Unwrap()}
		switch p.Status {
		case http.StatusRequestEntityTooLarge:
			e.Code = payonce.CodeTooLarge
		case http.StatusUnsupportedMediaType:
			e.Code = payonce.CodeUnsupportedMedia
		}
		for _, f := range p.Errors {
			e.Fields = append(e.Fields, payonce.Field(f))
		}
		return e
	}
	var j *idempotency.JSONError
	if errors.As(err, &j) {
		return &payonce.Error{
			Code:   payonce.CodeInvalidRequest,
			Detail: "The request body is not a JSON document with exactly one meaning.",
			Fields: []payonce.Field{{Pointer: j.Pointer, Message: j.Reason}},
		}
	}
	return err
}
