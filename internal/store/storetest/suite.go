package storetest

import "testing"

// Run runs the suite against one engine.
func Run(t *testing.T, e Engine) {
	e.available(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, e) })
	}
}

var cases = []struct {
	name string
	run  func(*testing.T, Engine)
}{
	{"Life", testLife},
}
