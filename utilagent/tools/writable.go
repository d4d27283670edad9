package tools

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// CacheDirs are the directories in which build tools keep what they have
// downloaded or built, as far as they exist: without them a confined command
// could hardly build anything. Programs that a person starts do not lie there.
// The user's general cache directory is made if it is missing.
func CacheDirs(environ []string) []string {
	env := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
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
	general := or("XDG_CACHE_HOME", ".cache")
	if filepath.IsAbs(general) {
		_ = os.MkdirAll(general, 0o700) // if it cannot be made it is left out, as the others
	}
	var dirs []string
	for _, dir := range []string{
		general, env["GOCACHE"], env["GOMODCACHE"], under(gopath, "pkg"),
		or("npm_config_cache", ".npm"), under(cargo, "registry"), under(cargo, "git"),
		under(gradle, "caches"), under(gradle, "daemon"), under(gradle, "wrapper"), under(home, ".m2", "repository"), env["PIP_CACHE_DIR"],
	} {
		if info, err := os.Stat(dir); filepath.IsAbs(dir) && err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// gitDirs is the repository of a linked work tree, which lies elsewhere: without
// it nothing could be committed. The file .git that names it is the model's to
// write, so the repository must name this work tree too.
func (w *Workspace) gitDirs() []string {
	text, err := readSmall(filepath.Join(w.real, ".git"))
	if err != nil {
		return nil // a directory, or no repository
	}
	own, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return nil
	}
	if !filepath.IsAbs(own) {
		own = filepath.Join(w.real, own)
	}
	if own, err = filepath.EvalSymlinks(own); err != nil {
		return nil
	}
	back, err := readSmall(filepath.Join(own, "gitdir"))
	if err != nil {
		return nil
	}
	if !filepath.IsAbs(back) {
		back = filepath.Join(own, back)
	}
	common := filepath.Dir(filepath.Dir(own))
	if real, err := filepath.EvalSymlinks(filepath.Dir(back)); err != nil || real != w.real || filepath.Base(filepath.Dir(own)) != "worktrees" {
		return nil
	}
	if _, err := readSmall(filepath.Join(common, "HEAD")); err != nil {
		return nil
	}
	return []string{common}
}

var errNotSmall = errors.New("is not a small file")

// readSmall reads one line from a file.
func readSmall(name string) (text string, err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
		return "", errors.Join(err, &fs.PathError{Op: "read", Path: name, Err: errNotSmall})
	}
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	return strings.TrimSpace(string(b)), err
}
