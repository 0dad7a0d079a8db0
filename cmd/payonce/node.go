package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/cmd/payonce/internal/filelock"
)

// lockPatience is how long an earlier process that was killed may take to die.
const lockPatience = 2 * time.Second

// holdNode takes the exclusive lock of the node id. A process that has it knows
// that no other process with this node id lives on this machine.
func holdNode(ctx context.Context, c *config.Config, log *slog.Logger) (*filelock.Lock, bool) {
	path := filepath.Join(c.StateDir, "payonce-"+c.NodeID+".lock")
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		log.Warn("state_dir cannot be made; what an earlier start held is taken over only when its leases end", "state_dir", c.StateDir, "error", err)
		return nil, false
	}
	lock, err := filelock.Acquire(ctx, path, lockPatience)
	switch {
	case err == nil:
		return lock, true
	case errors.Is(err, filelock.ErrHeld):
		log.Warn("another process runs under this node_id; give each its own. What an earlier start held is taken over only when its leases end", "node_id", c.NodeID, "lock", path, "error", err)
	default:
		log.Warn("the lock of the node_id cannot be had; what an earlier start held is taken over only when its leases end", "node_id", c.NodeID, "lock", path, "error", err)
	}
	return nil, false
}
