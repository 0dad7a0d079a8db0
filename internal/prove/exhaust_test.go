package prove

import (
	"os"
	"testing"
	"time"
)

var small = map[string]Script{
	"code and form, a fault":  {Clients: []Request{{Kind: "pay", Method: "qr"}, {Kind: "pay", Method: "page"}}, Faults: 1, Steps: 200},
	"card and close, a crash": {Clients: []Request{{Kind: "pay", Method: "card"}, {Kind: "close"}}, Crashes: 1, Times: 1, Steps: 200},
	"code, card, close, time": {Clients: []Request{{Kind: "pay", Method: "qr"}, {Kind: "pay", Method: "card"}, {Kind: "close"}}, Times: 1, Steps: 200},
}

func TestEverySchedule(t *testing.T) {
	for name, s := range small {
		t.Run(name, func(t *testing.T) {
			d := 5 * time.Second
			if v := os.Getenv("PAYONCE_PROVE_FOR"); v != "" {
				d, _ = time.ParseDuration(v)
			}
			f := Exhaust(s, Limit{Stop: Within(time.Now, d)})
			t.Logf("%d states, %d schedules, %d cut, %d deep, whole %v", f.States, f.Schedules, f.Cut, f.Deepest, f.Whole)
			for _, r := range f.Bad {
				t.Errorf("%+v", r)
			}
		})
	}
}
