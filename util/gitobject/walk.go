package gitobject

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Bounds of a tree. A few objects can describe a lot: ten levels of a directory that contains itself ten times are
// ten billion files.
const (
	MaxLevels = 1000      // of directories
	maxFiles  = 2_000_000 // in one tree
	maxTree   = 64 << 30  // bytes in one tree
	maxTarget = 4096      // bytes of a link's target
)

// out is the number of levels assumed for a link whose target is unknown.
const out = 1 << 20

// Source has the objects of trees.
type Source interface {
	// Object returns the content of an object or, for a file whose content isn't needed, only its size.
	Object(id protocol.Tree, kind byte, whole bool) (content []byte, size int64, err error)
}

// Walk visits all objects of trees once, each after what it needs. It verifies that they are complete and within
// bounds, but not their hashes.
type Walk struct {
	From  Source
	Visit func(kind byte, id protocol.Tree, content []byte) error

	seen map[protocol.Tree]extent
}

// extent is the size of a tree or file.
type extent struct {
	kind         byte
	files, bytes int64
	up           int    // number of directories above it that one of its links reaches
	link         string // path of that link
}

// Trees visits some trees. links are paths of some links that lead out of a tree.
func (w *Walk) Trees(roots ...protocol.Tree) (links []string, err error) {
	if w.seen == nil {
		w.seen = map[protocol.Tree]extent{}
	}
	for _, root := range roots {
		all, err := w.dir(root, 0)
		if err != nil {
			return nil, fmt.Errorf("files %s: %w", root, err)
		}
		if all.up > 0 {
			links = append(links, all.link)
		}
	}
	return links, nil
}

func (w *Walk) dir(id protocol.Tree, level int) (extent, error) {
	if all, ok := w.seen[id]; ok {
		return all, all.is(Directory, id)
	}
	if level == MaxLevels {
		return extent{}, fmt.Errorf("directories are nested more than %d levels deep", MaxLevels)
	}
	content, _, err := w.From.Object(id, Directory, true)
	if err != nil {
		return extent{}, err
	}
	entries, err := Parse(id, content)
	if err != nil {
		return extent{}, fmt.Errorf("directory %s: %w", id, err)
	}
	all := extent{kind: Directory}
	for _, e := range entries {
		part, err := w.entry(e, level)
		if err != nil {
			return all, err
		}
		all.files, all.bytes = all.files+part.files, all.bytes+part.bytes
		if e.Mode == ModeDir {
			part.up, part.link = part.up-1, e.Name+"/"+part.link
		}
		if part.up > all.up {
			all.up, all.link = part.up, part.link
		}
	}
	if all.files > maxFiles || all.bytes > maxTree {
		return all, fmt.Errorf("directory %s: %d files with %d bytes exceed the limit of %d with %d", id, all.files,
			all.bytes, maxFiles, int64(maxTree))
	}
	w.seen[id] = all
	return all, w.Visit(Directory, id, content)
}

func (w *Walk) entry(e Entry, level int) (extent, error) {
	switch e.Mode {
	case ModeDir:
		return w.dir(e.ID, level+1)
	case modeRepository:
		return extent{}, nil // a submodule has only a name
	}
	part, known := w.seen[e.ID]
	link := e.Mode == modeLink
	if known {
		if err := part.is(File, e.ID); err != nil {
			return part, err
		}
	}
	if !known || link {
		content, size, err := w.From.Object(e.ID, File, link)
		if err != nil {
			return extent{}, err
		}
		part = extent{kind: File, files: 1, bytes: size}
		if !known {
			w.seen[e.ID] = part
			if err := w.Visit(File, e.ID, content); err != nil {
				return part, err
			}
		}
		if link {
			if part.up, err = leads(content); err != nil {
				return part, fmt.Errorf("link %q: %w", e.Name, err)
			}
			part.link = e.Name
		}
	}
	return part, nil
}

// is returns an error for an object that is used both as a file and as a directory.
func (e extent) is(kind byte, id protocol.Tree) error {
	if e.kind != kind {
		return fmt.Errorf("object %s is both a file and a directory", id)
	}
	return nil
}

// leads returns the number of directories above its own that a link leads to. A link that goes up after going
// down can pass through another link, so its target is unknown.
func leads(target []byte) (up int, err error) {
	if len(target) == 0 || len(target) > maxTarget || bytes.IndexByte(target, 0) >= 0 {
		return 0, errors.New("target is not a path")
	}
	path := strings.ReplaceAll(string(target), `\`, "/")
	if path[0] == '/' || len(path) > 1 && path[1] == ':' {
		return out, nil
	}
	down := false
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			down = true
		case down:
			return out, nil
		default:
			up++
		}
	}
	return up, nil
}
