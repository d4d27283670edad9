package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// Where hard links are impossible, as across file systems, the user's objects are copied into
// our git directory: all of them once, then only new ones.

// copiedFile in our git directory lists the commits whose objects have all been copied.
const copiedFile = "copied"

const maxCopied = 16 << 20 // bytes in it

// copied are the commits that were copied.
func copied(store string) []string {
	text, _ := careful.ReadFile(filepath.Join(store, copiedFile), maxCopied, careful.NoFollow)
	return strings.Fields(string(text))
}

// copyObjects copies what the user's refs, HEADs and index lead to. Git runs with our git
// directory and none of the repository's settings.
func (r Repo) copyObjects(ctx context.Context, dirs []string, store string) error {
	user, err := r.user(ctx)
	if err != nil {
		return err
	}
	out, err := user.run(ctx, nil, "rev-parse", "--all", "--revs-only", "HEAD")
	if err != nil {
		return err
	}
	tips := strings.Fields(string(out))
	ours, err := inStore(r.env, store)
	if err != nil {
		return err
	}
	theirs := ours // with what they have, too
	theirs.env = append(slices.Clone(ours.env), "GIT_ALTERNATE_OBJECT_DIRECTORIES="+listed(dirs))
	packs := filepath.Join(store, "objects", "pack")
	known, _, err := ours.sorted(ctx, copied(store))
	if err != nil {
		return err
	}
	revs := strings.Join(tips, "\n") + "\n--not\n" + strings.Join(known, "\n") + "\n"
	if err := theirs.packInto(ctx, packs, revs, append(missing(Spec{Partial: r.Partial}, "--missing=allow-any"), "--revs")...); err != nil {
		return err
	}
	staged, err := ours.in(store, "", r.Index).run(ctx, nil, "ls-files", "-s", "-z")
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range fields(staged) {
		if words := strings.Fields(entry); len(words) > 1 && words[0] != Gitlink {
			names = append(names, words[1])
		}
	}
	_, fresh, err := ours.sorted(ctx, names)
	if err != nil {
		return err
	}
	if fresh, _, err = theirs.sorted(ctx, fresh); err != nil {
		return err
	}
	if len(fresh) > 0 {
		if err := theirs.packInto(ctx, packs, strings.Join(fresh, "\n")+"\n"); err != nil {
			return err
		}
	}
	slices.Sort(tips)
	return durable.Replace(durable.OS(), filepath.Join(store, copiedFile), []byte(strings.Join(slices.Compact(tips), "\n")+"\n"), 0o600)
}

// packInto puts objects into a pack in a directory.
func (g git) packInto(ctx context.Context, dir, what string, args ...string) error {
	args = append([]string{"pack-objects", "-q", "--non-empty", "--delta-base-offset"}, args...)
	_, err := g.run(ctx, []byte(what), append(args, filepath.Join(dir, "pack"))...)
	return err
}

// listed joins directories for one of git's environment variables.
func listed(dirs []string) string {
	list := make([]string, len(dirs))
	for i, dir := range dirs {
		list[i] = quoted(filepath.ToSlash(dir))
	}
	return strings.Join(list, string(filepath.ListSeparator))
}

// sorted separates objects that exist from those that do not.
func (g git) sorted(ctx context.Context, names []string) (there, missing []string, err error) {
	if len(names) == 0 {
		return nil, nil, nil
	}
	out, err := g.run(ctx, []byte(strings.Join(names, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype) %(objectname)")
	for line := range strings.Lines(string(out)) {
		switch first, rest, _ := strings.Cut(strings.TrimSpace(line), " "); rest {
		case "missing":
			missing = append(missing, first)
		default:
			there = append(there, rest)
		}
	}
	return there, missing, err
}

// copyFile copies a regular file whole, or not at all; at is the time of its last
// change, unless it is zero.
func copyFile(from, to string, at time.Time) (err error) {
	in, err := careful.Open(from, careful.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(filepath.Dir(to), ".uwf-*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(out.Name())
		}
	}()
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if !at.IsZero() {
		if err := os.Chtimes(out.Name(), at, at); err != nil {
			return err
		}
	}
	return os.Rename(out.Name(), to)
}
