package index

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

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// lastEnd finds the newest line that ended a thread, from the end of the file:
// whoever asks mostly asks for a thread that has just ended. [ErrNoThread] if
// there is none.
func (x *Index) lastEnd(thread string) (Ended, error) {
	f, err := os.Open(x.path(historyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Ended{}, fmt.Errorf("%w: %s", ErrNoThread, thread)
	}
	if err != nil {
		return Ended{}, err
	}
	e, err := x.searchBack(f, thread)
	return e, errors.Join(err, f.Close())
}

func (x *Index) searchBack(f *os.File, thread string) (Ended, error) {
	quoted, err := json.Marshal(thread)
	if err != nil {
		return Ended{}, err
	}
	var damaged error
	for line, err := range linesBack(f) {
		if err != nil {
			return Ended{}, err
		}
		if !bytes.Contains(line.text, quoted) {
			continue
		}
		e, err := parseEnded(line.text)
		switch {
		case errors.Is(err, errNothing) || err != nil && !line.whole:
		case err != nil:
			damaged = errors.Join(damaged, x.damagedAt(line.offset, err))
		case e.Thread == thread && e.Status != protocol.StatusResumed:
			return e, nil
		}
	}
	if damaged != nil {
		return Ended{}, damaged
	}
	return Ended{}, fmt.Errorf("%w: %s", ErrNoThread, thread)
}

// damagedAt is the error for a line, whose number is only counted now.
func (x *Index) damagedAt(offset int64, cause error) error {
	data, err := os.ReadFile(x.path(historyFile))
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

// firstBlock is how much linesBack reads first; each further block is twice as
// long, so that a very long line costs linear time.
const firstBlock = 64 << 10

// linesBack yields the lines of a file, the last one first.
func linesBack(f *os.File) iter.Seq2[backLine, error] {
	return func(yield func(backLine, error) bool) {
		offset, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			yield(backLine{}, err)
			return
		}
		var unread []byte // what is read but not yielded; it begins at offset
		whole := false
		for size := int64(firstBlock); offset > 0; size *= 2 {
			size = min(size, offset)
			block := make([]byte, size, size+int64(len(unread)))
			if _, err := f.ReadAt(block, offset-size); err != nil {
				yield(backLine{}, err)
				return
			}
			offset -= size
			unread = append(block, unread...)
			for {
				i := bytes.LastIndexByte(unread, '\n')
				if i < 0 {
					break
				}
				line := backLine{text: unread[i+1:], offset: offset + int64(i) + 1, whole: whole}
				if len(line.text) > 0 && !yield(line, nil) {
					return
				}
				unread, whole = unread[:i], true
			}
		}
		if len(unread) > 0 {
			yield(backLine{text: unread, whole: whole}, nil)
		}
	}
}

// appendHistory adds a line durably.
func (x *Index) appendHistory(ctx context.Context, e Ended) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return x.locked(ctx, historyLock, func() error {
		start, err := x.mendTail()
		if err != nil {
			return err
		}
		return durable.AppendFile(x.fsys, x.path(historyFile), append(append(start, line...), '\n'), 0o644)
	})
}

// mendTail deals with a last line that has no end: it is cut off if a kill or a
// power cut tore it, and given its end, which the caller must write first, if
// only that is missing.
func (x *Index) mendTail() (start []byte, err error) {
	f, err := os.Open(x.path(historyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for line, err := range linesBack(f) {
		if err != nil || line.whole {
			return nil, err
		}
		if _, err := parseEnded(line.text); err == nil {
			return []byte("\n"), nil
		}
		return nil, x.fsys.Truncate(x.path(historyFile), line.offset)
	}
	return nil, nil
}
