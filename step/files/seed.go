package files

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
	"time"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// storeName is our git directory in the user's.
const storeName = "uwf"

// maxSetting bounds the small files that are taken over from a repository, in bytes.
const maxSetting = 1 << 20

// Store is where the snapshots of the repository are kept: in its git directory, or
// where that cannot be written below elsewhere, such as <home>/git.
func (r Repo) Store(elsewhere string) string {
	own := filepath.Join(r.Common, storeName)
	if info, err := os.Lstat(own); err == nil && info.IsDir() && writable(own) {
		return own
	} else if errors.Is(err, fs.ErrNotExist) && writable(r.Common) {
		return own
	}
	sum := sha256.Sum256([]byte(r.Common))
	return filepath.Join(elsewhere, hex.EncodeToString(sum[:10]))
}

// writable reports whether we can make files in a directory.
func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".uwf-*.tmp")
	if err != nil {
		return false
	}
	_ = f.Close()
	return os.Remove(f.Name()) == nil
}

// Seed makes our git directory, or brings its settings up to date: what a repository
// that somebody else has packed brings at its place is written over. The user's
// objects are linked into it if they are not there, or if again is set. The zero Repo
// with a Format makes one that belongs to no repository.
func (r Repo) Seed(ctx context.Context, store string, again bool) error {
	if info, err := os.Lstat(store); err == nil && !info.IsDir() {
		return &RefusedError{Dir: store, Reason: "is " + careful.Kind(info.Mode().Type()) + ", where the snapshots are to be kept"}
	}
	for _, dir := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := mkdirs(store, dir); err != nil {
			return err
		}
	}
	held, err := durable.Lock(ctx, filepath.Join(store, "uwf.lock"))
	if err != nil {
		return fmt.Errorf("lock %s: %w", store, err)
	}
	defer func() { _ = held.Unlock() }()
	for _, foreign := range []string{"commondir", "gitdir", "config.worktree", "info/grafts", "objects/info/http-alternates"} {
		if err := os.RemoveAll(filepath.Join(store, foreign)); err != nil {
			return err
		}
	}
	if err := r.settings(store); err != nil {
		return err
	}
	if again || !r.seeded(store) {
		return linkObjects(ctx, filepath.Join(r.Common, "objects"), filepath.Join(store, "objects"))
	}
	return nil
}

// mkdirs makes directories below store, none of which is a link.
func mkdirs(store, dir string) error {
	if err := os.MkdirAll(filepath.Join(store, dir), 0o700); err != nil {
		return err
	}
	for at := dir; at != "."; at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(store, at)); err != nil || !info.IsDir() {
			return &RefusedError{Dir: filepath.Join(store, at), Reason: "is no directory"}
		}
	}
	return nil
}

// settings writes what git reads of a git directory, where it is not so already.
func (r Repo) settings(store string) error {
	want := map[string][]byte{"HEAD": []byte("ref: refs/heads/none\n"), "config": r.config()}
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
		if have, err := careful.ReadFile(path, maxSetting, careful.NoFollow); err == nil && bytes.Equal(have, text) {
			continue
		}
		if err := durable.Replace(durable.OS(), path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// takeOver adds the small files of the repository that say which files count.
func (r Repo) takeOver(want map[string][]byte) (err error) {
	if want["objects/info/alternates"], err = r.alternates(); err != nil {
		return err
	}
	for name, from := range map[string]string{
		"info/exclude": filepath.Join(r.Common, "info/exclude"), "info/attributes": filepath.Join(r.Common, "info/attributes"),
		"info/sparse-checkout": filepath.Join(r.Dir, "info/sparse-checkout"), "shallow": filepath.Join(r.Common, "shallow"),
	} {
		text, err := careful.ReadFile(from, maxSetting, careful.NoFollow)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &RefusedError{Dir: from, Reason: err.Error()}
		}
		want[name] = text
	}
	return nil
}

// config is that of our git directory.
func (r Repo) config() []byte {
	var b bytes.Buffer
	version, objects := 0, ""
	if r.Format != "sha1" {
		version, objects = 1, "[extensions]\n\tobjectformat = "+r.Format+"\n"
	}
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %d\n\tbare = false\n", version)
	for _, s := range settings {
		if section, name, _ := strings.Cut(s[0], "."); section == "core" {
			fmt.Fprintf(&b, "\t%s = %s\n", name, quoted(s[1]))
		}
	}
	b.WriteString(objects)
	return b.Bytes()
}

// quoted is a value as git's config writes it.
func quoted(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\x00", "").Replace(value) + `"`
}

// alternates are the object directories that the repository borrows from, absolute.
func (r Repo) alternates() ([]byte, error) {
	objects := filepath.Join(r.Common, "objects")
	text, err := careful.ReadFile(filepath.Join(objects, "info/alternates"), maxSetting, careful.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &RefusedError{Dir: objects, Reason: err.Error()}
	}
	var b bytes.Buffer
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, `"`) {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(objects, line)
		}
		b.WriteString(line + "\n")
	}
	return b.Bytes(), nil
}

// seeded reports whether the objects were linked since the user's newest commit was
// made, as far as a look without git can tell.
func (r Repo) seeded(store string) bool {
	if r.Head == "" {
		return true
	}
	at := filepath.Join(r.Head[:2], r.Head[2:])
	if _, err := os.Lstat(filepath.Join(store, "objects", at)); err == nil {
		return true
	}
	if _, err := os.Lstat(filepath.Join(r.Common, "objects", at)); err == nil {
		return false
	}
	theirs, err := filepath.Glob(filepath.Join(globbed(r.Common), "objects/pack/*.pack")) // it is in a pack of theirs
	if err != nil {
		return false
	}
	for _, pack := range theirs {
		if _, err := os.Lstat(filepath.Join(store, "objects/pack", filepath.Base(pack))); err != nil {
			return false
		}
	}
	return true
}

// globbed is a path that stands for itself in a pattern.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// linkObjects gives every object of the user's a second name in our git directory: it
// costs no room, and what the user's git prunes stays here. Where that cannot be, they
// are copied.
func linkObjects(ctx context.Context, from, to string) error {
	dirs, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		name := dir.Name()
		if err := ctx.Err(); err != nil {
			return err
		}
		if !dir.IsDir() || len(name) != 2 && name != "pack" || strings.Trim(name, "0123456789abcdef") != "" && name != "pack" {
			continue
		}
		if err := linkDir(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// linkDir links the files of a directory that are not there yet. An index comes after
// its pack, or git would look for what is not there.
func linkDir(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 && err == nil {
		return nil // a collection of the user's has just removed it
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
		present[e.Name()] = true
	}
	last := func(name string) int { return strings.Compare(filepath.Ext(name), ".idx") }
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
		x, y := last(a.Name()) == 0, last(b.Name()) == 0
		switch {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	for _, e := range entries {
		if name := e.Name(); !present[name] && e.Type().IsRegular() && isObject(name) {
			if err := linkFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// isObject tells an object, a pack or its index from what else lies there.
func isObject(name string) bool {
	switch filepath.Ext(name) {
	case ".pack", ".idx", ".rev":
		return strings.HasPrefix(name, "pack-")
	}
	return strings.Trim(name, "0123456789abcdef") == "" && (len(name) == 38 || len(name) == 62)
}

func linkFile(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil // one that is gone was pruned: nothing of ours names it
	}
	return copyFile(from, to, time.Time{})
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

// configSum is a sum of what git obeys in our git directory.
func configSum(store string) (string, error) {
	text, err := careful.ReadFile(filepath.Join(store, "config"), maxSetting, careful.NoFollow)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// untouched refuses a git directory of ours whose settings somebody has changed since
// the step began: an agent could have git start a program.
func untouched(s Spec) error {
	if s.Config == "" {
		return nil
	}
	if sum, err := configSum(s.Git); err != nil || sum != s.Config {
		return &RefusedError{Dir: s.Git, Reason: "its settings have been changed"}
	}
	if _, err := os.Lstat(filepath.Join(s.Git, "commondir")); err == nil {
		return &RefusedError{Dir: s.Git, Reason: "it leads elsewhere"}
	}
	return nil
}
