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

// There is no portable way to wait for writes by another process, so the file is polled: soon after new data,
// less and less often without.
const (
	minPause = 10 * time.Millisecond
	maxPause = 200 * time.Millisecond
	maxLate  = 2 * time.Second // time that a step waits for its live view after the agent has ended
)

// maxAnnouncement is the maximum length of a line that announces a turn. Longer lines are skipped without
// being kept in memory.
const maxAnnouncement = 1024

// follow reads an agent's stdout until ended is closed, and reports the announced turns. It only serves live
// views. It ignores an unreadable file, which [ReadResult] reports. If the output grows faster than it can be
// read, it skips to the end when the agent has ended.
func follow(runDir string, ended <-chan struct{}, report func(protocol.TurnLine)) {
	f, err := openOutput(runDir, runfiles.StdoutFile)
	if err != nil {
		return
	}
	defer f.Close()
	lines := announcements{report: report}
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

// late reads the output that is still unread when the agent ends.
func (a *announcements) late(f *os.File) {
	ctx, cancel := context.WithTimeout(context.Background(), maxLate)
	defer cancel()
	seen, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return
	}
	if info, err := f.Stat(); err == nil && info.Size()-seen > maxFollowedLate {
		if _, err := f.Seek(info.Size()-maxFollowedLate, io.SeekStart); err != nil {
			return
		}
		a.tooLong = true // skip the line, whose start is missing
	}
	_, _ = copySome(ctx, a, f, maxFollowedLate) // errors don't matter for a live view
}

// announcements is a writer that finds announced turns, finished or not, in the written data. It keeps at
// most one incomplete line of maxAnnouncement bytes.
type announcements struct {
	report  func(protocol.TurnLine)
	line    []byte
	tooLong bool // the current line is not an announcement
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

// add appends to the current line.
func (a *announcements) add(b []byte) {
	if a.tooLong || len(a.line)+len(b) > maxAnnouncement {
		a.tooLong, a.line = true, a.line[:0]
		return
	}
	a.line = append(a.line, b...)
}

// end completes the current line.
func (a *announcements) end() {
	line := bytes.TrimSpace(a.line)
	if !a.tooLong && len(line) > 0 && line[0] == '{' && bytes.Contains(line, []byte(`"uwf"`)) {
		var t protocol.TurnLine
		if err := json.Unmarshal(line, &t); err == nil && t.Hash.Valid() && aboutTurn(t) {
			a.report(t)
		}
	}
	a.tooLong, a.line = false, a.line[:0]
}

func aboutTurn(t protocol.TurnLine) bool {
	return t == protocol.NewTurnLine(t.Hash) || t == protocol.NewWritingLine(t.Hash)
}

// Reported holds the turns that a run has announced so far.
type Reported struct {
	Turns   []protocol.Hash // in order
	Writing protocol.Hash   // snapshot of the turn in progress; "" if unknown
}

// Announced returns what a run has announced so far, which is nothing if it has not started. It reads at most
// the first 64 MiB of the output.
func Announced(ctx context.Context, runDir string) (Reported, error) {
	var reported Reported
	if err := readAnnounced(ctx, runDir, reported.add); err != nil {
		return Reported{}, err
	}
	return reported, nil
}

// HalfWritten returns the snapshots of a run's turns while they were in progress, each once.
func HalfWritten(ctx context.Context, runDir string) (half []protocol.Hash, err error) {
	seen := map[protocol.Hash]bool{}
	err = readAnnounced(ctx, runDir, func(line protocol.TurnLine) {
		if line == protocol.NewWritingLine(line.Hash) && !seen[line.Hash] && len(half) < maxTurns {
			seen[line.Hash] = true
			half = append(half, line.Hash)
		}
	})
	return half, err
}

func readAnnounced(ctx context.Context, runDir string, report func(protocol.TurnLine)) error {
	f, err := openOutput(runDir, runfiles.StdoutFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := copySome(ctx, &announcements{report: report}, f, maxFollowed); err != nil {
		return fmt.Errorf("read announced turns: %w", err)
	}
	return nil
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

// maxPrinted is the default limit on a plain program's output. Without it, an endless loop could fill the
// disk before the timeout.
const maxPrinted = 512 << 20

// FloodError means that a plain program was stopped because it printed too much.
type FloodError struct{ Most int64 }

func (e *FloodError) Error() string {
	return fmt.Sprintf("the command was stopped after printing more than %d MiB", e.Most>>20)
}

// watchPlain polls the output of a plain program until ended is closed, and reports its last line. The output
// can exceed the limit by what is written between two polls.
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

// LastPrinted returns the last line that a plain program has printed, cleaned. It prefers stderr over stdout,
// which may be data.
func LastPrinted(runDir string) string {
	for _, name := range []string{runfiles.StderrFile, runfiles.OutputFile} {
		if text := Tail(filepath.Join(runDir, name)); text != "" {
			return text[strings.LastIndexByte(text, '\n')+1:]
		}
	}
	return ""
}

// Files in the run directory are untrusted: an agent can replace them by other file types or by sparse files
// of any size. So they are opened with care and read in pieces, up to these limits.
const (
	piece           = 1 << 20  // bytes read between two checks whether to stop
	maxFollowed     = 64 << 20 // bytes of output that are searched for turns
	maxFollowedLate = 4 << 20  // bytes of output that a live view reads after the agent has ended
	maxTurns        = 100_000  // turns that a run can announce
)

// openOutput opens one of the agent's output files in a run directory.
func openOutput(runDir, name string) (*os.File, error) {
	return safeopen.Open(filepath.Join(runDir, name), safeopen.NoFollow)
}

// copySome copies up to n bytes of f and returns the number of bytes copied. If ctx ends, it stops and
// returns its cause.
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
