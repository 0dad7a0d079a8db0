package memory

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// stamp gives a time the databases' resolution and zone.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

// human makes text for people what every database can store: valid UTF-8 without
// zero bytes.
func human(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// copyPayment shares nothing that its holder may change with the original. The
// bytes of the request are shared: nobody writes into them.
func copyPayment(p *payonce.Payment) *payonce.Payment {
	c := *p
	c.Permits = slices.Clone(p.Permits)
	c.Action = copyAction(p.Action)
	if p.Failure != nil {
		f := *p.Failure
		c.Failure = &f
	}
	return &c
}

func copyAction(a *payonce.Action) *payonce.Action {
	if a == nil {
		return nil
	}
	c := *a
	c.Fields, c.Params = maps.Clone(a.Fields), maps.Clone(a.Params)
	return &c
}

// storedPayment is what is kept of a payment: a copy as a database would give it
// back.
func storedPayment(p *payonce.Payment) *payonce.Payment {
	c := copyPayment(p)
	c.Request = bytesOf(p.Request)
	for _, t := range []*time.Time{&c.DeadAt, &c.LeaseUntil, &c.DueAt, &c.CallerAt, &c.CreatedAt, &c.UpdatedAt, &c.SucceededAt} {
		*t = stamp(*t)
	}
	if len(c.Permits) == 0 {
		c.Permits = nil
	}
	if c.Failure != nil {
		f := payonce.Failure{Code: human(c.Failure.Code), ChannelCode: human(c.Failure.ChannelCode), Message: human(c.Failure.Message)}
		c.Failure = &f
	}
	c.ReturnURL, c.UnknownReason = human(c.ReturnURL), human(c.UnknownReason)
	return c
}

func storedOrder(o payonce.Order) payonce.Order {
	o.ExpiresAt, o.CreatedAt, o.UpdatedAt = stamp(o.ExpiresAt), stamp(o.CreatedAt), stamp(o.UpdatedAt)
	o.Subject, o.Metadata = human(o.Subject), human(o.Metadata)
	return o
}

// bytesOf is never nil: no bytes and no value are the same thing.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return slices.Clone(b)
}

func copyNotice(n *store.Notice) *store.Notice {
	c := *n
	c.Body = bytesOf(n.Body)
	c.ReceivedAt, c.DueAt = stamp(n.ReceivedAt), stamp(n.DueAt)
	return &c
}
