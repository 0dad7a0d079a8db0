package alipay

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"golang.org/x/text/encoding/simplifiedchinese"
	"pgregory.net/rapid"
)

// TestS08_NodeIsCutExactly: whatever surrounds the node and whatever is in it.
func TestS08_NodeIsCutExactly(t *testing.T) {
	const own = "alipay_trade_query_response"
	for name, node := range map[string]string{
		"plain":           `{"code":"10000"}`,
		"braces_in_text":  `{"a":"}{\"}","b":"\\"}`,
		"sign_in_text":    `{"sub_msg":"\",\"sign\":\"x\"}","alipay_trade_query_response":{"code":"1"}}`,
		"nested":          `{"a":[{"b":{}},[],"]"],"c":null,"d":-1.5e3}`,
		"blanks":          "{ \"a\" :\t\"b\"\n,\r\n\"c\": [ 1 , 2 ] }",
		"escaped_slashes": `{"qr":"https:\/\/qr.alipay.com\/x"}`,
		"unicode":         `{"msg":"茶\u8336🍵"}`,
		"empty":           `{}`,
	} {
		for shape, body := range map[string]string{
			"node_first":  `{"` + own + `":` + node + `,"sign":"cw=="}`,
			"sign_first":  `{"sign":"cw==","` + own + `":` + node + `}`,
			"cert_mode":   `{"` + own + `":` + node + `,"alipay_cert_sn":"ab","sign":"cw=="}`,
			"surrounded":  " \r\n{ \"x\":[{}], \"" + own + "\"\t: " + node + " ,\n\"sign\" : \"cw==\" }\n",
			"name_escape": `{"\u0061lipay_trade_query_response":` + node + `,"\u0073ign":"cw=="}`,
		} {
			e, err := cut([]byte(body), methodQuery)
			if err != nil || string(e.node) != node || e.sign != "cw==" {
				t.Errorf("%s in %s: %v\n%s", name, shape, err, e.node)
			}
		}
	}
}

func TestS08_WhatIsNotCut(t *testing.T) {
	const own = `"alipay_trade_query_response"`
	for name, body := range map[string]string{
		"no_node": `{"sign":"x"}`, "twice": `{` + own + `:{},` + own + `:{}}`, "twice_escaped": `{` + own + `:{},"\u0061lipay_trade_query_response":{}}`,
		"error_too": `{` + own + `:{},"error_response":{}}`, "two_signs": `{` + own + `:{},"sign":"a","sign":"b"}`, "sign_number": `{` + own + `:{},"sign":1}`,
		"two_objects": `{` + own + `:{}}{}`, "open": `{` + own + `:{`, "open_text": `{` + own + `:{"a":"b}`, "no_comma": `{` + own + `:{}"sign":"a"}`,
		"trailing_comma": `{` + own + `:{},}`, "no_colon": `{` + own + `{}}`, "array": `[]`, "deep": `{` + own + `:` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`,
		"in_text": `{"x":"{\"alipay_trade_query_response\":{}}"}`, "name_bare": `{alipay_trade_query_response:{}}`, "bom": "\xef\xbb\xbf{" + own + `:{}}`,
	} {
		if e, err := cut([]byte(body), methodQuery); err == nil {
			t.Errorf("%s was cut: %s", name, e.node)
		}
	}
}

// TestS08_SlashesAsTheOfficialSDK: a node that was signed with the other spelling
// of slashes verifies, and what is read is what was signed.
func TestS08_SlashesAsTheOfficialSDK(t *testing.T) {
	a, k := newAdapter(t, "", nil), keysOnce().alipay
	plain, escaped := `{"code":"10000","qr_code":"https://q/x"}`, `{"code":"10000","qr_code":"https:\/\/q\/x"}`
	for name, c := range map[string][2]string{"as_sent": {plain, plain}, "as_sent_escaped": {escaped, escaped}, "signed_plain": {escaped, plain}, "signed_escaped": {plain, escaped}} {
		reply := answerOf("alipay_trade_query_response", []byte(c[0]), signText(k, []byte(c[1])))
		r, err := a.alipay.read(reply.Body, methodQuery)
		if err != nil || !r.signed || r.text("qr_code") != "https://q/x" {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
	// Back-slash and slash: as received it says "\/", as signed "/".
	received, signed := `{"code":"10000","x":"a\\/b"}`, `{"code":"10000","x":"a\/b"}`
	reply := answerOf("alipay_trade_query_response", []byte(received), signText(k, []byte(signed)))
	if r, err := a.alipay.read(reply.Body, methodQuery); err != nil || r.text("x") != "a/b" {
		t.Errorf("read %q (%v), signed is a/b", r.text("x"), err)
	}
	reply = answerOf("alipay_trade_query_response", []byte(plain), signText(k, []byte(strings.ReplaceAll(plain, "x", "y"))))
	if _, err := a.alipay.read(reply.Body, methodQuery); !errors.Is(err, errForged) {
		t.Errorf("another text's signature: %v", err)
	}
}

// TestS12_GBKAnswer: bytes that are no UTF-8 are verified as they are and decoded
// afterwards; a trail byte that looks like a back-slash or a brace ends nothing.
func TestS12_GBKAnswer(t *testing.T) {
	a := newAdapter(t, "", nil)
	text := `{"code":"40004","sub_code":"ACQ.TRADE_NOT_EXIST","sub_msg":"乗亇誠 交易不存在"}`
	node, err := simplifiedchinese.GBK.NewEncoder().Bytes([]byte(text))
	if err != nil || !bytes.Contains(node, []byte{0x81, '\\'}) || !bytes.Contains(node, []byte{0x81, '}'}) {
		t.Fatalf("the text has no trail byte that matters: %v", err)
	}
	reply := answerOf("alipay_trade_query_response", node, signText(keysOnce().alipay, node))
	r, err := a.alipay.read(reply.Body, methodQuery)
	if err != nil || !r.signed || r.subCode != "ACQ.TRADE_NOT_EXIST" || !strings.Contains(r.text("sub_msg"), "交易不存在") {
		t.Errorf("%v %+v", err, r)
	}
}

// TestS08_AnyObjectIsCut: what encoding/json calls the value is what is cut.
func TestS08_AnyObjectIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{"code": "10000"}
		for _, k := range rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "names") {
			value[k] = rapid.OneOf(rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.SliceOf(rapid.String()), func(s []string) any { return s })).Draw(t, "value")
		}
		node, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"x":1,"alipay_trade_query_response":` + string(node) + `,"sign":"cw=="}`
		e, err := cut([]byte(body), methodQuery)
		if err != nil || !bytes.Equal(e.node, node) {
			t.Fatalf("%v\n%s\n%s", err, e.node, node)
		}
	})
}

// FuzzNode: nothing that is cut differs from what encoding/json sees, nothing
// unsigned passes for signed, and nothing panics.
func FuzzNode(f *testing.F) {
	a := newAdapter(f, "", nil)
	good := signedAnswer("query", map[string]any{"code": "10000", "out_trade_no": testNumber}).Body
	for _, s := range []string{string(good), `{"alipay_trade_query_response":{"code":"40002","sub_code":"isv.x"}}`, `{"error_response":{"code":"1"},"sign":""}`,
		`{"alipay_trade_query_response":{"a":"}"},"sign":"cw=="}`, `{"alipay_trade_query_response":"x"}`, "{\"alipay_trade_query_response\":{\"a\":\"\x81\\\"}}", `{`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := a.alipay.read(body, methodQuery)
		if err == nil && r.signed && r.text("out_trade_no") != testNumber {
			t.Fatalf("signed and says %v", r.fields)
		}
		e, err := cut(body, methodQuery)
		var doc map[string]json.RawMessage
		if err != nil || json.Unmarshal(body, &doc) != nil {
			return
		}
		if raw := doc["alipay_trade_query_response"]; raw != nil && !bytes.Equal(raw, e.node) {
			t.Fatalf("cut %q, encoding/json sees %q", e.node, raw)
		}
	})
}
