package tools

import (
	"bytes"
	"io"
	"io/fs"
	"strings"
)

// form is what the text of a file does not show to a model. Whoever replaces the
// text keeps it.
type form struct {
	encoding charEncoding
	crlf     bool // every line ends in CR LF
}

// formOf looks at the beginning of a file that is about to be replaced. One that
// cannot be read has no form to keep.
func (w *Workspace) formOf(name string, info fs.FileInfo) form {
	if info == nil || info.Size() == 0 {
		return form{}
	}
	f, _, err := w.open(name)
	if err != nil {
		return form{}
	}
	defer f.Close() // it is only read from
	start, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return form{}
	}
	start = bytes.TrimSuffix(start, []byte("\r")) // its LF may be behind the limit
	return form{encodingOf(start[:min(len(start), 8000)]), allCRLF(string(start))}
}

// apply gives a text the form of the file before it, and says so.
func (f form) apply(text string) (formed, note string) {
	if f.crlf && !strings.Contains(text, "\r\n") && strings.Contains(text, "\n") {
		text, note = toCRLF(text), " Its lines end in CR LF, as before."
	}
	switch {
	case f.encoding == withBOM && !strings.HasPrefix(text, bom):
		text, note = bom+text, note+" It begins with a byte order mark, as before."
	case f.encoding.wide():
		note += " It was UTF-16, and is UTF-8 now."
	}
	return text, note
}

// allCRLF tells whether every line of a text ends in CR LF.
func allCRLF(s string) bool {
	n := strings.Count(s, "\r\n")
	return n > 0 && n == strings.Count(s, "\n")
}

func toCRLF(s string) string { return strings.ReplaceAll(toLF(s), "\n", "\r\n") }

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
