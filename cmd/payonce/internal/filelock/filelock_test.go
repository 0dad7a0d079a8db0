package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestOnlyOneHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(context.Background(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(context.Background(), path, 0)
	if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("second holder: %v", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Acquire(context.Background(), path, 0)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	again.Release()
}

func TestADyingHolderIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(context.Background(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		l, err := Acquire(context.Background(), path, time.Minute)
		if err == nil {
			err = l.Release()
		}
		got <- err
	}()
	first.Release()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Acquire(context.Background(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Acquire(ctx, path, time.Minute); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
