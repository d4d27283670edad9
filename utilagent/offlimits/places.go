package offlimits

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ShownInHome lists the hidden names in a home that programs need and that contain no keys: tools, and git's
// settings.
func ShownInHome() []string {
	return []string{
		".nvm", ".pyenv", ".rbenv", ".nodenv", ".goenv", ".jenv", ".asdf", ".volta", ".bun/bin", ".deno/bin", ".fnm",
		".local/bin", ".local/lib", ".local/share/uv", ".local/share/pipx", ".local/share/mise", ".local/share/fnm", ".local/share/pnpm",
		".local/share/claude", ".local/share/virtualenv",
		".cargo/bin", ".cargo/env", ".rustup", ".sdkman", ".dotnet", ".nix-profile", ".nix-defexpr", ".local/state/nix", ".juliaup", ".ghcup/bin",
		".gem", ".npm-global", ".yarn/bin", ".config/yarn/global", ".opencode/bin", ".krew/bin",
		".config/go/env", ".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes", ".gitignore", ".gitignore_global",
	}
}

// HiddenInHome reports whether an entry of a home is invisible unless a longer name is listed: hidden names,
// and plain names that programs use for private data.
func HiddenInHome(name string) bool {
	return strings.HasPrefix(name, ".") || name == "snap" || name == "Library"
}

// named returns environment variables whose values are paths that programs need and that contain no keys.
func named() []string {
	return []string{
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
		"NODE_EXTRA_CA_CERTS", "GOROOT", "GOTOOLDIR", "JAVA_HOME", "RUSTUP_HOME", "NVM_DIR", "NVM_BIN", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX",
		"SDKMAN_DIR", "DOTNET_ROOT", "ANDROID_HOME", "ANDROID_SDK_ROOT", "PNPM_HOME", "VOLTA_HOME", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "NODE_PATH",
	}
}

// maxNamed bounds how many paths from the environment are shown.
const maxNamed = 100

// Named returns the absolute paths in an environment: the directories in PATH, and some variables.
func Named(env []string) (paths []string) {
	for _, kv := range env {
		switch name, value, _ := strings.Cut(kv, "="); {
		case name == "PATH" || name == "NODE_PATH":
			paths = append(paths, filepath.SplitList(value)...)
		case slices.Contains(named(), name):
			paths = append(paths, value)
		}
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return !filepath.IsAbs(path) })
	return paths[:min(len(paths), maxNamed)]
}

// Options lists additional protected paths and exceptions. Paths may begin with ~; other relative paths are
// relative to Dir.
type Options struct {
	UserHome string   // the user's home, or ""
	Environ  []string // environment of programs, with paths that they need
	Dir      string   // the workspace
	Home     string   // uwf's home
	Store    string   // uwf's store
	Hide     []string // additional hidden paths
	// AllowRead makes paths readable, with their contents. AllowWrite makes them writable as well, if they
	// are protected or inside a protected path.
	AllowRead  []string
	AllowWrite []string
}

// New builds the list. Missing paths are skipped, because nothing can be created later in a directory that is
// not writable.
func New(o Options) List {
	l := List{readable: append(o.all(o.AllowRead), o.all(o.shown())...), writable: o.all(o.AllowWrite), home: o.UserHome}
	l.denied = o.all(o.Hide)
	for _, path := range append(o.all([]string{o.Home, o.Store}), l.denied...) {
		l.hide(path)
	}
	home := o.resolve(o.UserHome)
	if home == "" || home == string(filepath.Separator) {
		return l
	}
	if dir := o.resolve(o.Dir); dir != "" && within(dir, home) {
		l.user = home
	}
	l.hideHome(home, o.inHome(home))
	if state := o.resolve(filepath.Join(home, ".cache", "uwf", "guard")); state != "" { // protected even if caches are writable
		l.hidden = append(l.hidden, state)
	}
	if l.user == "" {
		return l
	}
	for _, name := range append(o.inHome(home), ".profile", ".cache", "bin", filepath.Join("go", "bin")) {
		// Even if they don't exist yet.
		if at := filepath.Join(home, name); !covered(l.hidden, at) && !covered(l.guards, at) && !covered(l.writable, at) {
			l.guards = append(l.guards, at)
		}
	}
	return l
}

func (l *List) hide(path string) {
	if path != string(filepath.Separator) && !covered(l.hidden, path) && !covered(l.readable, path) {
		l.hidden = append(l.hidden, path)
	}
}

// inHome returns the names in a home that programs need, relative to it.
func (o Options) inHome(home string) (names []string) {
	for _, name := range ShownInHome() {
		names = append(names, filepath.FromSlash(name))
	}
	for _, path := range Named(o.Environ) {
		for _, at := range []string{path, o.resolve(path)} {
			if rel, err := filepath.Rel(home, at); err == nil && filepath.IsLocal(rel) && rel != "." && !slices.Contains(names, rel) {
				names = append(names, rel)
			}
		}
	}
	return names
}

// hideHome hides the hidden entries of a home that no program needs. In a workspace that contains the home,
// targets of links there are read-only.
func (l *List) hideHome(dir string, shown []string) {
	entries, _ := os.ReadDir(dir) // entries of an unreadable directory cannot be hidden by name
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if !HiddenInHome(e.Name()) || slices.Contains(shown, e.Name()) {
			continue
		}
		if e.Type()&os.ModeSymlink != 0 {
			if real, err := filepath.EvalSymlinks(at); err == nil && l.user != "" && within(l.user, real) && !covered(l.writable, real) {
				l.guards = append(l.guards, real)
			}
			continue
		}
		l.hideBut(at, inside(e.Name(), shown))
	}
}

// hideBut hides a path except for shown paths inside it.
func (l *List) hideBut(dir string, shown []string) {
	if len(shown) == 0 {
		l.hide(dir)
		return
	}
	entries, _ := os.ReadDir(dir) // as above
	for _, e := range entries {
		if !slices.Contains(shown, e.Name()) && e.Type()&os.ModeSymlink == 0 {
			l.hideBut(filepath.Join(dir, e.Name()), inside(e.Name(), shown))
		}
	}
}

// inside returns the names inside a directory, relative to it.
func inside(dir string, names []string) (found []string) {
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, dir+string(filepath.Separator)); ok {
			found = append(found, rest)
		}
	}
	return found
}

// shown returns the threads of a home and the nodes of its store, because agents are asked to read them with
// uwf. Keys, sessions and locks are next to them, and a program that can open a lock can hold it. A store
// without a format file has its nodes in the top directory, and no locks.
func (o Options) shown() []string {
	var paths []string
	below := func(dir string, names ...string) {
		for _, name := range names {
			if dir != "" {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
	}
	below(o.Home, "threads.yaml", "history.jsonl", "registry.yaml", "facts.jsonl", "removed.txt")
	if o.Store != "" && o.resolve(filepath.Join(o.Store, "format.json")) == "" {
		return append(paths, o.Store)
	}
	below(o.Store, "format.json", "log", "packs", "nodes", "seals", "homes")
	return paths
}

func (o Options) all(names []string) []string {
	var paths []string
	for _, name := range names {
		if path := o.resolve(name); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// resolve returns an absolute path free of symbolic links, or "" if it does not exist.
func (o Options) resolve(name string) string {
	if rest, ok := strings.CutPrefix(name, "~"); ok && o.UserHome != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		name = filepath.Join(o.UserHome, rest)
	}
	if name == "" {
		return ""
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(o.Dir, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return ""
	}
	return real
}

// guarded returns an error if a path is guarded or inside a guarded path.
func (l List) guarded(path string) error {
	for _, g := range l.guards {
		if within(folded(g), folded(path)) && !covered(l.writable, path) {
			return fmt.Errorf("%s is off limits: it controls what runs when its owner logs in or types a command. "+
				"Leave it as it is, and describe the change in your answer", g)
		}
	}
	return nil
}

// dotted returns an error for hidden names in the home directory, if the workspace contains it, even if they
// don't exist yet.
func (l List) dotted(path string) error {
	if l.user == "" || !within(folded(l.user), folded(path)) || covered(l.writable, path) {
		return nil
	}
	rel, err := filepath.Rel(folded(l.user), folded(path))
	if err != nil || rel == "." || !strings.HasPrefix(rel, ".") {
		return nil
	}
	return fmt.Errorf("%s is off limits: hidden files of a home directory control programs. Leave it as it is, "+
		"and describe the change in your answer (a person can allow it: sandbox.allowWrite in config.yaml)", path)
}

// folded normalizes each name in a path; see plain.
func folded(path string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i, part := range parts {
		parts[i] = plain(part)
	}
	return filepath.FromSlash(strings.Join(parts, "/"))
}
