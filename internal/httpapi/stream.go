package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/payonce/payonce"
)

const (
	// streamBeat is how often a quiet stream says that it lives.
	streamBeat = 15 * time.Second
	// streamWrite is how long one event may take to leave. It replaces the
	// server's write deadline, which is meant for answers that end.
	streamWrite = 30 * time.Second
)

// stream sends the payment as server-sent events: one at once, one for each
// change, a comment when nothing changed for a while. It ends after a final
// state, when the client leaves and when the server is to stop; a client that
// comes back gets the present state at once.
func (x *exchange) stream(p *payonce.Payment) error {
	if !x.startWaiting() {
		return limited(pollAfter)
	}
	defer x.stopWaiting()
	ctx, cancel := x.waitContext()
	defer cancel()
	h := x.Header()
	h.Set("Content-Type", mediaEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy must not collect events
	var buf []byte
	for changed := true; ; {
		var err error
		if buf, err = x.event(ctx, buf[:0], p, changed); err != nil {
			return x.streamError(err)
		}
		if err := x.flush(buf); err != nil || !p.Status.Live() {
			return nil
		}
		next, err := x.Engine.Wait(ctx, x.scope, p.ID, p.Version, streamBeat)
		if err != nil {
			return x.streamError(err)
		}
		changed = next.Version != p.Version
		p = next
	}
}

// event appends one event, or a comment when nothing changed.
func (x *exchange) event(ctx context.Context, b []byte, p *payonce.Payment, changed bool) ([]byte, error) {
	if !changed {
		return append(b, ": still here\n\n"...), nil
	}
	data, err := x.encodePayment(ctx, p, true)
	if err != nil {
		return nil, err
	}
	b = append(b, "event: payment\nid: "...)
	b = strconv.AppendInt(b, p.Version, 10)
	b = append(b, "\ndata: "...)
	b = append(b, data...) // has no line ends: JSON escapes them
	return append(b, "\n\n"...), nil
}

func (x *exchange) flush(b []byte) error {
	c := http.NewResponseController(x.ResponseWriter)
	_ = c.SetWriteDeadline(time.Now().Add(streamWrite)) // not every writer has one
	if _, err := x.Write(b); err != nil {
		return err
	}
	return c.Flush()
}

// streamError ends a stream. Once it has begun there is no way to send an error;
// the client connects again and is told then.
func (x *exchange) streamError(err error) error {
	if x.status == 0 {
		return err
	}
	return nil
}
