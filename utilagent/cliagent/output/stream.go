// Package output reads a program's output, as it arrives or line by line. It uses bounded memory for lines of
// any length, and always finishes, even if a child of the program keeps the pipe open.
package output

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// After the program's exit, a stream is read until nothing has arrived for drain, or up to drainBytes,
// because another process may hold the pipe open and even write to it.
const (
	drain      = 250 * time.Millisecond
	drainBytes = 16 << 20
)

// keepBuffer is the largest buffer that is reused for the next line.
const keepBuffer = 1 << 20

// Stream reads a pipe from a program and copies it to a log.
type Stream struct {
	f      *os.File
	log    io.Writer
	touch  func()
	lines  *bufio.Reader
	buffer []byte

	mu    sync.Mutex
	ended bool // the program has exited
	after int  // bytes read since
}

// New returns a Stream that reads f and copies everything to log. It calls touch, which may be nil, after
// each read.
func New(f *os.File, log io.Writer, touch func()) *Stream {
	s := &Stream{f: f, log: log, touch: touch}
	s.lines = bufio.NewReaderSize(s, 64<<10)
	return s
}

// WriterEnded reports that the program has exited: a pending read waits at most drain.
func (s *Stream) WriterEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.limit()
}

// limit makes a pending read end after drain. On Windows, where pipes have no deadlines, killing the child's
// job ends the processes that hold the pipe.
func (s *Stream) limit() *time.Timer {
	return time.AfterFunc(drain, func() { _ = s.f.SetReadDeadline(time.Unix(1, 0)) })
}

func (s *Stream) Read(b []byte) (int, error) {
	stop, over := s.bound()
	if over {
		return 0, io.EOF
	}
	n, err := s.f.Read(b)
	stop()
	if n > 0 {
		s.seen(b[:n])
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// bound limits the next read if the program has exited. Only the time spent waiting in reads counts.
func (s *Stream) bound() (stop func(), over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		return func() {}, false
	}
	_ = s.f.SetReadDeadline(time.Time{})
	timer := s.limit()
	return func() { timer.Stop() }, s.after > drainBytes
}

func (s *Stream) seen(b []byte) {
	if s.touch != nil {
		s.touch()
	}
	_, _ = s.log.Write(b) // a failing log must not stop the work
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		s.after += len(b)
	}
}

// maxLine bounds a line in memory. No program prints so much in one; the log has all of it.
const maxLine = 32 << 20

// Line returns the next line without its ending, valid until the next call. The end of a longer line than 32 MiB
// is missing. At the end of the stream it returns [io.EOF].
func (s *Stream) Line() (line []byte, err error) {
	if cap(s.buffer) > keepBuffer {
		s.buffer = nil
	}
	s.buffer = s.buffer[:0]
	for {
		piece, err := s.lines.ReadSlice('\n')
		s.buffer = append(s.buffer, piece[:min(len(piece), maxLine-len(s.buffer))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(s.buffer) == 0):
			return nil, err
		}
		return bytes.TrimRight(s.buffer, "\r\n"), nil
	}
}

// Each reads to the end and calls f, which may be nil, for each line.
func (s *Stream) Each(f func(line []byte)) {
	if f == nil {
		_, _ = io.Copy(io.Discard, struct{ io.Reader }{s}) // the output is in the log
	}
	for f != nil {
		line, err := s.Line()
		if err != nil {
			break
		}
		f(line)
	}
	_ = s.Close()
}

// Close closes the pipe.
func (s *Stream) Close() error { return s.f.Close() }
