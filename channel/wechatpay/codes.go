package wechatpay

import (
	"net/http"
	"strings"

	"github.com/payonce/payonce"
)

// step is one of the three requests. Its name is the source of its facts.
type step string

const (
	stepBegin step = "begin"
	stepQuery step = "query"
	stepClose step = "close"
)

// verdict is the class of an answer that is no success.
type verdict struct {
	kind   payonce.FactKind
	reason string // of StateUnknown and StateNotSent
}

var (
	refused = verdict{kind: payonce.StateRefused}
	absent  = verdict{kind: payonce.StateAbsent}
	// stopped: turned away before its content was looked at. The same bytes may pass
	// once the configuration is right.
	stopped = verdict{payonce.StateNotSent, "configuration"}
	// misconfigured is the same of a question.
	misconfigured = unknown("configuration")
)

func unknown(reason string) verdict { return verdict{payonce.StateUnknown, reason} }

// row is one documented code: where it may come from, and what it means there.
// Codes are written without underscores, since old tables spell them so.
type row struct {
	codes               string // separated by blanks
	statuses            []int
	begin, query, close verdict
}

// rows is the documented table. Refusals carry no signature: what they say of
// other requests than this one (that it is paid, closed, or known) is never
// believed, but leads to a query, whose answer is signed.
var rows = []row{
	{"PARAMERROR", []int{400}, refused, misconfigured, misconfigured},
	{"APPIDMCHIDNOTMATCH MCHNOTEXISTS", []int{400}, refused, misconfigured, misconfigured},
	{"SIGNERROR", []int{401}, stopped, misconfigured, misconfigured},
	{"NOAUTH", []int{403}, stopped, misconfigured, misconfigured},

	// The number is known already, with other parameters, in three spellings. The
	// second one may also mean that the request is wrong.
	{"OUTTRADENOUSED", []int{400, 403}, unknown("number-used"), unknown("number-used"), unknown("number-used")},
	{"INVALIDREQUEST", []int{400}, unknown("number-used"), misconfigured, misconfigured},
	{"201", []int{400, 403}, unknown("number-used"), unknown("number-used"), unknown("number-used")},

	// Paid, in three spellings.
	{"ORDERPAID", []int{400, 403}, unknown("already-paid"), unknown("already-paid"), unknown("already-paid")},
	{"TRADEERROR", []int{400, 403}, unknown("already-paid"), unknown("trade-error"), unknown("already-paid")},

	{"ORDERCLOSED", []int{400}, refused, unknown("already-closed"), unknown("already-closed")},
	{"RULELIMIT", []int{403}, refused, unknown("limited"), unknown("limited")},
	// A try of the payer failed and the order stays open: nothing is refused.
	{"ACCOUNTERROR NOTENOUGH", []int{403}, unknown("try-failed"), unknown("try-failed"), unknown("try-failed")},
	{"ORDERNOTEXIST", []int{404}, unknown("contradiction"), absent, unknown("nothing-to-close")},
}

type codeKey struct {
	status int
	code   string
}

var table = func() map[codeKey]*row {
	m := map[codeKey]*row{}
	for i := range rows {
		for code := range strings.FieldsSeq(rows[i].codes) {
			for _, status := range rows[i].statuses {
				m[codeKey{status, code}] = &rows[i]
			}
		}
	}
	return m
}()

// classify says what an answer means that is no success. A code counts with its
// documented status alone; every way through that finds nothing ends as unknown.
func classify(s step, status int, body []byte) (verdict, string) {
	switch {
	case status >= 500:
		return unknown("http-5xx"), codeIn(body) // whatever code it brings: the order may exist
	case status == http.StatusTooManyRequests:
		return unknown("rate-limited"), codeIn(body)
	case (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) && len(body) == 0:
		if s == stepBegin {
			return stopped, "" // a wrong address: no service is behind it
		}
		return misconfigured, ""
	case status < 400:
		return unknown("unexpected-status"), ""
	}
	code := codeIn(body)
	if code == "" {
		return unknown("undecodable"), ""
	}
	r := table[codeKey{status, strings.ReplaceAll(code, "_", "")}]
	if r == nil {
		return unknown("unlisted"), code
	}
	return map[step]verdict{stepBegin: r.begin, stepQuery: r.query, stepClose: r.close}[s], code
}

func codeIn(body []byte) string {
	m, err := object(body)
	if err != nil {
		return ""
	}
	return m.text("code")
}

// failure says why a request was refused, in our words.
func failure(code string) *payonce.Failure {
	f := &payonce.Failure{Code: "refused", ChannelCode: word(code), Message: "The payment request was refused."}
	if strings.ReplaceAll(code, "_", "") == "RULELIMIT" {
		f.Message = "The payment is over a limit at WeChat Pay."
	}
	return f
}
