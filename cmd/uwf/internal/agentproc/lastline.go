package agentproc

import (
	"bytes"
	"io"
)

const (
	chunk = 64 << 10
	// maxLine bounds the last line: agents of the original's kind put their
	// whole answer into it.
	maxLine = 16 << 20
)

// ending is where a text ends: the part that matters of a file of any length.
type ending struct {
	line    []byte // the last line that is not blank, trimmed
	tooLong int64  // its length, if it is longer than maxLine; line is then its beginning
}

// readEnding reads the last line of a file of the given size. It reads from the
// end and holds only that line.
func readEnding(f io.ReaderAt, size int64) (ending, error) {
	end, err := lastByte(f, size, func(b byte) bool { return !isSpace(b) })
	if err != nil || end == 0 {
		return ending{}, err
	}
	begin, err := lastByte(f, end, func(b byte) bool { return b == '\n' })
	if err != nil {
		return ending{}, err
	}
	e := ending{}
	length := end - begin
	if length > maxLine {
		e.tooLong, length = length, chunk
	}
	e.line = make([]byte, length)
	if _, err := f.ReadAt(e.line, begin); err != nil && err != io.EOF {
		return ending{}, err
	}
	e.line = bytes.TrimSpace(e.line)
	return e, nil
}

// lastByte returns the offset behind the last byte before end that is wanted, 0
// if there is none.
func lastByte(f io.ReaderAt, end int64, wanted func(byte) bool) (int64, error) {
	buf := make([]byte, chunk)
	for end > 0 {
		n := min(end, chunk)
		if _, err := f.ReadAt(buf[:n], end-n); err != nil && err != io.EOF {
			return 0, err
		}
		for i := n - 1; i >= 0; i-- {
			if wanted(buf[i]) {
				return end - n + i + 1, nil
			}
		}
		end -= n
	}
	return 0, nil
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

// readTail reads the last n bytes of a file of the given size, from the
// beginning of a line on.
func readTail(f io.ReaderAt, size, n int64) ([]byte, error) {
	n = min(n, size)
	buf := make([]byte, n)
	if _, err := f.ReadAt(buf, size-n); err != nil && err != io.EOF {
		return nil, err
	}
	if n < size {
		if _, whole, found := bytes.Cut(buf, []byte("\n")); found {
			return whole, nil
		}
	}
	return buf, nil
}
