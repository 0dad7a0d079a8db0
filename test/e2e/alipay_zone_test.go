package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// The zone of the process changes nothing that is sent: the same order at the same
// end makes the same request, with times in the channel's own zone.
func TestZ01_ZoneOfTheProcess(t *testing.T) {
	t.Parallel()
	no, end := newOrder("Z01"), time.Now().Add(10*time.Minute).UTC().Truncate(time.Second)
	var first map[string]string
	for _, zone := range []string{"UTC", "Asia/Shanghai", "America/Los_Angeles"} {
		w, n := bothNode(t, plainBin, theSim(t))
		n.mustStart(t, "TZ="+zone)
		for _, no := range []string{no, no + "q"} {
			if r := w.post("/v1/orders", map[string]any{"order_no": no, "amount": 1000, "currency": "CNY", "subject": "茶", "expires_at": end.Format(time.RFC3339)}); r.code != 201 {
				t.Fatalf("%s: %s", zone, r)
			}
		}
		fields := w.pay(page(no)).shown().Fields
		at, err := time.ParseInLocation("2006-01-02 15:04:05", fields["timestamp"], time.FixedZone("UTC+8", 8*3600))
		if d := time.Since(at); err != nil || d < -2*time.Second || d > 30*time.Second {
			t.Errorf("%s: timestamp %q is %v off: %v", zone, fields["timestamp"], d, err)
		}
		now := maps.Clone(fields)
		for _, k := range []string{"timestamp", "sign", "notify_url"} { // the hour, and the node's own address
			delete(now, k)
		}
		if first == nil {
			first = now
		}
		if len(now) < 5 || !maps.Equal(now, first) {
			t.Errorf("%s: %v, want %v", zone, now, first)
		}
		if want := end.In(time.FixedZone("UTC+8", 8*3600)).Format("2006-01-02 15:04:05"); !strings.Contains(fields["biz_content"], `"time_expire":"`+want+`"`) {
			t.Errorf("%s: %s, want the end %s", zone, fields["biz_content"], want)
		}
		w.waits(t, qr(no+"q")) // the channel's own check of timestamp and expiry
		n.proc.stop()
	}
}

// The end is sent as an absolute time, never before our own.
func TestZ09_Z02_AbsoluteEnd(t *testing.T) {
	t.Parallel()
	w := steady(t)
	for range 5 {
		r := w.pay(page(newOrder("Z09")))
		var order struct {
			TimeExpire string `json:"time_expire"`
		}
		if err := json.Unmarshal([]byte(r.shown().Fields["biz_content"]), &order); err != nil {
			t.Fatalf("%v: %s", err, r)
		}
		sent, err := time.ParseInLocation("2006-01-02 15:04:05", order.TimeExpire, time.FixedZone("UTC+8", 8*3600))
		if err != nil {
			t.Fatal(err)
		}
		ours := parseTime(t, *r.payment().DeadAt)
		if sent.Before(ours) || sent.Sub(ours) >= time.Second {
			t.Errorf("sent %v, ours %v", sent, ours)
		}
		if strings.Contains(r.shown().Fields["biz_content"], "timeout_express") {
			t.Errorf("a relative end: %s", fmt.Sprint(r.shown().Fields))
		}
	}
}
