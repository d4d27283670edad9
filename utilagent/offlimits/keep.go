package offlimits

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

// keeper compares what is there with what was, and puts it back.
type keeper struct {
	root    *os.Root
	dir     string // of root
	place   Place
	list    List
	changes Changes
	allowed func(name string) bool
	names   map[string]scope // what is watched now
	// known are the files of repositories that were there: they may move.
	known map[string]bool
	// sawAll reports whether a path would have been seen before. Where nobody has looked,
	// only what has changed since is judged.
	sawAll func(name string) bool
}

// fingerprint knows a file of a repository again, wherever it lies then.
func fingerprint(name string, text []byte) string {
	return strings.ToLower(path.Base(name)) + "\x00" + string(text)
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
	if was.Scope == plans {
		return k.fixPlan(name, info, was)
	}
	if info.Mode().Type() != was.Mode.Type() {
		if k.leads(name, info, was.Scope) { // "git init --separate-git-dir"
			return nil
		}
		if err := k.remove(name); err != nil {
			return err
		}
		return k.make(name, was)
	}
	if info.Mode().Perm() != was.Mode.Perm() && was.Link == "" && was.Scope != repository {
		k.say(name)
		if err := k.root.Chmod(name, was.Mode.Perm()); err != nil {
			return err
		}
	}
	k.open(name, info)
	switch {
	case was.Mode.IsDir():
		return k.fixDir(name, was)
	case was.Link != "":
		if link, err := k.root.Readlink(name); err == nil && link == was.Link {
			return nil
		}
		return errors.Join(k.remove(name), k.make(name, was))
	case was.Mode.IsRegular():
		return k.fixFile(name, info, was)
	}
	return nil
}

// fixFile compares a file. Of a config only the settings are undone that could
// start a program.
func (k *keeper) fixFile(name string, info fs.FileInfo, was *node) error {
	if !was.Whole {
		if links(info) > 1 {
			k.changes.Lost = append(k.changes.Lost, name+" (too large to be put back, and it has a second name)")
			return nil
		}
		if was.info != nil && (info.Size() != was.info.Size() || !info.ModTime().Equal(was.info.ModTime()) || !os.SameFile(info, was.info)) {
			k.changes.Lost = append(k.changes.Lost, name+" (too large to be put back)")
		}
		return nil
	}
	text, err := careful.ReadFileIn(k.root, name, maxFileBytes)
	programs := was.Scope == everything || was.Scope == agentFiles
	if err == nil && (bytes.Equal(text, was.Content) || programs && sameSettings(was.Content, text)) {
		k.renew(name, info, was.Scope, text, was.Mode.Perm())
		return nil
	}
	if err == nil && !programs && isConfig(name) {
		if kept, ok := tamed(was.Content, text, k.ground(name)); ok {
			return k.rewrite(name, info, was.Scope, text, kept, was.Mode.Perm())
		}
	}
	if err == nil && was.Scope == notes {
		if kept, ok := tamedNotes(was.Content, text); ok {
			return k.rewrite(name, info, was.Scope, text, kept, was.Mode.Perm())
		}
	}
	if err == nil && was.Scope == repository && k.leads(name, info, repository) {
		return nil
	}
	k.say(name)
	return k.replace(name, info, was.Content, was.Mode.Perm())
}

// open lets the owner into a directory that a command has closed, to hide what it planted there.
func (k *keeper) open(name string, info fs.FileInfo) {
	if mode := info.Mode(); info.IsDir() && mode&0o700 != 0o700 {
		_ = k.root.Chmod(name, mode|0o700) // else what is in it cannot be read, which is an error
	}
}

func isConfig(name string) bool {
	base := path.Base(name)
	return base == "config" || base == "config.worktree"
}

// ground says what values of a config mean.
func (k *keeper) ground(name string) ground {
	git := filepath.Join(k.dir, filepath.FromSlash(path.Dir(name)))
	g := ground{git: git, writable: append([]string{k.place.Workspace}, k.place.Writable...), allowed: k.list.writable}
	if isGit(plain(filepath.Base(git))) {
		g.top = filepath.Dir(git)
	}
	return g
}

// fixDir removes what is new in a directory and fixes what was there.
func (k *keeper) fixDir(name string, was *node) error {
	var errs []error
	err := list(k.root, name, func(entry string) error {
		inner, ok := was.inner(k.root, name, entry)
		if full := path.Join(name, entry); ok && was.Children[entry] == nil && !was.Partial && !k.allowed(full) {
			errs = append(errs, k.fresh(full, inner))
		}
		return nil
	})
	for entry, child := range was.Children {
		errs = append(errs, k.fix(path.Join(name, entry), child))
	}
	return errors.Join(append(errs, err)...)
}

// straighten removes a link that a command has put on the way to a name, and makes
// the directories again if there was something at its end.
func (k *keeper) straighten(name string, was *node) error {
	link := firstLink(k.root, name)
	if link == name || k.allowed(link) {
		return nil
	}
	if err := k.remove(link); err != nil || was == nil {
		return err
	}
	return k.root.MkdirAll(path.Dir(name), 0o777)
}

// make makes what was.
func (k *keeper) make(name string, was *node) error {
	if was.Scope == plans {
		return nil // it is done
	}
	if k.leaves(name) {
		return nil
	}
	if was.Mode.IsDir() && was.Scope == repository {
		if name == ".git" { // others come and go
			k.changes.Lost = append(k.changes.Lost, name)
		}
		return nil
	}
	k.say(name)
	switch {
	case was.Mode.IsDir():
		if err := k.root.Mkdir(name, 0o700); err != nil {
			return err
		}
		var errs []error
		for entry, child := range was.Children {
			errs = append(errs, k.make(path.Join(name, entry), child))
		}
		return errors.Join(append(errs, k.root.Chmod(name, was.Mode.Perm()))...)
	case was.Link != "":
		return k.root.Symlink(was.Link, name)
	case was.Whole:
		return k.write(name, was.Content, was.Mode.Perm())
	}
	return nil
}

// leaves reports whether a name is of a linked work tree that somebody removes just now, or has
// removed: without its gitdir it is none.
func (k *keeper) leaves(name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if path.Base(path.Dir(at)) == worktrees {
			_, err := k.root.Lstat(path.Join(at, "gitdir"))
			return errors.Is(err, fs.ErrNotExist)
		}
	}
	return false
}

// write makes a file that is not there.
func (k *keeper) write(name string, text []byte, perm fs.FileMode) error {
	f, err := k.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(perm), f.Close())
}

// rewrite replaces a file's text by what may stay of it.
func (k *keeper) rewrite(name string, info fs.FileInfo, s scope, text, kept []byte, perm fs.FileMode) error {
	if bytes.Equal(text, kept) {
		k.renew(name, info, s, text, perm)
		return nil
	}
	if len(kept) == 0 {
		return k.remove(name)
	}
	k.say(name)
	return k.replace(name, info, kept, perm)
}

// replace gives a file another text, and another inode, in one step: on a full disk the old text stays.
func (k *keeper) replace(name string, info fs.FileInfo, text []byte, perm fs.FileMode) error {
	temp := name + "." + rand.Text()
	err := k.write(temp, text, perm)
	if err == nil {
		k.own(temp, info)
		err = k.root.Rename(temp, name)
	}
	if err != nil {
		_ = k.root.Remove(temp)
	}
	return err
}

func (k *keeper) remove(name string) error {
	k.say(name)
	err := k.root.RemoveAll(name)
	if errors.Is(err, fs.ErrPermission) {
		k.openAll(name, 0)
		err = k.root.RemoveAll(name)
	}
	return err
}

// openAll opens what a command has closed below a name.
func (k *keeper) openAll(name string, depth int) {
	info, err := k.root.Lstat(name)
	if err != nil || !info.IsDir() || depth > maxDepth {
		return
	}
	k.open(name, info)
	_ = list(k.root, name, func(entry string) error { // what cannot be read cannot be removed either
		k.openAll(path.Join(name, entry), depth+1)
		return nil
	})
}

// maxSaid bounds how many names are told.
const maxSaid = 20

func (k *keeper) say(name string) {
	if said := k.changes.Undone; len(said) < maxSaid && (len(said) == 0 || said[len(said)-1] != name) {
		k.changes.Undone = append(said, name)
	}
}
