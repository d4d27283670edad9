package fileheads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
)

// lastEnd finds the newest line that ended a thread, from the end of the file:
// whoever asks mostly asks for a thread that has just ended. [heads.ErrNoThread] if
// there is none.
func (x *Heads) lastEnd(thread string) (heads.Ended, error) {
	f, err := careful.OpenMax(x.path(historyFile), maxFile, careful.Follow)
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
		e, err := read(line.text, line.whole, parseEnded)
		switch {
		case errors.Is(err, errNothing):
		case err != nil:
			damaged = errors.Join(damaged, x.damagedAt(line.offset, err))
		case e.Thread == thread && e.Status != protocol.StatusResumed:
			return e, nil
		}
	}
	if damaged != nil {
		return heads.Ended{}, damaged
	}
	return heads.Ended{}, fmt.Errorf("%w: %s", heads.ErrNoThread, thread)
}

// damagedAt is the error for a line, whose number is only counted now.
func (x *Heads) damagedAt(offset int64, cause error) error {
	data, err := x.readLog(historyFile)
	if err != nil {
		return err
	}
	before := data[:min(offset, int64(len(data)))]
	return invalid(x.path(historyFile), bytes.Count(before, []byte("\n"))+1, cause.Error())
}

// backLine is a line of a file that is read from its end.
type backLine struct {
	text   []byte // without its end; valid until the next line
	offset int64
	whole  bool // it has an end
}

// blockSize is how much linesBack reads at a time.
const blockSize = 256 << 10

// linesBack yields the lines of a file that contain a text, the last one first.
func linesBack(f *os.File, text []byte) iter.Seq2[backLine, error] {
	return func(yield func(backLine, error) bool) {
		offset, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			yield(backLine{}, err)
			return
		}
		var block, rest []byte // rest: of a line whose beginning is not read yet
		for offset > 0 {
			// A block as long as the rest keeps one huge line from costing
			// quadratic time.
			size := min(max(blockSize, int64(len(rest))), offset)
			block = prepend(block, int(size), rest)
			offset -= size
			if _, err := f.ReadAt(block[:size], offset); err != nil {
				yield(backLine{}, err)
				return
			}
			begin := beginOfLines(block, offset == 0)
			for _, line := range slices.Backward(linesWith(block[begin:], text)) {
				line.offset += offset + int64(begin)
				if !yield(line, nil) {
					return
				}
			}
			rest = block[:begin]
		}
	}
}

// prepend makes room for n bytes before rest, in block if it is long enough;
// rest may be a part of block.
func prepend(block []byte, n int, rest []byte) []byte {
	if cap(block) < n+len(rest) {
		block = make([]byte, n+len(rest))
	}
	block = block[:n+len(rest)]
	copy(block[n:], rest)
	return block
}

// beginOfLines is where the first line that is here as a whole begins.
func beginOfLines(block []byte, isFirst bool) int {
	if isFirst {
		return 0
	}
	if i := bytes.IndexByte(block, '\n'); i >= 0 {
		return i + 1
	}
	return len(block)
}

// linesWith finds the lines that contain a text. It looks for the text first,
// so what is not there is not there fast.
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

// appendHistory adds a line durably.
func (x *Heads) appendHistory(ctx context.Context, e heads.Ended) error {
	return x.appendLines(ctx, []heads.Ended{e})
}

// mendTail deals with a last line that has no end: it is cut off if a kill or a
// power cut tore it. Any other, damaged or not, gets its end, which the caller must
// write first. parse is an error for a line that cannot be read.
func (x *Heads) mendTail(file string, parse func(line []byte) error) (start []byte, err error) {
	f, err := careful.OpenMax(x.path(file), maxFile, careful.Follow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for line, err := range linesBack(f, nil) {
		if err != nil || line.whole {
			return nil, err
		}
		text := withoutZeros(line.text)
		switch err := parse(text); {
		case errors.Is(err, errNothing), err != nil && isTorn(text):
			return nil, x.fsys.Truncate(x.path(file), line.offset)
		case err == nil && len(text) < len(line.text):
			return []byte("\n"), x.fsys.Truncate(x.path(file), line.offset+int64(len(text)))
		}
		return []byte("\n"), nil
	}
	return nil, nil
}
