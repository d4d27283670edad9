// Package gitconfig merges the private copy of a repository's config into the real one.
//
// A boxed command writes its settings to a copy. Only names of remotes, branches, submodules and the
// user are merged; everything else that the command has set is dropped and reported.
package gitconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Bounds of what a command can make us read and write.
const (
	maxConfig    = 1 << 20
	maxChanges   = 500 // each is a process of git
	lockPatience = 2 * time.Second
)

// Merging names the files of one merge. Paths are absolute.
type Merging struct {
	Config, Copy string
	Base         []byte // the text of Config when the command began
	Dir          string // the top of the work tree: git is not looked for there
	Environ      []string
}

// settings are the values of each key, such as "remote.origin.url".
type settings map[string][]string

// Merge writes to Config what the command has changed in Copy and may change. It returns one line for
// each kind of change that a person must know; each follows "a command". Without a change it starts no process.
func Merge(ctx context.Context, m Merging) (told []string, err error) {
	text, err := safeopen.ReadFile(m.Copy, maxConfig, safeopen.NoFollow)
	if err != nil {
		return []string{"left a git config that cannot be read: none of its settings were kept"}, nil
	}
	return m.Text(ctx, text)
}

// Text is [Merge] of the text of a copy.
func (m Merging) Text(ctx context.Context, text []byte) (told []string, err error) {
	if bytes.Equal(text, m.Base) {
		return nil, nil
	}
	base, err := m.read(ctx, m.Base)
	if err != nil {
		return nil, fmt.Errorf("read the git config as it was: %w", err)
	}
	changed, err := m.read(ctx, text)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return []string{"left a git config that git cannot read: none of its settings were kept"}, nil
	}
	c := newChoice(base, changed)
	if len(c.wanted) > maxChanges {
		return []string{fmt.Sprintf("changed %d settings of git: none were kept", len(c.wanted))}, nil
	}
	if len(c.wanted) > 0 {
		if err := m.write(ctx, c); err != nil {
			return nil, fmt.Errorf("merge settings into %s: %w", m.Config, err)
		}
	}
	return c.told(), nil
}

// read returns the settings that a text has by git's rules.
func (m Merging) read(ctx context.Context, text []byte) (settings, error) {
	out, err := m.git(ctx, text, "config", "--file", "-", "--null", "--list", "--no-includes")
	if err != nil {
		return nil, err
	}
	found := settings{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			found[key] = append(found[key], value)
		} else if key != "" {
			found[key] = append(found[key], "\n") // no value at all, which no key that is merged has
		}
	}
	return found, nil
}

// write replaces the config under git's own lock. It is read under the lock, so that what others have
// changed meanwhile stays.
func (m Merging) write(ctx context.Context, c *choice) (err error) {
	config, err := filepath.EvalSymlinks(m.Config)
	if err != nil {
		return err
	}
	lock := config + ".lock"
	f, err := takeLock(ctx, lock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	defer func() {
		if err != nil {
			_ = os.Remove(lock)
		}
	}()
	text, err := safeopen.ReadFile(config, maxConfig, safeopen.NoFollow)
	if err != nil {
		return err
	}
	info, err := os.Lstat(config)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	real, err := m.read(ctx, text)
	if err != nil {
		return err
	}
	edits := c.edits(real)
	if len(edits) == 0 {
		return os.Remove(lock)
	}
	for _, args := range edits {
		if _, err := m.git(ctx, nil, append([]string{"config", "--file", lock}, args...)...); err != nil {
			return err
		}
	}
	return commit(lock, config, info)
}

// commit puts a finished lock file, which git has replaced by another one, in the config's place.
func commit(lock, config string, info fs.FileInfo) error {
	f, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	own(f, info)
	if err := errors.Join(f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(lock, config)
}

// takeLock makes git's lock file. One that a killed program has left is an error.
func takeLock(ctx context.Context, lock string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// differing returns the keys of which two configs have other values, sorted.
func differing(a, b settings) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	maps.DeleteFunc(all, func(key string, _ []string) bool { return slices.Equal(a[key], b[key]) })
	return slices.Sorted(maps.Keys(all))
}

// maxPrinted bounds what git prints of a config, in bytes.
const maxPrinted = 16 << 20

// git runs it outside of any repository and without the user's settings.
func (m Merging) git(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	program, err := proc.LookPath("git", m.Dir, m.Environ)
	if err != nil {
		return nil, err
	}
	environ := slices.DeleteFunc(slices.Clone(m.Environ), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	out, err := proc.Run(ctx, proc.Command{
		Path: program, Args: args, Dir: "/", Env: append(environ, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"), Session: true,
	}, bytes.NewReader(stdin), maxPrinted, time.Second)
	if err == nil && (out.Code != 0 || out.Cut) {
		err = fmt.Errorf("exit status %d", out.Code)
	}
	if err != nil {
		return nil, fmt.Errorf("git config: %w: %s", err, plaintext.Line(strings.TrimSpace(string(out.Stderr))))
	}
	return out.Stdout, nil
}
