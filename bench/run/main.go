// Command run measures the claims of the product: it starts the service, the
// port and the load client from one folder, gives each run a fresh database,
// and compares. scripts/bench builds everything and calls it.
//
// It must not know how a payment works; it sees processes from outside.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// bench holds the settings of a whole run.
type bench struct {
	programs     string // folder
	postgres     *server
	rounds       int
	length       time.Duration // of one measured run of first payments
	warm         time.Duration
	probing      time.Duration
	conns        int
	pool         int
	slice        int // notices of one slice
	noticeRounds int
}

func (b *bench) program(name string) string { return filepath.Join(b.programs, name) }

func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func main() {
	b := &bench{rounds: 5, length: 20 * time.Second, warm: 2 * time.Second, probing: 10 * time.Second, slice: 300, noticeRounds: 3}
	out := flag.String("out", "", "file for all figures as JSON")
	quick := flag.Bool("quick", false, "two pairs of 5 s, to try it out")
	noSlow := flag.Bool("no-slow", false, "leave out the slow channel, which takes a minute")
	notices := flag.Bool("notices", false, "measure the handling of notices and nothing else")
	database := flag.String("database", "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable", "a server on which databases may be made")
	flag.StringVar(&b.programs, "programs", "", "folder with serve, port and load")
	flag.IntVar(&b.conns, "conns", 32, "connections of the load client")
	flag.IntVar(&b.pool, "pool", 16, "database connections of the service and of the port")
	flag.Parse()
	if *quick {
		b.rounds, b.length, b.warm, b.probing = 2, 5*time.Second, time.Second, 5*time.Second
		b.slice, b.noticeRounds = 150, 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var r measured
	var err error
	command := "scripts/bench " + strings.Join(os.Args[1:], " ")
	if *notices {
		r, err = b.allNotices(ctx, *database, command)
	} else {
		r, err = b.all(ctx, *database, command, !*noSlow)
	}
	if err == nil {
		err = r.print(os.Stdout)
	}
	if err == nil && *out != "" {
		err = write(*out, r)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(70)
	case r.failed():
		os.Exit(1)
	}
}

// measured is a report of either kind.
type measured interface {
	print(io.Writer) error
	failed() bool
}

// all measures everything but notices, the sensitive figures first.
func (b *bench) all(ctx context.Context, database, command string, slow bool) (*report, error) {
	var err error
	if b.postgres, err = connect(ctx, database); err != nil {
		return nil, err
	}
	r := &report{Cores: runtime.NumCPU(), Go: runtime.Version(), Conns: b.conns, Pool: b.pool, Command: command}
	if r.Postgres, err = b.postgres.settings(ctx); err != nil {
		return nil, err
	}
	if r.Pairs, err = b.pairs(ctx); err != nil {
		return nil, err
	}
	if r.Control, err = b.twins(ctx, thePort); err != nil {
		return nil, err
	}
	if r.Twins, err = b.twins(ctx, theService); err != nil {
		return nil, err
	}
	if slow {
		s, err := b.slow(ctx)
		if err != nil {
			return nil, err
		}
		r.Slow = &s
	}
	r.judge()
	return r, nil
}
