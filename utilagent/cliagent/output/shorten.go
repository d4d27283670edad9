package output

import (
	"bytes"
	"fmt"
)

// For a line longer than maxLine, the head and the tail of each text in it are kept.
const (
	maxLine  = 8 << 20
	textHead = 512 << 10
	textTail = 256 << 10 // at least; at most twice as much
	leftOut  = " … %d bytes left out … "
)

// shortener receives a line in pieces and keeps what a reader needs. In a JSON line, long strings lose their
// middle, with a marker in its place, so the line stays valid JSON. Any other line, or one that is too long
// even so, keeps its beginning.
type shortener struct {
	out  []byte
	json bool
	cut  int // bytes omitted from strings
	over int // bytes omitted at the end

	inText bool
	escape int  // remaining bytes of an escape sequence
	begun  bool // the last byte was a backslash
	size   int  // size of the string so far
	toTail bool // destination of the current character
	tail   [2][]byte
	lost   int // bytes of the string in neither head nor tail
}

func newShortener(begin []byte) *shortener {
	first := bytes.TrimLeft(begin, "\ufeff \t")
	s := &shortener{json: len(first) > 0 && (first[0] == '{' || first[0] == '[')}
	s.write(begin)
	return s
}

// write takes a piece.
func (s *shortener) write(b []byte) {
	if !s.json {
		s.keep(b)
		return
	}
	for len(b) > 0 {
		n := s.run(b)
		switch {
		case n == 0:
		case s.inText:
			s.text(b[:n])
		default:
			s.keep(b[:n])
		}
		b = b[n:]
		if len(b) > 0 && s.escape == 0 && b[0] == '"' {
			s.quote()
			b = b[1:]
		}
	}
}

// run returns the number of leading bytes that are handled alike; 0 before a quote.
func (s *shortener) run(b []byte) int {
	n := len(b)
	switch {
	case !s.inText:
		if i := bytes.IndexByte(b, '"'); i >= 0 {
			n = i
		}
	case s.escape > 0, b[0] == '\\':
		n = 1
	default:
		if i := bytes.IndexAny(b, `"\`); i >= 0 {
			n = i
		}
		n = min(n, textTail) // a block of the tail holds no more
	}
	return n
}

// quote starts or ends a string.
func (s *shortener) quote() {
	if s.inText {
		if s.lost > 0 {
			s.keep(fmt.Appendf(nil, leftOut, s.lost))
		}
		s.keep(s.tail[1])
		s.keep(s.tail[0])
	}
	s.keep([]byte{'"'})
	s.inText, s.size, s.lost = !s.inText, 0, 0
	s.tail[0], s.tail[1] = s.tail[0][:0], s.tail[1][:0]
}

// text handles bytes of a string: a run of plain ones, or those of an escape sequence, which must not be
// split.
func (s *shortener) text(b []byte) {
	switch {
	case s.escape > 0 && s.begun && b[0] == 'u':
		s.escape, s.begun = 4, false
	case s.escape > 0:
		s.escape, s.begun = s.escape-1, false
	default: // start of a character
		if s.toTail = s.size >= textHead; s.toTail && len(s.tail[0]) >= textTail {
			s.lost += len(s.tail[1])
			s.cut += len(s.tail[1])
			s.tail[0], s.tail[1] = s.tail[1][:0], s.tail[0]
		}
		if b[0] == '\\' {
			s.escape, s.begun = 1, true
		}
	}
	s.size += len(b)
	if s.toTail {
		s.tail[0] = append(s.tail[0], b...)
		return
	}
	s.keep(b)
}

// keep keeps bytes unchanged while there is room.
func (s *shortener) keep(b []byte) {
	room := min(len(b), maxLine-len(s.out))
	s.out = append(s.out, b[:room]...)
	s.over += len(b) - room
}

// line returns what was kept and the number of bytes omitted.
func (s *shortener) line() ([]byte, int) {
	line := bytes.TrimRight(s.out, "\r\n")
	if s.over > 0 {
		line = fmt.Appendf(line, leftOut, s.over)
	}
	return line, s.cut + s.over
}
