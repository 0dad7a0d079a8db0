package httpapi

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce/idempotency"
)

// layerProblems are the problems of the idempotency layer, each as its
// constructor makes it.
func layerProblems() []*idempotency.Problem {
	return []*idempotency.Problem{
		idempotency.KeyMissing(), idempotency.KeyInvalid("x"),
		idempotency.NotFingerprintable(400, "x"), idempotency.NotFingerprintable(413, "x"), idempotency.NotFingerprintable(415, "x"),
		idempotency.Reused(), idempotency.InProgress("", time.Second),
		idempotency.OutcomeUnknown("", time.Second), idempotency.OutcomeNotStored("", time.Second),
		idempotency.ResultUnavailable("", 201, ""), idempotency.ResultExpired("", 201, ""), idempotency.Unavailable(),
		idempotency.TooManyUnresolved(), idempotency.ReplayNotAuthorized(), idempotency.RecordCorrupt(""),
	}
}

type documented struct {
	status      []int
	title       string
	retry       string
	safe        bool
	meaning, do string
}

// TestErrorsDoc: docs/errors.md has every code with what the code says, an
// explanation, advice and an example, and no other code.
func TestErrorsDoc(t *testing.T) {
	want := map[string]*documented{}
	for code, c := range codes {
		want[code] = &documented{status: []int{c.status}, title: c.title, retry: c.retry, safe: c.safeNewKey}
	}
	for _, p := range layerProblems() {
		if d := want[p.Code]; d != nil {
			d.status = append(d.status, p.Status)
		} else {
			want[p.Code] = &documented{status: []int{p.Status}, title: p.Title, retry: p.Retry, safe: p.SafeNewKey}
		}
	}
	got := readErrorsDoc(t)
	for code, w := range want {
		slices.Sort(w.status)
		g := got[code]
		switch {
		case g == nil:
			t.Errorf("docs/errors.md has no section %s", code)
		case !slices.Equal(g.status, w.status) || g.title != w.title || g.retry != w.retry || g.safe != w.safe:
			t.Errorf("%s: documented %+v, the code says %+v", code, *g, *w)
		case g.meaning == "" || g.do == "":
			t.Errorf("%s: no explanation or no advice", code)
		}
	}
	for code := range got {
		if want[code] == nil {
			t.Errorf("docs/errors.md has a section %s, which is no code", code)
		}
	}
}

var statusLine = regexp.MustCompile("^`([0-9 or]+)` · retry `([a-z-]+)` · safe_new_key `(true|false)`")

func readErrorsDoc(t *testing.T) map[string]*documented {
	t.Helper()
	b, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*documented{}
	for _, section := range strings.Split(string(b), "\n## ")[1:] {
		section, _, _ = strings.Cut(section, "\n# ")
		parts := strings.Split(section, "\n\n")
		if len(parts) != 5 {
			t.Fatalf("%s: %d paragraphs, want heading, line, meaning, advice, example", parts[0], len(parts))
		}
		m := statusLine.FindStringSubmatch(parts[1])
		if m == nil {
			t.Fatalf("%s: %q", parts[0], parts[1])
		}
		d := &documented{retry: m[2], safe: m[3] == "true", meaning: parts[2], do: strings.TrimPrefix(parts[3], "**What to do:** ")}
		for _, s := range strings.Split(m[1], " or ") {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			d.status = append(d.status, n)
		}
		d.title = checkExample(t, parts[0], d, parts[4])
		all[parts[0]] = d
	}
	return all
}

// checkExample wants the example to agree with its section and returns its
// title.
func checkExample(t *testing.T, code string, d *documented, fenced string) string {
	t.Helper()
	text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(fenced), "```json\n"), "\n```")
	var e struct {
		Type, Title, Detail, Code, Retry string
		Status                           int
		SafeNewKey                       bool `json:"safe_new_key"`
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("%s: example: %v", code, err)
	}
	if e.Code != code || e.Type != DefaultDocsURL+"#"+code || e.Retry != d.retry || e.SafeNewKey != d.safe || !slices.Contains(d.status, e.Status) || e.Detail == "" {
		t.Errorf("%s: the example says something else: %+v", code, e)
	}
	return e.Title
}

// TestEveryCodeHasAnAnswer: the constants of the vocabulary and of the layer are
// all in the tables.
func TestEveryCodeHasAnAnswer(t *testing.T) {
	known := map[string]bool{}
	for code := range codes {
		known[code] = true
	}
	for _, p := range layerProblems() {
		known[p.Code] = true
	}
	n := 0
	for _, file := range []string{"../../errors.go", "../../idempotency/catalogue.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Code") {
				return true
			}
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if n++; !known[code] {
				t.Errorf("%s has no answer", code)
			}
			return true
		})
	}
	if n < len(codes) {
		t.Errorf("only %d constants found", n)
	}
}
