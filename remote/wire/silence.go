package wire

import (
	"io"
	"sync"
	"time"
)

// silence notices that no byte moves any more: one timer reports that, the other ends the connection.
type silence struct {
	o           Options
	report, end *time.Timer
}

func watchSilence(o Options, end func()) *silence {
	report := func() {}
	if o.Stalled != nil {
		report = sync.OnceFunc(o.Stalled)
	}
	return &silence{o, time.AfterFunc(o.Notice, report), time.AfterFunc(o.Silence, end)}
}

// Reset records that a byte has moved, or that the wait for one begins.
func (s *silence) Reset() {
	s.report.Reset(s.o.Notice)
	s.end.Reset(s.o.Silence)
}

// Stop ends the wait.
func (s *silence) Stop() {
	s.report.Stop()
	s.end.Stop()
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

// piece bounds one write: a pipe takes it whole, and a line on which it takes longer
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
