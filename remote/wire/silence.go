package wire

import (
	"io"
	"sync"
	"time"
)

// silence notices that no byte moves any more: first it reports that, later it ends the connection.
type silence struct {
	notice, rest time.Duration // until it is reported, and from then until the end
	report, end  func()

	mu    sync.Mutex
	timer *time.Timer
	told  bool // since a byte has moved
}

func watchSilence(o Options, end func()) *silence {
	s := &silence{notice: o.Notice, rest: o.Silence - o.Notice, end: end, report: func() {}}
	if o.Stalled != nil {
		s.report = sync.OnceFunc(o.Stalled)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(s.notice, s.expired)
	return s
}

func (s *silence) expired() {
	s.mu.Lock()
	told := s.told
	if s.told = true; !told {
		s.timer.Reset(s.rest)
	}
	s.mu.Unlock()
	if told {
		s.end()
	} else {
		s.report()
	}
}

// Reset says that a byte has moved, or that one may be waited for from now on.
func (s *silence) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = false
	s.timer.Reset(s.notice)
}

// Stop says that nothing is waited for.
func (s *silence) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
}

// movingReader and movingWriter call moved for what passes, so that a slow line is not taken for a
// dead one.
type movingReader struct {
	io.Reader
	moved func()
}

func (r movingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.moved()
	}
	return n, err
}

type movingWriter struct {
	io.Writer
	moved func()
}

// piece is how much is written at a time: a pipe takes it whole, and a line on which it takes longer
// than [Silence] is dead.
const piece = 4 << 10

func (w movingWriter) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		n, err = w.Writer.Write(p[written:min(len(p), written+piece)])
		written += n
		w.moved()
	}
	return written, err
}
