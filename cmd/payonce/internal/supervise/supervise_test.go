//go:build unix

package supervise

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary plays the children. Descriptor 3 is the test's end of a pipe
// on which they say what they are.
func TestMain(m *testing.M) {
	switch os.Getenv("SUPERVISE_ROLE") {
	case "":
		os.Exit(m.Run())
	case "idle": // ends only with its parent
		say("up", os.Getpid())
		<-Orphaned()
		os.Exit(0)
	case "stubborn": // ends with nothing but a kill
		signal.Ignore(syscall.SIGTERM)
		say("up", os.Getpid())
		select {}
	case "term":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		say("up", os.Getpid())
		<-stop
		say("terminated", os.Getpid())
		os.Exit(0)
	case "bad":
		os.Exit(3)
	case "parent": // keeps a child that holds descriptor 3 too
		role := "stubborn"
		if runtime.GOOS != "linux" {
			role = "idle" // without the kernel's signal a child has to look for itself
		}
		_ = Keep(context.Background(), child(role, os.NewFile(3, "report")))
	}
}

func say(word string, pid int) {
	fmt.Fprintln(os.NewFile(3, "report"), word, pid)
}

func child(role string, report *os.File) Child {
	return Child{Name: role, Path: os.Args[0], Env: append(os.Environ(), "SUPERVISE_ROLE="+role), Files: []*os.File{report},
		Output: os.Stderr, Grace: time.Minute, Log: slog.New(slog.DiscardHandler)}
}

func reports(t *testing.T) (*bufio.Reader, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return bufio.NewReader(r), w
}

func next(t *testing.T, r *bufio.Reader) (string, int) {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("no report: %v", err)
	}
	word, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("report %q", line)
	}
	return word, n
}

func TestAChildThatIsKilledStartsAgainAtOnce(t *testing.T) {
	r, w := reports(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Keep(ctx, child("idle", w)) }()
	_, first := next(t, r)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, second := next(t, r); second == first {
		t.Fatalf("the same process twice: %d", second)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestAChildIsAskedToEndBeforeItIsKilled(t *testing.T) {
	r, w := reports(t)
	ctx, cancel := context.WithCancel(context.Background())
	c := child("term", w)
	c.Terminate = true
	done := make(chan error, 1)
	go func() { done <- Keep(ctx, c) }()
	next(t, r)
	cancel()
	if word, _ := next(t, r); word != "terminated" {
		t.Fatalf("the child was not asked: %s", word)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestAStubbornChildIsKilledAfterItsGrace(t *testing.T) {
	r, w := reports(t)
	ctx, cancel := context.WithCancel(context.Background())
	c := child("stubborn", w)
	c.Terminate, c.Grace = true, time.Millisecond
	done := make(chan error, 1)
	go func() { done <- Keep(ctx, c) }()
	next(t, r)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestAHopelessChildIsGivenUp(t *testing.T) {
	_, w := reports(t)
	c := child("bad", w)
	c.GiveUp = func(code int) bool { return code == 3 }
	var e *Ended
	if err := Keep(context.Background(), c); !errors.As(err, &e) || e.Code != 3 || e.Name != "bad" {
		t.Fatalf("got %v", err)
	}
}

// The parent is killed without a chance to clean up; its child, which ignores
// SIGTERM and never looks at its standard input, must die all the same.
func TestChildrenDieWithAParentThatIsKilled(t *testing.T) {
	r, w := reports(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SUPERVISE_ROLE=parent")
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	next(t, r)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := r.ReadString('\n'); !errors.Is(err, io.EOF) { // the last holder of the pipe is gone
		t.Fatalf("got %v", err)
	}
}

func TestPausesGrowOnlyAfterQuickRepeatedDeaths(t *testing.T) {
	want := []time.Duration{0, 0, 0, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
	for deaths, pause := range want {
		if got := backOff(deaths); got != pause {
			t.Errorf("after %d quick deaths: %v, want %v", deaths, got, pause)
		}
	}
}
