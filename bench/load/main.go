// Command load sends requests to a measured process over keep-alive connections
// and prints what came back as one JSON object. It runs in a process of its own,
// so that its memory and its garbage are not the server's.
//
// Modes: first (new key and order each), replay (a set of known keys), twins
// (each key by all connections at once), hold (one payment per connection, whose
// answer is waited for), get (one path again and again), notices (each line of a
// file once a round, as the body of a request). Each connection sends its next
// request when the answer has come: latencies are those of a client that waits,
// not of an open stream of arrivals.
//
// It must not know which server it talks to.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	var s settings
	flag.StringVar(&s.target, "target", "", "host:port of the server")
	flag.StringVar(&s.mode, "mode", "first", "first, replay, twins, hold, get or notices")
	flag.IntVar(&s.conns, "conns", 32, "connections")
	flag.DurationVar(&s.length, "for", 20*time.Second, "measured time")
	flag.IntVar(&s.keys, "keys", 1000, "known keys of mode replay, keys of mode twins")
	flag.StringVar(&s.prefix, "prefix", "b-", "start of keys and order numbers; must be new for new payments")
	flag.StringVar(&s.token, "token", "sk_test_bench", "API key")
	flag.StringVar(&s.account, "account", "fast", "channel account to pay on")
	flag.StringVar(&s.path, "path", "/healthz", "what modes get and notices ask for")
	flag.StringVar(&s.file, "file", "", "bodies of mode notices, one a line")
	flag.IntVar(&s.skip, "skip", 0, "lines of the file that are left out at its start")
	flag.IntVar(&s.take, "take", 0, "lines of the file that are used; 0 is the rest")
	flag.IntVar(&s.rounds, "rounds", 1, "how often mode notices sends everything")
	flag.StringVar(&s.word, "word", "success", "the whole body of every answer of mode notices")
	flag.DurationVar(&s.pause, "pause", 0, "pause of a connection between two requests")
	flag.Parse()
	res, err := s.run()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(res)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}
