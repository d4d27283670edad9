package fileheads

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Ended returns how a thread ended, or [heads.ErrNoThread] if it is active or unknown.
func (x *Heads) Ended(ctx context.Context, thread string) (heads.Ended, error) {
	active, err := x.active(ctx, thread)
	if err != nil {
		return heads.Ended{}, err
	}
	if active != "" {
		return heads.Ended{}, fmt.Errorf("%w: %s has not ended", heads.ErrNoThread, thread)
	}
	return x.lastEnd(thread)
}

// History yields one line per ended thread, in the order in which they ended. It yields an error with the
// line number for an unreadable line, and continues.
//
// It takes no lock. To list all threads, read Heads first: a thread that ends in between is then in both,
// never in neither.
func (x *Heads) History(ctx context.Context) iter.Seq2[heads.Ended, error] {
	return func(yield func(heads.Ended, error) bool) {
		threads, err := x.look(ctx)
		if err != nil {
			yield(heads.Ended{}, err)
			return
		}
		lines, err := x.historyLines()
		if err != nil {
			yield(heads.Ended{}, err)
			return
		}
		newest := map[string]int{} // number of its line
		for line := range lines {
			if line.err == nil {
				newest[line.value.Thread] = line.number
			}
		}
		for line := range lines {
			switch e := line.value; {
			case line.err != nil:
				if !yield(heads.Ended{}, invalid(x.path(historyFile), line.number, line.err.Error())) {
					return
				}
			case newest[e.Thread] != line.number:
			default:
				if _, ok := threads.find(e.Thread); !ok && !yield(e, nil) {
					return
				}
			}
		}
	}
}

// historyLines returns [historyLines] of the history.
func (x *Heads) historyLines() (iter.Seq[line[heads.Ended]], error) {
	return x.history.of(x, func() (iter.Seq[line[heads.Ended]], error) {
		data, err := x.readFile(historyFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		lines := historyLines(data)
		if x.Now != nil {
			lines = slices.Values(slices.Collect(lines)) // parsed once
		}
		return lines, nil
	}, historyFile)
}

// historyLines yields the lines that end a thread, and unreadable ones.
func historyLines(data []byte) iter.Seq[line[heads.Ended]] {
	return func(yield func(line[heads.Ended]) bool) {
		for l := range linesOf(data, parseEnded) {
			if l.err == nil && l.value.Status == protocol.StatusResumed {
				continue
			}
			if !yield(l) {
				return
			}
		}
	}
}

// endLine is a line. Older programs don't support failed threads, and show them as completed.
type endLine struct {
	heads.Ended
	Failed bool `json:"failed,omitempty"`
}

func lineOf(e heads.Ended) endLine {
	if e.Status == protocol.StatusFailed {
		e.Status = protocol.StatusCompleted
		return endLine{e, true}
	}
	return endLine{e, false}
}

// plainEnd parses a line as uwf writes it, faster than encoding/json; ok is false for others. It ignores the checksum.
func plainEnd(line string) (e endLine, ok bool) {
	var words [4]string
	for i, key := range [len(words)]string{begin, `","workflow":"`, `","head":"`, `","status":"`} {
		if line, ok = strings.CutPrefix(line, key); !ok {
			return e, false
		}
		n := 0
		for n < len(line) && (inWord(rune(line[n])) || line[n] == ' ') {
			n++
		}
		words[i], line = line[:n], line[n:]
	}
	line, _ = strings.CutPrefix(line, `","completedAt":`)
	digits, rest, _ := strings.Cut(line, ",")
	at, err := strconv.ParseInt(digits, 10, 64)
	rest, failed := strings.CutPrefix(rest, `"failed":true,`)
	if err != nil || digits[0]-'1' > 8 || len(rest) != checkLen-len(",") || !strings.HasPrefix(rest, `"check":"`) ||
		!strings.HasSuffix(rest, `"}`) || strings.ContainsAny(rest[len(`"check":"`):len(rest)-len(`"}`)], "\"\\") {
		return e, false
	}
	return endLine{heads.Ended{Thread: words[0], Workflow: protocol.Hash(words[1]), Head: protocol.Hash(words[2]),
		Status: protocol.Status(words[3]), CompletedAt: at}, failed}, true
}

// parseEnded parses a line. It also validates the content, because a damaged line can still be valid JSON.
func parseEnded(line []byte) (heads.Ended, error) {
	if isBlank(line) {
		return heads.Ended{}, errNothing
	}
	written, plain := plainEnd(string(line))
	if !plain {
		if err := json.Unmarshal(line, &written); err != nil {
			return heads.Ended{}, fmt.Errorf("not a line of the history: %w", err)
		}
	}
	e := written.Ended
	if written.Failed && e.Status == protocol.StatusCompleted {
		e.Status = protocol.StatusFailed
	}
	if e.Thread == "" {
		return heads.Ended{}, errors.New("no thread id")
	}
	if e.Status == "" { // missing in the first lines of the original uwf
		e.Status = protocol.StatusCompleted
	}
	if err := checkSum(line); err != nil {
		return heads.Ended{}, err
	}
	if problem := threadProblem(e.Thread); problem != "" {
		return e, errors.New(problem)
	}
	ended := e
	if e.Status == protocol.StatusResumed {
		ended.Status = protocol.StatusCancelled // any status that ends a thread
	}
	return e, ended.Check()
}

func isEnded(line []byte) error {
	_, err := parseEnded(line)
	return err
}

// lastEnds returns the last end of each thread in the history; damaged means that there are unreadable lines.
func (x *Heads) lastEnds() (ends map[string]heads.Ended, damaged bool, err error) {
	lines, err := x.historyLines()
	if err != nil {
		return nil, false, err
	}
	ends = map[string]heads.Ended{}
	for line := range lines {
		if line.err != nil {
			damaged = true
			continue
		}
		ends[line.value.Thread] = line.value
	}
	return ends, damaged, nil
}

// appendLines durably appends lines to the history at once.
func (x *Heads) appendLines(ctx context.Context, lines []heads.Ended) error {
	var text []byte
	for _, e := range lines {
		line, err := json.Marshal(lineOf(e))
		if err != nil {
			return fmt.Errorf("line of the history: %w", err)
		}
		text = append(text, summed(line)...)
	}
	if len(text) == 0 {
		return nil
	}
	return x.locked(ctx, historyLock, func() error {
		start, err := x.repairTail(historyFile, isEnded)
		if err != nil {
			return err
		}
		return durable.AppendFile(x.fsys, x.path(historyFile), append(start, text...), 0o644)
	})
}

// lastEnd finds the newest line that ended a thread, from the end of the file, because most requests are for
// a thread that has just ended. It returns [heads.ErrNoThread] if there is none.
func (x *Heads) lastEnd(thread string) (heads.Ended, error) {
	f, err := safeopen.OpenMax(x.path(historyFile), maxFile, safeopen.Follow)
	if errors.Is(err, fs.ErrNotExist) {
		return heads.Ended{}, fmt.Errorf("%w: %s", heads.ErrNoThread, thread)
	}
	if err != nil {
		return heads.Ended{}, err
	}
	e, err := x.searchBack(f, thread)
	return e, errors.Join(err, f.Close())
}

func (x *Heads) searchBack(f *os.File, thread string) (heads.Ended, error) {
	quoted, err := json.Marshal(thread)
	if err != nil {
		return heads.Ended{}, err
	}
	var damaged error
	for line, err := range linesBack(f, quoted) {
		if err != nil {
			return heads.Ended{}, err
		}
		e, err := readLine(line.text, line.whole, parseEnded)
		switch {
		case errors.Is(err, errNothing):
		case err != nil:
			damaged = errors.Join(damaged, x.damagedAt(line.offset, err))
		case e.Thread == thread && e.Status != protocol.StatusResumed:
			return e, damaged // a later line may contain another end
		}
	}
	if damaged != nil {
		return heads.Ended{}, damaged
	}
	return heads.Ended{}, fmt.Errorf("%w: %s", heads.ErrNoThread, thread)
}

// damagedAt returns the error for a line. It counts lines only now, to get the line number.
func (x *Heads) damagedAt(offset int64, cause error) error {
	data, err := x.readFile(historyFile)
	if err != nil {
		return err
	}
	before := data[:min(offset, int64(len(data)))]
	return invalid(x.path(historyFile), bytes.Count(before, []byte("\n"))+1, cause.Error())
}

// backLine is a line of a file read backwards.
type backLine struct {
	text   []byte // without its newline; valid until the next line
	offset int64
	whole  bool // has a newline
}

// blockSize is the number of bytes that linesBack reads at a time.
const blockSize = 256 << 10

// linesBack yields the lines of a file that contain a text, last one first.
func linesBack(f *os.File, text []byte) iter.Seq2[backLine, error] {
	return func(yield func(backLine, error) bool) {
		end, err := f.Seek(0, io.SeekEnd)
		var block []byte
		for size := int64(blockSize); end > 0 && err == nil; {
			start, begin := max(0, end-size), 0
			block = slices.Grow(block[:0], int(end-start))[:end-start]
			if _, err = f.ReadAt(block, start); err != nil {
				break
			}
			if start > 0 {
				begin = bytes.IndexByte(block, '\n') + 1
			}
			if start > 0 && (begin == 0 || begin == len(block)) {
				size *= 2 // no line begins in it
				continue
			}
			for _, line := range slices.Backward(linesWith(block[begin:], text)) {
				line.offset += start + int64(begin)
				if !yield(line, nil) {
					return
				}
			}
			end, size = start+int64(begin), blockSize
		}
		if err != nil {
			yield(backLine{}, err)
		}
	}
}

// linesWith returns the lines that contain a text. It searches for the text first, so a missing text is
// quickly ruled out.
func linesWith(block, text []byte) []backLine {
	var lines []backLine
	for at := 0; at < len(block); {
		hit := bytes.Index(block[at:], text)
		if hit < 0 {
			break
		}
		start := at + bytes.LastIndexByte(block[at:at+hit], '\n') + 1
		end := bytes.IndexByte(block[at+hit:], '\n')
		whole := end >= 0
		if end += at + hit; !whole {
			end = len(block)
		}
		lines = append(lines, backLine{text: block[start:end], offset: int64(start), whole: whole})
		at = end + 1
	}
	return lines
}

// Forget removes all lines of ended threads from the history, and their facts. It ignores active and unknown
// threads, and keeps unreadable lines. It returns how each of the forgotten threads had ended.
func (x *Heads) Forget(ctx context.Context, threads map[string]bool) (forgotten []heads.Ended, err error) {
	err = x.locked(ctx, threadsLock, func() error {
		f, err := x.look(ctx)
		if err != nil {
			return err
		}
		return x.locked(ctx, historyLock, func() error {
			gone, _, err := x.lastEnds()
			if err != nil {
				return err
			}
			maps.DeleteFunc(gone, func(thread string, _ heads.Ended) bool {
				_, active := f.find(thread)
				return active || !threads[thread]
			})
			// First, because the list has no effect on a thread that still exists.
			if err := x.noteRemoved(gone); err != nil {
				return err
			}
			if err := x.forget(gone); err != nil {
				return err
			}
			forgotten = slices.SortedFunc(maps.Values(gone), func(a, b heads.Ended) int { return cmp.Compare(a.Thread, b.Thread) })
			// Facts are removed after the history, because facts of a missing thread do no harm.
			return x.rewriteFacts(ctx, f, gone)
		})
	})
	return forgotten, err
}

// forget removes the lines of threads.
func (x *Heads) forget(gone map[string]heads.Ended) error {
	data, err := x.readFile(historyFile)
	if err != nil || len(gone) == 0 {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(data) {
		e, err := parseEnded(bytes.TrimSuffix(line, []byte("\n")))
		if _, is := gone[e.Thread]; err != nil || !is {
			kept = append(kept, line...)
		}
	}
	return durable.WriteFile(x.fsys, x.path(historyFile), kept, 0o644)
}

// removedFile lists the IDs of removed threads, one per line, so that a home that serves as a remote doesn't
// accept them again. It can also list threads that exist: a person has imported them again, or the removal
// was interrupted.
const removedFile = "removed.txt"

// Removed reports whether a thread that doesn't exist was removed by [Heads.Forget].
func (x *Heads) Removed(thread string) (bool, error) {
	data, err := x.readFile(removedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.Contains(strings.Fields(string(data)), thread), err
}

// noteRemoved adds threads to the list of removed ones. history.lock must be held.
func (x *Heads) noteRemoved(threads map[string]heads.Ended) error {
	data, err := x.readFile(removedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := strings.Fields(string(data))
	before := len(all)
	all = slices.AppendSeq(all, maps.Keys(threads))
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == before {
		return nil
	}
	return durable.WriteFile(x.fsys, x.path(removedFile), []byte(strings.Join(all, "\n")+"\n"), 0o644)
}
