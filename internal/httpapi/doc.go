// Package httpapi is the HTTP API of the service: it turns requests into calls
// of the engine and what the engine or the reader say into answers.
//
// # A request
//
// Every request goes through the same steps in the same order: route, API key,
// rate, role, idempotency key, query, body, fingerprint, values; only then is
// the engine called (R4). Whatever is refused on the way was stored nowhere.
// Bodies are read by a decoder of this package, since what is refused matters as
// much as what is accepted: members and parameters that are not documented,
// members sent twice, numbers that are not written as integers. Nothing that
// moves money depends on the client staying connected.
//
// # An answer
//
// Objects are written by append functions without reflection, always with all
// members in one order. How POST /v1/payments answers is a function of the
// payment's state alone ([Encoder.Answer]), so a repetition cannot be told
// something else than the first caller. Errors are problem documents; their
// codes are one table, explained in docs/errors.md.
//
// # The document
//
// A [route] carries its handler and its description; huma makes OpenAPI 3.1 of
// the same Go types that the decoder fills. docs/openapi.yaml is that output.
// Further resources are further files, each with one function that returns
// routes, named in routes.go.
//
// The package sees the engine and the reader. It must not know SQL, how a
// channel is called, or when a payment changes its state.
package httpapi
