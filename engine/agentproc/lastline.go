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
	// maxBlank bounds the blanks behind it.
	maxBlank = 1 << 20
)

// ending is where a text ends: the part that matters of a file of any length.
type ending struct {
	line    []byte // the last line that is not blank, trimmed
	tooLong bool   // it is longer than maxLine, or there are more than maxBlank blanks; line is then a part of it
	ended   bool   // it ends in a line break
}

// readEnding reads the last line of a file of the given size. It reads from the
// end, no further than it must, and holds only that line.
func readEnding(f io.ReaderAt, size int64) (ending, error) {
	end, err := lastByte(f, size, maxBlank, func(b byte) bool { return !isSpace(b) })
	if err != nil || end == 0 {
		return ending{}, err
	}
	begin, err := lastByte(f, end, maxLine, func(b byte) bool { return b == '\n' })
	if err != nil {
		return ending{}, err
	}
	e := ending{ended: end < size}
	if end == size-maxBlank || end-begin == maxLine {
		e.tooLong = true
		end = min(end, begin+chunk)
	}
	e.line = make([]byte, end-begin)
	if _, err := f.ReadAt(e.line, begin); err != nil && err != io.EOF {
		return ending{}, err
	}
	e.line = bytes.TrimSpace(e.line)
	return e, nil
}

// lastByte returns the offset behind the last byte before end that is wanted. It
// looks at no more than most bytes; if none of them is wanted it returns where it
// has stopped.
func lastByte(f io.ReaderAt, end, most int64, wanted func(byte) bool) (int64, error) {
	buf := make([]byte, chunk)
	for stop := max(0, end-most); end > stop; {
		n := min(end-stop, chunk)
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
	return end, nil
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
