package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// maxEditBytes bounds the files that can be edited: they are held in memory.
const maxEditBytes = 16 << 20

// EditFile is the tool edit_file.
func EditFile(w *Workspace) Tool {
	return New(Spec{
		Name:    "edit_file",
		Aliases: []string{"patch_file"},
		Description: "Replace one place in a text file of the workspace. old_string must be the exact text, with its indentation and without line numbers, " +
			"and must occur exactly once: add lines around it until it does.",
		Parameters: object([]string{"path", "old_string", "new_string"}, map[string]any{
			"path":       property("string", "File, relative to the working directory"),
			"old_string": property("string", "The text to replace, exactly as it is in the file"),
			"new_string": property("string", "The text to put there; empty to delete"),
		}),
		Effect: Writes,
	}, func(_ context.Context, a editArgs) (string, error) { return w.editFile(a) })
}

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"old_string"`
	New  string `json:"new_string"`
}

func (w *Workspace) editFile(a editArgs) (string, error) {
	if a.Old == a.New {
		return "", errors.New("old_string and new_string are the same: there is nothing to change")
	}
	if a.Old == "" {
		return "", errors.New("old_string is empty. Give the text to replace, or use write_file for a new file")
	}
	local, err := w.resolve(a.Path)
	if err != nil {
		return "", err
	}
	text, info, err := w.readText(a.Path)
	if err != nil {
		return "", err
	}
	if err := writable(a.Path, info); err != nil {
		return "", err
	}
	old, replacement := a.Old, a.New
	if strings.Contains(text, "\r\n") && !strings.Contains(old, "\r") && !strings.Contains(text, old) {
		// A model never sees the CR of a line end, so it cannot write it.
		old, replacement = toCRLF(old), toCRLF(replacement)
	}
	switch strings.Count(text, old) {
	case 0:
		return "", notFound(a.Path, text, a.Old, a.New)
	case 1:
	default:
		return "", notUnique(a.Path, text, old)
	}
	at := strings.Index(text, old)
	edited := text[:at] + replacement + text[at+len(old):]
	if err := w.replace(local, []byte(edited), info); err != nil {
		return "", w.explain(a.Path, err)
	}
	first := strings.Count(text[:at], "\n") + 1
	last := first + strings.Count(strings.TrimSuffix(replacement, "\n"), "\n")
	return fmt.Sprintf("Edited %s. It now reads:\n%s", a.Path, excerpt(edited, first-3, last+3)), nil
}

// readText reads a whole file that can be edited.
func (w *Workspace) readText(name string) (text string, info fs.FileInfo, err error) {
	f, info, err := w.open(name)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() > maxEditBytes {
		return "", nil, fmt.Errorf("%s has %d bytes: too large to edit. Use a command instead, if you may run any", name, info.Size())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxEditBytes+1))
	if err != nil {
		return "", nil, w.explain(name, err)
	}
	if !utf8.Valid(b) || strings.ContainsRune(string(b), 0) {
		return "", nil, fmt.Errorf("%s is not UTF-8 text: it cannot be edited. Use a command instead, if you may run any", name)
	}
	return string(b), info, nil
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// notUnique says where the text occurs.
func notUnique(name, text, old string) error {
	var lines []string
	line, from := 1, 0
	for len(lines) < 10 {
		i := strings.Index(text[from:], old)
		if i < 0 {
			break
		}
		line += strings.Count(text[from:from+i], "\n")
		lines = append(lines, fmt.Sprint(line))
		line += strings.Count(text[from+i:from+i+len(old)], "\n")
		from += i + len(old)
	}
	return fmt.Errorf("old_string occurs %d times in %s, at lines %s. Add lines around it so that it occurs once",
		strings.Count(text, old), name, strings.Join(lines, ", "))
}

// excerpt shows the lines from first to last, numbered, at most 60 of them.
func excerpt(text string, first, last int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first, last = max(first, 1), min(last, len(lines))
	var b strings.Builder
	const half = 30
	for n := first; n <= last; n++ {
		if n == first+half && last-n > half {
			fmt.Fprintf(&b, "[… %d lines left out …]\n", last-n-half+1)
			n = last - half + 1
		}
		line := strings.TrimSuffix(lines[n-1], "\r")
		if len(line) > 300 {
			line, _ = wholeRunes(line[:300], "")
			line += "…"
		}
		fmt.Fprintf(&b, "%d→%s\n", n, line)
	}
	return b.String()
}
