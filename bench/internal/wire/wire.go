// Package wire holds what the processes of a benchmark tell each other, one JSON
// object each.
//
// It must not know how anything is measured.
package wire

// Ready is the one line that a measured process prints on standard output when
// it takes requests.
type Ready struct {
	Addr    string `json:"addr"`    // of the measured API
	Control string `json:"control"` // of the books and the profiles
}

// PathCount is where the control listener shows a [Count].
const PathCount = "/count"

// Count is the state of the books of the channel in a measured process.
type Count struct {
	Charges      int64 `json:"charges"`
	Orders       int   `json:"orders"`        // with at least one charge; 0 unless counted for each
	OverCharged  int   `json:"over_charged"`  // with more than one
	MostForOne   int   `json:"most_for_one"`  // charges of the order that has most
	CallsWaiting int64 `json:"calls_waiting"` // calls that have not been answered yet
}

// PathNotices is where a process that was started with notices shows, on its
// measured listener, what its database holds of them.
const PathNotices = "/bench/notices"

// Notices are counts of rows. When every notice was applied once, each is the
// number of notices.
type Notices struct {
	Succeeded int `json:"succeeded"` // payments that are effective
	Paid      int `json:"paid"`      // orders, by exactly their amount
	Effective int `json:"effective"` // charges of the whole amount
	Charges   int `json:"charges"`   // of any kind
	Evidence  int `json:"evidence"`  // from notices
	Events    int `json:"events"`    // of a success
	Applied   int `json:"applied"`   // notices
	Stored    int `json:"stored"`    // notices, applied or not
}

// Result is what a run of the load client saw. Latencies are of requests that
// were answered, errors included.
type Result struct {
	Mode       string         `json:"mode"`
	Conns      int            `json:"conns"`
	Seconds    float64        `json:"seconds"` // as it was
	Requests   int            `json:"requests"`
	Errors     int            `json:"errors"`
	FirstError string         `json:"first_error,omitempty"`
	RPS        float64        `json:"rps"`
	P50        float64        `json:"p50_ms"`
	P95        float64        `json:"p95_ms"`
	P99        float64        `json:"p99_ms"`
	Max        float64        `json:"max_ms"`
	Replayed   int            `json:"replayed"` // answers marked as replays
	Statuses   map[string]int `json:"statuses"`
	// Succeeded counts the keys of mode twins that answer 2xx in the end.
	Succeeded int `json:"succeeded,omitempty"`
}
