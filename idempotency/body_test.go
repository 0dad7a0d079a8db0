package idempotency

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func wantNotFingerprintable(t *testing.T, err error, status int) {
	t.Helper()
	var p *Problem
	if !errors.As(err, &p) || p.Code != CodeNotFingerprintable || p.Status != status || !p.SafeNewKey {
		t.Errorf("error %v, want %d %s", err, status, CodeNotFingerprintable)
	}
}

// bodyOf hides the type of r, so that the length of the request is unknown.
type bodyOf struct{ io.Reader }

func TestR19_HandlerGetsAnEqualBody(t *testing.T) {
	for _, text := range []string{"", "x", `{"amount":100}`, strings.Repeat("y", 200_000), strings.Repeat("z", MaxRequestBody)} {
		for _, known := range []bool{true, false} {
			var source io.Reader = strings.NewReader(text)
			if !known {
				source = bodyOf{source}
			}
			r := httptest.NewRequest("POST", "/", source)
			r.TransferEncoding = nil
			if !known {
				r.TransferEncoding = []string{"chunked"}
			}
			body, err := ReadBody(httptest.NewRecorder(), r, 0)
			if err != nil || string(body) != text {
				t.Fatalf("%d bytes, known %v: got %d, %v", len(text), known, len(body), err)
			}
			again, err := io.ReadAll(r.Body)
			if err != nil || string(again) != text || r.ContentLength != int64(len(text)) || r.TransferEncoding != nil {
				t.Errorf("%d bytes, known %v: the handler gets %d bytes, length %d, %v", len(text), known, len(again), r.ContentLength, err)
			}
		}
	}
	r := httptest.NewRequest("POST", "/", nil)
	r.Body = nil
	if body, err := ReadBody(httptest.NewRecorder(), r, 0); err != nil || len(body) != 0 {
		t.Errorf("no body: %q, %v", body, err)
	}
}

func TestR19_LongBodiesAre413(t *testing.T) {
	for _, source := range []io.Reader{strings.NewReader("12345"), bodyOf{strings.NewReader("12345")}} {
		_, err := ReadBody(httptest.NewRecorder(), httptest.NewRequest("POST", "/", source), 4)
		wantNotFingerprintable(t, err, 413)
	}
	if body, err := ReadBody(httptest.NewRecorder(), httptest.NewRequest("POST", "/", bodyOf{strings.NewReader("1234")}), 4); err != nil || string(body) != "1234" {
		t.Errorf("a body at the limit: %q, %v", body, err)
	}
	_, err := ReadBody(httptest.NewRecorder(), httptest.NewRequest("POST", "/", bodyOf{strings.NewReader(strings.Repeat("x", MaxRequestBody+1))}), -1)
	wantNotFingerprintable(t, err, 413)
}

func TestT14_EncodedBodiesAre415(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 10<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, lines := range [][]string{{"gzip"}, {"GZIP"}, {"br"}, {"identity, gzip"}, {"identity", "deflate"}, {"nonsense"}} {
		r := httptest.NewRequest("POST", "/", bytes.NewReader(bomb.Bytes()))
		r.Header["Content-Encoding"] = lines
		_, err := ReadBody(httptest.NewRecorder(), r, 0)
		wantNotFingerprintable(t, err, 415)
	}
	for _, lines := range [][]string{{"identity"}, {" Identity "}, {""}, {"identity,"}} {
		r := httptest.NewRequest("POST", "/", strings.NewReader("x"))
		r.Header["Content-Encoding"] = lines
		if _, err := ReadBody(httptest.NewRecorder(), r, 0); err != nil {
			t.Errorf("Content-Encoding %q: %v", lines, err)
		}
	}
}

func TestT34_BrokenOffBodiesAre400(t *testing.T) {
	cause := errors.New("connection reset")
	r := httptest.NewRequest("POST", "/", bodyOf{io.MultiReader(strings.NewReader("{"), errReader{cause})})
	_, err := ReadBody(httptest.NewRecorder(), r, 0)
	wantNotFingerprintable(t, err, 400)
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if strings.Contains(err.Error(), cause.Error()) {
		t.Error("the cause is shown to the client")
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// The same over a socket: the client announces more than it sends and leaves.
func TestT34_ClientLeavesInTheMiddleOfTheBody(t *testing.T) {
	result := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := ReadBody(w, r, 0)
		result <- err
	}))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(conn)
	fmt.Fprint(w, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"amount\":")
	if err := errors.Join(w.Flush(), conn.Close()); err != nil {
		t.Fatal(err)
	}
	err = <-result
	wantNotFingerprintable(t, err, 400)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cause %v", errors.Unwrap(err))
	}
}
