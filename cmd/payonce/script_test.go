package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// asPayonce makes the test binary play the real one, also as a child of itself.
const asPayonce = "RUN_AS_PAYONCE"

func TestMain(m *testing.M) {
	if os.Getenv(asPayonce) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"payonce": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":  code,
			"keyid": keyID,
		},
	})
}

// code runs a command and expects its exit code: code N command args…
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		var ee *exec.ExitError
		if !errors.As(err, &ee) {
			ts.Fatalf("%v", err)
		}
		got = ee.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// keyID sets KEYID from what keys create printed.
func keyID(ts *testscript.TestScript, _ bool, args []string) {
	var made struct{ ID string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &made))
	ts.Setenv("KEYID", made.ID)
}
