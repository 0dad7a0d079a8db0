package alipay

import (
	"net/http"

	"github.com/payonce/payonce/channel"
)

// ReplyNotice implements channel.Adapter. Alipay stops only at 200 with exactly
// the seven bytes success, without a line break; any other answer makes it send
// the notice again.
func (a *Adapter) ReplyNotice(o channel.NoticeOutcome) channel.NoticeReply {
	r := channel.NoticeReply{Status: http.StatusInternalServerError, ContentType: "text/plain; charset=utf-8", Body: []byte("fail")}
	switch o {
	case channel.NoticeStored:
		r.Status, r.Body = http.StatusOK, []byte("success")
	case channel.NoticeRefused:
		r.Status = http.StatusBadRequest
	}
	return r
}
