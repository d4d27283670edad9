package bundle

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Bounds of the files in a bundle. A few objects can say a great deal: a directory
// that holds itself ten times over, ten levels deep, is ten thousand million files.
const (
	MaxObject  = 256 << 20 // bytes of one file
	MaxObjects = 1 << 22
	MaxLevels  = 1000      // of directories
	maxFiles   = 2_000_000 // in one tree
	maxTree    = 64 << 30  // bytes in one tree
	maxTarget  = 4096      // bytes of a link's target
)

// out is how far up a link leads of which nothing better is known.
const out = 1 << 20

// source has the objects of git trees: the content of one, or, for a file that nobody
// needs to look into, only its size.
type source interface {
	object(id protocol.Tree, kind byte, whole bool) (content []byte, size int64, err error)
}

// treeWalk visits all that git trees lead to, each object once, after what it needs.
type treeWalk struct {
	from  source
	visit func(kind byte, id protocol.Tree, content []byte) error
	seen  map[protocol.Tree]extent
}

// Verifier proves that states of files are whole.
type Verifier struct{ walk treeWalk }

// NewVerifier reads objects, each once, and holds them against their hashes.
func NewVerifier(ctx context.Context, from Objects) *Verifier {
	return &Verifier{treeWalk{
		from: reading{ctx, from}, seen: map[protocol.Tree]extent{},
		visit: func(byte, protocol.Tree, []byte) error { return ctx.Err() },
	}}
}

// Tree checks one.
func (v *Verifier) Tree(id protocol.Tree) error {
	_, err := v.walk.dir(id, 0)
	return err
}

// extent is what a tree, or a file of one, amounts to.
type extent struct {
	kind         byte
	files, bytes int64
	up           int    // how many directories above it a link of it leads
	link         string // the path of that link
}

func (w *treeWalk) walk(roots []protocol.Tree) (links []string, err error) {
	w.seen = map[protocol.Tree]extent{}
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

func (w *treeWalk) dir(id protocol.Tree, level int) (extent, error) {
	if all, ok := w.seen[id]; ok {
		return all, all.is(kindDir, id)
	}
	if level == MaxLevels {
		return extent{}, fmt.Errorf("more than %d directories are inside one another", MaxLevels)
	}
	content, _, err := w.from.object(id, kindDir, true)
	if err != nil {
		return extent{}, err
	}
	entries, err := parseTree(id, content)
	if err != nil {
		return extent{}, fmt.Errorf("directory %s: %w", id, err)
	}
	all := extent{kind: kindDir}
	for _, e := range entries {
		part, err := w.entry(e, level)
		if err != nil {
			return all, err
		}
		all.files, all.bytes = all.files+part.files, all.bytes+part.bytes
		if e.mode == modeDir {
			part.up, part.link = part.up-1, e.name+"/"+part.link
		}
		if part.up > all.up {
			all.up, all.link = part.up, part.link
		}
	}
	if all.files > maxFiles || all.bytes > maxTree {
		return all, fmt.Errorf("directory %s: %d files with %d bytes are too many: at most %d with %d", id, all.files, all.bytes, maxFiles, int64(maxTree))
	}
	w.seen[id] = all
	return all, w.visit(kindDir, id, content)
}

func (w *treeWalk) entry(e treeEntry, level int) (extent, error) {
	switch e.mode {
	case modeDir:
		return w.dir(e.id, level+1)
	case modeRepository:
		return extent{}, nil // a submodule is only named
	}
	part, known := w.seen[e.id]
	link := e.mode == modeLink
	if known {
		if err := part.is(kindFile, e.id); err != nil {
			return part, err
		}
	}
	if !known || link {
		content, size, err := w.from.object(e.id, kindFile, link)
		if err != nil {
			return extent{}, err
		}
		part = extent{kind: kindFile, files: 1, bytes: size}
		if !known {
			w.seen[e.id] = part
			if err := w.visit(kindFile, e.id, content); err != nil {
				return part, err
			}
		}
		if link {
			if part.up, err = leads(content); err != nil {
				return part, fmt.Errorf("link %q: %w", e.name, err)
			}
			part.link = e.name
		}
	}
	return part, nil
}

// is refuses an object that is one kind here and another there.
func (e extent) is(kind byte, id protocol.Tree) error {
	if e.kind != kind {
		return fmt.Errorf("object %s is both a file and a directory", id)
	}
	return nil
}

// leads is how many directories above its own a link leads. One that goes up after it
// went down may do so through another link: nobody knows how far.
func leads(target []byte) (up int, err error) {
	if len(target) == 0 || len(target) > maxTarget || bytes.IndexByte(target, 0) >= 0 {
		return 0, errors.New("its target is not a path")
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

// Modes of what is in a git tree, as our git writes them.
const (
	modeDir        = "40000"
	modeFile       = "100644"
	modeProgram    = "100755"
	modeLink       = "120000"
	modeRepository = "160000"
)

// treeEntry is one name in a git tree.
type treeEntry struct {
	mode, name string
	id         protocol.Tree
}

// parseTree reads a git tree, and refuses what git would not have written, and a name
// that leads elsewhere.
func parseTree(id protocol.Tree, content []byte) ([]treeEntry, error) {
	function, size := functionOf(id)
	var entries []treeEntry
	names := map[string]bool{}
	last := ""
	for len(content) > 0 {
		mode, rest, ok := bytes.Cut(content, []byte{' '})
		name, rest, named := bytes.Cut(rest, []byte{0})
		if !ok || !named || len(rest) < size {
			return nil, errors.New("is damaged")
		}
		e := treeEntry{mode: string(mode), name: string(name), id: protocol.Tree(function + ":" + hex.EncodeToString(rest[:size]))}
		content = rest[size:]
		switch e.mode {
		case modeDir, modeFile, modeProgram, modeLink, modeRepository:
		default:
			return nil, fmt.Errorf("%q has the mode %q", e.name, e.mode)
		}
		if problem := nameProblem(e); problem != "" {
			return nil, fmt.Errorf("the name %q %s", e.name, problem)
		}
		order := e.name
		if e.mode == modeDir {
			order += "/"
		}
		if order <= last || names[e.name] {
			return nil, fmt.Errorf("%q is there twice, or not in its place", e.name)
		}
		last, names[e.name] = order, true
		entries = append(entries, e)
	}
	return entries, nil
}

// Entry is what a git tree holds under one name.
type Entry struct {
	Name string
	ID   protocol.Tree
	Dir  bool
}

// Entries reads a git tree as a bundle's are read. Submodules are left out: they are only
// named.
func Entries(id protocol.Tree, content []byte) ([]Entry, error) {
	entries, err := parseTree(id, content)
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", id, err)
	}
	list := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if e.mode != modeRepository {
			list = append(list, Entry{Name: e.name, ID: e.id, Dir: e.mode == modeDir})
		}
	}
	return list, nil
}

// nameProblem says why a name cannot be that of a file in a work tree, also on systems
// that take some names for others.
func nameProblem(e treeEntry) string {
	folded := folded(e.name)
	switch {
	case e.name == "", e.name == ".", e.name == "..", strings.ContainsAny(e.name, "/"):
		return "is not a file name"
	case folded == ".git", folded == "git~1":
		return "is that of a git directory"
	case folded == ".gitmodules" && e.mode == modeLink:
		return "is that of a link"
	}
	return ""
}

// folded is a name as the file systems of Windows and macOS may take it.
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

// functionOf is the hash function of an object, and how many bytes its hashes have.
func functionOf(id protocol.Tree) (name string, size int) {
	name = id.Function()
	if name == "sha1" {
		return name, sha1.Size
	}
	return name, sha256.Size
}

// objectID is the name that git gives to an object; size is of the hash.
func objectID(kind byte, content []byte, size int) protocol.Tree {
	word := "blob"
	if kind == kindDir {
		word = "tree"
	}
	head := fmt.Appendf(nil, "%s %d\x00", word, len(content))
	if size == sha1.Size {
		h := sha1.New()
		_, _ = h.Write(head)
		_, _ = h.Write(content)
		return protocol.Tree("sha1:" + hex.EncodeToString(h.Sum(nil)))
	}
	h := sha256.New()
	_, _ = h.Write(head)
	_, _ = h.Write(content)
	return protocol.Tree("sha256:" + hex.EncodeToString(h.Sum(nil)))
}
