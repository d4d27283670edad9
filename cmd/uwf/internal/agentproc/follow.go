package agentproc

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// A file that another process writes cannot be waited for portably, so it is
// polled: soon after news, ever less often in silence.
const (
	minPause = 10 * time.Millisecond
	maxPause = 200 * time.Millisecond
)

// maxAnnouncement bounds a line that can announce a turn; a longer line is
// passed over without being held.
const maxAnnouncement = 1024

// follow reads the file at path until ended is closed and reports what is
// announced in it. It serves live views only, so a file that cannot be read is
// left to [ReadResult], which reports it.
func follow(path string, ended <-chan struct{}, told func(protocol.TurnLine)) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	lines := announcements{told: told}
	pause := minPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ended:
			io.Copy(&lines, f) //nolint:errcheck // live view
			return
		case <-timer.C:
		}
		pause = min(2*pause, maxPause)
		if n, _ := io.Copy(&lines, f); n > 0 {
			pause = minPause
		}
		timer.Reset(pause)
	}
}

// announcements is a writer that finds in what is written the turns, finished or
// not, that are announced. It holds at most one unfinished line of
// maxAnnouncement bytes.
type announcements struct {
	told    func(protocol.TurnLine)
	line    []byte
	tooLong bool // the unfinished line is no announcement
}

// Write implements io.Writer; it never fails.
func (a *announcements) Write(p []byte) (int, error) {
	n := len(p)
	for {
		rest, tail, found := bytes.Cut(p, []byte("\n"))
		a.add(rest)
		if !found {
			return n, nil
		}
		a.end()
		p = tail
	}
}

// add adds to the unfinished line.
func (a *announcements) add(b []byte) {
	if a.tooLong || len(a.line)+len(b) > maxAnnouncement {
		a.tooLong, a.line = true, a.line[:0]
		return
	}
	a.line = append(a.line, b...)
}

// end finishes the line.
func (a *announcements) end() {
	line := bytes.TrimSpace(a.line)
	if !a.tooLong && len(line) > 0 && line[0] == '{' {
		var t protocol.TurnLine
		if err := json.Unmarshal(line, &t); err == nil && t.Hash.Valid() && aboutTurn(t) {
			a.told(t)
		}
	}
	a.tooLong, a.line = false, a.line[:0]
}

func aboutTurn(t protocol.TurnLine) bool {
	return t == protocol.NewTurnLine(t.Hash) || t == protocol.NewWritingLine(t.Hash)
}
