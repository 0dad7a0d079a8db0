package httpapi

import (
	"encoding/json"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// This file compares every answer of every test with the committed OpenAPI
// document, by a reader of JSON Schema that shares nothing with huma.

var document = sync.OnceValues(func() (map[string]any, error) {
	b, err := os.ReadFile(openAPIFile)
	if err != nil {
		return nil, err
	}
	var d map[string]any
	return d, yaml.Unmarshal(b, &d)
})

// validateAnswer finds the operation and the response of the document and
// validates the answer's body. Answers of addresses that are not in the document
// are problems of the general schema.
func validateAnswer(t testing.TB, r *http.Request, a *answer) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	media := a.header.Get("Content-Type")
	schema := map[string]any{"$ref": "#/components/schemas/Problem"}
	if op := operationOf(doc, r); op != nil {
		response, ok := at(op, "responses", strconv.Itoa(a.code)).(map[string]any)
		if !ok {
			t.Errorf("%s %s answers %d, which the document does not have: %s", r.Method, r.URL.Path, a.code, a.body)
			return
		}
		content, ok := at(response, "content", media).(map[string]any)
		if !ok {
			t.Errorf("%s %s: %d in %q is not in the document", r.Method, r.URL.Path, a.code, media)
			return
		}
		schema = content["schema"].(map[string]any)
	}
	if media == mediaEvents || r.Method == http.MethodHead {
		return
	}
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Errorf("%s %s: %v in %q", r.Method, r.URL.Path, err, a.body)
		return
	}
	for _, wrong := range check(doc, schema, v, "") {
		t.Errorf("%s %s: %d: %s in %s", r.Method, r.URL.Path, a.code, wrong, a.body)
	}
}

func operationOf(doc map[string]any, r *http.Request) map[string]any {
	method := strings.ToLower(r.Method)
	if r.Method == http.MethodHead {
		method = "get"
	}
	for path, item := range doc["paths"].(map[string]any) {
		pattern := "^" + regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(path, "[^/]+") + "$"
		if op, ok := at(item, method).(map[string]any); ok && regexp.MustCompile(pattern).MatchString(r.URL.Path) {
			return op
		}
	}
	return nil
}

func at(v any, names ...string) any {
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// check returns what is wrong with v, and panics at words that it cannot read.
func check(doc, s map[string]any, v any, where string) (wrong []string) {
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		return check(doc, at(doc, "components", "schemas", name).(map[string]any), v, where)
	}
	for word, value := range s {
		switch word {
		case "oneOf", "anyOf":
			n := 0
			for _, sub := range value.([]any) {
				if len(check(doc, sub.(map[string]any), v, where)) == 0 {
					n++
				}
			}
			if n == 0 || n > 1 && word == "oneOf" {
				wrong = append(wrong, where+": matches "+strconv.Itoa(n)+" of "+word)
			}
		case "type":
			if !hasType(value, v) {
				wrong = append(wrong, where+": has another type")
			}
		case "enum":
			if !slices.Contains(value.([]any), v) {
				wrong = append(wrong, where+": is not in the enum")
			}
		case "properties", "required", "additionalProperties", "maxProperties", "items", "pattern", "format",
			"minimum", "maximum", "minLength", "maxLength", "description":
		default:
			panic("unknown word " + word)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		wrong = append(wrong, checkObject(doc, s, v, where)...)
	case []any:
		for i, item := range v {
			wrong = append(wrong, check(doc, s["items"].(map[string]any), item, where+"/"+strconv.Itoa(i))...)
		}
	case string:
		wrong = append(wrong, checkText(s, v, where)...)
	case float64:
		if low, ok := number(s["minimum"]); ok && v < low {
			wrong = append(wrong, where+": is too small")
		}
		if high, ok := number(s["maximum"]); ok && v > high {
			wrong = append(wrong, where+": is too large")
		}
	}
	return wrong
}

func checkObject(doc, s map[string]any, v map[string]any, where string) (wrong []string) {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			wrong = append(wrong, where+": has no "+name.(string))
		}
	}
	for name, value := range v {
		sub, ok := properties[name].(map[string]any)
		if !ok {
			if additional, _ := s["additionalProperties"].(bool); !additional && s["additionalProperties"] == false {
				wrong = append(wrong, where+": has "+name)
			}
			if sub, ok = s["additionalProperties"].(map[string]any); !ok {
				continue
			}
		}
		wrong = append(wrong, check(doc, sub, value, where+"/"+name)...)
	}
	return wrong
}

func checkText(s map[string]any, v, where string) (wrong []string) {
	if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
		wrong = append(wrong, where+": does not match "+p)
	}
	n := float64(utf8.RuneCountInString(v))
	if low, ok := number(s["minLength"]); ok && n < low {
		wrong = append(wrong, where+": is too short")
	}
	if high, ok := number(s["maxLength"]); ok && n > high {
		wrong = append(wrong, where+": is too long")
	}
	if s["format"] == "date-time" {
		if _, err := time.Parse(timeLayout, v); err != nil {
			wrong = append(wrong, where+": is no time in UTC with microseconds")
		}
	}
	return wrong
}

func hasType(want, v any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return hasType(one, v) })
	}
	switch v := v.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case float64:
		return want == "number" || want == "integer" && v == math.Trunc(v)
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// TestAnswersAreValidated: the reader of schemas finds what is wrong; without
// this the comparison of answers could be empty.
func TestAnswersAreValidated(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	good := appendPayment(nil, openOrder(), withQR(inState("PENDING")), view{now: noon})
	for name, change := range map[string]func(map[string]any){
		"missing": func(m map[string]any) { delete(m, "part") }, "more": func(m map[string]any) { m["x"] = 1.0 },
		"type": func(m map[string]any) { m["amount"] = "100" }, "fraction": func(m map[string]any) { m["amount"] = 1.5 },
		"enum": func(m map[string]any) { m["status"] = "PAID" }, "null": func(m map[string]any) { m["amount"] = nil },
		"action": func(m map[string]any) { m["action"].(map[string]any)["type"] = "redirect" },
		"time":   func(m map[string]any) { m["created_at"] = "2030-01-02T12:00:00Z" },
		"id":     func(m map[string]any) { m["id"] = "pay_1" },
	} {
		var v map[string]any
		if err := json.Unmarshal(good, &v); err != nil {
			t.Fatal(err)
		}
		schema := map[string]any{"$ref": "#/components/schemas/Payment"}
		if wrong := check(doc, schema, v, ""); len(wrong) > 0 {
			t.Fatalf("good payment: %v", wrong)
		}
		change(v)
		if wrong := check(doc, schema, v, ""); len(wrong) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}
