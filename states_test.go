package payonce_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/payonce/payonce"
)

var update = flag.Bool("update", false, "write the tables of docs/states.md")

const statesPage = "docs/states.md"

// TestDocs_StatesPageIsTrue: the tables on the page are those of the rules that
// every transition of the code is compared with.
func TestDocs_StatesPageIsTrue(t *testing.T) {
	raw, err := os.ReadFile(statesPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for name, table := range map[string]string{"facts": factTable(), "rules": ruleTable(), "follow": followTable()} {
		head, rest, ok1 := strings.Cut(page, "<!-- "+name+" -->\n")
		old, tail, ok2 := strings.Cut(rest, "<!-- end -->")
		if !ok1 || !ok2 {
			t.Fatalf("the page has no place for the table %q", name)
		}
		if old != table && !*update {
			t.Errorf("the table %q of %s is not what the code does; run: go test -run TestDocs_StatesPage . -update", name, statesPage)
		}
		page = head + "<!-- " + name + " -->\n" + table + "<!-- end -->" + tail
	}
	for _, s := range states {
		if !strings.Contains(page, "`"+string(s)+"`") {
			t.Errorf("the page does not explain %s", s)
		}
	}
	for _, k := range kinds {
		if !strings.Contains(page, "**"+k.String()+"**") {
			t.Errorf("the page does not explain the fact %s", k)
		}
	}
	if *update {
		if err := os.WriteFile(statesPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// factTable shows for each fact and state what may follow: a state, with "?"
// where it depends and the payment may also stay.
func factTable() string {
	var b strings.Builder
	b.WriteString("| fact | " + join(states, " | ") + " |\n|---|" + strings.Repeat("---|", len(states)) + "\n")
	type cell struct {
		fact string
		from payonce.PaymentStatus
	}
	may := map[cell]map[payonce.PaymentStatus]bool{}
	for _, from := range states {
		eachScene(from, func(s scene) {
			c := cell{name(s), from}
			if may[c] == nil {
				may[c] = map[payonce.PaymentStatus]bool{}
			}
			to, _ := s.expect()
			may[c][to] = true
		})
	}
	for _, fact := range factRows() {
		b.WriteString("| " + fact)
		for _, from := range states {
			b.WriteString(" | " + cellText(from, may[cell{fact, from}]))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

func name(s scene) string {
	if s.kind == payonce.StateSettled && s.mismatch {
		return "settled, other amount"
	}
	if s.side {
		return "any, of another object"
	}
	return s.kind.String()
}

func factRows() (out []string) {
	for _, k := range kinds {
		out = append(out, k.String())
		if k == payonce.StateSettled {
			out = append(out, "settled, other amount")
		}
	}
	return append(out, "any, of another object")
}

func cellText(from payonce.PaymentStatus, to map[payonce.PaymentStatus]bool) string {
	var out []string
	for _, s := range states {
		if to[s] && s != from {
			out = append(out, string(s))
		}
	}
	switch {
	case len(out) == 0:
		return "·"
	case to[from] || len(out) > 1:
		return strings.Join(out, "? ") + "?"
	}
	return out[0]
}

// ruleTable is the oracle in words, in its order.
func ruleTable() string {
	var b strings.Builder
	b.WriteString("| # | rule | becomes |\n|---|---|---|\n")
	for i, r := range rules {
		to := string(r.to)
		if to == "" {
			to = "stays"
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", i+1, r.name, to)
	}
	return b.String()
}

// followTable is the table that the random operations are held to.
func followTable() string {
	var b strings.Builder
	b.WriteString("| from | may become |\n|---|---|\n")
	for _, from := range states {
		to := join(transitions[from], ", ")
		if to == "" {
			to = "– (never left)"
		}
		b.WriteString("| " + string(from) + " | " + to + " |\n")
	}
	return b.String()
}

func join(list []payonce.PaymentStatus, sep string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, sep)
}

// TestTransitions_FactsStayInsideTheTable: what facts do is part of the table.
func TestTransitions_FactsStayInsideTheTable(t *testing.T) {
	for _, from := range states {
		eachScene(from, func(s scene) {
			if to, why := s.expect(); to != from && !slices.Contains(transitions[from], to) {
				t.Fatalf("%s → %s (%s) is not in the table", from, to, why)
			}
		})
	}
}
