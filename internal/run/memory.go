package run

import (
	"os"
	"runtime/debug"
)

const (
	gcPercent   = 400      // garbage is collected when the heap is five times what lives
	memoryLimit = 80 << 20 // bytes; near it, garbage is collected sooner
)

// SpareCollections lets a service use the memory that it may have anyway: it
// lives on a few megabytes and makes much garbage, so that the usual setting
// spends a fifth of the processor on collecting. GOGC and GOMEMLIMIT win.
func SpareCollections() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
