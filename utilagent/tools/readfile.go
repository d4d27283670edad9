package tools

import (
	"context"
	"errors"
	"fmt"
)

// Bounds of one read.
const (
	defaultLines = 2000
	maxLines     = 5000
	maxReadBytes = 28000 // with line numbers below MaxResult, so that nothing is cut twice
	maxLineBytes = 2000
	maxScanBytes = 64 << 20 // how much of a file is gone through for one page
	maxTailBytes = 1 << 20  // of a file that is larger than that, if its end is wanted
)

// ReadFile is the tool read_file.
func ReadFile(w *Workspace) Tool {
	return New(Spec{
		Name: "read_file",
		Description: "Read a text file of the workspace. Lines are numbered (\"12→text\"); the numbers are not part of the file. " +
			fmt.Sprintf("A page has at most %d bytes; go on with offset. Lines are cut after %d bytes. A directory is listed.", maxReadBytes, maxLineBytes),
		Parameters: object([]string{"path"}, map[string]any{
			"path":   property("string", "File, relative to the working directory"),
			"offset": property("integer", "First line to read, from 1 (default 1); -20 reads the last 20 lines"),
			"limit":  property("integer", fmt.Sprintf("How many lines to read (default %d, at most %d)", defaultLines, maxLines)),
		}),
		Effect: Reads, SideBySide: true,
	}, func(ctx context.Context, a readArgs) (string, error) { return w.readFile(ctx, a) })
}

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (w *Workspace) readFile(ctx context.Context, a readArgs) (text string, err error) {
	w = w.reading(a.Path)
	if w.isDir(a.Path) {
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

// nothing says why a page is empty.
func (p *page) nothing(name string, s *source) error {
	if p.unread {
		return fmt.Errorf("line %d of %s is not within its first %d MB, and no more is read (it has %d bytes). "+
			"Use a negative offset for its end, or a command such as sed -n, if you may run any", p.first, shown(name), maxScanBytes>>20, s.size)
	}
	return fmt.Errorf("%s has %d lines: there is no line %d. Choose a smaller offset", shown(name), p.total, p.first)
}

// footer says what the page leaves out.
func (p *page) footer(s *source) string {
	note := s.encoding.note()
	last := p.first + p.shown - 1
	switch {
	case p.end > 0:
		note += fmt.Sprintf("[the file has %d bytes, so lines are counted from its end: -1 is the last]\n", s.size)
		if last < p.total {
			note += fmt.Sprintf("[go on with offset=%d]\n", last+1-p.end)
		}
	case p.unread:
		note += fmt.Sprintf("[lines %d-%d; the file has %d bytes, too many to count its lines; go on with offset=%d, or a negative offset for its end]\n",
			p.first, last, s.size, last+1)
	case last < p.total:
		note += fmt.Sprintf("[lines %d-%d of %d; go on with offset=%d]\n", p.first, last, p.total, last+1)
	}
	if p.cut {
		note += fmt.Sprintf("[lines longer than %d bytes are cut]\n", maxLineBytes)
	}
	if p.notText {
		note += "[the file is not UTF-8: � stands for what could not be read]\n"
	}
	return note
}
