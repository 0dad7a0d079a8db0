package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Binaries under test: as released, and able to fail at its failpoints.
var (
	tempDir  string
	plainBin string
	faultBin string
	repoDir  string
)

// atOnce is how many tests wait at the same time. They mostly wait for other
// processes, so more than there are cores.
const atOnce = "10"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce)
	}
	var err error
	if repoDir, err = filepath.Abs("../.."); err != nil {
		return giveUp(err)
	}
	if tempDir, err = os.MkdirTemp("", "payonce-e2e-"); err != nil {
		return giveUp(err)
	}
	defer os.RemoveAll(tempDir)
	plainBin, faultBin = filepath.Join(tempDir, "payonce"), filepath.Join(tempDir, "payonce-failpoint")
	for _, args := range [][]string{{"build", "-o", plainBin}, {"build", "-tags", "failpoint", "-o", faultBin}} {
		cmd := exec.Command("go", append(args, "./cmd/payonce")...)
		cmd.Dir = repoDir
		if out, err := cmd.CombinedOutput(); err != nil {
			return giveUp(fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out))
		}
	}
	code := m.Run()
	for _, problem := range closeShared() {
		fmt.Fprintln(os.Stderr, "FAIL after all tests:", problem)
		code = 1
	}
	return code
}

func giveUp(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// shared holds what many tests use together; it ends after the last test.
var shared struct {
	mu   sync.Mutex
	ends []func() []string
}

// atEnd has f called after all tests; it returns what is wrong.
func atEnd(f func() []string) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.ends = append(shared.ends, f)
}

func closeShared() []string {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	var problems []string
	for i := len(shared.ends) - 1; i >= 0; i-- {
		problems = append(problems, shared.ends[i]()...)
	}
	return problems
}

// missing ends a test whose engine is not there: loudly, and as a failure where
// everything has to be there.
func missing(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is needed under CI: %v", what, err)
	}
	t.Skipf("!!!!!! NOT RUN: %s is not there: %v !!!!!!", what, err)
}
