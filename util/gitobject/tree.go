package gitobject

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Modes of entries, as written by our git.
const (
	ModeDir        = "40000"
	modeFile       = "100644"
	modeProgram    = "100755"
	modeLink       = "120000"
	modeRepository = "160000"
)

// Entry is an entry of a tree.
type Entry struct {
	Mode, Name string
	ID         protocol.Tree
}

// IsDir reports whether it is a directory.
func (e Entry) IsDir() bool { return e.Mode == ModeDir }

// IsRepository reports whether it is a submodule, which has only a name.
func (e Entry) IsRepository() bool { return e.Mode == modeRepository }

// Parse parses a tree. It rejects trees that git would not have written, and names that lead elsewhere.
func Parse(id protocol.Tree, content []byte) ([]Entry, error) {
	function, size := id.Function(), len(Name(id))/2
	var entries []Entry
	names := map[string]bool{}
	last := ""
	for len(content) > 0 {
		mode, rest, ok := bytes.Cut(content, []byte{' '})
		name, rest, named := bytes.Cut(rest, []byte{0})
		if !ok || !named || len(rest) < size {
			return nil, errors.New("is damaged")
		}
		e := Entry{Mode: string(mode), Name: string(name),
			ID: protocol.Tree(function + ":" + hex.EncodeToString(rest[:size]))}
		content = rest[size:]
		switch e.Mode {
		case ModeDir, modeFile, modeProgram, modeLink, modeRepository:
		default:
			return nil, fmt.Errorf("%q has the mode %q", e.Name, e.Mode)
		}
		if problem := nameProblem(e); problem != "" {
			return nil, fmt.Errorf("the name %q %s", e.Name, problem)
		}
		order := e.Name
		if e.Mode == ModeDir {
			order += "/"
		}
		if order <= last || names[e.Name] {
			return nil, fmt.Errorf("%q is a duplicate or out of order", e.Name)
		}
		last, names[e.Name] = order, true
		entries = append(entries, e)
	}
	return entries, nil
}

// Entries is Parse without submodules.
func Entries(id protocol.Tree, content []byte) ([]Entry, error) {
	entries, err := Parse(id, content)
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", id, err)
	}
	return slices.DeleteFunc(entries, Entry.IsRepository), nil
}

// nameProblem explains why a name isn't allowed for a file in a work tree, including on systems that treat
// some names as others.
func nameProblem(e Entry) string {
	folded := folded(e.Name)
	switch {
	case e.Name == "", e.Name == ".", e.Name == "..", strings.ContainsAny(e.Name, "/"):
		return "is not a file name"
	case folded == ".git", folded == "git~1":
		return "is the name of a git directory"
	case folded == ".gitmodules" && e.Mode == modeLink:
		return "is the name of a link"
	}
	return ""
}

// folded normalizes a name as the file systems of Windows and macOS do.
func folded(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimRight(name, " .")
}
