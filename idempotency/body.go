package idempotency

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
)

// MaxRequestBody is the usual limit of a request body in bytes (R66).
const MaxRequestBody = 1 << 20

// ReadBody reads the whole body before anything is claimed, so that a slow or
// aborted upload never holds a lease and leaves no record (R19). Afterwards r has
// an equal body of known length for the handler. max is in bytes; 0 or less means
// [MaxRequestBody]. How long it may take is up to the server's read deadline.
//
// The error is a [*Problem] with the code [CodeNotFingerprintable]:
//   - 415 when the body has a Content-Encoding other than identity (R16); it is
//     not decoded, so no compressed body can grow in memory;
//   - 413 when it is longer than max;
//   - 400 when it broke off or could not be read; the cause is wrapped.
func ReadBody(w http.ResponseWriter, r *http.Request, max int64) ([]byte, error) {
	if max <= 0 {
		max = MaxRequestBody
	}
	if encoded(r.Header) {
		return nil, NotFingerprintable(http.StatusUnsupportedMediaType,
			"The request body must be sent without Content-Encoding.")
	}
	if r.Body == nil || r.Body == http.NoBody {
		return []byte{}, nil
	}
	if r.ContentLength > max {
		return nil, tooLarge(max)
	}
	// The announced length is a wish until the bytes are here; more than this is
	// not set aside in advance.
	const advance = 64 << 10
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(min(r.ContentLength, advance)) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, max)); err != nil {
		var limit *http.MaxBytesError
		if errors.As(err, &limit) {
			return nil, tooLarge(max)
		}
		p := NotFingerprintable(http.StatusBadRequest, "The request body did not arrive completely.")
		p.cause = err
		return nil, p
	}
	body := buf.Bytes()
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	return body, nil
}

func tooLarge(max int64) *Problem {
	return NotFingerprintable(http.StatusRequestEntityTooLarge,
		"The request body is larger than "+strconv.FormatInt(max, 10)+" bytes.")
}

// encoded reports whether a content coding other than identity was named.
func encoded(h http.Header) bool {
	for _, line := range h.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(line, ",") {
			coding = strings.Trim(coding, " \t")
			if coding != "" && !strings.EqualFold(coding, "identity") {
				return true
			}
		}
	}
	return false
}

// appendParts appends a multipart body part by part: name, file name, type,
// transfer encoding, bytes. The boundary does not count, since clients draw a new
// one for every attempt (R15). The error is a *Problem.
func appendParts(dst []byte, contentType string, body []byte) ([]byte, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return dst, notMultipart(err)
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		// The raw part is not decoded by the standard library, so its bytes are
		// the client's.
		part, err := parts.NextRawPart()
		if err == io.EOF { // only the bare one: a body without a last boundary wraps it
			return dst, nil
		}
		if err != nil {
			return dst, notMultipart(err)
		}
		var disposition map[string]string
		if value := part.Header.Get("Content-Disposition"); value != "" {
			if _, disposition, err = mime.ParseMediaType(value); err != nil {
				return dst, notMultipart(err)
			}
		}
		dst = appendField(dst, disposition["name"])
		dst = appendField(dst, disposition["filename"])
		dst = appendField(dst, part.Header.Get("Content-Type"))
		dst = appendField(dst, part.Header.Get("Content-Transfer-Encoding"))
		if dst, err = readField(dst, part); err != nil {
			return dst, notMultipart(err)
		}
	}
}

func notMultipart(cause error) *Problem {
	p := NotFingerprintable(http.StatusBadRequest, "The multipart request body cannot be taken apart.")
	p.cause = cause
	return p
}
