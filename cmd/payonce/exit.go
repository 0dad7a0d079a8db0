package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/cmd/payonce/internal/supervise"
)

// Exit codes. Scripts rely on them.
const (
	exitOK       = 0
	exitNotGood  = 1 // checked, and something is not good
	exitUsage    = 2
	exitConfig   = 3
	exitDatabase = 4
	exitPort     = 5
	exitFault    = 70 // ours
)

// exitError is an error that knows its exit code. A nil err has been told
// already.
type exitError struct {
	code int
	err  error
}

// Error returns the message for people.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

func exit(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// coded gives an error that has no exit code yet the code of a class.
func coded(code int, err error) error {
	var e *exitError
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &exitError{code: code, err: err}
}

// execute runs one command line and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintf(stderr, "payonce: a fault of ours: %v\n%s", v, debug.Stack())
			code = exitFault
		}
	}()
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	return report(root.Execute(), stderr)
}

// report writes an error in whole sentences, each on its line, and returns the
// exit code. Errors without a code come from reading the command line.
func report(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	code := exitUsage
	var e *exitError
	if errors.As(err, &e) {
		code = e.code
	}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(stderr, "payonce: %s\n", line)
		}
	}
	if code == exitUsage {
		fmt.Fprintln(stderr, "payonce: see payonce help")
	}
	return code
}

// configError gives the exit code of a wrong configuration.
func configError(err error) error {
	var p config.Problems
	if errors.As(err, &p) {
		return &exitError{code: exitConfig, err: p}
	}
	return coded(exitConfig, err)
}

// listenError says what is wrong with an address to listen on.
func listenError(setting, addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return exit(exitPort, "%s: the port of %s is taken by another process", setting, addr)
	case errors.Is(err, syscall.EACCES):
		return exit(exitConfig, "%s: no permission to listen on %s", setting, addr)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return exit(exitConfig, "%s: cannot listen on %s: %v", setting, addr, err)
}

// childError passes the exit code of a child on that told its error itself.
func childError(err error) error {
	var ended *supervise.Ended
	if errors.As(err, &ended) {
		return exit(ended.Code, "the %s could not start", ended.Name)
	}
	return coded(exitFault, err)
}
