// Package supervise keeps child processes alive and makes sure that they die
// with their parent.
//
// A child that ends is started again at once; only one that dies again and
// again right after its start is given growing pauses. Children learn of their
// parent's death twice: by a signal of the kernel where it has one (Linux), and
// by the end of their standard input, which the parent holds open and never
// writes to.
//
// The package must not know what the children do.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Child is a program to keep alive.
type Child struct {
	Name string
	Path string
	Args []string
	Env  []string
	// EnvAgain is the environment from the second start on; nil: Env.
	EnvAgain []string
	Files    []*os.File // descriptors 3, 4, … of the child
	Output   io.Writer  // of its standard output and error
	// Terminate says how the child is asked to end: by SIGTERM, or (false) by
	// the end of its standard input.
	Terminate bool
	Grace     time.Duration // after which a child that was asked to end is killed
	// GiveUp reports whether a death with this exit code is final, so that Keep
	// returns Ended; nil: never. A child killed by a signal has code -1.
	GiveUp func(code int) bool
	// Started is told the process id of every start; may be nil.
	Started func(pid int)
	Log     *slog.Logger
}

// Ended is the error of a child that is not started again.
type Ended struct {
	Name string
	Code int
}

// Error says which child ended.
func (e *Ended) Error() string { return fmt.Sprintf("%s ended with exit code %d", e.Name, e.Code) }

const (
	quick    = 2 * time.Second // a death so soon after the start is a quick one
	freeTry  = 2               // quick deaths in a row that cost no pause
	firstGap = 250 * time.Millisecond
	longest  = 5 * time.Second
)

// Keep runs the child until ctx ends and it has ended too, or until GiveUp says
// so. It holds its thread to the end: the kernel's signal on the parent's death
// is bound to the thread that started the child.
func Keep(ctx context.Context, c Child) error {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	env, deaths := c.Env, 0
	for {
		began := time.Now()
		p, err := start(&c, env)
		if err != nil {
			return fmt.Errorf("start %s: %w", c.Name, err)
		}
		code, stopped := p.wait(ctx, &c)
		if stopped {
			return nil
		}
		if c.GiveUp != nil && c.GiveUp(code) {
			return &Ended{Name: c.Name, Code: code}
		}
		if c.EnvAgain != nil {
			env = c.EnvAgain
		}
		if time.Since(began) < quick {
			deaths++
		} else {
			deaths = 0
		}
		pause := backOff(deaths)
		c.Log.Warn("child ended, starting it again", "child", c.Name, "state", p.cmd.ProcessState.String(), "pause", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// backOff is the pause after so many quick deaths in a row.
func backOff(deaths int) time.Duration {
	if deaths <= freeTry {
		return 0
	}
	gap := firstGap
	for range deaths - freeTry - 1 {
		if gap *= 2; gap >= longest {
			return longest
		}
	}
	return gap
}

type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

func start(c *Child, env []string) (*process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.ExtraFiles = env, c.Files
	cmd.Stdout, cmd.Stderr = c.Output, c.Output
	dieWithParent(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		stdin.Close()
		return nil, err
	}
	if c.Started != nil {
		c.Started(cmd.Process.Pid)
	}
	p := &process{cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state is read from ProcessState
		close(p.ended)
	}()
	return p, nil
}

// wait returns when the process has ended, by itself or because ctx did.
func (p *process) wait(ctx context.Context, c *Child) (code int, stopped bool) {
	select {
	case <-p.ended:
		// Both may have happened: whoever stops the parent's process group has
		// stopped the child on purpose.
		return p.cmd.ProcessState.ExitCode(), ctx.Err() != nil
	case <-ctx.Done():
	}
	if !c.Terminate || p.cmd.Process.Signal(syscall.SIGTERM) != nil {
		p.stdin.Close()
	}
	select {
	case <-p.ended:
	case <-time.After(c.Grace):
		c.Log.Warn("child did not end in time and is killed", "child", c.Name, "grace", c.Grace)
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	return p.cmd.ProcessState.ExitCode(), true
}

// Orphaned returns a channel that is closed when the parent has ended or closed
// this process's standard input.
func Orphaned() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, err := io.Copy(io.Discard, os.Stdin); err == nil || !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	}()
	return gone
}
