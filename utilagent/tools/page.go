package tools

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/plaintext"
)

// source is a file that is read as text. No more than maxScanBytes of it are
// read at once: a sparse file claims any size.
type source struct {
	f        *os.File
	size     int64
	encoding charEncoding
}

func newSource(f *os.File, size int64) (*source, error) {
	start := make([]byte, 8000)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &source{f: f, size: size, encoding: encodingOf(start[:n])}, nil
}

func (s *source) large() bool { return s.size > maxScanBytes }

// from reads the text from a place in the file on, most bytes of it.
func (s *source) from(at, most int64) (*bufio.Reader, error) {
	if _, err := s.f.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := s.encoding.decode(io.LimitReader(s.f, most))
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(text, 64<<10)
	if start, _ := r.Peek(len(bom)); at == 0 && string(start) == bom {
		_, err = r.Discard(len(bom))
	}
	return r, err
}

// page is the part of a file that is shown.
type page struct {
	first, most int // lines
	end         int // if lines are counted from the end: the number behind the last
	shown       int
	total       int  // lines that were seen
	unread      bool // the file has more than was read
	cut         bool
	notText     bool
	text        strings.Builder
}

// page reads what is asked for.
func (s *source) page(a readArgs) (*page, error) {
	p := &page{first: max(a.Offset, 1), most: bound(a.Limit, defaultLines, maxLines)}
	at := int64(0)
	if a.Offset < 0 {
		var err error
		if at, err = s.locate(p, a.Offset); err != nil {
			return nil, err
		}
	}
	r, err := s.from(at, maxScanBytes)
	if err != nil {
		return nil, err
	}
	p.unread = at == 0 && s.large()
	return p, p.read(r)
}

// locate finds where the last -offset lines begin: the number of the first one, and the place
// from which lines are counted.
func (s *source) locate(p *page, offset int) (at int64, err error) {
	if s.large() {
		at = (s.size - maxTailBytes) &^ 1 // characters of UTF-16 begin at even places
	}
	r, err := s.from(at, maxScanBytes)
	if err != nil {
		return 0, err
	}
	if at > 0 && !s.encoding.wide() { // in the middle of a line, most likely
		rest, err := r.ReadSlice('\n')
		if err == nil {
			at += int64(len(rest))
		} else if !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
		if r, err = s.from(at, maxScanBytes); err != nil {
			return 0, err
		}
	}
	total, err := countLines(r)
	p.first = max(total+offset+1, 1)
	if at > 0 {
		p.end = total + 1
	}
	return at, err
}

// countLines counts lines to the end.
func countLines(r io.Reader) (n int, err error) {
	buf := make([]byte, 64<<10)
	last := byte('\n')
	for {
		got, err := r.Read(buf)
		n += bytes.Count(buf[:got], []byte{'\n'})
		if got > 0 {
			last = buf[got-1]
		}
		if errors.Is(err, io.EOF) {
			if last != '\n' {
				n++
			}
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// read takes the lines of the page and counts the others.
func (p *page) read(r *bufio.Reader) error {
	full := false
	for {
		line, long, err := readLine(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.total++
		if p.total < p.first || full {
			continue
		}
		if p.shown == p.most || p.shown > 0 && p.text.Len()+len(line) > maxReadBytes {
			full = true
			continue
		}
		p.cut = p.cut || long
		text := asText(line)
		p.notText = p.notText || text != line
		fmt.Fprintf(&p.text, "%d→%s\n", p.total-p.end, text)
		p.shown++
	}
}

// asText replaces what does not belong in text, since endpoints refuse it.
func asText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
}

// readLine reads a line without its end, of which it keeps the beginning only
// if it is too long. The error is io.EOF after the last line.
func readLine(r *bufio.Reader) (line string, long bool, err error) {
	var b []byte
	for {
		part, err := r.ReadSlice('\n')
		if room := maxLineBytes + 2 - len(b); room > 0 {
			b = append(b, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && len(b) > 0 {
			err = nil
		}
		if err != nil {
			return "", false, err
		}
		line := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
		if len(line) <= maxLineBytes {
			return line, false, nil
		}
		head, _ := plaintext.WholeRunes(line[:maxLineBytes], "")
		return head + "…", true, nil
	}
}
