// Package gitdir tells which repository a git work tree belongs to.
//
// A linked work tree (git worktree add) and its repository name each other: the
// file .git of the tree names a directory of the repository, and the file gitdir
// there names the tree (gitrepository-layout(5)). Either file may be written by
// whoever works beside it, so only both together count. That is more than git's
// own list of work trees promises, which shows whatever gitdir says; and no git
// is started in a repository whose settings may name programs.
package gitdir

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/safeopen"
)

// Link returns the git directory of the repository that a directory is linked to
// as a work tree, without symbolic links. top is absolute.
func Link(top string) (repository string, ok bool) {
	own, ok := pointer(filepath.Join(top, ".git"), "gitdir: ")
	if !ok || filepath.Base(filepath.Dir(own)) != "worktrees" {
		return "", false
	}
	back, ok := pointer(filepath.Join(own, "gitdir"), "")
	if !ok || !same(back, filepath.Join(top, ".git")) {
		return "", false
	}
	repository = filepath.Dir(filepath.Dir(own))
	info, err := os.Stat(filepath.Join(repository, "HEAD"))
	return repository, err == nil && info.Mode().IsRegular()
}

// maxOthers bounds how many work trees are looked for.
const maxOthers = 1000

// Others are the other work trees of the repository that the one at top is of, without
// symbolic links: the main one, and those that are linked, if both sides say so.
func Others(top string) []string {
	_, common, ok := Dirs(top)
	if !ok {
		return nil
	}
	var all []string
	add := func(tree string) {
		if tree, err := filepath.EvalSymlinks(tree); err == nil && !same(tree, top) {
			all = append(all, tree)
		}
	}
	if filepath.Base(common) == ".git" {
		add(filepath.Dir(common))
	}
	dir := filepath.Join(common, "worktrees")
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() { // a pipe would be waited for
		return all
	}
	linked, err := os.Open(dir)
	if err != nil {
		return all
	}
	defer func() { _ = linked.Close() }() // opened for reading only
	names, _ := linked.Readdirnames(maxOthers)
	for _, name := range names {
		file, ok := pointer(filepath.Join(common, "worktrees", name, "gitdir"), "")
		if !ok {
			continue
		}
		if repository, ok := Link(filepath.Dir(file)); ok && same(repository, common) {
			add(filepath.Dir(file))
		}
	}
	return all
}

// Repository returns the git directory of the repository that a directory lies
// in: of its own work tree, or of the one that its work tree is linked to. A .git
// that leads out of its work tree and is not answered from there, as that of a
// submodule, counts as none. dir is absolute and without symbolic links.
func Repository(dir string) (repository string, ok bool) {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return own(dir)
		}
		if filepath.Dir(dir) == dir {
			return "", false
		}
		dir = filepath.Dir(dir)
	}
}

// own is the git directory that lies within a work tree, or that it is linked to.
func own(top string) (string, bool) {
	if repository, ok := Link(top); ok {
		return repository, true
	}
	git, err := filepath.EvalSymlinks(filepath.Join(top, ".git"))
	if err != nil {
		return "", false
	}
	if info, err := os.Stat(git); err != nil || !info.IsDir() {
		if git, _ = pointer(git, "gitdir: "); git == "" {
			return "", false
		}
	}
	rest, err := filepath.Rel(top, git)
	return git, err == nil && filepath.IsLocal(rest) && rest != "."
}

// Top is the top of the work tree that a directory is in: the nearest directory with a .git; "": none.
func Top(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// Dirs returns what git takes for the git directory of a work tree, and for the
// one that it shares with others, in which the config and the hooks lie. Nothing
// is checked: both may lie anywhere. top is absolute.
func Dirs(top string) (git, common string, ok bool) {
	git, err := filepath.EvalSymlinks(filepath.Join(top, ".git"))
	if err != nil {
		return "", "", false
	}
	if info, err := os.Stat(git); err != nil || !info.IsDir() {
		if git, ok = pointer(git, "gitdir: "); !ok {
			return "", "", false
		}
	}
	if common, ok = pointer(filepath.Join(git, "commondir"), ""); !ok {
		common = git
	}
	return git, common, true
}

// Holds reports whether a directory is in a work tree that is linked to a
// repository, and returns the root of that tree. dir is absolute and without
// symbolic links.
func Holds(repository, dir string) (top string, ok bool) {
	for {
		if to, ok := Link(dir); ok && same(to, repository) {
			return dir, true
		}
		if filepath.Dir(dir) == dir {
			return "", false
		}
		dir = filepath.Dir(dir)
	}
}

// pointer reads a file of one line that names a path, and returns what it leads
// to, without symbolic links.
func pointer(file, prefix string) (string, bool) {
	const longest = 8 << 10
	text, err := safeopen.ReadFile(file, longest, safeopen.NoFollow)
	if err != nil {
		return "", false
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), prefix)
	if !ok || path == "" {
		return "", false
	}
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	path, err = filepath.EvalSymlinks(path)
	return path, err == nil
}

// same reports whether two paths are of one file or directory.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
