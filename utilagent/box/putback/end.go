package putback

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/box/endcheck"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

type end struct {
	ctx     context.Context
	before  *Before
	allowed func(path string) bool
	merge   Merge

	root               *os.Root
	space              string
	undone, lost, told []string
	errs               []error
}

const maxTold = 20

func (e *end) said() ([]string, error) {
	for _, s := range []struct {
		names []string
		what  string
	}{
		{e.undone, "changed what git or agents obey, which was put back: "},
		{e.lost, "removed, moved or changed what cannot be put back: "},
	} {
		if slices.Sort(s.names); len(s.names) > 0 {
			e.told = append(e.told, s.what+plaintext.Names(slices.Compact(s.names), maxTold))
		}
	}
	return e.told, errors.Join(e.errs...)
}

// shown is a name for a person: from the workspace if it lies there.
func (e *end) shown(name string) string {
	full := filepath.Join(e.space, filepath.FromSlash(name))
	if rel, err := filepath.Rel(e.before.Spaces[0], full); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return full
}

func (e *end) unit(at string, u *Unit) {
	if info, err := os.Lstat(u.Space); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 {
		_ = os.Chmod(u.Space, info.Mode().Perm()|0o700) // a command has closed it
	}
	root, err := os.OpenRoot(u.Space)
	if errors.Is(err, fs.ErrNotExist) {
		return // all of it is gone, which everybody sees
	}
	if err != nil {
		e.errs = append(e.errs, err)
		return
	}
	defer func() { e.errs = append(e.errs, root.Close()) }()
	e.root, e.space = root, u.Space
	name, _ := filepath.Rel(u.Space, at) // it lies in it
	name = filepath.ToSlash(name)
	if u.Git && !e.isDir(name) {
		if slices.Contains(e.before.Spaces, at) {
			return // the end check says so
		}
		e.lost = append(e.lost, e.shown(name))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(u.Entries)) { // directories before what is in them
		switch was := u.Entries[name]; {
		case e.allowed(filepath.Join(u.Space, filepath.FromSlash(name))):
		case !e.isDir(path.Dir(name)):
			if was != nil {
				e.lost = append(e.lost, e.shown(name))
			}
		case u.Git && path.Base(name) == "config" && was != nil && was.Text != nil:
			e.config(name, was)
		default:
			e.entry(u, name, was)
		}
	}
}

// isDir reports whether each part of a path is a directory, and opens those that a command has closed.
func (e *end) isDir(name string) bool {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		info, err := e.root.Lstat(name[:i])
		if err != nil || !info.IsDir() {
			return false
		}
		if info.Mode()&0o700 != 0o700 {
			_ = e.root.Chmod(name[:i], info.Mode().Perm()|0o700) // else the next step says why
		}
	}
	return true
}

// config puts a config of git back, and takes over what a command may change.
func (e *end) config(name string, was *Entry) {
	left, err := careful.ReadFileIn(e.root, name, maxConfig)
	info, gone := e.root.Lstat(name)
	if err == nil && gone == nil && info.Mode() == was.Mode && bytes.Equal(left, was.Text) && links(info) == 1 {
		return
	}
	if err := e.make(name, was); err != nil {
		e.errs = append(e.errs, err)
		return
	}
	if err != nil {
		e.undone = append(e.undone, e.shown(name))
		return
	}
	told, err := e.merge(e.ctx, filepath.Join(e.space, filepath.FromSlash(name)), was.Text, left)
	e.told, e.errs = append(e.told, told...), append(e.errs, err)
}

// entry makes what is at a path as it was.
func (e *end) entry(u *Unit, name string, was *Entry) {
	info, err := e.root.Lstat(name)
	if err != nil && was == nil {
		return
	}
	same := err == nil && was != nil && info.Mode() == was.Mode
	switch {
	case was == nil:
		if text, failed := careful.ReadFileIn(e.root, name, maxFile); !u.Git && failed == nil && sameSettings(nil, text) {
			return // they say nothing
		}
		err = e.remove(name)
	case was.Text == nil && was.Mode.IsRegular():
		if !same || info.Size() != was.Size {
			e.lost = append(e.lost, e.shown(name))
		}
		return
	case was.Mode.IsDir():
		if err = nil; !same {
			err = e.make(name, was)
		}
		e.names(u, name)
	case was.Link != "" && same:
		link, _ := e.root.Readlink(name)
		if same, err = link == was.Link, nil; !same {
			err = e.make(name, was)
		}
	case was.Mode.IsRegular() && same:
		same, err = e.file(u, name, info, was)
	case !same:
		err = e.make(name, was)
	}
	if e.errs = append(e.errs, err); !same && err == nil {
		e.undone = append(e.undone, e.shown(name))
	}
}

// file puts a file back. What programs themselves note in their settings may stay.
func (e *end) file(u *Unit, name string, info fs.FileInfo, was *Entry) (same bool, err error) {
	text, err := careful.ReadFileIn(e.root, name, maxFile)
	if err == nil && (bytes.Equal(text, was.Text) && links(info) == 1 || !u.Git && sameSettings(was.Text, text)) {
		return true, nil
	}
	restored := *was
	if err == nil && path.Base(name) == ".claude.json" {
		if kept, ok := tamedNotes(was.Text, text); ok {
			restored.Text = kept
		}
	}
	same = err == nil && bytes.Equal(text, restored.Text) // a command may keep a second name for it
	return same, e.make(name, &restored)
}

// names removes what is new in a directory.
func (e *end) names(u *Unit, dir string) {
	for _, entry := range names(e.root, dir) {
		name := path.Join(dir, entry)
		if _, was := u.Entries[name]; was || u.Cut || u.passes(entry) || e.allowed(filepath.Join(e.space, filepath.FromSlash(name))) {
			continue
		}
		if err := e.remove(name); err != nil {
			e.errs = append(e.errs, err)
			continue
		}
		e.undone = append(e.undone, e.shown(name))
	}
}

// make makes what was at a path.
func (e *end) make(name string, was *Entry) error {
	info, err := e.root.Lstat(name)
	if err == nil && info.Mode().Type() != was.Mode.Type() {
		err = e.clear(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch {
	case was.Mode.IsDir():
		if err := e.root.Mkdir(name, was.Mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return e.root.Chmod(name, was.Mode.Perm())
	case was.Link != "":
		return errors.Join(e.root.RemoveAll(name), e.root.Symlink(was.Link, name))
	case was.Mode.IsRegular():
		return endcheck.Replace(e.root, name, was.Text, was.Mode.Perm())
	}
	e.lost = append(e.lost, e.shown(name)) // a pipe or a socket
	return nil
}

// clear makes room for what was at a path. A repository there may have somebody's work in it.
func (e *end) clear(name string) error {
	if info, err := e.root.Lstat(name); err != nil || !info.IsDir() || !offlimits.IsGit(path.Base(name)) {
		return e.remove(name)
	}
	return endcheck.Aside(e.root, name)
}

// remove removes what a command has made, which it may have closed.
func (e *end) remove(name string) error {
	if err := e.root.RemoveAll(name); err == nil {
		return nil
	}
	_ = fs.WalkDir(e.root.FS(), name, func(at string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && !strings.HasPrefix(at, "..") {
			_ = e.root.Chmod(at, 0o700) // else the removal says why
		}
		return nil
	})
	return e.root.RemoveAll(name)
}
