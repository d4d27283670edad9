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

// Caches are those of the commands of a repository; see [CacheSet]. Only commands of the same
// repository use what they leave there.
func (w *Workspace) Caches(environ []string, now time.Time) (env, dirs []string) {
	of := filepath.Join(w.real, ".git") // work trees of a repository share
	if common := w.gitDirs(); len(common) > 0 {
		of = common[0]
	}
	sum := sha256.Sum256([]byte(of))
	set := filepath.Join("commands", hex.EncodeToString(sum[:8]))
	own := filepath.Join(cacheHome(environ), "uwf", set)
	_, err := os.Lstat(own)
	if err == nil && justFilled(own+usedSuffix, now) {
		return cacheSet(set, environ, false)
	}
	env, dirs = cacheSet(set, environ, true)
	if len(env) > 0 && used(own, of) && err != nil {
		sweepCaches(filepath.Dir(own), own+usedSuffix)
	}
	return env, dirs
}

// CacheSet gives confined programs caches of their own, since people later run what lies in
// such directories: built packages, sources used in builds, hooks, virtual environments,
// browsers. It returns the variables that name them, and the only directories to which such
// programs may write. Downloads from the user's caches are there too, as links, through which
// nobody can write; see stock. Without a cache directory of the user's there is no set.
func CacheSet(name string, environ []string) (env, dirs []string) {
	return cacheSet(name, environ, true)
}

// cacheSet is [CacheSet]; fill says whether to link what the user's caches have.
func cacheSet(name string, environ []string, fill bool) (env, dirs []string) {
	general := cacheHome(environ)
	if general == "" {
		return nil, nil
	}
	own := filepath.Join(general, "uwf", name)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, nil
	}
	root, err := os.OpenRoot(own)
	if err != nil {
		return nil, nil
	}
	defer root.Close() // everything was written
	s := stock{root: root, own: own, user: variables(environ), full: !fill}
	s.general(general)
	s.goModules()
	s.cargo()
	s.maven()
	s.gradle()
	slices.Sort(s.env)
	return s.env, []string{own}
}

// usedSuffix is the end of the name of a file beside a set of caches, where no
// command can write: it says which repository the set is for, and when it was
// used last.
const usedSuffix = ".of"

// fillTime is how long a set is used without filling it again: looking through everything that
// a user ever downloaded can take longer than the command.
const fillTime = time.Minute

// justFilled tells whether a set was filled a moment ago.
func justFilled(note string, now time.Time) bool {
	info, err := os.Lstat(note)
	if err != nil {
		return false
	}
	since := now.Sub(info.ModTime())
	return since >= 0 && since < fillTime
}

// used records that a set is in use. False: it cannot be recorded, and the set may be removed
// early.
func used(set, repository string) bool {
	return os.WriteFile(set+usedSuffix, []byte(repository), 0o600) == nil
}

// sweepCaches removes the sets of repositories that are gone, and those last used more than a
// month before the newest one. That costs a cold build, no more.
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
		if removeSet(strings.TrimSuffix(note, usedSuffix)) == nil {
			_ = os.Remove(note) // else the next sweep finds it again
		}
	}
}

func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// removeSet removes a set; Go keeps modules in read-only directories there.
func removeSet(set string) error {
	root, err := os.OpenRoot(set)
	if err != nil {
		return os.RemoveAll(set)
	}
	_ = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = root.Chmod(name, 0o700) // else the removal says why
		}
		return nil
	})
	return errors.Join(root.Close(), os.RemoveAll(set))
}

// cacheHome is the user's general cache directory, which is made if it is missing;
// "": there is none.
func cacheHome(environ []string) string {
	env := variables(environ)
	home, general := env["HOME"], env["XDG_CACHE_HOME"]
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
