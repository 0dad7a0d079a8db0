package httpapi

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// routes lists every operation of the API, one function for each file.
func routes() []*route {
	return slices.Concat(paymentRoutes(), orderRoutes(), healthRoutes())
}

// access says who may call a route.
type access int

const (
	accessOpen     access = iota // anyone, without an API key
	accessRead                   // every role
	accessWrite                  // roles api and operator
	accessOperator               // role operator
)

// keyPolicy says what a route does with an Idempotency-Key.
type keyPolicy int

const (
	keyIgnored  keyPolicy = iota // methods that change nothing (R1)
	keyOptional                  // used when it is sent
	keyRequired                  // 400 without one (R2)
)

// route is one operation: how it is handled and how it is described.
type route struct {
	method, path string
	access       access
	key          keyPolicy
	// handle runs after all checks that do not depend on the body's members. It
	// answers, or returns the error to answer with.
	handle func(*exchange) error

	id, summary, description string
	tag                      string
	query                    []*huma.Param // everything else in a query is refused
	body                     reflect.Type  // nil: no body
	bodyOptional             bool          // no body means {}
	answers                  []reply
	problems                 []int // besides those that every route has
}

// reply describes one successful answer.
type reply struct {
	status int
	text   string
	body   reflect.Type
	stream bool // also as server-sent events
}

// operation is the description for huma.
func (rt *route) operation(r huma.Registry) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.id, Summary: rt.summary,
		Description: rt.description, Tags: []string{rt.tag},
		Parameters: slices.Concat(pathParams(rt.path), rt.query, rt.headerParams()),
		Responses:  rt.responses(r),
	}
	if rt.access == accessOpen {
		op.Security = []map[string][]string{}
	}
	if rt.body != nil {
		op.RequestBody = &huma.RequestBody{
			Required: !rt.bodyOptional,
			Content:  map[string]*huma.MediaType{mediaJSON: {Schema: r.Schema(rt.body, true, "")}},
		}
	}
	return op
}

// register adds the operation to the document and to the mux.
func (a *api) register(doc huma.API, rt *route) {
	op := rt.operation(doc.OpenAPI().Components.Schemas)
	doc.OpenAPI().AddOperation(op)
	doc.Adapter().Handle(op, func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		x := w.(*exchange) // ServeHTTP put it there
		x.route, x.r = rt, r
		if err := x.run(); err != nil {
			x.fail(err)
		}
	})
}

// allowsQuery reports whether the parameter is documented.
func (rt *route) allowsQuery(name string) bool {
	return slices.ContainsFunc(rt.query, func(p *huma.Param) bool { return p.Name == name })
}

func (rt *route) safe() bool { return rt.method == http.MethodGet }
