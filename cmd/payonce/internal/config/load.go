package config

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/caarlos0/env/v11"
)

// Prefix starts the name of every environment variable of the service.
const Prefix = "PAYONCE_"

// Variables that are no settings of the service but belong to it.
const (
	EnvConfig    = Prefix + "CONFIG"    // path of the configuration file
	EnvFailpoint = Prefix + "FAILPOINT" // builds with failpoints only
)

// Problems is everything that is wrong with a configuration, a sentence each.
type Problems []string

// Error joins the sentences.
func (p Problems) Error() string { return strings.Join(p, "\n") }

// Source says where the settings come from.
type Source struct {
	File    string   // "" for none
	Environ []string // as of os.Environ
	// Failpoints: this build knows PAYONCE_FAILPOINT.
	Failpoints bool
}

type loader struct {
	dir      string // of the configuration file; relative secret files start here
	problems Problems
	warnings []string
}

func (l *loader) add(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// Load reads and checks the settings. Warnings are for the log. The error is
// Problems.
func Load(src Source) (*Config, []string, error) {
	l := &loader{dir: "."}
	var file settings
	if src.File != "" {
		file, _ = l.readFile(src.File)
	}
	vars := l.readEnviron(src)
	if len(l.problems) > 0 {
		return nil, l.warnings, l.problems
	}
	c := l.build(&file, &vars)
	if len(l.problems) > 0 {
		return nil, l.warnings, l.problems
	}
	return c, l.warnings, nil
}

// LoadDatabase reads only what is needed to open the database, for commands
// that need nothing else. Unknown settings are refused all the same.
func LoadDatabase(src Source) (Secret, []string, error) {
	l := &loader{dir: "."}
	var file settings
	if src.File != "" {
		file, _ = l.readFile(src.File)
	}
	vars := l.readEnviron(src)
	if len(l.problems) > 0 {
		return Secret{}, l.warnings, l.problems
	}
	url := l.databaseURL(&file, &vars)
	if len(l.problems) > 0 {
		return Secret{}, l.warnings, l.problems
	}
	return url, l.warnings, nil
}

func (l *loader) readEnviron(src Source) settings {
	var s settings
	params, err := env.GetFieldParamsWithOptions(&s, env.Options{Prefix: Prefix})
	if err != nil {
		panic(err) // the struct's own tags are wrong
	}
	known := map[string]bool{EnvConfig: true}
	var names []string
	for _, p := range params {
		if !p.Ignored && p.OwnKey != "" {
			known[p.Key] = true
			names = append(names, p.Key)
		}
	}
	vars := map[string]string{}
	for _, kv := range src.Environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, Prefix) {
			continue
		}
		switch {
		case name == EnvFailpoint && !src.Failpoints:
			l.add("%s is set, but this build has no failpoints; build with -tags failpoint", name)
		case name != EnvFailpoint && !known[name]:
			l.add("%s: unknown variable%s", name, suggest(name, names))
		default:
			vars[name] = value
		}
	}
	if err := env.ParseWithOptions(&s, env.Options{Prefix: Prefix, Environment: vars}); err != nil {
		for _, line := range parseErrors(vars) {
			l.add("%s", line)
		}
		if len(l.problems) == 0 {
			l.add("the environment cannot be read: %v", err)
		}
	}
	return s
}

// parseErrors finds out which variable is malformed; the library names only
// the struct's fields.
func parseErrors(vars map[string]string) []string {
	var out []string
	for name, value := range vars {
		var s settings
		if err := env.ParseWithOptions(&s, env.Options{Prefix: Prefix, Environment: map[string]string{name: value}}); err != nil {
			what := "a duration like 20s"
			if name == Prefix+"WORKER" {
				what = "true or false"
			}
			out = append(out, fmt.Sprintf("%s: %q is not %s", name, value, what))
		}
	}
	sort.Strings(out)
	return out
}

// suggest names the known word that is nearest to a wrong one.
func suggest(word string, known []string) string {
	best, at := "", 1+max(2, len(word)/3)
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// hostNode is the default of node_id: the host's name, reduced to the letters
// that a node id may have.
func hostNode() string {
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	host, _, _ = strings.Cut(host, ".")
	clean := strings.Map(func(r rune) rune {
		if idLetter(r) {
			return r
		}
		return '-'
	}, host)
	return clean[:min(len(clean), maxNodeID)]
}
