package offlimits

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

// Bounds of what is remembered of all that is watched. What is beyond them is
// watched by its size and time, and cannot be put back.
const (
	maxFileBytes = 1 << 20
	maxBytes     = 8 << 20
	maxNodes     = 20_000
	maxDepth     = 12
)

// node is a file, a directory or a link as it was, also in a baseline. Directories hold their
// children; of a repository only those that git's settings and programs lie in.
type node struct {
	Mode     fs.FileMode
	info     fs.FileInfo
	Content  []byte // of a file, if whole
	Whole    bool
	Link     string
	Children map[string]*node
	Scope    scope
	Partial  bool // a directory of which not everything is remembered
}

// scope says what of a directory is watched.
type scope int

const (
	everything   scope = iota
	repository         // the files that say what git runs
	repositories       // each child is a repository, or a directory of such
	settings           // everything, within a repository
	uwfHome            // what says which programs uwf starts
	plans              // what git does next, in a repository
	agentFiles         // what agent programs obey, beside what they only keep there
	notes              // a file in JSON that a program keeps, and obeys in a few keys
)

// inner is the scope of a child; ok is false for one that is not watched.
func (s scope) inner(name string) (inner scope, ok bool) {
	switch s {
	case everything, settings, notes:
		return s, true
	case agentFiles:
		return everything, name != "worktrees" && name != "node_modules"
	case repositories:
		return repository, true
	case plans:
		return plans, isPlan(name)
	case uwfHome:
		return everything, name == "config.yaml" || name == ".env" || name == "registry.yaml"
	}
	switch strings.ToLower(name) {
	case "config", "config.worktree", "commondir", "gitdir", "hooks", "info", "branches", "remotes":
		return settings, true
	case "modules", worktrees:
		return repositories, true
	case "rebase-merge", "sequencer":
		return plans, true
	}
	return 0, false
}

// memory reads nodes within bounds.
type memory struct {
	root         *os.Root
	nodes, bytes int
	known        map[string]bool // see keeper; may be nil
}

// top is [memory.node], and what is there without its content if there is too much: it is still not new.
func (m *memory) top(name string, s scope) *node {
	n := m.node(name, s, 0)
	if info, err := m.root.Lstat(name); n == nil && err == nil && m.nodes >= maxNodes {
		return &node{Mode: info.Mode(), info: info, Scope: s, Partial: true}
	}
	return n
}

// node reads what is at a name; nil if there is nothing, or it cannot be read.
func (m *memory) node(name string, s scope, depth int) *node {
	info, err := m.root.Lstat(name)
	if err != nil || m.nodes >= maxNodes || depth > maxDepth {
		return nil
	}
	m.nodes++
	n := &node{Mode: info.Mode(), info: info, Scope: s}
	switch {
	case info.Mode().IsRegular():
		if info.Size() <= maxFileBytes && m.bytes+int(info.Size()) <= maxBytes {
			if text, err := careful.ReadFileIn(m.root, name, maxFileBytes); err == nil {
				n.Content, n.Whole = text, true
				m.bytes += len(text)
				if m.known != nil && s == settings {
					m.known[fingerprint(name, text)] = true
				}
			}
		}
	case info.Mode()&fs.ModeSymlink != 0:
		n.Link, _ = m.root.Readlink(name) // "": it has gone
	case info.IsDir():
		n.Children = map[string]*node{}
		if s == repositories && isRepository(m.root, name) { // modules/a, and modules/a/b beside it
			n.Scope, s = repository, repository
		}
		_ = list(m.root, name, func(entry string) error {
			if inner, ok := n.inner(m.root, name, entry); ok {
				if child := m.node(path.Join(name, entry), inner, depth+1); child != nil {
					n.Children[entry] = child
				} else {
					n.Partial = true
				}
			}
			return nil
		})
	}
	return n
}

// inner is the scope of an entry of a directory. A repository of a submodule may
// lie deeper: modules/dir/name.
func (n *node) inner(root *os.Root, name, entry string) (scope, bool) {
	inner, ok := n.Scope.inner(entry)
	// What git keeps of a work tree is never deeper; others make some while a command runs, and
	// git writes their HEAD last.
	if ok && n.Scope == repositories && path.Base(name) != worktrees && !isRepository(root, path.Join(name, entry)) {
		inner = repositories
	}
	return inner, ok
}

// worktrees is the directory in which git keeps what it knows of linked work trees.
const worktrees = "worktrees"

func isRepository(root *os.Root, name string) bool {
	_, err := root.Lstat(path.Join(name, "HEAD"))
	return err == nil
}

// list calls each with the entries of a directory, few at a time: somebody may
// have made very many.
func list(root *os.Root, name string, each func(entry string) error) (err error) {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		names, err := f.Readdirnames(256)
		for _, entry := range names {
			if err := each(entry); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
