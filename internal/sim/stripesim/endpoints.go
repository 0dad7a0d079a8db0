package stripesim

import (
	"net/url"
	"strings"

	"github.com/payonce/payonce/internal/sim/core"
)

// maxEndpoints is Stripe's limit per account.
const maxEndpoints = 16

// startEndpoint names the address that was given at the start.
const startEndpoint = "we_start"

// endpoint is a webhook endpoint made over the API.
type endpoint struct {
	Seq         int64             `json:"seq"`
	ID          string            `json:"id"`
	URL         string            `json:"url"`
	Events      []string          `json:"events"`
	Secret      string            `json:"secret"`
	Created     int64             `json:"created"`
	Description string            `json:"description,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// matches compares an event type with a wanted one: "*", a type, or "charge.*".
func matches(want, kind string) bool {
	prefix, star := strings.CutSuffix(want, "*")
	return want == kind || star && strings.HasPrefix(kind, prefix)
}

// targets are the endpoints that want an event type.
func (s *Stripe) targets(kind string) map[string]core.Target {
	list := map[string]core.Target{}
	if s.webhook != "" {
		list[startEndpoint] = core.Target{URL: s.webhook}
	}
	for id, e := range s.endpoints.Rows {
		for _, want := range e.Events {
			if matches(want, kind) {
				list[id] = core.Target{URL: e.URL}
			}
		}
	}
	return list
}

func (s *Stripe) endpointSecret(id string) string {
	if id == startEndpoint {
		return s.WebhookSecret()
	}
	if e := s.endpoints.Get(id); e != nil {
		return e.Secret
	}
	return ""
}

func (s *Stripe) createEndpoint(c *call) *result {
	p := c.params
	u, err := url.Parse(p.get("url"))
	events := p.list("enabled_events")
	switch {
	case p.get("url") == "":
		return fail(invalid("parameter_missing", "url", "Missing required param: url."))
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fail(invalid("url_invalid", "url", "Invalid URL."))
	case c.strict && u.Scheme != "https":
		return fail(invalid("url_invalid", "url", "Invalid URL: the URL must begin with https."))
	case len(events) == 0:
		return fail(invalid("parameter_missing", "enabled_events", "Missing required param: enabled_events."))
	case p.has("api_version") && p.get("api_version") != Version:
		return fail(invalid("parameter_invalid", "api_version", "The simulator speaks only "+Version+"."))
	case len(s.endpoints.Rows) >= maxEndpoints:
		return fail(refused("", "You have reached the maximum of 16 webhook endpoints."))
	}
	metadata, e := p.mergeMetadata(nil)
	if e != nil {
		return fail(e)
	}
	row := &endpoint{ID: s.w.ID("we_"), URL: p.get("url"), Events: events, Created: s.now(),
		Description: p.get("description"), Metadata: metadata}
	row.Seq = s.w.Sequence()
	row.Secret = "whsec_" + s.w.Seed.Text("stripe endpoint secret", row.Seq, 32)
	s.endpoints.Put(row.ID, row)
	o := renderEndpoint(row)
	o["secret"] = row.Secret // only here
	return ok(o)
}

func renderEndpoint(e *endpoint) object {
	return object{"id": e.ID, "object": "webhook_endpoint", "api_version": Version, "application": nil,
		"created": e.Created, "description": orNull(e.Description), "enabled_events": e.Events, "livemode": false,
		"metadata": metadataOf(e.Metadata), "status": "enabled", "url": e.URL}
}

func (s *Stripe) getEndpoint(c *call) *result {
	e := s.endpoints.Get(c.id)
	if e == nil {
		return fail(missing("webhook endpoint", c.id, "webhook_endpoint"))
	}
	return ok(renderEndpoint(e))
}

func (s *Stripe) listEndpoints(c *call) *result {
	var order []string
	for _, e := range bySeq(s.endpoints.Rows, func(e *endpoint) int64 { return e.Seq }) {
		order = append(order, e.ID)
	}
	return listOf(c, order, "/v1/webhook_endpoints", func(id string) (any, int64, bool) {
		e := s.endpoints.Get(id)
		return renderEndpoint(e), e.Created, true
	})
}

func (s *Stripe) deleteEndpoint(c *call) *result {
	if s.endpoints.Get(c.id) == nil {
		return fail(missing("webhook endpoint", c.id, "webhook_endpoint"))
	}
	s.endpoints.Delete(c.id)
	return ok(object{"id": c.id, "object": "webhook_endpoint", "deleted": true})
}
