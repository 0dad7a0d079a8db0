package idempotency_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/payonce/payonce/idempotency"
)

// charges is a service in small. The map plays the database: a real one claims the
// record in one atomic statement before the charge, and keeps the answer before it
// is sent, so that a crash in between is found and resumed.
type charges struct {
	prints  *idempotency.Fingerprinter
	records map[idempotency.RecordID]record
}

type record struct {
	fingerprint idempotency.Fingerprint
	answer      idempotency.Answer
}

func (c *charges) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := c.create(w, r)
	if err == nil {
		return
	}
	var p *idempotency.Problem
	if !errors.As(err, &p) {
		p = idempotency.Unavailable() // and log err
	}
	p.Write(w, "https://api.example/docs/errors.md")
}

func (c *charges) create(w http.ResponseWriter, r *http.Request) error {
	scope := idempotency.Scope{Environment: "live", Tenant: "merchant-1"} // of the authenticated caller
	key, present, err := idempotency.ParseKey(r.Header, idempotency.KeyOptions{})
	switch {
	case err != nil:
		return err
	case !present:
		return idempotency.KeyMissing()
	}
	body, err := idempotency.ReadBody(w, r, idempotency.MaxRequestBody)
	if err != nil {
		return err
	}
	request, id := idempotency.RequestOf(r, body), scope.Record(key)
	if known, ok := c.records[id]; ok {
		return replay(c.prints, known, scope, request, w)
	}
	fingerprint, err := c.prints.Sum(scope, request)
	if err != nil {
		return err
	}

	// Here the charge is made, once.
	header := http.Header{"Content-Type": {"application/json"}, "Set-Cookie": {"is not stored"}}
	answer := idempotency.Answer{
		Status: http.StatusCreated,
		Header: idempotency.StorableHeader(header),
		Body:   fmt.Appendf(nil, `{"charge":%d}`, len(c.records)+1),
	}
	c.records[id] = record{fingerprint, answer}
	answer.Write(w, false)
	return nil
}

func replay(prints *idempotency.Fingerprinter, known record, scope idempotency.Scope, request idempotency.Request, w http.ResponseWriter) error {
	same, err := prints.Match(known.fingerprint, scope, request)
	if err != nil {
		return err
	}
	if !same {
		return idempotency.Reused()
	}
	known.answer.Write(w, true)
	return nil
}

// A request walks through the layer: key, body, fingerprint, claim, and then
// either the work or the stored answer.
func Example() {
	prints, err := idempotency.NewFingerprinter(idempotency.Secret{ID: "2026-01", Key: []byte("32 random bytes from your vault.")})
	if err != nil {
		panic(err)
	}
	service := &charges{prints, map[idempotency.RecordID]record{}}

	send := func(key, body string) {
		r := httptest.NewRequest("POST", "/charges", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		w := httptest.NewRecorder()
		service.ServeHTTP(w, r)
		_, code, refused := strings.Cut(w.Body.String(), `"code":"`)
		if refused {
			code, _, _ = strings.Cut(code, `"`)
			fmt.Println(w.Code, code)
			return
		}
		fmt.Println(w.Code, w.Body, "replayed:", w.Header().Get("Idempotency-Replayed") == "true")
	}
	send("k1", `{"amount":100,"currency":"EUR"}`)
	send(`"k1"`, `{ "currency":"EUR", "amount":100 }`) // same key, same meaning
	send("k1", `{"amount":101,"currency":"EUR"}`)      // same key, other request
	send("k2", `{"amount":100,"currency":"EUR"}`)      // another operation
	send("k3", `{"amount":100,"amount":1}`)            // two meanings
	send("", `{"amount":100,"currency":"EUR"}`)

	// Output:
	// 201 {"charge":1} replayed: false
	// 201 {"charge":1} replayed: true
	// 422 idempotency-key-reused
	// 201 {"charge":2} replayed: false
	// 400 request-not-fingerprintable
	// 400 idempotency-key-missing
}
