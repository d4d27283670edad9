package agentproc

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// A file that another process writes cannot be waited for portably, so it is
// polled: soon after news, ever less often in silence.
const (
	minPause = 10 * time.Millisecond
	maxPause = 200 * time.Millisecond
	maxLate  = 2 * time.Second // that a step waits for its live view
)

// maxAnnouncement bounds a line that can announce a turn; a longer line is
// passed over without being held.
const maxAnnouncement = 1024

// follow reads an agent's stdout until ended is closed and reports what is
// announced in it. It serves live views only: a file that cannot be read is left
// to [ReadResult], which reports it, and of one that grows faster than it can be
// read only the end is looked at when the agent has ended.
func follow(runDir string, ended <-chan struct{}, told func(protocol.TurnLine)) {
	f, err := openOutput(runDir, runfiles.StdoutFile)
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
			lines.late(f)
			return
		case <-timer.C:
		}
		pause = min(2*pause, maxPause)
		if n, _ := copySome(context.Background(), &lines, f, piece); n > 0 {
			pause = minPause
		}
		timer.Reset(pause)
	}
}

// late reads what a live view has not seen when the agent ends.
func (a *announcements) late(f *os.File) {
	ctx, cancel := context.WithTimeout(context.Background(), maxLate)
	defer cancel()
	seen, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return
	}
	if info, err := f.Stat(); err == nil && info.Size()-seen > maxToldLate {
		if _, err := f.Seek(info.Size()-maxToldLate, io.SeekStart); err != nil {
			return
		}
		a.tooLong = true // a line whose beginning is not seen
	}
	_, _ = copySome(ctx, a, f, maxToldLate) // live view
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
	if !a.tooLong && len(line) > 0 && line[0] == '{' && bytes.Contains(line, []byte(`"uwf"`)) {
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
