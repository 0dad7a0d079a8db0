package httpapi

import (
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/payonce/payonce/idempotency"
)

// apiVersion is the version of the HTTP API, not of the program.
const apiVersion = "1.0.0"

// OpenAPI returns the description of the API as OpenAPI 3.1 in YAML. The same
// code gives the same bytes; docs/openapi.yaml is this output.
func OpenAPI() ([]byte, error) {
	config := documentConfig()
	for _, rt := range routes() {
		config.AddOperation(rt.operation(config.Components.Schemas))
	}
	return config.YAML()
}

// documentConfig switches off everything of huma that answers requests: no
// pages, no schema links.
func documentConfig() huma.Config {
	return huma.Config{OpenAPI: &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Payonce", Version: apiVersion,
			Description: "At most one effective charge per order. Times are RFC 3339 in UTC with microseconds, amounts integers in minor units. " +
				"A member without a value is null. Members and parameters that are not documented are refused.",
		},
		Components: &huma.Components{
			Schemas: newRegistry(),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key": {Type: "http", Scheme: "bearer", Description: "sk_live_…, sk_test_… or sk_dev_…; the prefix is the environment. A revoked key may work for 10 more seconds."},
			},
		},
		Security: []map[string][]string{{"key": {}}},
	}}
}

// newRegistry names the schemas as the types are named, without "Doc".
func newRegistry() huma.Registry {
	return huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Doc")
	})
}

func refTo[T any](r huma.Registry) *huma.Schema { return r.Schema(reflect.TypeFor[T](), true, "") }

// responses describes the answers of a route: its own, and the problems that
// every route of its kind has.
func (rt *route) responses(r huma.Registry) map[string]*huma.Response {
	all := make(map[string]*huma.Response)
	for _, a := range rt.answers {
		schema := r.Schema(a.body, true, "")
		content := map[string]*huma.MediaType{mediaJSON: {Schema: schema}}
		if a.stream {
			content[mediaEvents] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Description: "Events named payment; data is the payment, id its version."}}
		}
		all[strconv.Itoa(a.status)] = &huma.Response{Description: a.text, Content: content, Headers: rt.answerHeaders(a.status)}
	}
	problem := refTo[problemDoc](r)
	for _, status := range rt.allProblems() {
		all[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{mediaProblem: {Schema: problem}},
			Headers:     rt.answerHeaders(status),
		}
	}
	return all
}

func (rt *route) allProblems() []int {
	all := append([]int{400, 500, 503}, rt.problems...)
	if rt.access != accessOpen {
		all = append(all, 401, 403, 429)
	}
	if rt.body != nil {
		all = append(all, 413, 415)
	}
	return all
}

func (rt *route) answerHeaders(status int) map[string]*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	h := map[string]*huma.Param{"Request-Id": {Description: "Names this request in the logs.", Schema: text}}
	if rt.key != keyIgnored && (status < 300 || status == 402 || status == 409 || status == 503) {
		h[idempotency.HeaderReplayed] = &huma.Param{Description: "true on the answer to a repetition.", Schema: text}
		h[idempotency.HeaderStatus] = &huma.Param{Description: "replayed, or pending while the outcome is not known.", Schema: text}
	}
	if status == 202 || status == 409 || status == 429 || status == 503 {
		h["Retry-After"] = &huma.Param{Description: "Seconds.", Schema: &huma.Schema{Type: huma.TypeInteger}}
	}
	return h
}

func (rt *route) headerParams() []*huma.Param {
	if rt.key == keyIgnored {
		return nil
	}
	return []*huma.Param{{
		Name: idempotency.HeaderKey, In: "header", Required: rt.key == keyRequired,
		Description: "One key per operation, the same with every repetition: 1 to 255 visible ASCII characters, bare or in double quotes.",
		Schema:      &huma.Schema{Type: huma.TypeString},
	}}
}

var pathNames = regexp.MustCompile(`\{([a-z_]+)\}`)

func pathParams(path string) []*huma.Param {
	var all []*huma.Param
	for _, m := range pathNames.FindAllStringSubmatch(path, -1) {
		all = append(all, &huma.Param{Name: m[1], In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}})
	}
	return all
}

func listParams() []*huma.Param {
	return []*huma.Param{
		intParam("limit", "How many objects a page has; 50 unless told.", 1, maxPage),
		textParam("after", "The value of next of the page before."),
	}
}

func textParam(name, text string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: text, Schema: &huma.Schema{Type: huma.TypeString}}
}

func enumParam(name, text string, values ...string) *huma.Param {
	p := textParam(name, text)
	for _, v := range values {
		p.Schema.Enum = append(p.Schema.Enum, v)
	}
	return p
}

func intParam(name, text string, low, high int) *huma.Param {
	least, most := float64(low), float64(high)
	return &huma.Param{Name: name, In: "query", Description: text,
		Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}}
}
