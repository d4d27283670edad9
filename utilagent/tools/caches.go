package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/careful"
)

// Caches are those of the commands of a repository; see [CacheSet]. What they leave
// there is for nobody but commands of the same repository.
func (w *Workspace) Caches(environ []string) (env, dirs []string) {
	of := filepath.Join(w.real, ".git") // work trees of a repository share
	if common := w.gitDirs(); len(common) > 0 {
		of = common[0]
	}
	sum := sha256.Sum256([]byte(of))
	set := filepath.Join("commands", hex.EncodeToString(sum[:8]))
	own := filepath.Join(cacheHome(environ), "uwf", set)
	_, err := os.Lstat(own)
	env, dirs = CacheSet(set, environ)
	if len(env) > 0 && used(own, of) && err != nil {
		sweepCaches(filepath.Dir(own), own+usedSuffix)
	}
	return env, dirs
}

// CacheSet gives confined programs caches of their own for what may hold programs
// that people run later: the general cache directory with all that lies in it
// (virtual environments, hooks, browsers), Go's built packages, npm's programs. It
// returns the variables that name them, and all directories to which such programs
// may write: also those of downloads, which tools share with the user. Without a
// cache directory of the user's there is no set.
func CacheSet(name string, environ []string) (env, dirs []string) {
	general := cacheHome(environ)
	dirs = slices.DeleteFunc(CacheDirs(environ), func(dir string) bool {
		base := filepath.Base(dir)
		return isBelow(general, dir) || base == ".npm" || base == "wrapper" || base == "go-build" || hasValue(environ, "GOCACHE", dir) ||
			hasValue(environ, "npm_config_cache", dir) || hasValue(environ, "PIP_CACHE_DIR", dir)
	})
	if general == "" {
		return nil, dirs
	}
	own := filepath.Join(general, "uwf", name)
	for name, variable := range map[string]string{"": "XDG_CACHE_HOME", "go-build": "GOCACHE", "npm": "npm_config_cache", "pip": "PIP_CACHE_DIR"} {
		dir := filepath.Join(own, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, dirs
		}
		env = append(env, variable+"="+dir)
	}
	slices.Sort(env)
	for _, browsers := range []string{"ms-playwright"} { // large, and only read
		dir := filepath.Join(general, browsers)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			env = append(env, "PLAYWRIGHT_BROWSERS_PATH="+dir)
		}
	}
	return env, append(dirs, own)
}

// usedSuffix is the end of the name of a file beside a set of caches, where no
// command can write: it says which repository the set is for, and when it was
// used last.
const usedSuffix = ".of"

// used notes that a set is used. False: it cannot be noted, and the set may go early.
func used(set, repository string) bool {
	return os.WriteFile(set+usedSuffix, []byte(repository), 0o600) == nil
}

// sweepCaches removes the sets of repositories that are gone, and those that were
// not used for a month before the newest one: a first build is a cold one, no more.
func sweepCaches(sets, newest string) {
	const month = 30 * 24 * time.Hour
	now, err := os.Stat(newest)
	if err != nil {
		return
	}
	notes, _ := filepath.Glob(filepath.Join(sets, "*"+usedSuffix)) // the pattern is a right one
	for _, note := range notes {
		repository, err := careful.ReadFile(note, 1<<16, careful.NoFollow)
		if err != nil {
			continue
		}
		info, err := os.Lstat(note)
		_, gone := os.Lstat(filepath.Dir(string(repository))) // a workspace need not have a .git
		if err == nil && now.ModTime().Sub(info.ModTime()) < month && !isGone(gone) {
			continue
		}
		if os.RemoveAll(strings.TrimSuffix(note, usedSuffix)) == nil {
			_ = os.Remove(note) // else the next sweep finds it again
		}
	}
}

func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func isBelow(dir, name string) bool {
	_, ok := below(dir, name)
	return ok
}

func hasValue(environ []string, name, value string) bool {
	return slices.Contains(environ, name+"="+value)
}

// cacheHome is the user's general cache directory, which is made if it is missing;
// "": there is none.
func cacheHome(environ []string) string {
	home, general := "", ""
	for _, kv := range environ {
		switch name, value, _ := strings.Cut(kv, "="); name {
		case "HOME":
			home = value
		case "XDG_CACHE_HOME":
			general = value
		}
	}
	if general == "" && home != "" {
		general = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(general) {
		return ""
	}
	if err := os.MkdirAll(general, 0o700); err != nil {
		return ""
	}
	return general
}
