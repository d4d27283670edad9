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

// maxPlain bounds how many entries of a home directory are shown, since each costs each program
// some 60 µs.
const maxPlain = 200

// showHome shows what there is to see of a home directory: plain names, and the hidden ones that are
// listed.
func (b *builder) showHome(dir string) {
	b.homes = append(b.homes, dir)
	b.add(plan.Mount{Path: dir, Kind: plan.Own})
	entries, _ := os.ReadDir(dir) // what cannot be listed is not shown
	plain := 0
	for _, e := range entries {
		if name := e.Name(); !offlimits.HiddenInHome(name) && plain < maxPlain {
			plain++
			b.show(dir, name)
		}
	}
	for _, name := range offlimits.ShownInHome() {
		b.show(dir, filepath.FromSlash(name))
	}
}

// find shows a path that lies where nothing else of the machine is.
func (b *builder) find(path string) {
	switch {
	case !filepath.IsAbs(path):
	case b.homeOf(path) != "":
		home := b.homeOf(path)
		if rel, err := filepath.Rel(home, path); err == nil && rel != "." {
			b.show(home, rel)
		}
	case anyBelow([]string{"/tmp", "/var/tmp", "/run", "/dev/shm"}, path):
		if real, err := filepath.EvalSymlinks(path); err == nil && real == path && path != "/tmp" {
			b.add(plan.Mount{Path: path, Kind: plan.Show, Missing: true})
		}
	}
}

// show shows a name of a home. A link remains one, and what it leads to is shown too if it lies in
// the home: settings are often links into a directory that is under version control.
func (b *builder) show(home, name string) {
	for range maxLinks {
		at := filepath.Join(home, name)
		info, err := os.Lstat(at)
		if err != nil || b.covered(at) {
			return
		}
		if info.Mode()&os.ModeSymlink == 0 {
			if real, err := filepath.EvalSymlinks(at); err == nil && real == at {
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

// homeOf is the home directory that a path lies in; "": none.
func (b *builder) homeOf(path string) string {
	for _, home := range b.homes {
		if below(home, path) {
			return home
		}
	}
	return ""
}

// maxLinks bounds how many links are followed from one to the next.
const maxLinks = 8

// covered reports whether a path lies in something that is shown already.
func (b *builder) covered(path string) bool {
	for at := path; at != b.homeOf(path) && len(at) > 1; at = filepath.Dir(at) {
		if m, ok := b.mounts[at]; ok && (m.Kind == plan.Show || m.Kind == plan.Write) {
			return true
		}
	}
	return false
}

// system are places of /run that programs need to find names and, on NixOS, themselves.
func system() []string {
	return []string{
		"/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/resolvconf", "/run/current-system", "/run/opengl-driver", "/run/wrappers", "/run/booted-system",
	}
}

// below reports whether a path is a directory or lies in it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

// anyBelow reports whether a path is or lies in one of some directories.
func anyBelow(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return below(dir, path) })
}

// maxFirstLine bounds what is read of a script.
const maxFirstLine = 64 << 10

// ProgramFiles are where a user's program has its files: along the links from its name, and those of
// the interpreter that its first line names. One that env looks for is in PATH. What lies in the
// workspace says nothing: anybody may have written it.
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

// installation is the directory that has what comes with a program: the outermost node_modules, or
// that above bin.
func installation(path string) string {
	const modules = "/node_modules/"
	if i := strings.Index(path, modules); i >= 0 {
		return path[:i+len(modules)-1]
	}
	dir := filepath.Dir(path)
	if name := filepath.Base(filepath.Dir(dir)); filepath.Base(dir) == "bin" && strings.Contains(name, "env") {
		return filepath.Dir(dir) // of Python
	}
	return dir
}

// interpreter are the words of a script's first line.
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
