package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/payonce/payonce"
)

// readyWithin bounds how long the answer to /readyz may take.
const readyWithin = 3 * time.Second

// healthDoc is the answer of the health checks.
type healthDoc struct {
	Status string `json:"status" enum:"ok,ready"`
}

func healthRoutes() []*route {
	body := reflect.TypeFor[healthDoc]()
	return []*route{
		{
			method: http.MethodGet, path: "/healthz", access: accessOpen, handle: (*exchange).healthz,
			id: "healthz", tag: "health", summary: "Whether the process lives; never asks the store",
			answers: []reply{{status: 200, text: "It does.", body: body}},
		},
		{
			method: http.MethodGet, path: "/readyz", access: accessOpen, handle: (*exchange).readyz,
			id: "readyz", tag: "health", summary: "Whether the process should get requests",
			answers: []reply{{status: 200, text: "It should.", body: body}},
		},
	}
}

func (x *exchange) healthz() error {
	x.send(http.StatusOK, []byte(`{"status":"ok"}`), false)
	return nil
}

// readyz fails while the store cannot be used (R65). The cause is for the log.
func (x *exchange) readyz() error {
	if x.Ready != nil {
		ctx, cancel := context.WithTimeout(x.r.Context(), readyWithin)
		defer cancel()
		if err := x.Ready(ctx); err != nil {
			return &payonce.Error{Code: payonce.CodeStoreUnavailable, Detail: "The service is not ready.", Err: err}
		}
	}
	x.send(http.StatusOK, []byte(`{"status":"ready"}`), false)
	return nil
}
