package stripesim

import (
	"crypto/hmac"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/payonce/payonce/internal/sim/core"
	"github.com/payonce/payonce/internal/sim/journal"
)

// maxBody bounds what is read of a request.
const maxBody = 1 << 20

// call is one received request, or an empty one for changes that no request
// caused.
type call struct {
	route    *route
	id       string // from the path; for create the id the intent will have
	number   string
	params   params
	key      string // Idempotency-Key
	hash     string
	request  string // Request-Id
	received int64  // virtual Unix seconds
	base     string // scheme and host for links
	strict   bool
	reserved bool
	badForm  *apiError

	// Shared by the notices of this call.
	change      int64
	faultTaken  bool
	noticeFault *core.Fault
	posted      []*core.Posted
}

func (c *call) expands(what string) bool {
	for _, e := range c.params.list("expand") {
		if e == what {
			return true
		}
	}
	return false
}

// result is what a call comes to, rendered under the lock.
type result struct {
	status   int
	body     []byte
	executed bool // kept under the idempotency key
	header   http.Header

	// A replay: the stored body lies at ref.
	replay bool
	ref    journal.Ref
	first  string
	lost   bool
}

func ok(o any) *result {
	b, err := json.Marshal(o)
	if err != nil {
		panic("stripesim: render: " + err.Error()) // objects of ours always render
	}
	return &result{status: http.StatusOK, body: b, executed: true}
}

func fail(e *apiError) *result {
	res := ok(map[string]*apiError{"error": e})
	res.status, res.executed, res.header = e.status, e.executed, e.header
	return res
}

// ServeHTTP answers one call. The path begins with /v1/ or /stripe/v1/.
func (s *Stripe) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	c, err := s.read(r)
	if err != nil {
		s.w.Log.Debug("request was not read to its end", "error", err)
		panic(http.ErrAbortHandler)
	}
	operation := core.OpOther
	if c.route != nil {
		operation = c.route.operation
	}
	s.w.Count(Channel, operation, c.number)
	var f *core.Fault
	var ans core.Answer
	switch e := s.authorized(r); {
	case e != nil:
		ans = s.answer(c, fail(e))
	case c.route == nil:
		e := invalid("", "", "Unrecognized request URL ("+r.Method+": "+r.URL.Path+").")
		e.status = http.StatusNotFound
		ans = s.answer(c, fail(e))
	default:
		f = s.w.TakeFault(Channel, operation, c.number)
		ans = s.handle(c, f)
		// A proxy that lost the answer sends the same once more.
		for range f.Copies() {
			s.w.Count(Channel, operation, c.number)
			again := *c
			again.posted, again.change, again.reserved, again.faultTaken = nil, 0, false, false
			ans = s.handle(&again, nil)
		}
	}
	if f.Is(core.WrongAmount) || f.Is(core.ForeignAccount) {
		ans.Body = distort(ans.Body, f)
	}
	s.w.Send(rw, ans, f)
}

// read takes the request apart and finds out which number it is about.
func (s *Stripe) read(r *http.Request) (*call, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, err
	}
	_, below, _ := strings.Cut(r.URL.Path, "/v1/")
	c := &call{received: s.now(), base: s.base, strict: r.URL.Query().Get("strict") == "1"}
	if c.base == "" {
		c.base = "http://" + r.Host
	}
	c.route, c.id = find(r.Method, strings.TrimSuffix(below, "/"))
	raw := r.URL.RawQuery
	if r.Method == http.MethodPost {
		raw = string(body)
		c.key = strings.TrimSpace(r.Header.Get("Idempotency-Key"))
		c.hash = requestHash(r.Method, "/v1/"+below, body)
	}
	c.params, c.badForm = parseForm(raw)
	if r.Method != http.MethodPost {
		delete(c.params, "strict")
	}
	if len(body) > maxBody {
		c.badForm = invalid("parameter_invalid", "", "The request body is too large.")
	}
	s.identify(c)
	return c, nil
}

// identify gives the call its request id and its number.
func (s *Stripe) identify(c *call) {
	c.request = s.w.RequestID("req_")
	if c.route == nil {
		return
	}
	s.w.Update(func() {
		switch c.route.operation {
		case core.OpCreate:
			c.number = c.params.get("metadata[" + numberKey + "]")
			if row := s.finishedKey(c.key); c.number == "" && c.key != "" && row != nil && row.Hash == c.hash {
				c.number = row.Number
			}
			if c.number == "" {
				c.id = s.w.ID("pi_")
				c.number = c.id
			}
		case core.OpRefund:
			target := c.params.get("payment_intent")
			if target == "" {
				target = c.params.get("charge")
			}
			c.number = s.numberOf(target)
		case core.OpRefundQuery:
			c.number = s.refundNumber(c.id)
			if pi := c.params.get("payment_intent"); pi != "" {
				c.number = s.numberOf(pi)
			}
		default:
			if c.id != "" {
				c.number = s.numberOf(c.id)
			}
		}
	})
}

// authorized checks the API key, as Bearer or as the user of Basic.
func (s *Stripe) authorized(r *http.Request) *apiError {
	key, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !given {
		key, _, given = r.BasicAuth()
	}
	if given && hmac.Equal([]byte(key), []byte(s.SecretKey())) {
		return nil
	}
	e := invalid("", "", "Invalid API Key provided.")
	e.status = http.StatusUnauthorized
	return e
}

// handle runs a call with its fault, if it has one, up to the whole answer.
func (s *Stripe) handle(c *call, f *core.Fault) core.Answer {
	var res *result
	switch {
	case f.Is(core.LoseRequest):
		return core.Answer{Lost: true}
	case f.Is(core.HTML502):
		return core.HTML502Answer()
	case f.Is(core.ErrorCode) && !coded(f.Arg).executed:
		return s.answer(c, fail(coded(f.Arg)))
	case f.Is(core.Delay):
		if res = s.delayed(c, f); res != nil {
			return s.answer(c, res)
		}
	}
	pos := s.w.Update(func() {
		if c.key != "" && !c.reserved {
			res = s.reserve(c)
		}
		if res == nil {
			res = s.execute(c, f)
			s.finish(c, res)
		}
	})
	if err := s.w.Wait(pos); err != nil {
		s.w.Log.Error("the books cannot be written", "error", err)
		return core.Answer{Lost: true}
	}
	s.w.Start(c.posted)
	if res.replay {
		// The stored answer stays as it is; the fault is in front of it.
		switch {
		case f.Is(core.HTTP500Before), f.Is(core.HTTP500After):
			res = fail(internalError())
		case f.Is(core.ErrorCode):
			res = fail(coded(f.Arg))
		}
	}
	return s.answer(c, res)
}

// delayed reserves the key, so that a twin is told so, and waits. It returns
// nil when the call is to go on.
func (s *Stripe) delayed(c *call, f *core.Fault) *result {
	var res *result
	if c.key != "" {
		pos := s.w.Update(func() { res = s.reserve(c) })
		if err := s.w.Wait(pos); err != nil {
			return &result{lost: true}
		}
	}
	if !s.w.Sleep(f.Pause()) {
		if c.reserved {
			s.abandon(c)
		}
		return &result{lost: true}
	}
	return res
}

// execute runs the call itself. A 500 is stored whether or not it had an
// effect. Only inside Update.
func (s *Stripe) execute(c *call, f *core.Fault) *result {
	switch {
	case f.Is(core.HTTP500Before):
		return fail(internalError())
	case f.Is(core.ErrorCode):
		e := coded(f.Arg)
		if i := s.intents.Get(c.id); i != nil && e.status < 500 {
			e.PaymentIntent = s.renderIntent(i, false)
		}
		return fail(e)
	case c.badForm != nil:
		return fail(c.badForm)
	}
	if e := c.params.unknown(c.route.allowed); e != nil {
		return fail(e)
	}
	res := c.route.run(s, c)
	if f.Is(core.HTTP500After) {
		return fail(internalError())
	}
	return res
}

// answer adds the headers that every answer has.
func (s *Stripe) answer(c *call, res *result) core.Answer {
	if res.lost {
		return core.Answer{Lost: true}
	}
	a := core.Answer{Status: res.status, Body: res.body, Header: http.Header{}, Posted: c.posted}
	for name, values := range res.header {
		a.Header[name] = values
	}
	if res.replay {
		body, err := s.w.Journal().Read(res.ref)
		if err != nil {
			s.w.Log.Error("a stored answer cannot be read", "error", err)
			return core.Answer{Lost: true}
		}
		a.Body = body
		replayed(&a, res.first)
	}
	a.Header.Set("Content-Type", "application/json")
	a.Header.Set("Request-Id", c.request)
	a.Header.Set("Stripe-Version", Version)
	if c.key != "" {
		a.Header.Set("Idempotency-Key", c.key)
	}
	return a
}
