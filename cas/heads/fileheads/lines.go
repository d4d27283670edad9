package fileheads

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"

	"github.com/united-workforce/uwf/util/safeopen"
)

// A line of history.jsonl or facts.jsonl is an object that ends in a sum of what is
// before it, so that a damaged one does not pass for another. A line without one is
// believed: older programs and people write such.
const (
	checkKey    = "check"
	checkFormat = `,"check":"%08x"}`
	checkLen    = len(`,"check":"00000000"}`)
)

// summed adds the sum to an object, and the end of the line.
func summed(object []byte) []byte {
	object = bytes.TrimSuffix(object, []byte("}"))
	return append(fmt.Appendf(object, checkFormat, crc32.ChecksumIEEE(object)), '\n')
}

// checkSum is an error if a line has a sum that does not fit.
func checkSum(line []byte) error {
	if has, fits := sumOf(line); has && !fits {
		return errors.New(`its sum does not fit: it is damaged, or somebody has changed it and left "check" in`)
	}
	return nil
}

// sumOf reports whether a line ends in a sum, and whether that fits.
func sumOf(line []byte) (has, fits bool) {
	line = bytes.TrimRight(line, " \t\r")
	at := len(line) - checkLen
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(`,"check":"`)) {
		return false, false
	}
	return true, bytes.Equal(line[at:], fmt.Appendf(nil, checkFormat, crc32.ChecksumIEEE(line[:at])))
}

// begin is how each line of ours begins.
const begin = `{"thread":"`

// errNothing means that a line says nothing: it is blank, or the beginning of one
// that nobody was told had been written.
var errNothing = errors.New("says nothing")

// isBlank reports whether a line is empty to a person.
func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// read reads a line, without its end. A last line that has no end may be one that a
// kill or a power cut has torn.
func read[T any](line []byte, whole bool, parse func([]byte) (T, error)) (T, error) {
	if whole {
		return parse(line)
	}
	text := withoutZeros(line)
	v, err := parse(text)
	if err != nil && isTorn(text) {
		err = errNothing
	}
	return v, err
}

// withoutZeros is a last line without what a power cut leaves behind it: zeros, to
// the end of the file, and nothing else.
func withoutZeros(tail []byte) []byte { return bytes.TrimRight(tail, "\x00") }

// isTorn reports whether a last line is the beginning of one of ours.
func isTorn(tail []byte) bool {
	if n := min(len(begin), len(tail)); string(tail[:n]) != begin[:n] {
		return false
	}
	err := json.NewDecoder(bytes.NewReader(tail)).Decode(new(json.RawMessage))
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// line is one of a file: what it says, or why it cannot be read.
type line[T any] struct {
	value  T
	text   []byte // with its end, if it has one
	number int    // from 1
	err    error
}

// linesOf yields the lines of a file. What says nothing is passed over.
func linesOf[T any](data []byte, parse func([]byte) (T, error)) iter.Seq[line[T]] {
	return func(yield func(line[T]) bool) {
		number := 0
		for text := range bytes.Lines(data) {
			number++
			content, whole := bytes.CutSuffix(text, []byte("\n"))
			value, err := read(content, whole, parse)
			if errors.Is(err, errNothing) {
				continue
			}
			if !yield(line[T]{value, text, number, err}) {
				return
			}
		}
	}
}

// mendTail deals with a last line that has no end: it is cut off if a kill or a
// power cut tore it. Any other, damaged or not, gets its end, which the caller must
// write first. parse is an error for a line that cannot be read.
func (x *Heads) mendTail(file string, parse func(line []byte) error) (start []byte, err error) {
	f, err := safeopen.OpenMax(x.path(file), maxFile, safeopen.Follow)
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
