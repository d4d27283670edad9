package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// A new worktree needs what git does not know: ignored files that a list names, and links to
// directories.

// IncludeFile lists, as .gitignore does, files that git ignores and that a new worktree
// needs all the same. Other tools read it, too.
const IncludeFile = ".worktreeinclude"

// Bounds of what is copied into a new worktree.
const (
	maxIncluded      = 100_000
	maxIncludedBytes = 4 << 30
	maxList          = 1 << 20 // bytes
)

// linksFile in a worktree's git directory lists the links to another work tree, one path per
// line.
const linksFile = "uwf-links"

// Include copies the files that a work tree's [IncludeFile] names and that git ignores into
// another work tree, unless something is already in their place. It returns how many.
func Include(ctx context.Context, r, to snapshot.Repo) (n int, err error) {
	list := filepath.Join(r.Root, IncludeFile)
	text, err := safeopen.ReadFile(list, maxList, safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(text)) == "" {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", list, err)
	}
	out, err := r.Query(ctx, "", nil, "ls-files", "-o", "-i", "--exclude-from="+list, "-z")
	if err != nil || len(out) == 0 {
		return 0, err
	}
	// Files that are only untracked, not ignored, would enter the other work tree's snapshots.
	ignored, err := r.Query(ctx, "", out, "check-ignore", "-z", "--stdin")
	var none *snapshot.GitError
	if err != nil && (!errors.As(err, &none) || none.Status != 1) {
		return 0, err
	}
	paths := strings.FieldsFunc(string(ignored), func(r rune) bool { return r == 0 })
	if len(paths) > maxIncluded {
		return 0, fmt.Errorf("%s names %d files, of which %d at most are copied: workspace.link leads to a directory "+
			"instead", IncludeFile, len(paths), maxIncluded)
	}
	from, err := os.OpenRoot(r.Root)
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }()
	into, err := os.OpenRoot(to.Root)
	if err != nil {
		return 0, err
	}
	defer func() { _ = into.Close() }()
	room := int64(maxIncludedBytes)
	for _, name := range paths {
		if strings.HasSuffix(name, "/") {
			continue // a nested repository
		}
		copied, err := takeAlong(from, into, filepath.FromSlash(name), &room)
		if err != nil {
			return n, fmt.Errorf("copy %s: %w", name, err)
		}
		if copied {
			n++
		}
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
	}
	return n, nil
}

// takeAlong copies a file or a link, if nothing is in its place.
func takeAlong(from, to *os.Root, name string, room *int64) (bool, error) {
	info, err := from.Lstat(name)
	if err != nil {
		return false, nil //nolint:nilerr // gone meanwhile
	}
	if _, err := to.Lstat(name); err == nil {
		return false, nil
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return false, err
		}
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := from.Readlink(name)
		if err != nil {
			return false, err
		}
		return true, to.Symlink(target, name)
	}
	if !info.Mode().IsRegular() {
		return false, nil
	}
	if *room -= info.Size(); *room < 0 {
		return false, fmt.Errorf("the files hold more than %d GB", maxIncludedBytes>>30)
	}
	in, err := safeopen.OpenIn(from, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return false, err
	}
	_, err = io.Copy(out, in)
	return true, errors.Join(err, out.Close())
}

// Link links directories of a work tree into another one; snapshots leave these links out. It
// skips directories that do not exist or whose place is taken.
func Link(r, to snapshot.Repo, dirs []string) error {
	var made []string
	into, err := os.OpenRoot(to.Root)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	for _, dir := range dirs {
		dir = path.Clean(filepath.ToSlash(dir))
		target := filepath.Join(r.Root, filepath.FromSlash(dir))
		if info, err := os.Stat(target); err != nil || !info.IsDir() || !filepath.IsLocal(dir) || dir == "." {
			continue
		}
		if _, err := into.Lstat(filepath.FromSlash(dir)); err == nil {
			continue
		}
		if above := path.Dir(dir); above != "." {
			if err := into.MkdirAll(filepath.FromSlash(above), 0o755); err != nil {
				return err
			}
		}
		made = append(made, dir)
		// Listed before it exists, so that a snapshot in between leaves it out.
		if err := durable.Replace(durable.OS(), filepath.Join(to.Dir, linksFile), []byte(strings.Join(made, "\n")+"\n"),
			0o600); err != nil {
			return err
		}
		if err := into.Symlink(target, filepath.FromSlash(dir)); err != nil {
			return fmt.Errorf("link %s: %w", dir, err)
		}
	}
	return nil
}

// Links are the paths that [Link] has made.
func Links(r snapshot.Repo) []string {
	text, err := safeopen.ReadFile(filepath.Join(r.Dir, linksFile), maxList, safeopen.NoFollow)
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}
