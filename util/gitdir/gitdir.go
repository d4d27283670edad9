// Package gitdir finds the repository of a git work tree.
//
// A linked work tree (git worktree add) and its repository reference each other: the file .git of the tree
// contains a directory of the repository, and the file gitdir there contains the tree
// (gitrepository-layout(5)). Anyone who works next to either file can write it, so a link counts only if both
// files agree. This is stricter than git's own list of work trees, which trusts gitdir. The package doesn't
// run git, which could start programs from the repository's settings.
package gitdir

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/safeopen"
)

// Link returns the git directory of the repository to which a directory is linked as a work tree, without
// symbolic links. top must be absolute.
func Link(top string) (repository string, ok bool) {
	own, ok := pointer(filepath.Join(top, ".git"), "gitdir: ")
	if !ok || filepath.Base(filepath.Dir(own)) != "worktrees" {
		return "", false
	}
	back, ok := pointer(filepath.Join(own, "gitdir"), "")
	if !ok || !Same(back, filepath.Join(top, ".git")) {
		return "", false
	}
	repository = filepath.Dir(filepath.Dir(own))
	info, err := os.Stat(filepath.Join(repository, "HEAD"))
	return repository, err == nil && info.Mode().IsRegular()
}

// maxOthers bounds the number of work trees returned.
const maxOthers = 1000

// Others returns the other work trees of top's repository, without symbolic links: the main one, and those
// whose link is confirmed on both sides.
func Others(top string) []string {
	_, common, ok := Dirs(top)
	if !ok {
		return nil
	}
	var all []string
	add := func(tree string) {
		if tree, err := filepath.EvalSymlinks(tree); err == nil && !Same(tree, top) {
			all = append(all, tree)
		}
	}
	if filepath.Base(common) == ".git" {
		add(filepath.Dir(common))
	}
	dir := filepath.Join(common, "worktrees")
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() { // opening a pipe would block
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
		if repository, ok := Link(filepath.Dir(file)); ok && Same(repository, common) {
			add(filepath.Dir(file))
		}
	}
	return all
}

// Repository returns the git directory of the repository that contains a directory, through its work tree or
// through a linked one. A .git that points outside its work tree without a reference back, such as that of a
// submodule, doesn't count. dir must be absolute and without symbolic links.
func Repository(dir string) (repository string, ok bool) {
	if top := Top(dir); top != "" {
		return own(top)
	}
	return "", false
}

// own returns the git directory inside a work tree, or the one it is linked to.
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

// Top returns the top of the work tree that contains a directory: the nearest directory with a .git; "" if
// there is none.
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

// Dirs returns the git directory that git uses for a work tree, and the shared one with the config and the
// hooks. Neither is verified, so both can be anywhere. top must be absolute.
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

// Holds reports whether a directory is in a work tree linked to a repository, and returns the root of that
// tree. dir must be absolute and without symbolic links.
func Holds(repository, dir string) (top string, ok bool) {
	for {
		if to, ok := Link(dir); ok && Same(to, repository) {
			return dir, true
		}
		if filepath.Dir(dir) == dir {
			return "", false
		}
		dir = filepath.Dir(dir)
	}
}

// pointer reads a one-line file that contains a path, and returns the path without symbolic links.
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

// Same reports whether two paths refer to the same file or directory.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
