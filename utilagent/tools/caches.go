package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/safeopen"
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
	if len(env) > 0 && os.WriteFile(own+usedSuffix, []byte(of), 0o600) == nil && err != nil {
		sweepCaches(filepath.Dir(own), own+usedSuffix)
	}
	return env, dirs
}

// CacheSet gives confined programs caches of their own, since people later run what lies in
// such directories: built packages, sources used in builds, hooks, virtual environments,
// browsers. It returns the variables that name them, and the only directories to which such
// programs may write. Downloads from the user's caches are there too, as links, through which
// nobody can write. Without a cache directory of the user's there is no set.
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
	s.fill(general)
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
		repository, err := safeopen.ReadFile(note, 1<<16, safeopen.NoFollow)
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

// Bounds of what a set of caches takes from the user's.
const (
	maxStock  = 100_000  // files and directories; the others are fetched anew
	maxCopied = 64 << 10 // bytes of a file that is copied
)

// stock fills a set of caches. Commands can write to the set, so all access goes through a
// root: a link that they left cannot lead outside.
type stock struct {
	root *os.Root
	own  string
	user map[string]string // the user's environment
	env  []string
	seen int
	full bool // nothing more is taken from the user's
}

// fill makes the set. General caches begin empty.
func (s *stock) fill(users string) {
	for variable, dir := range map[string]string{"XDG_CACHE_HOME": ".", "GOCACHE": "go-build", "npm_config_cache": "npm", "PIP_CACHE_DIR": "pip"} {
		s.name(variable, dir)
	}
	if browsers := filepath.Join(users, "ms-playwright"); isDir(browsers) { // large, and only read
		s.env = append(s.env, "PLAYWRIGHT_BROWSERS_PATH="+browsers)
	}
	s.goModules()
	if home, ok := s.home("CARGO_HOME", ".cargo", "cargo"); ok {
		s.name("CARGO_HOME", "cargo")
		s.links(home, "cargo", "registry", "git", "credentials", "credentials.toml", ".global-cache")
		for _, dir := range []string{"registry/index", "registry/cache", "git/db"} {
			s.farm(filepath.Join(home, filepath.FromSlash(dir)), "cargo/"+dir)
		}
	}
	if home, ok := s.home("", ".m2", "mvn"); ok && !strings.ContainsAny(s.own, " \t\"'") { // words of a shell
		s.env = append(s.env, "MAVEN_OPTS="+strings.TrimSpace(s.user["MAVEN_OPTS"]+" -Dmaven.repo.local="+filepath.Join(s.own, "m2")))
		s.farm(filepath.Join(home, "repository"), "m2")
	}
	if home, ok := s.home("GRADLE_USER_HOME", ".gradle", "gradle"); ok {
		s.name("GRADLE_USER_HOME", "gradle")
		if caches := filepath.Join(home, "caches"); isDir(filepath.Join(caches, "modules-2")) && s.user["GRADLE_RO_DEP_CACHE"] == "" {
			s.env = append(s.env, "GRADLE_RO_DEP_CACHE="+caches) // which it may only read
		}
		s.links(home, "gradle", "caches", "daemon", "wrapper", "native", "workers", "notifications", ".tmp")
		s.farm(filepath.Join(home, "wrapper", "dists"), "gradle/wrapper/dists")
	}
	slices.Sort(s.env)
}

// goModules: whatever GOPROXY and GOPRIVATE say, Go treats what is in the module cache as
// downloaded by itself. Used as a proxy (file://), the user's cache would hide newer versions,
// and would be bypassed for private modules. Go keeps a file about its database of checksums
// beside the modules.
func (s *stock) goModules() {
	settings := s.goEnv()
	s.user["GOPATH"], _, _ = strings.Cut(cmp.Or(s.user["GOPATH"], settings["GOPATH"]), string(filepath.ListSeparator))
	gopath, ok := s.home("GOPATH", "go", "go")
	if !ok {
		return
	}
	modules := cmp.Or(s.user["GOMODCACHE"], settings["GOMODCACHE"], filepath.Join(gopath, "pkg", "mod"))
	s.name("GOPATH", "go")
	s.name("GOMODCACHE", "go/pkg/mod")
	s.links(gopath, "go", "pkg")
	s.farm(filepath.Join(modules, "cache", "download"), "go/pkg/mod/cache/download")
	s.farm(filepath.Join(gopath, "pkg", "sumdb"), "go/pkg/sumdb")
}

// goEnv is what `go env -w` has written.
func (s *stock) goEnv() map[string]string {
	file := s.user["GOENV"]
	if file == "" {
		file = filepath.Join(cmp.Or(s.user["XDG_CONFIG_HOME"], filepath.Join(s.user["HOME"], ".config")), "go", "env")
	}
	text, err := safeopen.ReadFile(file, 1<<20, safeopen.Follow)
	if err != nil {
		return nil
	}
	return variables(strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"))
}

// name makes a directory of the set and points a variable to it.
func (s *stock) name(variable, dir string) {
	if err := s.root.MkdirAll(dir, 0o700); err == nil || os.IsExist(err) {
		s.env = append(s.env, variable+"="+filepath.Join(s.own, filepath.FromSlash(dir)))
	}
}

// home is a directory of a tool of the user's: what the variable says, or a place
// below the home directory. ok: it is there, or the tool is.
func (s *stock) home(variable, usual, program string) (dir string, ok bool) {
	if variable != "" {
		dir = s.user[variable]
	}
	if dir == "" && s.user["HOME"] != "" {
		dir = filepath.Join(s.user["HOME"], filepath.FromSlash(usual))
	}
	if !filepath.IsAbs(dir) {
		return "", false
	}
	candidates := []string{dir}
	for _, on := range filepath.SplitList(s.user["PATH"]) {
		candidates = append(candidates, filepath.Join(on, program))
	}
	return dir, slices.ContainsFunc(candidates, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// links makes links to the entries of a directory of the user's, except for some.
func (s *stock) links(from, to string, but ...string) {
	entries, _ := os.ReadDir(from) // it need not be there
	for _, e := range entries {
		if !slices.Contains(but, e.Name()) && !strings.HasSuffix(e.Name(), ".lock") && !strings.HasPrefix(e.Name(), ".package-cache") {
			_ = s.root.Symlink(filepath.Join(from, e.Name()), path.Join(to, e.Name())) // it is there
		}
	}
}

// A file of the user's is left out of a set if its name says that it is of a moment, is copied if its
// tool rewrites it in place, and else is there as a link.
var (
	ofAMoment = lazyregexp.New(`^(list|FETCH_HEAD|\.cargo-.*|.*\.(lock|lck|part|partial|lastUpdated))$`)
	rewritten = lazyregexp.New(`^(latest|config\.json|_remote\.repositories|resolver-status\.properties|maven-metadata.*)$`)
)

// farm recreates the user's directories, with links or copies for the files. It leaves
// existing entries alone, and what fails is downloaded again.
func (s *stock) farm(from, to string) {
	if s.full {
		return
	}
	if info, err := s.root.Lstat(to); err == nil && !info.IsDir() || err != nil && s.root.MkdirAll(to, 0o700) != nil {
		return
	}
	entries, _ := os.ReadDir(from) // it need not be there
	there := map[string]bool{}
	if at, err := fs.ReadDir(s.root.FS(), to); err == nil {
		for _, e := range at {
			there[e.Name()] = true
		}
	}
	for _, e := range entries {
		if s.seen++; s.seen > maxStock {
			return
		}
		at, name := filepath.Join(from, e.Name()), path.Join(to, e.Name())
		switch {
		case e.IsDir():
			s.farm(at, name)
		case there[e.Name()] || !e.Type().IsRegular() || ofAMoment().MatchString(e.Name()):
		case !rewritten().MatchString(e.Name()):
			_ = s.root.Symlink(at, name)
		default:
			if text, err := safeopen.ReadFile(at, maxCopied, safeopen.NoFollow); err == nil {
				_ = s.root.WriteFile(name, text, 0o600)
			}
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
