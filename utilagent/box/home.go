package box

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// maxPlain bounds how many entries of a home directory are shown: each adds about 60 µs to every command.
const maxPlain = 200

// showHome shows the plain names in a home directory, and the hidden names that are listed.
func (b *builder) showHome(dir string) {
	b.homes = append(b.homes, dir)
	b.add(plan.Mount{Path: dir, Kind: plan.Own})
	entries, unreadable := os.ReadDir(dir) // it shows only what is listed then
	plain, hidden := 0, map[string]bool{}
	for _, e := range entries {
		switch name := e.Name(); {
		case offlimits.HiddenInHome(name):
			hidden[name] = true
		case plain == maxPlain:
		case e.Type()&os.ModeSymlink != 0:
			plain++
			b.show(dir, name)
		default:
			plain++
			b.add(plan.Mount{Path: filepath.Join(dir, name), Kind: plan.Show, Missing: true})
		}
	}
	for _, name := range offlimits.ShownInHome() {
		if first, _, _ := strings.Cut(name, "/"); unreadable != nil || hidden[first] {
			b.show(dir, filepath.FromSlash(name))
		}
	}
}

// find shows a path in an otherwise empty part of the tree.
func (b *builder) find(path string) {
	switch {
	case !filepath.IsAbs(path):
	case b.homeOf(path) != "":
		home := b.homeOf(path)
		if rel, err := filepath.Rel(home, path); err == nil && rel != "." {
			b.show(home, rel)
		}
	case anyBelow([]string{"/tmp", "/var/tmp", "/run", "/dev/shm"}, path):
		if path != "/tmp" && isReal(path) {
			b.add(plan.Mount{Path: path, Kind: plan.Show, Missing: true})
		}
	}
}

// show shows a name in a home. A link stays a link, and its target is shown as well if it is in the home,
// because settings are often links into a directory under version control.
func (b *builder) show(home, name string) {
	for range maxLinks {
		at := filepath.Join(home, name)
		info, err := os.Lstat(at)
		if err != nil || b.covered(at) {
			return
		}
		if info.Mode()&os.ModeSymlink == 0 {
			if parent := filepath.Dir(at); parent == home || isReal(parent) {
				b.add(plan.Mount{Path: at, Kind: plan.Show, Missing: true})
			}
			return
		}
		to, err := os.Readlink(at)
		if err != nil {
			return
		}
		b.add(plan.Mount{Path: at, Kind: plan.Link, From: to})
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		rel, err := filepath.Rel(home, to)
		if err != nil || !filepath.IsLocal(rel) || rel == "." {
			return
		}
		name = rel
	}
}

// homeOf returns the home directory that contains a path, or "".
func (b *builder) homeOf(path string) string {
	for _, home := range b.homes {
		if below(home, path) {
			return home
		}
	}
	return ""
}

// maxLinks bounds the length of a chain of links.
const maxLinks = 8

// covered reports whether a path is inside something already shown.
func (b *builder) covered(path string) bool {
	home := b.homeOf(path)
	for at := path; at != home && len(at) > 1; at = filepath.Dir(at) {
		if m, ok := b.mounts[at]; ok && (m.Kind == plan.Show || m.Kind == plan.Write) {
			return true
		}
	}
	return false
}

// system returns the paths in /run that programs need for name resolution and, on NixOS, to run at all.
func system() []string {
	return []string{
		"/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/resolvconf", "/run/current-system", "/run/opengl-driver", "/run/wrappers", "/run/booted-system",
	}
}

// isReal reports whether a path exists and has no symbolic links.
func isReal(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && real == path
}

// below reports whether path is dir or inside it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

// anyBelow reports whether path is one of dirs or inside one.
func anyBelow(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return below(dir, path) })
}

// maxFirstLine bounds the bytes read from a script.
const maxFirstLine = 64 << 10

// ProgramFiles returns the directories that hold a user's program: along the links from its name, and those
// of the interpreter on its first line. Interpreters that env starts are found in PATH. Files in the
// workspace are ignored because anyone may have written them.
func ProgramFiles(path, workspace string, env []string) (dirs []string) {
	for range 2 {
		for range maxLinks {
			if below(workspace, path) {
				return dirs
			}
			dirs = append(dirs, installation(path))
			to, err := os.Readlink(path)
			if err != nil {
				break
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			path = to
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || below(workspace, real) {
			return dirs
		}
		dirs = append(dirs, installation(real))
		words := interpreter(path)
		if len(words) == 0 {
			return dirs
		}
		path = words[0]
		if filepath.Base(path) == "env" {
			if path, err = proc.LookPath(words[len(words)-1], "/", env); err != nil {
				return dirs
			}
		}
	}
	return dirs
}

// installation returns the directory with a program's other files: the outermost node_modules, or the parent
// of bin.
func installation(path string) string {
	const modules = "/node_modules/"
	if i := strings.Index(path, modules); i >= 0 {
		return path[:i+len(modules)-1]
	}
	dir := filepath.Dir(path)
	if name := filepath.Base(filepath.Dir(dir)); filepath.Base(dir) == "bin" && strings.Contains(name, "env") {
		return filepath.Dir(dir) // a Python installation
	}
	return dir
}

// interpreter returns the words of a script's "#!" line.
func interpreter(path string) []string {
	f, err := safeopen.OpenFile(path, os.O_RDONLY, 0, safeopen.Follow)
	if err != nil {
		return nil
	}
	defer f.Close()
	start := make([]byte, maxFirstLine)
	n, _ := f.Read(start)
	line, _, _ := strings.Cut(string(start[:n]), "\n")
	line, isScript := strings.CutPrefix(line, "#!")
	if !isScript {
		return nil
	}
	return strings.Fields(line)
}
