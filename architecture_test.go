package payonce_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/payonce/payonce"

// TestImportTable compares docs/architecture.md with what the packages import.
// A package may import only packages that stand above it in the table.
func TestImportTable(t *testing.T) {
	want, order := readImportTable(t)
	got := listImports(t)
	for pkg, imports := range got {
		if _, ok := want[pkg]; !ok {
			t.Errorf("package %s is not in docs/architecture.md", pkg)
			continue
		}
		if !slices.Equal(want[pkg], imports) {
			t.Errorf("package %s imports %v, docs/architecture.md says %v", pkg, imports, want[pkg])
		}
		for _, imp := range imports {
			if slices.Index(order, imp) > slices.Index(order, pkg) {
				t.Errorf("package %s imports %s, which stands below it", pkg, imp)
			}
		}
	}
	for pkg := range want {
		if _, ok := got[pkg]; !ok {
			t.Errorf("docs/architecture.md names %s, which does not exist", pkg)
		}
	}
}

func readImportTable(t *testing.T) (map[string][]string, []string) {
	t.Helper()
	b, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "<!-- imports -->")
	table, _, ok2 := strings.Cut(rest, "<!-- /imports -->")
	if !ok || !ok2 {
		t.Fatal("docs/architecture.md has no import table")
	}
	want, order := map[string][]string{}, []string{}
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		name := strings.Trim(cells[1], " `")
		imports := []string{}
		for f := range strings.FieldsFuncSeq(cells[2], func(r rune) bool { return r == ' ' || r == ',' || r == '`' }) {
			imports = append(imports, f)
		}
		slices.Sort(imports)
		want[name], order = imports, append(order, name)
	}
	return want, order
}

func listImports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		pkg := shortName(f[0])
		imports := []string{}
		for _, i := range f[1:] {
			if i == modulePath || strings.HasPrefix(i, modulePath+"/") {
				imports = append(imports, shortName(i))
			}
		}
		slices.Sort(imports)
		got[pkg] = imports
	}
	return got
}

func shortName(p string) string {
	if p == modulePath {
		return "payonce"
	}
	return strings.TrimPrefix(p, modulePath+"/")
}

// sources calls f for each Go file below the folders.
func sources(t *testing.T, dirs []string, tests bool, f func(path string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") && !tests {
				if d != nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "." {
					return filepath.SkipDir
				}
				return err
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			f(path, fset, file)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoFreeRandomness proves that engine, store and worker take the clock,
// random numbers and goroutines from package run alone, so that a simulation can
// replace them.
func TestNoFreeRandomness(t *testing.T) {
	forbidden := map[string][]string{
		"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	}
	sources(t, []string{"internal/engine", "internal/store", "internal/worker"}, false, func(path string, fset *token.FileSet, file *ast.File) {
		if strings.Contains(path, "storetest") {
			return // a test suite, run by tests only
		}
		for _, imp := range file.Imports {
			if p := strings.Trim(imp.Path.Value, `"`); p == "math/rand" || p == "math/rand/v2" || p == "crypto/rand" {
				t.Errorf("%s imports %s", path, p)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: go statement outside the runner", fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(forbidden[x.Name], n.Sel.Name) {
					t.Errorf("%s: %s.%s outside the runner", fset.Position(n.Pos()), x.Name, n.Sel.Name)
				}
			}
			return true
		})
	})
}

// Sizes that keep the code readable. They are a ratchet: tighten, never loosen.
const (
	maxFileLines     = 500
	maxFunctionLines = 70
)

func TestSizes(t *testing.T) {
	sources(t, []string{"."}, true, func(path string, fset *token.FileSet, file *ast.File) {
		if n := fset.File(file.Pos()).LineCount(); n > maxFileLines {
			t.Errorf("%s has %d lines, %d is the limit", path, n, maxFileLines)
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
					t.Errorf("%s: %s has %d lines, %d is the limit", fset.Position(fn.Pos()), fn.Name.Name, n, maxFunctionLines)
				}
			}
		}
	})
}

// TestPackageComments wants a package comment in every package, and a comment on
// every exported name outside tests.
func TestPackageComments(t *testing.T) {
	commented, all := map[string]bool{}, map[string]bool{}
	sources(t, []string{"."}, false, func(path string, fset *token.FileSet, file *ast.File) {
		dir := filepath.Dir(path)
		all[dir] = true
		commented[dir] = commented[dir] || file.Doc != nil
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Name.IsExported() && fn.Doc == nil && (fn.Recv == nil || exportedReceiver(fn)) {
				t.Errorf("%s: %s has no comment", fset.Position(fn.Pos()), fn.Name.Name)
			}
		}
	})
	for dir := range all {
		if !commented[dir] {
			t.Errorf("package in %s has no package comment", dir)
		}
	}
}

func exportedReceiver(fn *ast.FuncDecl) bool {
	x := fn.Recv.List[0].Type
	if s, ok := x.(*ast.StarExpr); ok {
		x = s.X
	}
	id, ok := x.(*ast.Ident)
	return ok && id.IsExported()
}

// polls are the helpers that ask real processes again and again until a deadline.
var polls = []string{filepath.Join("test", "e2e", "poll_test.go"), filepath.Join("cmd", "payonce", "process_test.go")}

// TestNoSleepInTests: tests wait for signals. Only what a real process leaves no
// other way for is polled.
func TestNoSleepInTests(t *testing.T) {
	sources(t, []string{"."}, true, func(path string, fset *token.FileSet, file *ast.File) {
		if !strings.HasSuffix(path, "_test.go") || slices.Contains(polls, path) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s: time.Sleep in a test", fset.Position(s.Pos()))
				}
			}
			return true
		})
	})
}

// TestInvariantsPageNamesRealTests: a test that was renamed or removed must not
// go on guarding an invariant on paper.
func TestInvariantsPageNamesRealTests(t *testing.T) {
	page, err := os.ReadFile("docs/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	sources(t, []string{"."}, true, func(path string, _ *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				known[fn.Name.Name] = true
			}
		}
		if strings.HasSuffix(path, "storetest/suite.go") {
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					known["storetest/"+strings.Trim(lit.Value, `"`)] = true
				}
				return true
			})
		}
	})
	for _, name := range regexp.MustCompile(`\b(Test|storetest/)[A-Z]\w+`).FindAllString(string(page), -1) {
		if !known[name] {
			t.Errorf("docs/invariants.md names %s, which does not exist", name)
		}
	}
}
