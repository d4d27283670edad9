package box

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Bounds of what is made writable in git directories. Anything beyond them is read-only.
const (
	maxHeld   = 50      // work trees, modules, and repositories in the workspace
	maxConfig = 1 << 20 // bytes of a config
)

// configs is the directory in which the program sees its writable copies of configs.
const configs = "/run/uwf"

// ownGit protects the workspace's git directory: the program can commit, but cannot change what git runs or
// obeys. config becomes a link to a private copy, because git follows links when it writes.
func (b *builder) ownGit(dir string) error {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil { // not a repository, and it must not become one
			b.hold(dir)
			return nil
		}
	}
	if err := ready(dir); err != nil {
		return err
	}
	b.write(dir)
	for _, name := range []string{"objects", "worktrees", "modules"} { // a mount cannot be moved away
		b.pin(filepath.Join(dir, name))
	}
	for _, name := range []string{"hooks", "info", "objects/info", "config.worktree", "commondir", "gitdir"} {
		b.hold(filepath.Join(dir, filepath.FromSlash(name)))
	}
	for _, tree := range b.children(filepath.Join(dir, "worktrees")) {
		b.pin(tree)
		for _, name := range []string{"config.worktree", "commondir", "gitdir"} {
			b.hold(filepath.Join(tree, name))
		}
	}
	b.modules(filepath.Join(dir, "modules"), 0)
	return b.ownConfig(filepath.Join(dir, "config"))
}

// above shows the work tree that contains the workspace, without its .env files, and its repository.
func (b *builder) above(r Request) {
	top := gitdir.Top(r.Workspace)
	if top == "" || top == r.Workspace || slices.ContainsFunc(b.homes, func(home string) bool { return below(top, home) }) || top == "/" {
		return
	}
	b.add(plan.Mount{Path: top, Kind: plan.Show, Missing: true})
	if repository, ok := gitdir.Link(top); ok {
		b.add(plan.Mount{Path: repository, Kind: plan.Show, Missing: true})
	}
	for _, name := range []string{".env", ".env.local"} {
		if at := filepath.Join(top, name); identity(at) != "" && !anyBelow(r.Off.Readable(), at) {
			b.add(plan.Mount{Path: at, Kind: plan.Hide, Missing: true})
		}
	}
}

// ready creates the directories that git adds to a new repository, because they cannot be created later.
func ready(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for _, name := range []string{"hooks", "info", "objects/info"} {
		if e := root.Mkdir(name, 0o777); e != nil && !errors.Is(e, os.ErrExist) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, root.Close())
}

// maxModules bounds the nesting depth of submodules.
const maxModules = 6

// modules protects the git directories of submodules. A submodule's name may contain slashes.
func (b *builder) modules(dir string, depth int) {
	for _, at := range b.children(dir) {
		if _, missing := os.Lstat(filepath.Join(at, "HEAD")); missing == nil {
			b.anyGit(at)
		} else if depth < maxModules {
			b.pin(at)
			b.modules(at, depth+1)
		}
	}
}

// anyGit protects a git directory other than the workspace's own. An earlier command may have created it, so
// if it is malformed it becomes read-only and the next command still starts.
func (b *builder) anyGit(dir string) {
	if b.ownGit(dir) == nil {
		return
	}
	for path := range b.mounts {
		if path != dir && below(dir, path) {
			delete(b.mounts, path)
		}
	}
	b.hold(dir)
}

// nested protects the repositories inside a workspace, given by their relative paths.
func (b *builder) nested(workspace string, names []string) {
	for i, name := range names {
		at := filepath.Join(workspace, filepath.FromSlash(name))
		info, missing := os.Lstat(at)
		switch {
		case missing != nil:
		case info.IsDir() && i < maxHeld:
			b.anyGit(at)
		default:
			b.hold(at)
		}
	}
}

// pointed returns the paths to which git's settings point, and those in the workspace that git obeys because settings,
// links or the environment point to them.
func (r Request) pointed() (files, names []string) {
	files, names = r.Off.Pointed(r.Workspace)
	var paths []string
	for _, dir := range r.gitDirs() {
		for _, name := range []string{"config", "hooks", "info"} {
			if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode()&os.ModeSymlink != 0 {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
	}
	for _, kv := range r.Environ {
		switch name, value, _ := strings.Cut(kv, "="); name {
		case "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM":
			paths = append(paths, value)
		case "XDG_CONFIG_HOME":
			paths = append(paths, filepath.Join(value, "git", "config"), filepath.Join(value, "git", "attributes"))
		}
	}
	for _, path := range paths {
		path = safeopen.Resolved(path)
		if rel, err := filepath.Rel(r.Workspace, path); err == nil && filepath.IsLocal(rel) && filepath.IsAbs(path) {
			names = append(names, filepath.ToSlash(rel))
		}
	}
	return files, names
}

// children returns the subdirectories of a directory. Those after the first maxHeld become read-only.
func (b *builder) children(dir string) (dirs []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		switch {
		case !e.IsDir():
		case len(dirs) < maxHeld:
			dirs = append(dirs, at)
		default:
			b.hold(at)
		}
	}
	return dirs
}

// ownConfig gives the program a private copy of a git config.
func (b *builder) ownConfig(path string) error {
	text, err := safeopen.ReadFile(path, maxConfig, safeopen.Follow)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	n := strconv.Itoa(len(b.configs))
	dir := filepath.Join(b.state, "git"+n)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	copied := filepath.Join(dir, "config")
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		return err
	}
	c := gitCopy{Config: path, Real: real, Dir: identity(filepath.Dir(real)), Perm: info.Mode().Perm(), Copy: copied, Base: text, Born: born(path)}
	for _, other := range b.running {
		if other.Config == path && other.Born != c.Born { // its command may have written what is there
			c = other
			c.Copy = copied
		}
	}
	b.configs = append(b.configs, c)
	inside := configs + "/git" + n
	b.add(plan.Mount{Path: inside, Kind: plan.Write, From: dir})
	b.add(plan.Mount{Path: path, Kind: plan.Link, From: inside + "/config"})
	return nil
}

// gitSettings stops git from writing where it cannot, which would print errors.
func gitSettings(env []string) []string {
	env = append(slices.Clip(env), "GIT_TEMPLATE_DIR=") // no hooks in new repositories
	count := 0
	for _, kv := range env {
		if value, is := strings.CutPrefix(kv, "GIT_CONFIG_COUNT="); is {
			count, _ = strconv.Atoi(value) // git itself rejects a value that is not a number
		}
	}
	for _, key := range []string{"gc.writeCommitGraph", "repack.updateServerInfo", "fetch.writeCommitGraph", "maintenance.commit-graph.enabled"} {
		n := strconv.Itoa(count)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+key, "GIT_CONFIG_VALUE_"+n+"=false")
		count++
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(count))
}
