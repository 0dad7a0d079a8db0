package alipaysim

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"strings"

	"github.com/payonce/payonce/internal/sim/core"
)

// field is one member of a node, in the order in which it is sent. raw values
// are JSON already.
type field struct {
	name  string
	value string
	raw   bool
}

// reply is what a call comes to. code "" is success; page is where the payer's
// browser goes.
type reply struct {
	code   string
	sub    string
	fields []field
	page   string
}

// text is a member that is left out when it is empty.
func (r *reply) text(name, value string) {
	if value != "" {
		r.fields = append(r.fields, field{name: name, value: value})
	}
}

func (r *reply) raw(name, value string) {
	r.fields = append(r.fields, field{name: name, value: value, raw: true})
}

// amountFields are the members that say how much money it is.
var amountFields = map[string]bool{"total_amount": true, "buyer_pay_amount": true, "receipt_amount": true,
	"invoice_amount": true, "refund_fee": true, "refund_amount": true, "send_back_fee": true}

// wrongFen is another amount: one fen, or two instead of one.
func wrongFen(fen int64) int64 {
	if fen == 1 {
		return 2
	}
	return 1
}

func wrongYuan(text string) string {
	fen, ok := parseYuan(text)
	if !ok {
		return text // 0.00 stays
	}
	return yuan(wrongFen(fen))
}

const (
	foreignNumber = "FOREIGN00000000000001"
	foreignTrade  = "2026010122001000000000000001"
)

// distort changes the members as the fault wants it; what is stored stays
// right, and what is sent is rightly signed.
func distort(fields []field, f *core.Fault) []field {
	out := make([]field, len(fields))
	for n, m := range fields {
		switch {
		case f.Is(core.WrongAmount) && amountFields[m.name]:
			m.value = wrongYuan(m.value)
		case f.Is(core.ForeignAccount) && m.name == "out_trade_no":
			m.value = foreignNumber
		case f.Is(core.ForeignAccount) && m.name == "trade_no":
			m.value = foreignTrade
		}
		out[n] = m
	}
	return out
}

// node is the JSON object that is signed, in the call's charset.
func (a *Alipay) node(c *call, r reply) []byte {
	head := reply{}
	code := r.code
	if code == "" {
		code = codeSuccess
	}
	head.text("code", code)
	head.text("msg", messages[code])
	if r.sub != "" {
		head.text("sub_code", r.sub)
		head.text("sub_msg", subMessage(r.sub))
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for n, m := range append(head.fields, r.fields...) {
		if n > 0 {
			b.WriteByte(',')
		}
		value := m.value
		if !m.raw {
			value = quote(m.value)
			if a.w.Switch(Channel, switchSlashes) == "escaped" {
				value = strings.ReplaceAll(value, "/", `\/`)
			}
		}
		b.WriteString(`"` + m.name + `":` + value)
	}
	b.WriteByte('}')
	return []byte(encode(b.String(), c.charset))
}

// quote is JSON text in which only what must be escaped is.
func quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// answer is the whole HTTP answer: always 200, JSON called text/html, the
// node signed as it is sent. Refusals of the gateway are not signed.
func (a *Alipay) answer(c *call, r reply, f *core.Fault) core.Answer {
	if browser(c.method) {
		return c.browserAnswer(r)
	}
	r.fields = distort(r.fields, f)
	name := "error_response"
	if _, known := apis[c.method]; known {
		name = strings.ReplaceAll(c.method, ".", "_") + "_response"
	}
	node := a.node(c, r)
	var b bytes.Buffer
	b.WriteString(`{"` + name + `":`)
	b.Write(node)
	if !unsigned[r.code] {
		signed, err := a.signNode(c, node, f)
		if err != nil {
			a.w.Log.Error("an answer cannot be signed", "error", err)
			return core.Answer{Lost: true}
		}
		b.WriteString(signed)
	}
	b.WriteByte('}')
	charset := c.charset
	if !knownCharset(charset) {
		charset = "utf-8"
	}
	return core.Answer{Status: http.StatusOK, Body: b.Bytes(), Posted: c.posted,
		Header: http.Header{"Content-Type": {"text/html;charset=" + strings.ToLower(charset)}}}
}

// signNode is what follows the node: in certificate mode which certificate
// signed, then the signature.
func (a *Alipay) signNode(c *call, node []byte, f *core.Fault) (string, error) {
	account, err := a.keys.Account()
	if err != nil {
		return "", err
	}
	text := string(node)
	if f.Is(core.BadSignature) {
		text += "forged"
	}
	signature, err := sign(account.Platform, text)
	if err != nil {
		return "", err
	}
	out := `,"sign":"` + signature + `"`
	if !c.cert {
		return out, nil
	}
	serials, err := a.keys.Serials()
	return `,"alipay_cert_sn":"` + serials.Alipay + `"` + out, err
}

// browserAnswer leads the payer to the cashier page, or shows why not.
func (c *call) browserAnswer(r reply) core.Answer {
	if r.page != "" {
		return core.Answer{Status: http.StatusFound, Header: http.Header{"Location": {r.page}}, Posted: c.posted}
	}
	code := r.code
	if r.sub != "" {
		code += " " + r.sub + " " + subMessage(r.sub)
	}
	ans := htmlAnswer(http.StatusOK, code, "GBK")
	ans.Posted = c.posted
	return ans
}

// htmlAnswer is a page with one text.
func htmlAnswer(status int, text, charset string) core.Answer {
	page := "<html><head><title>支付宝</title></head><body><p>" + html.EscapeString(text) + "</p></body></html>\n"
	return core.Answer{Status: status, Body: []byte(encode(page, charset)),
		Header: http.Header{"Content-Type": {"text/html;charset=" + charset}}}
}
