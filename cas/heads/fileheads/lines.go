package fileheads

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"

	"github.com/united-workforce/uwf/util/safeopen"
)

// A line of history.jsonl or facts.jsonl is an object that ends with a checksum of the preceding text, so
// that damage is detected. A line without one is trusted, because older programs and people write such lines.
const (
	checkKey    = "check"
	checkFormat = `,"check":"%08x"}`
	checkLen    = len(`,"check":"00000000"}`)
)

// summed adds the checksum and the newline to an object.
func summed(object []byte) []byte {
	object = bytes.TrimSuffix(object, []byte("}"))
	return append(fmt.Appendf(object, checkFormat, crc32.ChecksumIEEE(object)), '\n')
}

// checkSum returns an error if a line has a wrong checksum.
func checkSum(line []byte) error {
	if has, fits := sumOf(line); has && !fits {
		return errors.New(`checksum mismatch: the line is damaged, or was edited without removing "check"`)
	}
	return nil
}

// sumOf reports whether a line ends with a checksum, and whether that is right.
func sumOf(line []byte) (has, fits bool) {
	line = bytes.TrimRight(line, " \t\r")
	at := len(line) - checkLen
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(`,"check":"`)) {
		return false, false
	}
	digits := hex.AppendEncode(nil, binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(line[:at])))
	rest, fits := bytes.CutPrefix(line[at+len(`,"check":"`):], digits)
	return true, fits && string(rest) == `"}`
}

// begin is the beginning of each line written by uwf.
const begin = `{"thread":"`

// errNothing means that a line has no content: it is blank, or the beginning of an unacknowledged write.
var errNothing = errors.New("is empty")

// isBlank reports whether a line is blank.
func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// read parses a line without its newline. A last line without a newline might have been torn by a kill or a
// power cut.
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

// withoutZeros removes the zeros that a power cut can leave at the end of a file.
func withoutZeros(tail []byte) []byte { return bytes.TrimRight(tail, "\x00") }

// isTorn reports whether a last line is the beginning of a line written by uwf.
func isTorn(tail []byte) bool {
	if n := min(len(begin), len(tail)); string(tail[:n]) != begin[:n] {
		return false
	}
	err := json.NewDecoder(bytes.NewReader(tail)).Decode(new(json.RawMessage))
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// line is a line of a file: its content, or why it is unreadable.
type line[T any] struct {
	value  T
	text   []byte // with its newline, if any
	number int    // from 1
	err    error
}

// linesOf yields the lines of a file, except those without content.
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

// repairTail handles a last line without a newline: it removes a torn line. For any other, damaged or not, it
// returns the newline that the caller must write first. parse returns an error for an unreadable line.
func (x *Heads) repairTail(file string, parse func(line []byte) error) (start []byte, err error) {
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
