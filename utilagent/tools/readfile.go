package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds of one read.
const (
	defaultLines = 2000
	maxLines     = 5000
	maxReadBytes = 28000 // with line numbers below MaxResult, so that nothing is cut twice
	maxLineBytes = 2000
)

// ReadFile is the tool read_file.
func ReadFile(w *Workspace) Tool {
	return New(Spec{
		Name: "read_file",
		Description: "Read a text file of the workspace. Lines are numbered (\"12→text\"); the numbers are not part of the file. " +
			"A long file comes in parts: go on with offset.",
		Parameters: object([]string{"path"}, map[string]any{
			"path":   property("string", "File, relative to the working directory"),
			"offset": property("integer", "First line to read, from 1 (default 1)"),
			"limit":  property("integer", fmt.Sprintf("How many lines to read (default %d, at most %d)", defaultLines, maxLines)),
		}),
		Effect: Reads,
	}, func(_ context.Context, a readArgs) (string, error) { return w.readFile(a) })
}

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (w *Workspace) readFile(a readArgs) (text string, err error) {
	w = w.reading(a.Path)
	f, info, err := w.open(a.Path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() == 0 {
		return "(empty file)", nil
	}
	r := bufio.NewReaderSize(f, 64<<10)
	if start, _ := r.Peek(8000); bytes.IndexByte(start, 0) >= 0 {
		return "", fmt.Errorf("%s is a binary file of %d bytes: it cannot be read as text", a.Path, info.Size())
	}
	p := page{first: max(a.Offset, 1), most: min(a.Limit, maxLines)}
	if a.Limit <= 0 {
		p.most = defaultLines
	}
	if err := p.read(r); err != nil {
		return "", w.explain(a.Path, err)
	}
	if p.shown == 0 {
		return "", fmt.Errorf("%s has %d lines: there is no line %d. Choose a smaller offset", a.Path, p.total, p.first)
	}
	return p.text.String() + p.footer(), nil
}

// page is the part of a file that is shown.
type page struct {
	first, most int // lines
	shown       int
	total       int // lines of the whole file
	cut         bool
	notText     bool
	text        strings.Builder
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
		p.notText = p.notText || !utf8.ValidString(line)
		fmt.Fprintf(&p.text, "%d→%s\n", p.total, strings.ToValidUTF8(line, "�"))
		p.shown++
	}
}

// footer says what the page leaves out.
func (p *page) footer() string {
	var b strings.Builder
	last := p.first + p.shown - 1
	if last < p.total {
		fmt.Fprintf(&b, "[lines %d-%d of %d; go on with offset=%d]\n", p.first, last, p.total, last+1)
	}
	if p.cut {
		fmt.Fprintf(&b, "[lines longer than %d bytes are cut]\n", maxLineBytes)
	}
	if p.notText {
		b.WriteString("[the file is not UTF-8: � stands for what could not be read]\n")
	}
	return b.String()
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
		head, _ := wholeRunes(line[:maxLineBytes], "")
		return head + "…", true, nil
	}
}
