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
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Caches returns the cache set for the commands of this repository; see [CacheSet]. Other repositories have
// separate sets.
func (w *Workspace) Caches(environ []string, now time.Time) (env, dirs []string) {
	of := filepath.Join(w.real, ".git") // shared by all work trees of a repository
	if common := offlimits.GitDirs(w.real); len(common) > 0 {
		of = common[0]
	}
	sum := sha256.Sum256([]byte(of))
	set := filepath.Join("commands", hex.EncodeToString(sum[:8]))
	env, dirs, created := cacheSet(set, of, environ, now)
	if created {
		sweepCaches(filepath.Dir(dirs[0]), dirs[0]+usedSuffix)
	}
	return env, dirs
}

// CacheSet gives confined programs private caches, because people later run what such directories contain:
// built packages, sources used in builds, hooks, virtual environments, browsers. It returns variables that
// point to the caches, and the only directories that such programs may write. The set links to downloads in
// the user's caches, read-only, except those of the last minute. If the user has no cache directory, there is no
// set.
func CacheSet(name string, environ []string, now time.Time) (env, dirs []string) {
	env, dirs, _ = cacheSet(name, "", environ, now)
	return env, dirs
}

// cacheSet implements [CacheSet] for a repository, if of is not "". created reports whether the set is new.
func cacheSet(name, of string, environ []string, now time.Time) (env, dirs []string, created bool) {
	general := cacheHome(environ)
	if general == "" {
		return nil, nil, false
	}
	own := filepath.Join(general, "uwf", name)
	_, missing := os.Lstat(own)
	if os.MkdirAll(own, 0o700) != nil {
		return nil, nil, false
	}
	root, err := os.OpenRoot(own)
	if err != nil {
		return nil, nil, false
	}
	defer root.Close() // nothing is left to flush
	filled := missing == nil && justFilled(own+usedSuffix, now)
	s := stock{root: root, own: own, user: variables(environ), full: filled}
	s.fill(general)
	if !filled && os.WriteFile(own+usedSuffix, []byte(of), 0o600) == nil {
		created = missing != nil
	}
	return s.env, []string{own}, created
}

// usedSuffix is the suffix of a file next to a cache set, where no command can write. It contains the
// repository of the set, and its modification time is the time of last use.
const usedSuffix = ".of"

// fillTime is the minimum time between fills of a set: scanning a user's downloads can take longer than the
// command.
const fillTime = time.Minute

// justFilled reports whether a set was filled a moment ago.
func justFilled(note string, now time.Time) bool {
	info, err := os.Lstat(note)
	if err != nil {
		return false
	}
	since := now.Sub(info.ModTime())
	return since >= 0 && since < fillTime
}

// sweepCaches removes the sets of deleted repositories, and those last used more than a month before the
// newest one. The cost is a slower build.
func sweepCaches(sets, newest string) {
	const month = 30 * 24 * time.Hour
	now, err := os.Stat(newest)
	if err != nil {
		return
	}
	notes, _ := fs.Glob(os.DirFS(sets), "*"+usedSuffix) // the pattern is valid
	for _, name := range notes {
		note := filepath.Join(sets, name)
		repository, err := safeopen.ReadFile(note, 1<<16, safeopen.NoFollow)
		if err != nil {
			continue
		}
		info, err := os.Lstat(note)
		_, gone := os.Lstat(filepath.Dir(string(repository))) // a workspace may have no .git
		if err == nil && now.ModTime().Sub(info.ModTime()) < month && !errors.Is(gone, fs.ErrNotExist) {
			continue
		}
		if safeopen.RemoveAll(strings.TrimSuffix(note, usedSuffix)) == nil { // also Go's read-only module directories
			_ = os.Remove(note) // otherwise the next sweep retries
		}
	}
}

// cacheHome returns the user's general cache directory and creates it if necessary, or returns "".
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

// Bounds of what a cache set takes from the user's caches.
const (
	maxStock  = 100_000  // files and directories; others are downloaded again
	maxCopied = 64 << 10 // bytes of a copied file
)

// stock fills a cache set. Commands can write to the set, so all access goes through a root: links they left
// cannot lead outside.
type stock struct {
	root *os.Root
	own  string
	user map[string]string // the user's environment
	env  []string
	seen int
	full bool // the limit is reached
}

// fill creates the set. General caches start empty.
func (s *stock) fill(users string) {
	for variable, dir := range map[string]string{"XDG_CACHE_HOME": ".", "GOCACHE": "go-build", "npm_config_cache": "npm", "PIP_CACHE_DIR": "pip"} {
		s.name(variable, dir)
	}
	if browsers := filepath.Join(users, "ms-playwright"); isDir(browsers) { // large, and read-only
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
	if home, ok := s.home("", ".m2", "mvn"); ok && !strings.ContainsAny(s.own, " \t\"'") { // the value is split like shell words
		s.env = append(s.env, "MAVEN_OPTS="+strings.TrimSpace(s.user["MAVEN_OPTS"]+" -Dmaven.repo.local="+filepath.Join(s.own, "m2")))
		s.farm(filepath.Join(home, "repository"), "m2")
	}
	if home, ok := s.home("GRADLE_USER_HOME", ".gradle", "gradle"); ok {
		s.name("GRADLE_USER_HOME", "gradle")
		if caches := filepath.Join(home, "caches"); isDir(filepath.Join(caches, "modules-2")) && s.user["GRADLE_RO_DEP_CACHE"] == "" {
			s.env = append(s.env, "GRADLE_RO_DEP_CACHE="+caches) // read-only
		}
		s.links(home, "gradle", "caches", "daemon", "wrapper", "native", "workers", "notifications", ".tmp")
		s.farm(filepath.Join(home, "wrapper", "dists"), "gradle/wrapper/dists")
	}
	slices.Sort(s.env)
}

// goModules shares the module cache. Go treats the contents of a module cache as its own downloads, whatever
// GOPROXY and GOPRIVATE say. As a proxy (file://), the user's cache would hide newer versions, and would be
// bypassed for private modules. Go keeps a file of its checksum database next to the modules.
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

// goEnv returns the settings written by `go env -w`.
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

// name creates a directory in the set and points a variable to it.
func (s *stock) name(variable, dir string) {
	if err := s.root.MkdirAll(dir, 0o700); err == nil || os.IsExist(err) {
		s.env = append(s.env, variable+"="+filepath.Join(s.own, filepath.FromSlash(dir)))
	}
}

// home returns a tool's directory: the value of the variable, or a path below the home directory. ok reports
// whether the directory or the tool exists.
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

// links creates links to the entries of a user's directory, except but.
func (s *stock) links(from, to string, but ...string) {
	entries, _ := os.ReadDir(from) // it may not exist
	for _, e := range entries {
		if !slices.Contains(but, e.Name()) && !strings.HasSuffix(e.Name(), ".lock") && !strings.HasPrefix(e.Name(), ".package-cache") {
			_ = s.root.Symlink(filepath.Join(from, e.Name()), path.Join(to, e.Name())) // it may exist already
		}
	}
}

// A user's file is excluded from a set if its name marks it as transient, copied if its tool rewrites it in
// place, and linked otherwise.
var (
	ofAMoment = lazyregexp.New(`^(list|FETCH_HEAD|\.cargo-.*|.*\.(lock|lck|part|partial|lastUpdated))$`)
	rewritten = lazyregexp.New(`^(latest|config\.json|_remote\.repositories|resolver-status\.properties|maven-metadata.*)$`)
)

// farm recreates the user's directories, with links or copies for the files. It leaves existing entries
// alone. Whatever fails is downloaded again.
func (s *stock) farm(from, to string) {
	if s.full {
		return
	}
	if info, err := s.root.Lstat(to); err == nil && !info.IsDir() || err != nil && s.root.MkdirAll(to, 0o700) != nil {
		return
	}
	entries, _ := os.ReadDir(from) // it may not exist
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
