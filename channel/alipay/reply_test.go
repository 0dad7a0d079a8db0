package alipay

import (
	"testing"

	"github.com/payonce/payonce/channel"
)

// TestW13_ReplyNotice: exactly the seven bytes for what is stored, and nothing
// that could be taken for them otherwise.
func TestW13_ReplyNotice(t *testing.T) {
	a := newAdapter(t, "", nil)
	for outcome, want := range map[channel.NoticeOutcome]struct {
		status int
		body   string
	}{channel.NoticeStored: {200, "success"}, channel.NoticeRefused: {400, "fail"}, channel.NoticeNotStored: {500, "fail"}, 99: {500, "fail"}} {
		if r := a.ReplyNotice(outcome); r.Status != want.status || string(r.Body) != want.body {
			t.Errorf("outcome %d: %d %q", outcome, r.Status, r.Body)
		}
	}
}
