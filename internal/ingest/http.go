package ingest

import (
	"errors"
	"io"
	"net/http"

	"github.com/payonce/payonce/channel"
)

// Routes registers POST /webhooks/{channel}/{account}, and the same without an
// account for channels that have exactly one.
func (i *Inbox) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /webhooks/{channel}/{account}", i.serve)
	mux.HandleFunc("POST /webhooks/{channel}", i.serve)
}

// serve reads the raw bytes and answers as the channel wants it. A body that is
// too large or too slow is refused without being verified.
func (i *Inbox) serve(w http.ResponseWriter, r *http.Request) {
	a, err := i.Account(r.PathValue("channel"), r.PathValue("account"))
	if err != nil {
		http.Error(w, "no such account", http.StatusNotFound)
		return
	}
	if r.Header.Get("Content-Encoding") != "" {
		write(w, i.Refuse(a))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if !errors.As(err, &tooLarge) {
			w.Header().Set("Connection", "close") // the sender is gone or too slow
		}
		write(w, i.Refuse(a))
		return
	}
	write(w, i.Receive(r.Context(), a, r.Header, body))
}

func write(w http.ResponseWriter, reply channel.NoticeReply) {
	w.Header().Set("Cache-Control", "no-store")
	if reply.ContentType != "" {
		w.Header().Set("Content-Type", reply.ContentType)
	}
	w.WriteHeader(reply.Status)
	_, _ = w.Write(reply.Body) // the sender repeats what it did not hear
}
