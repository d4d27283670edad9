package tools

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/utilagent/tools/ignore"
)

// finder lists the files that a search looks at.
type finder struct {
	w *Workspace
	s Search
}

// files returns the files below a directory of the workspace that .gitignore
// does not exclude, sorted, relative to the workspace, with slashes. A directory
// that is itself excluded was named on purpose: what is in it counts then.
func (f finder) files(ctx context.Context, dir string) (names []string, all bool, err error) {
	if top, ok := f.gitTop(ctx, dir); ok {
		names, err := f.s.ask(ctx, f.w.real, f.s.Git, gitArgs(top, "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", dir)...)
		if err == nil {
			return f.settle(ctx, dir, names)
		}
		if !errors.Is(err, errAsk) {
			return nil, false, err
		}
	}
	return f.walk(ctx, dir)
}

// walk looks at the directories itself.
func (f finder) walk(ctx context.Context, dir string) ([]string, bool, error) {
	walk := newWalker(f.w)
	err := walk.dir(ctx, dir, f.parents(dir))
	return walk.sorted(), !walk.full, err
}

// settle sorts the names that git has given. Another repository inside is one
// name that ends in a slash.
func (f finder) settle(ctx context.Context, dir string, names []string) ([]string, bool, error) {
	walk := newWalker(f.w)
	for _, name := range names {
		if foreign(dir, name) || f.w.hidden(name) {
			continue
		}
		if inner, ok := strings.CutSuffix(name, "/"); ok {
			if err := walk.dir(ctx, inner, ignore.List{}); err != nil {
				return nil, false, err
			}
			continue
		}
		if path.Base(name) != ".git" {
			walk.names = append(walk.names, name)
		}
	}
	return walk.sorted(), !walk.full, nil
}

// foreign tells whether a name below dir lies in node_modules: a walk does not
// go in there either, unless dir does.
func foreign(dir, name string) bool {
	return strings.Contains("/"+strings.TrimPrefix(name, dir), "/node_modules/")
}

// gitTop finds the work tree that dir belongs to, if git can be asked about
// it. Git does not list the files of submodules, so trees with them are walked.
func (f finder) gitTop(ctx context.Context, dir string) (string, bool) {
	top, ok := f.top()
	if f.s.Git == "" || !ok {
		return "", false
	}
	if _, err := os.Lstat(filepath.Join(top, ".gitmodules")); err == nil {
		return "", false
	}
	full := filepath.Join(f.w.real, filepath.FromSlash(dir))
	if full == top {
		return top, true
	}
	ignored, err := f.s.ask(ctx, top, f.s.Git, gitArgs(top, "check-ignore", "-z", "--", full)...)
	return top, err == nil && len(ignored) == 0
}

// top is the directory with a .git that the workspace lies in.
func (f finder) top() (string, bool) {
	top := f.w.real
	for {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return top, true
		}
		up := filepath.Dir(top)
		if up == top {
			return "", false
		}
		top = up
	}
}

// parents are the .gitignore files from the workspace down to above dir, unless
// they exclude dir.
func (f finder) parents(dir string) ignore.List {
	list, at := ignore.List{}, "."
	if dir == "." {
		return list
	}
	var buf []byte
	for part := range strings.SplitSeq(dir, "/") {
		d, err := f.w.folder(filepath.FromSlash(at))
		if err != nil {
			return ignore.List{}
		}
		list = withIgnoreFile(d, list, at, &buf)
		d.close()
		if at = path.Join(at, part); list.Excludes(at, true) {
			return ignore.List{}
		}
	}
	return list
}
