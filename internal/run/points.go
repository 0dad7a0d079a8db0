package run

// Failpoints lists every place where a test build can be told to fail: between
// every two durable steps and around every send, receive and commit. Names are
// used by PAYONCE_FAILPOINT.
var Failpoints = []string{
	"t1.before", "t1.after",
	"prepare.before-send", "prepare.after-receive",
	"object.before", "object.after",
	"begin.before-send", "begin.after-receive",
	"t2.before", "t2.after",
	"claim.before", "claim.after",
	"query.before-send", "query.after-receive",
	"close.before-send", "close.after-receive",
	"apply.before", "apply.after",
	"commit.before", "commit.after",
	"answer.before",
}
