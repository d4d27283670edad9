package agentproc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
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

// Reported is what a run has announced so far.
type Reported struct {
	Turns   []protocol.Hash // in order
	Writing protocol.Hash   // the turn after them, as far as it is written; "" if that is unknown
}

// Announced returns what the run in a run directory has announced so far. A run
// that has not begun has announced nothing. It looks no further than at the first
// 64 MB of the output.
func Announced(ctx context.Context, runDir string) (Reported, error) {
	var told Reported
	f, err := openOutput(runDir, runfiles.StdoutFile)
	if errors.Is(err, fs.ErrNotExist) {
		return told, nil
	}
	if err != nil {
		return told, err
	}
	defer f.Close()
	lines := announcements{told: told.add}
	if _, err := copySome(ctx, &lines, f, maxTold); err != nil {
		return Reported{}, fmt.Errorf("read announced turns: %w", err)
	}
	return told, nil
}

// HalfWritten returns the turns of a run as they stood while they were written,
// each once.
func HalfWritten(ctx context.Context, runDir string) ([]protocol.Hash, error) {
	f, err := openOutput(runDir, runfiles.StdoutFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var half []protocol.Hash
	seen := map[protocol.Hash]bool{}
	lines := announcements{told: func(line protocol.TurnLine) {
		if line == protocol.NewWritingLine(line.Hash) && !seen[line.Hash] && len(half) < maxTurns {
			seen[line.Hash] = true
			half = append(half, line.Hash)
		}
	}}
	if _, err := copySome(ctx, &lines, f, maxTold); err != nil {
		return nil, fmt.Errorf("read announced turns: %w", err)
	}
	return half, nil
}

func (t *Reported) add(line protocol.TurnLine) {
	switch {
	case line == protocol.NewWritingLine(line.Hash):
		t.Writing = line.Hash
		return
	case len(t.Turns) == maxTurns:
		return
	}
	t.Turns, t.Writing = append(t.Turns, line.Hash), ""
}

// maxPrinted is how much a plain program may print before it is stopped: nothing else
// would keep one that prints for ever from filling the disk until its time is up.
const maxPrinted = 512 << 20

// FloodError means that a plain program has printed more than it may, and was stopped.
type FloodError struct{ Most int64 }

// Error implements error.
func (e *FloodError) Error() string {
	return fmt.Sprintf("the command was stopped: it has printed more than %d MiB", e.Most>>20)
}

// watchPlain looks at what a plain program prints, until ended is closed, and shows its
// last line. What is written between two looks may be too much by that.
func (inv Invocation) watchPlain(ended <-chan struct{}, stop context.CancelCauseFunc) {
	most := inv.MaxPrinted
	if most == 0 {
		most = maxPrinted
	}
	var seen int64
	pause := minPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return
		case <-timer.C:
		}
		var size int64
		for _, name := range []string{runfiles.OutputFile, runfiles.StderrFile} {
			if info, err := os.Lstat(filepath.Join(inv.RunDir, name)); err == nil {
				size += info.Size()
			}
		}
		if size > most {
			stop(&FloodError{Most: most})
			return
		}
		if size != seen && inv.Printed != nil {
			inv.Printed(LastPrinted(inv.RunDir))
		}
		seen, pause = size, min(2*pause, maxPause)
		timer.Reset(pause)
	}
}

// LastPrinted is the last line that a plain program has printed, cleaned: beside data,
// what it says on stderr.
func LastPrinted(runDir string) string {
	for _, name := range []string{runfiles.StderrFile, runfiles.OutputFile} {
		if text := Tail(filepath.Join(runDir, name)); text != "" {
			return text[strings.LastIndexByte(text, '\n')+1:]
		}
	}
	return ""
}

// What an agent leaves in its run directory is a stranger's: it need not be a
// file, and a file may have any size and cost nothing. So it is opened carefully,
// read in pieces, and only as far as these bounds.
const (
	piece       = 1 << 20  // that is read between two looks whether to stop
	maxTold     = 64 << 20 // of the output, in which turns are looked for
	maxToldLate = 4 << 20  // of the output that a live view has not seen when the agent ends
	maxTurns    = 100_000  // that a run can announce
)

// openOutput opens one of the agent's streams in a run directory.
func openOutput(runDir, name string) (*os.File, error) {
	return safeopen.Open(filepath.Join(runDir, name), safeopen.NoFollow)
}

// copySome copies at most n bytes of what is left of a file, and returns how many
// there were. It stops when ctx ends, with its cause.
func copySome(ctx context.Context, to io.Writer, f io.Reader, n int64) (int64, error) {
	var done int64
	for done < n {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		got, err := io.CopyN(to, f, min(piece, n-done))
		done += got
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
