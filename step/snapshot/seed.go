package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/gitindex"
	"github.com/united-workforce/uwf/util/safeopen"
)

// maxSetting bounds the small files copied from a repository, in bytes.
const maxSetting = 1 << 20

// OwnerFile is the file in our git directory that names the repository of its snapshots.
const OwnerFile = "repository"

// Store returns the git directory for the repository's snapshots. all is the directory for all of them,
// <home>/git, which confined commands can't write.
func (r Repo) Store(all string) string {
	sum := sha256.Sum256([]byte(r.Common))
	return filepath.Join(all, hex.EncodeToString(sum[:10]))
}

// Owner returns the git directory of the repository whose snapshots are in our git directory, or "" if
// unknown.
func Owner(store string) string {
	const longest = 8 << 10
	text, err := safeopen.ReadFile(filepath.Join(store, OwnerFile), longest, safeopen.NoFollow)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

// Seed creates our git directory or updates its settings. It links the user's objects to it if they are
// missing or again is set. A zero Repo with a Format creates a git directory without a repository.
func (r Repo) Seed(ctx context.Context, store string, again bool) error {
	for _, dir := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(store, dir), 0o700); err != nil {
			return err
		}
	}
	held, err := durable.Lock(ctx, filepath.Join(store, "uwf.lock"))
	if err != nil {
		return fmt.Errorf("lock %s: %w", store, err)
	}
	defer func() { _ = held.Unlock() }()
	if err := r.settings(store); err != nil || r.Common == "" {
		return err
	}
	dirs, err := r.objects(filepath.Dir(store))
	if err != nil || !again && r.seeded(store, dirs) {
		return err
	}
	for _, dir := range dirs {
		if err := linkObjects(ctx, dir, filepath.Join(store, "objects"), os.Link); err != nil {
			return err
		}
	}
	return nil
}

// settings writes the files that git reads from a git directory, unless they are up to date.
func (r Repo) settings(store string) error {
	want := map[string][]byte{
		"HEAD": []byte("ref: refs/heads/none\n"), "config": r.config(),
		"objects/info/alternates": nil, // written by an older version: it can refer to anyone's files
	}
	if r.Common != "" {
		if err := r.takeOver(want); err != nil {
			return err
		}
	}
	for name, text := range want {
		path := filepath.Join(store, filepath.FromSlash(name))
		if len(text) == 0 {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			continue
		}
		if have, err := safeopen.ReadFile(path, maxSetting, safeopen.NoFollow); err == nil && bytes.Equal(have, text) {
			continue
		}
		if err := durable.Replace(durable.OS(), path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// takeOver adds the owner of our git directory, and the repository's small files that determine which files
// count.
func (r Repo) takeOver(want map[string][]byte) error {
	want[OwnerFile] = []byte(r.Common + "\n")
	for name, from := range map[string]string{
		"info/exclude": filepath.Join(r.Common, "info/exclude"), "info/attributes": filepath.Join(r.Common,
			"info/attributes"),
		"info/sparse-checkout": filepath.Join(r.Dir, "info/sparse-checkout"), "shallow": filepath.Join(r.Common, "shallow"),
	} {
		text, err := safeopen.ReadFile(from, maxSetting, safeopen.NoFollow)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &RefusedError{Dir: from, Reason: err.Error()}
		}
		want[name] = text
	}
	return nil
}

// config returns the config of our git directory.
func (r Repo) config() []byte {
	var b bytes.Buffer
	version, objects := 0, ""
	if r.Format != "sha1" {
		version, objects = 1, "[extensions]\n\tobjectformat = "+r.Format+"\n"
	}
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %d\n\tbare = false\n%s", version, objects)
	return b.Bytes()
}

// maxAlternates bounds the repositories from which one borrows objects, also through others.
const maxAlternates = 1000

// objects returns the object directories of the repository: its own, and those that it borrows from. It never
// includes our own git directories, which contain other repositories' files.
func (r Repo) objects(ours string) (dirs []string, err error) {
	if ours, err = filepath.EvalSymlinks(ours); err != nil {
		return nil, err
	}
	next := []string{filepath.Join(r.Common, "objects")}
	for i := 0; i < len(next) && i < maxAlternates; i++ {
		real, err := filepath.EvalSymlinks(next[i])
		if err != nil || slices.Contains(dirs, real) {
			continue // git also skips it
		}
		if rel, err := filepath.Rel(ours, real); err == nil && filepath.IsLocal(rel) {
			return nil, &RefusedError{Dir: r.Common, Reason: "it uses objects of " + real}
		}
		dirs = append(dirs, real)
		borrowed, err := alternates(real)
		if err != nil {
			return nil, err
		}
		next = append(next, borrowed...)
	}
	return dirs, nil
}

// alternates returns the absolute directories that an object directory borrows from.
func alternates(objects string) (dirs []string, err error) {
	text, err := safeopen.ReadFile(filepath.Join(objects, "info/alternates"), maxSetting, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &RefusedError{Dir: objects, Reason: err.Error()}
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, `"`) {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(objects, line)
		}
		dirs = append(dirs, line)
	}
	return dirs, nil
}

// seeded reports whether the objects have been linked since the user's newest commit, judged without running
// git.
func (r Repo) seeded(store string, dirs []string) bool {
	if r.Head == "" {
		return true
	}
	if !IsGone(loosePath(filepath.Join(store, "objects"), r.Head)) {
		return true
	}
	for _, dir := range dirs {
		packs, err := os.ReadDir(filepath.Join(dir, "pack")) // the object is in one of these
		if !IsGone(loosePath(dir, r.Head)) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		for _, pack := range packs {
			if filepath.Ext(pack.Name()) == ".pack" && IsGone(filepath.Join(store, "objects/pack", pack.Name())) {
				return false
			}
		}
	}
	return true
}

// linkObjects hard-links every object of a repository to our git directory. Links take no space, and preserve
// objects that the user's git prunes. Where links are impossible, such as across file systems, it copies.
func linkObjects(ctx context.Context, from, to string, link func(from, to string) error) error {
	dirs, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	var links sync.WaitGroup
	var errs [parts]error
	for part := range parts {
		links.Go(func() {
			for i, dir := range dirs {
				name := dir.Name()
				isLoose := len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
				if i%parts == part && errs[part] == nil && dir.IsDir() && isLoose {
					errs[part] = linkDir(ctx, filepath.Join(from, name), filepath.Join(to, name), link)
				}
			}
		})
	}
	links.Wait()
	// A concurrent git gc moves loose objects and the objects of other packs to a new pack.
	for _, dir := range slices.Concat(dirs, dirs) {
		if dir.IsDir() && dir.Name() == "pack" {
			err = errors.Join(err, linkDir(ctx, filepath.Join(from, "pack"), filepath.Join(to, "pack"), link))
		}
	}
	return errors.Join(append(errs[:], err)...)
}

// parts is the number of goroutines that look at many files.
const parts = 2

// linkDir links the files that don't exist yet. It links an index after its pack, because git would otherwise
// search for the missing pack.
func linkDir(ctx context.Context, from, to string, link func(from, to string) error) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 && err == nil {
		return nil // removed just now by the user's git gc
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	present := map[string]bool{}
	have, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	for _, e := range have {
		present[e.Name()] = e.Type().IsRegular()
	}
	for _, e := range slices.Backward(entries) { // sorted by name: pack-x.idx, pack-x.pack, pack-x.rev
		if name := e.Name(); !present[name] && e.Type().IsRegular() && isObject(name) {
			if err := linkFile(filepath.Join(from, name), filepath.Join(to, name), link); err != nil || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
		}
	}
	return nil
}

// promisor is the extension of a file beside a pack of a partial clone, whose objects may refer to unfetched ones.
const promisor = ".promisor"

// isObject reports whether a file is an object, a pack or a file beside a pack.
func isObject(name string) bool {
	switch filepath.Ext(name) {
	case ".pack", ".idx", ".rev", promisor:
		return strings.HasPrefix(name, "pack-")
	}
	return strings.Trim(name, "0123456789abcdef") == "" && (len(name) == 38 || len(name) == 62)
}

// linkFile hard-links or copies a regular file. If another program replaced it in the meantime, for example by a
// pipe that would block git, the link is removed.
func linkFile(from, to string, link func(from, to string) error) error {
	err := link(from, to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // pruned: none of our files reference it
	case err != nil && !errors.Is(err, fs.ErrExist):
		return copyFile(from, to)
	}
	if info, err := os.Lstat(to); err != nil || info.Mode().IsRegular() {
		return err
	}
	return os.Remove(to)
}

// kinds returns the kinds of objects; "" if an object doesn't exist.
func (g git) kinds(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := g.run(ctx, []byte(strings.Join(names, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return nil, err
	}
	kinds := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(kinds) != len(names) {
		return nil, fmt.Errorf("git cat-file prints %q", out)
	}
	for i, kind := range kinds {
		if strings.Contains(kind, " ") { // "<name> missing"
			kinds[i] = ""
		}
	}
	return kinds, nil
}

// having returns the objects that exist.
func (g git) having(ctx context.Context, names []string) (have []string, err error) {
	kinds, err := g.kinds(ctx, names)
	for i, kind := range kinds {
		if kind != "" {
			have = append(have, names[i])
		}
	}
	return have, err
}

// linkIndex is like [copyIndex] for a thread's index. It makes a hard link, because git replaces an index and never
// changes it in place.
func linkIndex(from, to string) error {
	if os.Link(from, to) == nil {
		if info, err := os.Lstat(to); err == nil && info.Mode().IsRegular() {
			return nil
		}
		_ = os.Remove(to)
	}
	_, err := copyIndex(from, to, func([]byte) {})
	return err
}

// copyIndex changes an index and writes it to another path, if it exists. It keeps its time, which git compares with
// the times of files. Git can rebuild an index, so it isn't flushed.
func copyIndex(from, to string, change func(index []byte)) (index []byte, err error) {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		index, err = safeopen.ReadFile(from, gitindex.MaxBytes, safeopen.NoFollow)
	}
	if err == nil {
		change(index)
		err = errors.Join(os.WriteFile(to, index, 0o600), os.Chtimes(to, info.ModTime(), info.ModTime()))
	}
	return index, err
}

// copyFile copies and flushes a regular file atomically.
func copyFile(from, to string) (err error) {
	in, err := safeopen.Open(from, safeopen.NoFollow)
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
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}
