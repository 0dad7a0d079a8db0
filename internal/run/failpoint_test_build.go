//go:build failpoint

package run

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
)

// FailpointsBuilt reports whether this binary can be told to fail.
const FailpointsBuilt = true

var armed = func() map[string]string {
	m := map[string]string{}
	for spec := range strings.SplitSeq(os.Getenv("PAYONCE_FAILPOINT"), ",") {
		if name, what, ok := strings.Cut(spec, ":"); ok {
			m[name] = what
		}
	}
	return m
}()

var used atomic.Bool

// Fail acts at a failpoint as PAYONCE_FAILPOINT=name:kill|error|hang says, once
// per process: it kills the process with SIGKILL, returns an error, or hangs
// for ever.
func Fail(name string) error {
	what, ok := armed[name]
	if !ok || !used.CompareAndSwap(false, true) {
		return nil
	}
	switch what {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "hang":
		select {}
	}
	return fmt.Errorf("failpoint %s", name)
}
