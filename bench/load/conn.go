package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// conn is one keep-alive connection. It reads the little of HTTP/1.1 that the
// measured servers answer with, so that the client stays cheaper than they are.
type conn struct {
	nc   net.Conn
	br   *bufio.Reader
	body []byte
}

// response is one answer. body is good until the next one.
type response struct {
	status   int
	replayed bool
	body     []byte
}

func dial(addr string, deadline time.Time) (*conn, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := nc.SetDeadline(deadline); err != nil {
		return nil, err
	}
	return &conn{nc: nc, br: bufio.NewReaderSize(nc, 4096)}, nil
}

func (c *conn) roundTrip(request []byte) (response, error) {
	if _, err := c.nc.Write(request); err != nil {
		return response{}, err
	}
	return c.read()
}

var errClosing = errors.New("the server closes the connection")

// read reads one answer with a length or in chunks.
func (c *conn) read() (response, error) {
	line, err := c.line()
	if err != nil {
		return response{}, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return response{}, fmt.Errorf("not an HTTP/1.1 answer: %.40q", line)
	}
	var r response
	if r.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return response{}, fmt.Errorf("status %.12q", line)
	}
	length, chunked := -1, false
	for {
		line, err := c.line()
		if err != nil {
			return response{}, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return response{}, fmt.Errorf("length %.20q", value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Idempotency-Replayed")):
			r.replayed = bytes.EqualFold(value, []byte("true"))
		case bytes.EqualFold(name, []byte("Connection")) && bytes.EqualFold(value, []byte("close")):
			return response{}, errClosing
		}
	}
	c.body = c.body[:0]
	switch {
	case chunked:
		err = c.chunks()
	case length >= 0:
		err = c.take(length)
	case r.status != 204 && r.status != 304:
		err = errors.New("an answer without a length")
	}
	r.body = c.body
	return r, err
}

func (c *conn) chunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
		if err != nil {
			return fmt.Errorf("chunk %.20q", line)
		}
		if err := c.take(int(n)); err != nil {
			return err
		}
		if line, err = c.line(); err != nil {
			return err
		}
		if len(line) != 0 {
			return errors.New("a chunk without its end, or trailers")
		}
		if n == 0 {
			return nil
		}
	}
}

// take appends the next n bytes to the body.
func (c *conn) take(n int) error {
	start := len(c.body)
	if cap(c.body) < start+n {
		grown := make([]byte, start, 2*(start+n))
		copy(grown, c.body)
		c.body = grown
	}
	c.body = c.body[:start+n]
	_, err := io.ReadFull(c.br, c.body[start:])
	return err
}

func (c *conn) line() ([]byte, error) {
	line, err := c.br.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
