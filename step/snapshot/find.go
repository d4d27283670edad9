package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Repo is a git work tree, as returned by [Find].
type Repo struct {
	Root   string // of the work tree, without symbolic links
	Common string // git directory shared by all work trees of the repository
	Dir    string // git directory of this work tree
	Index  string // the user's index
	Format string // hash function: sha1 or sha256
	Head   string // commit; "" without one
	// Partial means that the user's git fetches objects on demand.
	Partial bool

	env env.Env
	// Keys holds the harmless settings of the repository's config, as [Spec.Keys].
	Keys [][2]string
}

// Find returns the work tree that contains a directory, which must be absolute and without symbolic links. It
// is cheap if there is no .git. It returns [ErrNone], or a [*RefusedError], also for what git itself refuses,
// such as another user's repository.
func Find(ctx context.Context, e env.Env, dir string) (Repo, error) {
	if gitdir.Top(dir) == "" {
		return Repo{}, ErrNone
	}
	ctx, cancel := context.WithTimeoutCause(ctx, findPatience, errWaits)
	defer cancel()
	g := newGit(e.Environ, dir)
	r := Repo{env: e}
	var unset error
	var config sync.WaitGroup
	config.Go(func() { r.Keys, r.Partial, unset = harmless(ctx, g) })
	out, err := g.run(ctx, nil, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir",
		"--absolute-git-dir",
		"--git-path", "index", "--show-object-format", "--revs-only", "HEAD")
	config.Wait()
	if err = cmp.Or(err, unset); err != nil {
		return Repo{}, &RefusedError{Dir: dir, Reason: reason(err)}
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) == 5 {
		lines = append(lines, "")
	}
	if len(lines) != 6 || strings.HasPrefix(lines[0], "--") {
		return Repo{}, &RefusedError{Dir: dir, Reason: "git rev-parse cannot find the work tree: it needs git " +
			"2.31 or newer, and a path without line breaks"}
	}
	r.Format, r.Head = lines[4], lines[5]
	for i, to := range []*string{&r.Root, &r.Common, &r.Dir, &r.Index} {
		*to = filepath.FromSlash(lines[i])
	}
	if _, set := setting(r.Keys, lfsStorage); !set { // otherwise git-lfs would store large files only beside our objects
		r.Keys = append(r.Keys, [2]string{lfsStorage, filepath.Join(r.Common, "lfs")})
	}
	return r, r.check(dir)
}

// reason returns git's message for a failure, if any.
func reason(err error) string {
	var failed *GitError
	if errors.As(err, &failed) && failed.Stderr != "" {
		return "git: " + failed.Stderr
	}
	return err.Error()
}

// findPatience is git's timeout for finding a repository.
const findPatience = 10 * time.Second

// errWaits means that a git command timed out. Anyone who can write to a repository can make git wait
// forever.
var errWaits = errors.New("git does not exit; the repository may contain a pipe: find . -type p")

// check refuses a work tree that isn't next to its .git: with core.worktree, a repository could make us store
// any directory of the machine.
func (r *Repo) check(dir string) error {
	rest, err := filepath.Rel(r.Root, dir)
	if err != nil || !filepath.IsLocal(rest) {
		return &RefusedError{Dir: dir, Reason: "the work tree of its repository is elsewhere, at " + r.Root}
	}
	own, common, ok := gitdir.Dirs(r.Root)
	if !ok || !gitdir.Same(own, r.Dir) || !gitdir.Same(common, r.Common) {
		return &RefusedError{Dir: r.Root, Reason: "its .git does not point to the repository that git finds, " + r.Dir}
	}
	if r.Format != "sha1" && r.Format != "sha256" {
		return &RefusedError{Dir: r.Root, Reason: "unknown kind of hashes " + r.Format}
	}
	return nil
}

// harmlessKeys matches the keys of a repository's config that only affect how files are compared and written.
// None of them starts a program or refers to another path.
const harmlessKeys = `^core\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|excludesfile|sparsecheckout|sparsecheckoutcone)$`

// lfsStorage is the git-lfs setting for the directory of file contents. A repository could point it anywhere,
// so only the user's own setting counts.
const lfsStorage = "lfs.storage"

// partialKeys matches settings that make git fetch objects on demand. They are only tested.
const partialKeys = `^extensions\.partialclone$|^remote\..*\.promisor$`

// harmless returns the harmless settings as git understands them, the last one of each key, and whether a
// partial clone is configured.
func harmless(ctx context.Context, g git) (keys [][2]string, partial bool, err error) {
	out, err := g.run(ctx, nil, "config", "-z", "--show-scope", "--get-regexp", harmlessKeys+"|"+partialKeys+`|^lfs\.storage$`)
	if err != nil {
		if ended(err, exitNo) {
			err = nil
		}
		return nil, false, err
	}
	for pair := range slices.Chunk(fields(out), 2) {
		key, value, set := strings.Cut(pair[len(pair)-1], "\n")
		if !set {
			value = "true"
		}
		if key == lfsStorage && pair[0] != "global" && pair[0] != "system" {
			continue
		}
		if key == "core.excludesfile" && !isFile(g, value) {
			continue // git would wait for a pipe
		}
		if strings.HasPrefix(key, "extensions.") || strings.HasPrefix(key, "remote.") {
			partial = partial || value != "false"
			continue
		}
		keys = append(keys, [2]string{key, value})
	}
	return keys, partial, nil
}

// isFile reports whether a path in a config is a regular file.
func isFile(g git, path string) bool {
	info, err := os.Stat(expandHome(env.Env{Environ: g.env}, path))
	return err == nil && info.Mode().IsRegular()
}

// expandHome expands a path in a config as git does.
func expandHome(e env.Env, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(e.Get("HOME"), rest)
	}
	return path
}

// Version is a version of git.
type Version struct {
	Text         string
	Major, Minor int
}

// AtLeast reports whether the version is at least major.minor.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// GitVersion returns git's version. It doesn't use a git program in dir.
func GitVersion(ctx context.Context, e env.Env, dir string) (Version, error) {
	out, err := newGit(e.Environ, dir).line(ctx, "version")
	if err != nil {
		return Version{}, err
	}
	var v Version
	if _, err := fmt.Sscanf(out, "git version %d.%d", &v.Major, &v.Minor); err != nil {
		return v, fmt.Errorf("unknown git version %q", out)
	}
	v.Text = strings.Fields(out)[2]
	return v, nil
}

// LacksLFS reports whether the repository uses git-lfs while it isn't installed, so that its files are
// pointers.
func (r Repo) LacksLFS() bool {
	text, err := safeopen.ReadFile(filepath.Join(r.Root, ".gitattributes"), maxSetting, safeopen.NoFollow)
	return err == nil && strings.Contains(string(text), "filter=lfs") && !hasLFS(r.env.Environ, r.Root)
}
