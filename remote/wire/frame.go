package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
)

// Magic is what each side says first.
const Magic = "uwf remote\n"

// Kinds of messages.
const (
	request   byte = 'q' // JSON: the next thing to do
	node      byte = 'n' // 13 characters of hash, and the node's file
	tombstone byte = 't' // likewise
	file      byte = 'f' // a byte with the size of the hash, the hash as git has it, the content
	directory byte = 'd' // likewise
	value     byte = 'v' // JSON: an entry of a list
	alive     byte = 'k' // nothing: the other side is at work
	end       byte = '.' // JSON: all that belongs to a request, or to its answer
)

// Bounds of a stream.
const (
	MaxFrame = 1 << 20   // bytes of one, without its head
	maxJSON  = 8 << 20   // of one message
	MaxList  = 512 << 20 // of all entries of a list: 100,000 threads have some 100 MB
	more     = 1 << 31   // the bit of a frame's length that says: the message goes on

	hashSize = 13
)

// maxMessage is how long a message of a kind may be; 0: there is no such kind.
func maxMessage(kind byte) int {
	switch kind {
	case request, value, end:
		return maxJSON
	case node:
		return hashSize + cas.MaxFile
	case tombstone:
		return hashSize + cas.MaxTombstone
	case file, directory:
		return 1 + 32 + remote.MaxObject
	case alive:
		return 0
	}
	return -1
}

// reader reads messages from a stranger.
type reader struct {
	in     *bufio.Reader
	useful func() // called for what arrives of a message
}

// newReader calls moved for what arrives, and useful if that is a message.
func newReader(in io.Reader, moved, useful func()) *reader {
	return &reader{in: bufio.NewReaderSize(movingReader{in, moved}, 1<<16), useful: useful}
}

// begin reads what the other side says first.
func (r *reader) begin() error {
	head := make([]byte, len(Magic))
	for i := range head {
		b, err := r.in.ReadByte()
		if err != nil {
			return cut(err)
		}
		head[i] = b
		if b == Magic[i] {
			continue
		}
		rest, _ := r.in.Peek(min(r.in.Buffered(), 200))
		return remote.Faultf("the other side does not speak this protocol: it begins with %q", append(head[:i+1], rest...))
	}
	return nil
}

// next reads a message of one of the kinds that are expected; those that only say that
// somebody is alive are passed over.
func (r *reader) next(kinds string) (kind byte, message []byte, err error) {
	for {
		kind, message, err = r.message(kinds)
		if err != nil || kind != alive {
			return kind, message, err
		}
	}
}

func (r *reader) message(kinds string) (kind byte, message []byte, err error) {
	for {
		var head [5]byte
		if _, err := io.ReadFull(r.in, head[:]); err != nil {
			if len(message) > 0 {
				err = cut(err)
			}
			return 0, nil, err
		}
		first, length := kind == 0, binary.BigEndian.Uint32(head[1:])
		goesOn := length&more != 0
		length &^= more
		switch {
		case !first && head[0] != kind:
			return 0, nil, remote.Faultf("a message %q goes on as %q", kind, head[0])
		case first && head[0] != alive && !contains(kinds, head[0]):
			return 0, nil, remote.Faultf("a message %q where one of %q belongs", head[0], kinds)
		case length > MaxFrame:
			return 0, nil, remote.Faultf("a frame of %d bytes: at most %d", length, MaxFrame)
		case goesOn && length == 0:
			return 0, nil, remote.Faultf("an empty frame that goes on")
		}
		kind = head[0]
		if len(message)+int(length) > maxMessage(kind) {
			return 0, nil, remote.Faultf("a message %q of more than %d bytes", kind, maxMessage(kind))
		}
		at := len(message)
		message = append(message, make([]byte, length)...)
		if _, err := io.ReadFull(movingReader{r.in, r.useful}, message[at:]); err != nil {
			return 0, nil, cut(err)
		}
		if !goesOn {
			return kind, message, nil
		}
	}
}

func contains(kinds string, kind byte) bool {
	for i := range len(kinds) {
		if kinds[i] == kind {
			return true
		}
	}
	return false
}

// errCut means that a stream ends in the middle.
var errCut = fmt.Errorf("the stream ends in the middle: %w", io.ErrUnexpectedEOF)

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// write writes a message of parts, without flushing.
func write(out *bufio.Writer, kind byte, parts ...[]byte) error {
	left := 0
	for _, p := range parts {
		left += len(p)
	}
	if left > maxMessage(kind) {
		return remote.Faultf("a message %q of %d bytes: at most %d", kind, left, maxMessage(kind))
	}
	for first := true; first || left > 0; first = false {
		room := min(left, MaxFrame)
		left -= room
		head := [5]byte{kind}
		binary.BigEndian.PutUint32(head[1:], uint32(room))
		if left > 0 {
			head[1] |= more >> 24
		}
		if _, err := out.Write(head[:]); err != nil {
			return err
		}
		for room > 0 {
			n := min(room, len(parts[0]))
			if _, err := out.Write(parts[0][:n]); err != nil {
				return err
			}
			if parts[0], room = parts[0][n:], room-n; len(parts[0]) == 0 {
				parts = parts[1:]
			}
		}
	}
	return nil
}
