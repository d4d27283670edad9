package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

// Bring copies a commit and everything it needs into the user's repository. No ref of theirs
// leads there yet, but their git gc keeps it until [Repo.LetGo] is called with the same words.
// Git packs it in our git directory; in theirs it would start the programs that the
// repository's settings name.
func (r Repo) Bring(ctx context.Context, s Spec, commit, why string) error {
	user, err := r.user(ctx)
	if err != nil {
		return err
	}
	out, err := user.run(ctx, nil, "rev-parse", "--all", "--revs-only", "HEAD")
	if err != nil {
		return err
	}
	ours, err := inStore(r.env, s.Git)
	if err != nil {
		return err
	}
	known, _, err := ours.sorted(ctx, strings.Fields(string(out)))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.Git, "bring-*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	revs := commit + "\n--not\n" + strings.Join(known, "\n") + "\n"
	if err := ours.packInto(ctx, dir, revs, append(missing(s, "--missing=allow-any"), "--revs")...); err != nil {
		return err
	}
	if err := r.give(dir, why); err != nil {
		return fmt.Errorf("write the objects of %s: %w", r.Common, err)
	}
	_, err = user.run(ctx, nil, "cat-file", "-e", commit+"^{tree}")
	return err
}

// packsIn is where a git directory has its packs.
var packsIn = filepath.Join("objects", "pack")

// keepName is the file by which git knows that a pack is to stay, as that of a fetch whose
// refs are still to be written.
func keepName(pack string) string { return strings.TrimSuffix(pack, filepath.Ext(pack)) + ".keep" }

// LetGo lets the user's git collect again what [Repo.Bring] brought with the same words,
// unless a ref leads to it.
func (r Repo) LetGo(why string) (err error) {
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	kept, err := fs.Glob(root.FS(), filepath.ToSlash(filepath.Join(packsIn, "*.keep")))
	for _, path := range kept {
		if text, lost := careful.ReadFileIn(root, path, maxSetting); lost == nil && string(text) == why+"\n" {
			err = errors.Join(err, root.Remove(path))
		}
	}
	return err
}

// give copies packs to those of the user. No link leads out of their git directory.
func (r Repo) give(dir, why string) (err error) {
	packs, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	slices.SortStableFunc(packs, byIndex)
	for _, pack := range packs {
		to := filepath.Join(packsIn, pack.Name())
		if err := keepPack(root, keepName(to), why); err != nil {
			return err
		}
		if _, err := root.Stat(to); err == nil {
			continue
		}
		if err := copyIn(root, filepath.Join(dir, pack.Name()), to); err != nil {
			return err
		}
	}
	return nil
}

// keepPack writes a file that keeps a pack, unless there is one.
func keepPack(root *os.Root, path, why string) error {
	if _, err := root.Lstat(path); err == nil {
		return nil
	}
	return putIn(root, path, strings.NewReader(why+"\n"))
}

// copyIn copies a file into a directory, flushed, whole or not at all.
func copyIn(root *os.Root, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return putIn(root, to, in)
}

// putIn writes a file in a directory, flushed, whole or not at all.
func putIn(root *os.Root, to string, in io.Reader) error {
	const readOnly = 0o444
	temporary := filepath.Join(filepath.Dir(to), "tmp_uwf_"+filepath.Base(to)) // git removes such files in time
	_ = root.Remove(temporary)                                                 // left by a killed process
	out, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, readOnly)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = root.Rename(temporary, to)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}
