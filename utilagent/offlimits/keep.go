package offlimits

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
	// sawAll tells whether a path would have been seen before. Where nobody has looked,
	// only what has changed since is judged.
	sawAll func(name string) bool
	began  time.Time
}

// unseen tells whether nobody has looked before where a path lies.
func (k *keeper) unseen(name string) bool { return k.sawAll != nil && !k.sawAll(name) }

// older tells whether a file may have been there before, where nobody has looked.
func (k *keeper) older(name string, info fs.FileInfo) bool {
	return !info.IsDir() && k.unseen(name) && changed(info).Before(k.began)
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
	if was.scope == plans {
		return k.fixPlan(name, info, was)
	}
	if info.Mode().Type() != was.mode.Type() {
		if k.leads(name, info, was.scope) { // "git init --separate-git-dir"
			return nil
		}
		if err := k.remove(name); err != nil {
			return err
		}
		return k.make(name, was)
	}
	if info.Mode().Perm() != was.mode.Perm() && was.link == "" && was.scope != repository {
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

// fixFile compares a file. Of a config only the settings are undone that could
// start a program.
func (k *keeper) fixFile(name string, info fs.FileInfo, was *node) error {
	if !was.whole {
		if was.info != nil && (info.Size() != was.info.Size() || !info.ModTime().Equal(was.info.ModTime()) || !os.SameFile(info, was.info)) {
			k.changes.Lost = append(k.changes.Lost, name+" (too large to be put back)")
		}
		return nil
	}
	text, err := careful.ReadFileIn(k.root, name, maxFileBytes)
	if err == nil && (bytes.Equal(text, was.content) || (was.scope == everything || was.scope == agentFiles) && sameSettings(was.content, text)) {
		return nil
	}
	if err == nil && was.scope != everything && was.scope != agentFiles && isConfig(name) {
		if kept, ok := tamed(was.content, text, k.ground(name)); ok {
			return k.rewrite(name, text, kept, was.mode.Perm())
		}
	}
	if err == nil && was.scope == notes {
		if kept, ok := tamedNotes(was.content, text); ok {
			return k.rewrite(name, text, kept, was.mode.Perm())
		}
	}
	if err == nil && was.scope == repository && k.leads(name, info, repository) {
		return nil
	}
	return errors.Join(k.remove(name), k.make(name, was))
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
		if full := path.Join(name, entry); ok && was.children[entry] == nil && !was.partial && !k.allowed(full) {
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
	base := strings.ToLower(path.Base(name))
	switch {
	case k.older(name, info):
		return nil
	case s == plans && info.IsDir():
		return k.freshDir(name, &node{scope: s})
	case s == plans:
		return k.fixPlan(name, info, nil)
	case s == repository && info.IsDir() && !isGit(plain(base)) && k.names[name] == repository:
		return k.freshBare(name)
	case info.IsDir() && k.unseen(name):
		return k.freshDir(name, &node{scope: s})
	case info.IsDir() && (s == agentFiles || s == repository || s == repositories || s == settings && (base == "hooks" || base == "info" || base == "branches")):
		return k.freshDir(name, &node{scope: s})
	case s == repository && k.leads(name, info, s):
		return nil
	case info.Mode().IsRegular() && s == settings:
		return k.freshFile(name, base, info)
	case info.Mode().IsRegular() && (s == everything || s == agentFiles):
		if text, err := careful.ReadFileIn(k.root, name, maxFileBytes); err == nil && sameSettings(nil, text) {
			return nil
		}
	}
	return k.remove(name)
}

// freshFile judges a new file of a repository.
func (k *keeper) freshFile(name, base string, info fs.FileInfo) error {
	dir := path.Base(path.Dir(name))
	text, err := careful.ReadFileIn(k.root, name, maxFileBytes)
	if err != nil {
		return k.remove(name)
	}
	switch {
	case strings.HasSuffix(base, ".sample"), dir == "info" && base != "attributes" && base != "grafts":
		return nil
	case k.known[fingerprint(name, text)] && !pointsAway(text):
		return nil // it has moved with its repository
	case isConfig(name):
		if kept, ok := tamed(nil, text, k.ground(name)); ok {
			return k.rewrite(name, text, kept, info.Mode().Perm())
		}
	case base == "commondir" && strings.TrimSpace(string(text)) == "../..",
		base == "gitdir" && path.Base(path.Dir(path.Dir(name))) == "worktrees":
		return nil
	}
	return k.remove(name)
}

// pointsAway tells whether a config names others, relative to where it lies.
func pointsAway(text []byte) bool {
	return slices.ContainsFunc(readSettings(text), func(s setting) bool {
		return s.key == "hookspath" || s.section == "include" || s.section == "includeif"
	})
}

// freshBare judges a new repository without a work tree. Somebody's directory may
// have become one by what was added to it, so that only what git obeys is taken
// out; and if the config cannot be read it is made none.
func (k *keeper) freshBare(name string) error {
	var errs []error
	for _, entry := range []string{"config", "config.worktree", "commondir"} {
		full := path.Join(name, entry)
		info, err := k.root.Lstat(full)
		if err != nil || k.older(full, info) {
			continue
		}
		text, err := careful.ReadFileIn(k.root, full, maxFileBytes)
		kept, ok := tamed(nil, text, k.ground(full))
		switch {
		case err == nil && k.known[fingerprint(full, text)] && !pointsAway(text):
		case entry == "commondir" && strings.TrimSpace(string(text)) == "../.." && k.names[path.Dir(path.Dir(name))] == repository:
		case err == nil && ok && entry != "commondir":
			errs = append(errs, k.rewrite(full, text, kept, info.Mode().Perm()))
		default:
			return k.remove(path.Join(name, "HEAD"))
		}
	}
	inHooks := path.Join(name, "hooks")
	if info, err := k.root.Lstat(inHooks); err == nil && !info.IsDir() && !k.older(inHooks, info) {
		errs = append(errs, k.remove(inHooks))
	} else if err == nil && info.IsDir() {
		errs = append(errs, list(k.root, inHooks, func(entry string) error {
			full := path.Join(inHooks, entry)
			text, err := careful.ReadFileIn(k.root, full, maxFileBytes)
			if info, gone := k.root.Lstat(full); gone == nil && k.older(full, info) {
				return nil
			}
			if !isHook(entry) || err == nil && k.known[fingerprint(full, text)] {
				return nil
			}
			return k.remove(full)
		}))
	}
	for _, entry := range []string{"modules", "worktrees"} {
		full := path.Join(name, entry)
		if info, err := k.root.Lstat(full); err == nil && info.IsDir() {
			errs = append(errs, k.freshDir(full, &node{scope: repositories}))
		}
	}
	return errors.Join(errs...)
}

// leads tells whether a file .git leads to a repository in the workspace that is
// watched as well, such as that of a submodule.
func (k *keeper) leads(name string, info fs.FileInfo, s scope) bool {
	if s != repository || !isGit(plain(path.Base(name))) || !info.Mode().IsRegular() {
		return false
	}
	text, err := careful.ReadFileIn(k.root, name, 8<<10)
	to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if err != nil || !ok {
		return false
	}
	if filepath.IsAbs(to) {
		if to, err = filepath.Rel(k.dir, to); err != nil {
			return false
		}
	} else {
		to = filepath.Join(filepath.FromSlash(path.Dir(name)), to)
	}
	to = filepath.ToSlash(to)
	if !filepath.IsLocal(to) || !isPlainDir(k.root, to) || !isRepository(k.root, to) {
		return false
	}
	for at := to; at != "."; at = path.Dir(at) {
		if k.names[at] == repository {
			rest := strings.TrimPrefix(to, at)
			return rest == "" || strings.HasPrefix(rest, "/modules/") || strings.HasPrefix(rest, "/worktrees/") && strings.Count(rest, "/") == 2
		}
	}
	return false
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
	if was.scope == plans {
		return nil // it is done
	}
	if was.mode.IsDir() && was.scope == repository {
		if name == ".git" { // others come and go
			k.changes.Lost = append(k.changes.Lost, name)
		}
		return nil
	}
	k.say(name)
	switch {
	case was.mode.IsDir():
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
		return k.write(name, was.content, was.mode.Perm())
	}
	return nil
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
func (k *keeper) rewrite(name string, text, kept []byte, perm fs.FileMode) error {
	if bytes.Equal(text, kept) {
		return nil
	}
	if err := k.remove(name); err != nil || len(kept) == 0 {
		return err
	}
	return k.write(name, kept, perm)
}

func (k *keeper) remove(name string) error {
	k.say(name)
	return k.root.RemoveAll(name)
}

// maxSaid bounds how many names are told.
const maxSaid = 20

func (k *keeper) say(name string) {
	if said := k.changes.Undone; len(said) < maxSaid && (len(said) == 0 || said[len(said)-1] != name) {
		k.changes.Undone = append(said, name)
	}
}
