package alipaysim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/payonce/payonce/internal/sim/core"
)

const (
	maxBody = 1 << 20
	// clockTolerance is how far the timestamp of a call may be off, in real
	// time. That of a form is not looked at: it is signed long before.
	clockTolerance = 10 * time.Minute
)

// api is one method of the gateway.
type api struct {
	operation string
	run       func(*Alipay, *call) reply
}

var apis = map[string]api{
	"alipay.trade.precreate":            {core.OpCreate, (*Alipay).precreate},
	"alipay.trade.create":               {core.OpCreate, (*Alipay).create},
	"alipay.trade.page.pay":             {core.OpCreate, (*Alipay).openForm},
	"alipay.trade.wap.pay":              {core.OpCreate, (*Alipay).openForm},
	"alipay.trade.app.pay":              {core.OpCreate, (*Alipay).openForm},
	"alipay.trade.query":                {core.OpQuery, (*Alipay).query},
	"alipay.trade.close":                {core.OpClose, (*Alipay).close},
	"alipay.trade.cancel":               {core.OpClose, (*Alipay).cancel},
	"alipay.trade.refund":               {core.OpRefund, (*Alipay).refund},
	"alipay.trade.fastpay.refund.query": {core.OpRefundQuery, (*Alipay).refundQuery},
}

// call is one received request, or an empty one for changes that no request
// caused.
type call struct {
	method  string
	number  string
	params  map[string]string // as received: raw bytes of the charset
	biz     biz
	base    string // scheme and host for links
	strict  bool
	cert    bool // certificate mode
	badForm bool
	badJSON bool
	charset string

	spoiled bool // wrong_amount: the order is taken for another amount
	prompt  bool // before_response: the payer is faster than the answer
	posted  []*core.Posted
}

// ServeHTTP answers the gateway, and what a QR text leads to.
func (a *Alipay) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if token, ok := strings.CutPrefix(r.URL.Path, codePath); ok {
		a.scan(rw, r, token)
		return
	}
	if r.URL.Path != "/alipay/gateway.do" && r.URL.Path != "/gateway.do" {
		http.NotFound(rw, r)
		return
	}
	c, err := a.read(r)
	if err != nil {
		a.w.Log.Debug("request was not read to its end", "error", err)
		panic(http.ErrAbortHandler)
	}
	operation := core.OpOther
	if m, ok := apis[c.method]; ok {
		operation = m.operation
	}
	a.w.Count(Channel, operation, c.number)
	sub, err := a.check(c)
	if err != nil {
		a.w.Log.Error("no keys", "error", err)
		panic(http.ErrAbortHandler)
	}
	if sub != "" {
		a.w.Send(rw, a.answer(c, refuse(sub), nil), nil)
		return
	}
	f := a.w.TakeFault(Channel, operation, c.number)
	ans := a.handle(c, f)
	// A proxy that lost the answer sends the same once more.
	for range f.Copies() {
		a.w.Count(Channel, operation, c.number)
		again := *c
		again.posted = nil
		ans = a.handle(&again, nil)
	}
	a.w.Send(rw, ans, f)
}

// read merges query and body, as the gateway does, and finds the number.
func (a *Alipay) read(r *http.Request) (*call, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, err
	}
	c := &call{base: a.base, params: map[string]string{}, strict: r.URL.Query().Get("strict") == "1"}
	if c.base == "" {
		c.base = "http://" + r.Host
	}
	query, err1 := url.ParseQuery(r.URL.RawQuery)
	query.Del("strict")
	form, err2 := parseBody(r.Header.Get("Content-Type"), body)
	c.badForm = err1 != nil || err2 != nil || len(body) > maxBody
	for _, values := range []url.Values{query, form} {
		for name, list := range values {
			// Clients send charset in the query as well as in the body.
			if was, twice := c.params[name]; twice && was != list[0] || len(list) > 1 {
				c.badForm = true
			}
			c.params[name] = list[0]
		}
	}
	c.method, c.charset = c.params["method"], c.params["charset"]
	c.identify()
	if c.number == "" && c.biz != nil {
		a.w.View(func() {
			if t := a.trades.Get(c.biz.text("trade_no")); t != nil {
				c.number = t.Terms.Number
			}
		})
	}
	return c, nil
}

func parseBody(contentType string, body []byte) (url.Values, error) {
	kind, options, _ := mime.ParseMediaType(contentType)
	if kind != "multipart/form-data" {
		return url.ParseQuery(string(body))
	}
	form, err := multipart.NewReader(bytes.NewReader(body), options["boundary"]).ReadForm(maxBody)
	if err != nil {
		return nil, err
	}
	return form.Value, nil
}

// identify reads biz_content, so that also a call that is refused or
// swallowed is counted under its number.
func (c *call) identify() {
	text, err := decode(c.params["biz_content"], c.charset)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &c.biz)
	}
	c.badJSON = err != nil
	c.number = c.biz.text("out_trade_no")
}

// check is what the gateway looks at before the business does: the sub_code of
// the refusal, or "". The application is looked for before the signature.
func (a *Alipay) check(c *call) (string, error) {
	account, err := a.keys.Account()
	if err != nil {
		return "", err
	}
	p := c.params
	switch {
	case c.badForm:
		return "isv.invalid-parameter", nil
	case c.method == "":
		return "isv.missing-method", nil
	case p["app_id"] == "":
		return "isv.missing-app-id", nil
	case p["app_id"] != account.AppID:
		return "isv.invalid-app-id", nil
	}
	if _, known := apis[c.method]; !known {
		return "isv.invalid-method", nil
	}
	if sub := a.checkForm(c); sub != "" {
		return sub, nil
	}
	if sub, err := a.checkSerials(c); sub != "" || err != nil {
		return sub, err
	}
	switch {
	case !genuine(account.App, p):
		return "isv.invalid-signature", nil
	case c.badJSON:
		return "isv.illegal-json", nil
	}
	return "", nil
}

func (a *Alipay) checkForm(c *call) string {
	p := c.params
	at, err := parseTime(p["timestamp"])
	switch {
	case p["sign"] == "":
		return "isv.missing-signature"
	case p["sign_type"] == "":
		return "isv.missing-signature-type"
	case p["timestamp"] == "":
		return "isv.missing-timestamp"
	case p["version"] == "":
		return "isv.missing-version"
	case p["sign_type"] != "RSA2":
		return "isv.invalid-signature-type"
	case p["version"] != "1.0":
		return "isv.invalid-parameter"
	case p["format"] != "" && !strings.EqualFold(p["format"], "json"):
		return "isv.invalid-format"
	case !knownCharset(c.charset):
		return "isv.invalid-charset"
	case err != nil:
		return "isv.invalid-timestamp"
	case !browser(c.method) && at.Sub(a.w.RealNow()).Abs() > clockTolerance:
		return "isv.invalid-timestamp"
	}
	return ""
}

// checkSerials is certificate mode, which a call chooses by naming serials.
func (a *Alipay) checkSerials(c *call) (string, error) {
	app, root := c.params["app_cert_sn"], c.params["alipay_root_cert_sn"]
	if app == "" && root == "" {
		return "", nil
	}
	serials, err := a.keys.Serials()
	switch {
	case err != nil:
		return "", err
	case app == "":
		return "isv.missing-app-cert-sn", nil
	case root == "":
		return "isv.missing-alipay-root-cert-sn", nil
	case app != serials.App, root != serials.Root:
		return "isv.missing-signature-config", nil
	}
	c.cert = true
	return "", nil
}

// handle runs a call with its fault, if it has one, up to the whole answer.
func (a *Alipay) handle(c *call, f *core.Fault) core.Answer {
	late := f.Is(core.ErrorCode) && strings.HasPrefix(f.Arg, after)
	switch {
	case f.Is(core.LoseRequest):
		return core.Answer{Lost: true}
	case f.Is(core.HTML502):
		return core.HTML502Answer()
	case f.Is(core.HTTP500Before):
		return htmlAnswer(http.StatusInternalServerError, "Internal Server Error", "utf-8")
	case f.Is(core.ErrorCode) && !late:
		return a.answer(c, coded(f.Arg), f)
	case f.Is(core.Delay) && !a.w.Sleep(f.Pause()):
		return core.Answer{Lost: true}
	}
	c.spoiled, c.prompt = f.Is(core.WrongAmount), f.Is(core.BeforeResponse)
	var res reply
	pos := a.w.Update(func() { res = apis[c.method].run(a, c) })
	if err := a.w.Wait(pos); err != nil {
		a.w.Log.Error("the books cannot be written", "error", err)
		return core.Answer{Lost: true}
	}
	a.w.Start(c.posted)
	switch {
	case f.Is(core.HTTP500After):
		ans := htmlAnswer(http.StatusInternalServerError, "Internal Server Error", "utf-8")
		ans.Posted = c.posted
		return ans
	case late:
		res = coded(f.Arg)
	}
	return a.answer(c, res, f)
}

// biz is biz_content.
type biz map[string]json.RawMessage

var errField = errors.New("not a text")

// field is a text, or a number as it was written; "" when it is missing.
func (b biz) field(name string) (string, error) {
	raw := b[name]
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		err := json.Unmarshal(raw, &text)
		return text, err
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return string(raw), nil
	}
	return "", errField
}

// text is field for names whose bad values count as missing.
func (b biz) text(name string) string {
	text, err := b.field(name)
	if err != nil {
		return ""
	}
	return text
}

// wants tells whether query_options names something.
func (b biz) wants(option string) bool {
	var options []string
	if json.Unmarshal(b["query_options"], &options) != nil {
		return false
	}
	for _, o := range options {
		if o == option {
			return true
		}
	}
	return false
}
