//go:build failpoint

package sqlite_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/store/sqlite"
	"github.com/payonce/payonce/internal/store/sqlstore"
)

var failKey = payonce.OrderKey{Merchant: "m1", Environment: payonce.Test, OrderNo: "o1"}

// TestFailpoints: around COMMIT, a process that is killed or told of an error
// leaves all or nothing, and a result that is given is true.
func TestFailpoints(t *testing.T) {
	if url := os.Getenv("PAYONCE_FAILPOINT_CHILD"); url != "" {
		writeOne(t, url)
		return
	}
	for point, want := range map[string]struct {
		written, answered bool
	}{
		"commit.before:kill": {false, false}, "commit.after:kill": {true, false},
		"commit.before:error": {true, true}, "commit.after:error": {true, true},
	} {
		url := "sqlite://" + t.TempDir() + "/p.db"
		s, err := sqlite.Open(t.Context(), url, sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context(), sqlstore.MigrateOptions{}); err != nil {
			t.Fatal(err)
		}
		child := exec.Command(os.Args[0], "-test.run=^TestFailpoints$", "-test.v")
		child.Env = append(os.Environ(), "PAYONCE_FAILPOINT="+point, "PAYONCE_FAILPOINT_CHILD="+url)
		out, err := child.CombinedOutput()
		if answered := err == nil && strings.Contains(string(out), "written"); answered != want.answered {
			t.Errorf("%s: %v\n%s", point, err, out)
		}
		_, err = s.Order(t.Context(), failKey)
		if written := err == nil; written != want.written || !written && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: written %v (%v), want %v", point, written, err, want.written)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func writeOne(t *testing.T, url string) {
	s, err := sqlite.Open(t.Context(), url, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	err = s.Write(t.Context(), []*store.Unit{{Order: failKey,
		Create: &payonce.Order{ID: "ord_1", Key: failKey, Amount: 1, Currency: "CNY", Policy: payonce.PolicySingle},
		Decide: func(*store.View) error { return nil }}})[0]
	if err != nil {
		t.Fatal(err)
	}
	t.Log("written")
}
