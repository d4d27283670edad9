package tools

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/worktree"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// CacheDirs are the directories in which the user's build tools keep what they have
// downloaded or built, as far as they exist, for who lets commands write there: they
// hold programs that a person starts, and sources that a person builds; see [CacheSet].
// The user's general cache directory is made if it is missing.
func CacheDirs(environ []string) []string {
	env := variables(environ)
	home := env["HOME"]
	or := func(name string, below ...string) string {
		if env[name] != "" || home == "" {
			return env[name]
		}
		return filepath.Join(append([]string{home}, below...)...)
	}
	under := func(dir string, below ...string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(append([]string{dir}, below...)...)
	}
	cargo, gradle, gopath := or("CARGO_HOME", ".cargo"), or("GRADLE_USER_HOME", ".gradle"), or("GOPATH", "go")
	var dirs []string
	for _, dir := range []string{
		cacheHome(environ), env["GOCACHE"], env["GOMODCACHE"], under(gopath, "pkg"),
		or("npm_config_cache", ".npm"), under(cargo, "registry"), under(cargo, "git"),
		under(gradle, "caches"), under(gradle, "daemon"), under(gradle, "wrapper"), under(home, ".m2", "repository"), env["PIP_CACHE_DIR"],
	} {
		if info, err := os.Stat(dir); filepath.IsAbs(dir) && err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// gitDirs is the repository of a linked work tree or a submodule, which lies elsewhere: without
// it nothing could be committed. The file .git that names it is the model's to
// write, so the repository must name this work tree too.
func (w *Workspace) gitDirs() []string {
	if repository, ok := worktree.Link(w.real); ok {
		return []string{repository}
	}
	if repository, ok := offlimits.Module(w.real); ok {
		return []string{repository}
	}
	return nil // a directory, or no repository
}

// variables are those of an environment, by name.
func variables(environ []string) map[string]string {
	env := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return env
}
