package tools

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/utilagent/tools/ignore"
)

// maxFiles bounds a walk.
const maxFiles = 500_000

// maxIgnoreBytes bounds a .gitignore file.
const maxIgnoreBytes = 1 << 20

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
		names, err := f.s.ask(ctx, f.w.real, f.s.Git, gitArgs(top, "ls-files", "-c", "-o", "--exclude-standard", "-z", "--", dir)...)
		if err == nil {
			return f.settle(ctx, names)
		}
		if !errors.Is(err, errAsk) {
			return nil, false, err
		}
	}
	walk := walker{w: f.w}
	err = walk.dir(ctx, dir, f.parents(dir))
	return walk.sorted(), !walk.full, err
}

// settle sorts the names that git has given. Another repository inside is one
// name that ends in a slash.
func (f finder) settle(ctx context.Context, names []string) ([]string, bool, error) {
	walk := walker{w: f.w}
	for _, name := range names {
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

// gitTop finds the work tree that dir belongs to, if git can be asked about
// it. Git does not list the files of submodules, so trees with them are walked.
func (f finder) gitTop(ctx context.Context, dir string) (string, bool) {
	if f.s.Git == "" {
		return "", false
	}
	top := f.w.real
	for {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			break
		}
		up := filepath.Dir(top)
		if up == top {
			return "", false
		}
		top = up
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

// parents are the .gitignore files from the workspace down to above dir, unless
// they exclude dir.
func (f finder) parents(dir string) ignore.List {
	list, at := ignore.List{}, "."
	if dir == "." {
		return list
	}
	for part := range strings.SplitSeq(dir, "/") {
		list = withIgnoreFile(f.w.root, at, list, at)
		if at = path.Join(at, part); list.Excludes(at, true) {
			return ignore.List{}
		}
	}
	return list
}

// walker collects regular files. It follows no links and looks into no
// repository's own directory.
type walker struct {
	w     *Workspace
	names []string
	full  bool // there were more than maxFiles
}

func (k *walker) sorted() []string {
	slices.Sort(k.names)
	return slices.Compact(k.names)
}

// dir adds the files below a directory. What cannot be read is left out, as if
// it were not there.
func (k *walker) dir(ctx context.Context, dir string, list ignore.List) error {
	root, err := k.w.root.OpenRoot(filepath.FromSlash(dir))
	if err != nil {
		return nil
	}
	return k.walk(ctx, root, dir, list)
}

// walk closes root.
func (k *walker) walk(ctx context.Context, root *os.Root, dir string, list ignore.List) error {
	defer root.Close() // it was only read from
	if err := context.Cause(ctx); err != nil {
		return err
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil
	}
	list = withIgnoreFile(root, ".", list, dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if k.full || e.Name() == ".git" || list.Excludes(name, e.IsDir()) {
			continue
		}
		if e.Type().IsRegular() {
			k.names = append(k.names, name)
			k.full = len(k.names) >= maxFiles
		}
		if !e.IsDir() || e.Name() == "node_modules" {
			continue
		}
		below, err := root.OpenRoot(e.Name())
		if err != nil {
			continue
		}
		if err := k.walk(ctx, below, name, list); err != nil {
			return err
		}
	}
	return nil
}

// withIgnoreFile adds the .gitignore file of the directory dir of root, which is
// base from the workspace's point of view.
func withIgnoreFile(root *os.Root, dir string, list ignore.List, base string) ignore.List {
	f, err := root.OpenFile(filepath.Join(dir, ".gitignore"), os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return list
	}
	defer f.Close() // it is only read from
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return list
	}
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes))
	if err != nil {
		return list
	}
	if base == "." {
		base = ""
	}
	return list.With(base, string(text))
}
