package tools

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

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

// general are caches that begin empty.
func (s *stock) general(users string) {
	s.name("XDG_CACHE_HOME", ".")
	s.name("GOCACHE", "go-build")
	s.name("npm_config_cache", "npm")
	s.name("PIP_CACHE_DIR", "pip")
	browsers := filepath.Join(users, "ms-playwright") // large, and only read
	if info, err := os.Stat(browsers); err == nil && info.IsDir() {
		s.env = append(s.env, "PLAYWRIGHT_BROWSERS_PATH="+browsers)
	}
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
	s.farm(filepath.Join(modules, "cache", "download"), "go/pkg/mod/cache/download", func(name string) use {
		switch {
		case name == "list", hasSuffix(name, ".lock", ".partial"):
			return left
		}
		return linked
	})
	s.farm(filepath.Join(gopath, "pkg", "sumdb"), "go/pkg/sumdb", func(string) use { return copied })
}

// goEnv is what `go env -w` has written.
func (s *stock) goEnv() map[string]string {
	file := s.user["GOENV"]
	if file == "" {
		file = filepath.Join(cmp.Or(s.user["XDG_CONFIG_HOME"], filepath.Join(s.user["HOME"], ".config")), "go", "env")
	}
	text, err := careful.ReadFile(file, 1<<20, careful.Follow)
	if err != nil {
		return nil
	}
	return variables(strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"))
}

func (s *stock) cargo() {
	home, ok := s.home("CARGO_HOME", ".cargo", "cargo")
	if !ok {
		return
	}
	s.name("CARGO_HOME", "cargo")
	s.links(home, "cargo", "registry", "git", "credentials", "credentials.toml", ".global-cache")
	use := func(name string) use {
		switch {
		case name == "FETCH_HEAD" || hasSuffix(name, ".lock") || strings.HasPrefix(name, ".cargo-"):
			return left
		case name == "config.json":
			return copied
		}
		return linked
	}
	for _, dir := range []string{"registry/index", "registry/cache", "git/db"} {
		s.farm(filepath.Join(home, filepath.FromSlash(dir)), "cargo/"+dir, use)
	}
}

// maven: files that it rewrites in place are copied.
func (s *stock) maven() {
	home, ok := s.home("", ".m2", "mvn")
	if dir := filepath.Join(s.own, "m2"); !ok || strings.ContainsAny(dir, " \t\"'") || s.root.MkdirAll("m2", 0o700) != nil { // words of a shell
		return
	}
	s.env = append(s.env, "MAVEN_OPTS="+strings.TrimSpace(s.user["MAVEN_OPTS"]+" -Dmaven.repo.local="+filepath.Join(s.own, "m2")))
	s.farm(filepath.Join(home, "repository"), "m2", func(name string) use {
		switch {
		case hasSuffix(name, ".lastUpdated", ".lock", ".part"):
			return left
		case name == "_remote.repositories" || name == "resolver-status.properties" || strings.HasPrefix(name, "maven-metadata"):
			return copied
		}
		return linked
	})
}

// gradle has a setting for downloads that it may only read.
func (s *stock) gradle() {
	home, ok := s.home("GRADLE_USER_HOME", ".gradle", "gradle")
	if !ok {
		return
	}
	s.name("GRADLE_USER_HOME", "gradle")
	if caches := filepath.Join(home, "caches"); isDir(filepath.Join(caches, "modules-2")) && s.user["GRADLE_RO_DEP_CACHE"] == "" {
		s.env = append(s.env, "GRADLE_RO_DEP_CACHE="+caches)
	}
	s.links(home, "gradle", "caches", "daemon", "wrapper", "native", "workers", "notifications", ".tmp")
	s.farm(filepath.Join(home, "wrapper", "dists"), "gradle/wrapper/dists", func(name string) use {
		if hasSuffix(name, ".lck", ".part", ".lock") {
			return left
		}
		return linked
	})
}

// links makes links to the entries of a directory of the user's, except for some.
func (s *stock) links(from, to string, but ...string) {
	entries, _ := os.ReadDir(from) // it need not be there
	for _, e := range entries {
		if !slices.Contains(but, e.Name()) && !hasSuffix(e.Name(), ".lock") && !strings.HasPrefix(e.Name(), ".package-cache") {
			_ = s.root.Symlink(filepath.Join(from, e.Name()), path.Join(to, e.Name())) // it is there
		}
	}
}

// use says what happens to a user's file in a set.
type use int

const (
	left use = iota
	linked
	copied
)

// farm recreates the user's directories, with links or copies for the files. It leaves
// existing entries alone, and what fails is downloaded again.
func (s *stock) farm(from, to string, judge func(name string) use) {
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
			s.farm(at, name, judge)
		case there[e.Name()] || !e.Type().IsRegular():
		case judge(e.Name()) == linked:
			_ = s.root.Symlink(at, name)
		case judge(e.Name()) == copied:
			if text, err := careful.ReadFile(at, maxCopied, careful.NoFollow); err == nil {
				_ = s.root.WriteFile(name, text, 0o600)
			}
		}
	}
}

func hasSuffix(name string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
