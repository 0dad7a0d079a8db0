package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// notices: every line of the file is posted once a round, by whichever
// connection is free, and has to be answered 200 with exactly the word.
func (s *settings) notices(conns []*conn, recorders []*recorder) (time.Duration, error) {
	requests, err := s.posts()
	if err != nil {
		return 0, err
	}
	var sent atomic.Int64
	all := int64(len(requests) * s.rounds)
	return each(conns, func(i int, c *conn) {
		r := recorders[i]
		for n := sent.Add(1); n <= all; n = sent.Add(1) {
			began := time.Now()
			resp, err := c.roundTrip(requests[int(n-1)%len(requests)])
			r.add(time.Since(began), resp, err)
			if err != nil {
				return
			}
			if resp.status/100 == 2 && !s.acknowledged(resp) {
				r.fail(fmt.Sprintf("%d %.100q is not %q", resp.status, resp.body, s.word))
			}
		}
	}), nil
}

func (s *settings) acknowledged(resp response) bool {
	return resp.status == 200 && string(resp.body) == s.word
}

// posts makes the requests before anything is measured.
func (s *settings) posts() ([][]byte, error) {
	content, err := os.ReadFile(s.file)
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
	end := len(lines)
	if s.take > 0 {
		end = s.skip + s.take
	}
	if s.skip >= end || end > len(lines) {
		return nil, fmt.Errorf("%s has %d lines, not %d", s.file, len(lines), end)
	}
	var out [][]byte
	for _, body := range lines[s.skip:end] {
		head := "POST " + s.path + " HTTP/1.1\r\nHost: " + s.target + "\r\nContent-Type: application/x-www-form-urlencoded; charset=utf-8" +
			"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
		out = append(out, append([]byte(head), body...))
	}
	return out, nil
}
