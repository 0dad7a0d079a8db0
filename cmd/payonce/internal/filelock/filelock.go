// Package filelock holds an exclusive lock on a file for as long as the process
// lives. The operating system lets go of it however the process ends, so a
// holder that was killed never has to be cleaned up after.
//
// The package must not know what is locked.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrHeld: another process holds the lock. The error that wraps it names the
// process where it is known.
var ErrHeld = errors.New("held by another process")

// pause between two tries of a lock whose holder may be going away.
const pause = 20 * time.Millisecond

// Lock is a held lock.
type Lock struct{ f *os.File }

// Acquire locks the file, making it when there is none. A holder gets patience
// to go away, since a process that was killed takes a moment to die; then the
// error is ErrHeld. Where the system has no such locks it is
// errors.ErrUnsupported.
func Acquire(ctx context.Context, path string, patience time.Duration) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(patience)
	for {
		err := tryLock(f)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrHeld) || !time.Now().Before(deadline) {
			if pid := holder(f); pid != "" {
				err = fmt.Errorf("%w (pid %s)", err, pid)
			}
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
	// The process id only helps people; the lock does not depend on it.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{f}, nil
}

// Release lets go of the lock. The file stays: removing it would let two
// processes lock two files of one name.
func (l *Lock) Release() error { return l.f.Close() }

func holder(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	pid := strings.TrimSpace(string(b[:n]))
	if _, err := strconv.Atoi(pid); err != nil {
		return ""
	}
	return pid
}
