package stripe

import "github.com/payonce/payonce/channel"

// ReplyNotice implements channel.Adapter. Any 2xx acknowledges; everything else
// brings the event again.
func (a *Adapter) ReplyNotice(o channel.NoticeOutcome) channel.NoticeReply {
	switch o {
	case channel.NoticeStored:
		return channel.NoticeReply{Status: 200, ContentType: "application/json", Body: []byte(`{"received":true}`)}
	case channel.NoticeRefused:
		return channel.NoticeReply{Status: 400, ContentType: "application/json", Body: []byte(`{"received":false}`)}
	default:
		return channel.NoticeReply{Status: 500, ContentType: "application/json", Body: []byte(`{"received":false}`)}
	}
}
