package offlimits

import (
	"bytes"
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
	maxNodes     = 4000
	maxDepth     = 12
)

// node is a file, a directory or a link as it was. Directories hold their
// children; of a repository only those that git's settings and programs lie in.
type node struct {
	mode     fs.FileMode
	info     fs.FileInfo
	content  []byte // of a file, if whole
	whole    bool
	link     string
	children map[string]*node
	scope    scope
}

// scope says what of a directory is watched.
type scope int

const (
	everything   scope = iota
	repository         // the files that say what git runs
	repositories       // each child is a repository, or a directory of such
	settings           // everything, within a repository
	uwfHome            // what says which programs uwf starts
)

// inner is the scope of a child; ok is false for one that is not watched.
func (s scope) inner(name string) (inner scope, ok bool) {
	switch s {
	case everything, settings:
		return s, true
	case repositories:
		return repository, true
	case uwfHome:
		return everything, name == "config.yaml" || name == ".env" || name == "registry.yaml"
	}
	switch strings.ToLower(name) {
	case "config", "config.worktree", "commondir", "gitdir", "hooks", "info", "branches", "remotes":
		return settings, true
	case "modules", "worktrees":
		return repositories, true
	}
	return 0, false
}

// memory reads nodes within bounds.
type memory struct {
	root         *os.Root
	nodes, bytes int
}

// node reads what is at a name; nil if there is nothing, or it cannot be read.
func (m *memory) node(name string, s scope, depth int) *node {
	info, err := m.root.Lstat(name)
	if err != nil || m.nodes >= maxNodes || depth > maxDepth {
		return nil
	}
	m.nodes++
	n := &node{mode: info.Mode(), info: info, scope: s}
	switch {
	case info.Mode().IsRegular():
		if info.Size() <= maxFileBytes && m.bytes+int(info.Size()) <= maxBytes {
			if text, err := careful.ReadFileIn(m.root, name, maxFileBytes); err == nil {
				n.content, n.whole = text, true
				m.bytes += len(text)
			}
		}
	case info.Mode()&fs.ModeSymlink != 0:
		n.link, _ = m.root.Readlink(name) // "": it has gone
	case info.IsDir():
		n.children = map[string]*node{}
		if s == repositories && isRepository(m.root, name) { // modules/a, and modules/a/b beside it
			n.scope, s = repository, repository
		}
		_ = list(m.root, name, func(entry string) error {
			if inner, ok := n.inner(m.root, name, entry); ok {
				if child := m.node(path.Join(name, entry), inner, depth+1); child != nil {
					n.children[entry] = child
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
	inner, ok := n.scope.inner(entry)
	if ok && n.scope == repositories && !isRepository(root, path.Join(name, entry)) {
		inner = repositories
	}
	return inner, ok
}

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

// keeper compares what is there with what was, and puts it back.
type keeper struct {
	root    *os.Root
	changed []string // what was put back, or could not be
	allowed func(name string) bool
}

// fix makes what is at a name as it was.
func (k *keeper) fix(name string, was *node) error {
	if k.allowed(name) {
		return nil
	}
	info, err := k.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return k.make(name, was)
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != was.mode.Type() {
		if err := k.remove(name); err != nil {
			return err
		}
		return k.make(name, was)
	}
	if info.Mode().Perm() != was.mode.Perm() && was.link == "" && !isRepositoryItself(was) {
		k.say(name)
		if err := k.root.Chmod(name, was.mode.Perm()); err != nil {
			return err
		}
	}
	switch {
	case was.mode.IsDir():
		return k.fixDir(name, was)
	case was.link != "":
		if link, err := k.root.Readlink(name); err == nil && link == was.link {
			return nil
		}
		return errors.Join(k.remove(name), k.make(name, was))
	case was.mode.IsRegular():
		return k.fixFile(name, info, was)
	}
	return nil
}

func isRepositoryItself(n *node) bool { return n.scope == repository }

// fixFile compares a file. A config of git may have changed harmlessly.
func (k *keeper) fixFile(name string, info fs.FileInfo, was *node) error {
	if !was.whole {
		if info.Size() != was.info.Size() || !info.ModTime().Equal(was.info.ModTime()) || !os.SameFile(info, was.info) {
			k.changed = append(k.changed, name+" (too large to be put back)")
		}
		return nil
	}
	text, err := careful.ReadFileIn(k.root, name, maxFileBytes)
	if err == nil && bytes.Equal(text, was.content) {
		return nil
	}
	if err == nil && isConfig(name) && harmless(was.content, text) {
		return nil
	}
	return errors.Join(k.remove(name), k.make(name, was))
}

func isConfig(name string) bool {
	base := path.Base(name)
	return base == "config" || base == "config.worktree"
}

// fixDir removes what is new in a directory and fixes what was there.
func (k *keeper) fixDir(name string, was *node) error {
	var errs []error
	err := list(k.root, name, func(entry string) error {
		inner, ok := was.inner(k.root, name, entry)
		if full := path.Join(name, entry); ok && was.children[entry] == nil && !k.allowed(full) {
			errs = append(errs, k.fresh(full, inner))
		}
		return nil
	})
	for entry, child := range was.children {
		errs = append(errs, k.fix(path.Join(name, entry), child))
	}
	return errors.Join(append(errs, err)...)
}

// fresh judges what was not there before. A repository that a command has made
// may stay, as far as nothing in it starts a program.
func (k *keeper) fresh(name string, s scope) error {
	info, err := k.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	switch base := strings.ToLower(path.Base(name)); {
	case info.IsDir() && (s == repository || s == repositories || s == uwfHome || s == settings && (base == "hooks" || base == "info" || base == "branches")):
		return k.freshDir(name, &node{scope: s})
	case info.Mode().IsRegular() && s == settings && k.startsNothing(name, base):
		return nil
	}
	return k.remove(name)
}

// startsNothing judges a new file of a repository.
func (k *keeper) startsNothing(name, base string) bool {
	dir := path.Base(path.Dir(name))
	switch {
	case strings.HasSuffix(base, ".sample"):
		return true
	case dir == "info":
		return base != "attributes" && base != "grafts"
	case isConfig(name), base == "commondir":
		text, err := careful.ReadFileIn(k.root, name, maxFileBytes)
		return err == nil && (isConfig(name) && harmless(nil, text) || strings.TrimSpace(string(text)) == "../..")
	}
	return base == "gitdir" && path.Base(path.Dir(path.Dir(name))) == "worktrees"
}

func (k *keeper) freshDir(name string, n *node) error {
	var errs []error
	err := list(k.root, name, func(entry string) error {
		if inner, ok := n.inner(k.root, name, entry); ok {
			errs = append(errs, k.fresh(path.Join(name, entry), inner))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// make makes what was.
func (k *keeper) make(name string, was *node) error {
	k.say(name)
	switch {
	case was.mode.IsDir():
		if was.scope == repository && path.Base(name) == ".git" {
			return nil // without its objects it would be none
		}
		if err := k.root.Mkdir(name, 0o700); err != nil {
			return err
		}
		var errs []error
		for entry, child := range was.children {
			errs = append(errs, k.make(path.Join(name, entry), child))
		}
		return errors.Join(append(errs, k.root.Chmod(name, was.mode.Perm()))...)
	case was.link != "":
		return k.root.Symlink(was.link, name)
	case was.whole:
		return k.write(name, was)
	}
	return nil
}

// write makes a file that is not there.
func (k *keeper) write(name string, was *node) error {
	f, err := k.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(was.content)
	return errors.Join(err, f.Chmod(was.mode.Perm()), f.Close())
}

func (k *keeper) remove(name string) error {
	k.say(name)
	return k.root.RemoveAll(name)
}

// maxSaid bounds how many names are told.
const maxSaid = 20

func (k *keeper) say(name string) {
	if n := len(k.changed); n < maxSaid && (n == 0 || k.changed[n-1] != name) {
		k.changed = append(k.changed, name)
	}
}
