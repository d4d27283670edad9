package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"

	"github.com/united-workforce/uwf/util/plaintext"
)

// Bounds of one read.
const (
	defaultLines = 2000
	maxLines     = 5000
	maxReadBytes = 28000 // with line numbers less than MaxResult, so that nothing is shortened twice
	maxLineBytes = 2000
	maxScanBytes = 64 << 20 // scanned per page
)

// ReadFile returns the tool read_file.
func ReadFile(w *Workspace) Tool {
	return New(Spec{
		Name: "read_file",
		Description: "Read a text file of the workspace. Lines are numbered (\"12→text\"); the numbers are not part of the file. " +
			fmt.Sprintf("A page has at most %d bytes; continue with offset. Lines are cut after %d bytes. A directory is listed.", maxReadBytes, maxLineBytes),
		Effect: Reads, SideBySide: true,
	}, func(ctx context.Context, a readArgs) (string, error) { return w.readFile(ctx, a) })
}

type readArgs struct {
	Path   string `json:"path" doc:"File, relative to the working directory"`
	Offset int    `json:"offset,omitempty" doc:"First line to read, from 1 (default 1)"`
	Limit  int    `json:"limit,omitempty" doc:"How many lines to read (default 2000, at most 5000)"`
}

func (w *Workspace) readFile(ctx context.Context, a readArgs) (text string, err error) {
	w = w.reading(a.Path)
	if _, is, err := w.directory(a.Path); err == nil && is && a.Path != "" {
		list, err := w.listDir(ctx, listArgs{Path: a.Path})
		return fmt.Sprintf("[%s is a directory; this is what list_dir says]\n%s", shown(a.Path), list), err
	}
	f, info, err := w.open(a.Path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() == 0 {
		return "(empty file)", nil
	}
	s, err := newSource(f, info.Size())
	if err != nil {
		return "", w.explain(a.Path, err)
	}
	if s.encoding == binary {
		return "", s.encoding.refuse(shown(a.Path), s.size)
	}
	p, err := s.page(a)
	if err != nil {
		return "", w.explain(a.Path, err)
	}
	if p.shown == 0 {
		return "", p.nothing(a.Path, s)
	}
	return p.text.String() + p.footer(s), nil
}

// nothing explains why a page is empty.
func (p *page) nothing(name string, s *source) error {
	if p.unread {
		return fmt.Errorf("line %d of %s is not within its first %d MB, and no more is read (it has %d bytes). "+
			"Use a command such as sed -n, if you may run any", p.first, shown(name), maxScanBytes>>20, s.size)
	}
	return fmt.Errorf("%s has %d lines: there is no line %d. Choose a smaller offset", shown(name), p.total, p.first)
}

// footer describes what the page omits.
func (p *page) footer(s *source) string {
	note := s.encoding.note()
	last := p.first + p.shown - 1
	switch {
	case p.unread:
		note += fmt.Sprintf("[lines %d-%d; the file has %d bytes, and its lines were not counted; continue with "+
			"offset=%d]\n", p.first, last, s.size, last+1)
	case last < p.total:
		note += fmt.Sprintf("[lines %d-%d of %d; continue with offset=%d]\n", p.first, last, p.total, last+1)
	}
	if p.cut {
		note += fmt.Sprintf("[lines longer than %d bytes are cut]\n", maxLineBytes)
	}
	if p.notText {
		note += "[the file is not UTF-8: invalid bytes are shown as �]\n"
	}
	return note
}

// source is a file that is read as text. At most maxScanBytes are read at once, because a sparse file can
// have any size.
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

// text returns a reader for the text, without its byte order mark.
func (s *source) text() (*bufio.Reader, error) {
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(s.encoding.decode(io.LimitReader(s.f, maxScanBytes)), 64<<10)
	if start, _ := r.Peek(len(bom)); string(start) == bom {
		_, err := r.Discard(len(bom))
		return r, err
	}
	return r, nil
}

// page is the part of a file that is shown.
type page struct {
	first, most int // in lines
	shown       int
	total       int  // lines read
	unread      bool // the file is longer than what was read
	cut         bool
	notText     bool
	text        strings.Builder
}

// page reads the requested lines.
func (s *source) page(a readArgs) (*page, error) {
	p := &page{first: max(a.Offset, 1), most: bound(a.Limit, defaultLines, maxLines), unread: s.size > maxScanBytes}
	r, err := s.text()
	if err != nil {
		return nil, err
	}
	return p, p.read(r)
}

// read reads the lines of the page and counts the others.
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
		fmt.Fprintf(&p.text, "%d→%s\n", p.total, text)
		p.shown++
	}
}

// asText replaces characters that endpoints reject in text.
func asText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
}

// readLine reads a line without its ending. It truncates a line that is too long. It returns io.EOF after the
// last line.
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

// charEncoding is the character encoding of a file.
type charEncoding int

const (
	plain   charEncoding = iota // UTF-8 or a compatible encoding
	withBOM                     // UTF-8 with a byte order mark
	utf16LE
	utf16BE
	binary
)

const bom = "\ufeff"

// encodingOf detects the encoding from the beginning of a file.
func encodingOf(start []byte) charEncoding {
	switch {
	case bytes.HasPrefix(start, []byte(bom)):
		return withBOM
	case bytes.HasPrefix(start, []byte{0xff, 0xfe}) && !bytes.HasPrefix(start, []byte{0xff, 0xfe, 0, 0}):
		return utf16LE
	case bytes.HasPrefix(start, []byte{0xfe, 0xff}):
		return utf16BE
	case isBinary(start):
		return binary
	}
	return plain
}

func (e charEncoding) wide() bool { return e == utf16LE || e == utf16BE }

// decode decodes text to UTF-8, keeping the byte order mark.
func (e charEncoding) decode(r io.Reader) io.Reader {
	switch e {
	case utf16LE:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder().Reader(r)
	case utf16BE:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder().Reader(r)
	}
	return r
}

// note describes what a model cannot see. Edits keep a byte order mark.
func (e charEncoding) note() string {
	switch {
	case e == withBOM:
		return "[the file begins with a byte order mark, which is not shown; write_file and edit_file keep it]\n"
	case e.wide():
		return "[the file is UTF-16; it is shown as text, but edit_file cannot change it]\n"
	}
	return ""
}

// refuse returns an error if a file cannot be read as UTF-8.
func (e charEncoding) refuse(name string, size int64) error {
	switch {
	case e == binary:
		return fmt.Errorf("%s is a binary file of %d bytes: it cannot be read or edited as text. Use a command for it, if you may run any", name, size)
	case e.wide():
		return fmt.Errorf("%s is UTF-16, not UTF-8: it can be read, but not edited. Replace it with write_file (as UTF-8), or convert it with a command, if you may run any", name)
	}
	return nil
}
