package payonce_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// amountPaths are the packages through which an amount goes.
var amountPaths = []string{".", "channel", "idempotency", "internal/engine", "internal/store"}

// floatAllowed lists what may stand there all the same, as "file: word" with the
// reason. An entry that is not needed fails too.
var floatAllowed = map[string]string{
	"internal/store/storetest/engine.go: 1e9": "an exact whole number of nanoseconds in the conformance suite, no money",
}

// floatWords are names that make or take a floating-point number.
var floatWords = map[string]bool{
	"float32": true, "float64": true, "complex64": true, "complex128": true,
	"ParseFloat": true, "FormatFloat": true, "AppendFloat": true, "Float64": true, "Float32": true, "SetFloat64": true, "NewFloat": true,
	"Seconds": true, "Minutes": true, "Hours": true, // of time.Duration
}

// mathAllowed are the integer constants of package math; all else there is
// floating-point.
var mathAllowed = map[string]bool{"MaxInt64": true, "MinInt64": true, "MaxInt32": true, "MinInt32": true, "MaxInt": true, "MaxUint32": true, "MaxUint64": true}

// TestA06_NoFloatInAnyAmountPath: 0.3 shown as 0.29.
func TestA06_NoFloatInAnyAmountPath(t *testing.T) { noFloat(t) }

// TestG12_FloatAmountsAreFound proves that the check above finds each kind of
// floating-point money.
func TestG12_FloatAmountsAreFound(t *testing.T) {
	for src, want := range map[string]string{
		"var x float64":                                 "float64",
		"type T struct{ Amount []float32 }":             "float32",
		"func f(cents int64) string { return g(1.5) }":  "1.5",
		"var x = 1e2":                                   "1e2",
		"import \"math\"\nvar x = math.Round(2)":        "math.Round",
		"import m \"math\"\nvar x = m.Floor(2)":         "math.Floor",
		"var x, _ = strconv.ParseFloat(s, 64)":          "ParseFloat",
		"var x = d.Seconds()":                           "Seconds",
		"var x = big.NewFloat":                          "NewFloat",
		"import . \"math\"\nvar x = 1":                  "import . math",
		"import \"math\"\nvar x int64 = math.MaxInt64":  "",
		"// float64 in a comment\nvar s = \"float64\"":  "",
		"var cents int64 = 19_90\nvar hex = 0xE1\n":     "",
		"type Seconds int64\nfunc (s Seconds) F() {}\n": "Seconds",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+src, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(floats(file), " ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: found %q, must find %q", src, got, want)
		}
	}
}

func noFloat(t *testing.T) {
	used, files := map[string]bool{}, 0
	for _, dir := range amountPaths {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || dir == "." && path != "."):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
			if err != nil {
				return err
			}
			files++
			for _, what := range floats(file) {
				key := filepath.ToSlash(path) + ": " + what
				if floatAllowed[key] == "" {
					t.Errorf("%s is floating-point in an amount path", key)
				}
				used[key] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 20 {
		t.Errorf("only %d files were read", files)
	}
	for key, reason := range floatAllowed {
		if !used[key] {
			t.Errorf("%s is allowed (%s) and does not stand there", key, reason)
		}
	}
}

// floats names every floating-point word of a file.
func floats(file *ast.File) (found []string) {
	mathName := ""
	for _, im := range file.Imports {
		if im.Path.Value == `"math"` {
			if mathName = "math"; im.Name != nil {
				mathName = im.Name.Name
			}
			if mathName == "." {
				found = append(found, "import . math")
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.FLOAT || n.Kind == token.IMAG {
				found = append(found, n.Value)
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == mathName && !mathAllowed[n.Sel.Name] {
				found = append(found, "math."+n.Sel.Name)
			}
		case *ast.Ident:
			if floatWords[n.Name] {
				found = append(found, n.Name)
			}
		}
		return true
	})
	return found
}
