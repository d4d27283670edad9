package bind

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	access "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/utilagent/confine"
)

// devices are writable by every command.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom"}

// devpts contains the pseudoterminals of all users.
const devpts = "/dev/pts"

// terminals are the devices for creating and using pseudoterminals, in which some agents run commands. The
// filter blocks typing into other terminals.
var terminals = []string{devpts, "/dev/ptmx", "/dev/tty"}

// filesOnly excludes creating directories, links, sockets and pipes: in a directory that is writable for
// everybody, git would find a repository created there.
const filesOnly = access.AccessFSReadDir | access.AccessFSReadFile | access.AccessFSWriteFile | access.AccessFSTruncate | access.AccessFSMakeReg | access.AccessFSRemoveFile

// maxGrants bounds the number of rules, since each adds about 10 µs to every command. Further paths stay
// closed.
const maxGrants = 5000

// restrictPaths applies Landlock. The library's best-effort mode would also accept a kernel without Landlock,
// so that is ruled out first; and for a kernel that cannot control moves between directories, it would allow
// everything.
func restrictPaths(r confine.Rules) error {
	level := confine.Level()
	if level == 0 {
		return confine.ErrUnavailable
	}
	// Use a single call: each adds a layer, and a layer without a rule for moves between directories forbids
	// them. The network is not restricted, because the possible restrictions are easily circumvented.
	c, err := landlock.NewConfig(landlock.V9.HandledAccessFS, landlock.V9.Scoped)
	if err != nil {
		return err
	}
	a := allowance{hidden: slices.Clone(r.Hidden)}
	if !r.Terminals {
		a.hidden = append(a.hidden, devpts) // otherwise a command could read what the user types
	}
	memory, err := filepath.EvalSymlinks(confine.SharedMemory)
	if err == nil && !r.IPC {
		a.hidden = append(a.hidden, memory)
	}
	read, err := a.around("/")
	if err != nil {
		return err
	}
	a = allowance{hidden: slices.Concat(a.hidden, r.Guarded)}
	var write paths
	for _, dir := range r.Dirs {
		more, err := a.around(dir)
		if err != nil {
			return err
		}
		write.dirs, write.files = append(write.dirs, more.dirs...), append(write.files, more.files...)
	}
	var shared []string
	if r.IPC && memory != "" {
		shared = []string{memory}
	}
	exceptions := split(r.Readable)
	writable := landlock.RWDirs(write.dirs...)
	if level >= 2 {
		writable = writable.WithRefer()
	}
	var ptys paths
	if r.Terminals {
		ptys = split(terminals)
	}
	return c.BestEffort().Restrict(
		landlock.PathAccess(access.AccessFSReadDir, "/"), // names are not secret, and programs look around
		landlock.RODirs(append(read.dirs, exceptions.dirs...)...).IgnoreIfMissing(),
		landlock.ROFiles(append(read.files, exceptions.files...)...).IgnoreIfMissing(),
		writable.IgnoreIfMissing(),
		landlock.PathAccess(filesOnly, shared...).IgnoreIfMissing(),
		landlock.RWFiles(slices.Concat(write.files, r.Files, devices)...).IgnoreIfMissing(),
		landlock.RWDirs(ptys.dirs...).WithIoctlDev().IgnoreIfMissing(),
		landlock.RWFiles(ptys.files...).WithIoctlDev().IgnoreIfMissing(),
	)
}

// paths are allowed paths. Landlock distinguishes rights for files and for directories.
type paths struct{ dirs, files []string }

func (p *paths) add(path string, mode fs.FileMode) {
	if mode.IsDir() {
		p.dirs = append(p.dirs, path)
	} else {
		p.files = append(p.files, path)
	}
}

// split separates files from directories and drops missing paths.
func split(list []string) paths {
	var p paths
	for _, path := range list {
		if info, err := os.Stat(path); err == nil {
			p.add(path, info.Mode())
		}
	}
	return p
}

// allowance computes rules that leave out hidden paths: Landlock can only allow, and a rule covers everything
// below its path.
type allowance struct {
	hidden []string
	count  int
}

// around returns rules for a path and everything below it except hidden paths. A path that is itself hidden,
// or inside a hidden one, was listed on purpose.
func (a *allowance) around(path string) (p paths, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("check allowed paths: %w", err)
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return p, fmt.Errorf("check allowed paths: %w", err)
	}
	a.walk(&p, path, info.Mode())
	return p, nil
}

func (a *allowance) walk(p *paths, path string, mode fs.FileMode) {
	if !a.hides(path) {
		p.add(path, mode)
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil { // unreadable: only the paths to hidden entries are known
		entries = a.ways(path)
	}
	if len(entries) > maxGrants-a.count { // directories are worth more
		sorting.Stable(entries, func(x, y fs.DirEntry) int { return cmp.Compare(isFile(x), isFile(y)) })
	}
	for _, entry := range entries {
		below := filepath.Join(path, entry.Name())
		// A rule for a link would apply to its target, which has its own rule.
		if entry.Type()&fs.ModeSymlink != 0 || slices.Contains(a.hidden, below) {
			continue
		}
		if a.count++; a.count > maxGrants {
			return
		}
		a.walk(p, below, entry.Type())
	}
}

func isFile(e fs.DirEntry) int {
	if e.IsDir() {
		return 0
	}
	return 1
}

// hides reports whether something below a directory is hidden.
func (a *allowance) hides(dir string) bool {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	return slices.ContainsFunc(a.hidden, func(h string) bool { return strings.HasPrefix(h, prefix) })
}

// ways returns the entries of a directory that contain hidden paths.
func (a *allowance) ways(dir string) []fs.DirEntry {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	var entries []fs.DirEntry
	for _, h := range a.hidden {
		rest, ok := strings.CutPrefix(h, prefix)
		name, _, deeper := strings.Cut(rest, "/")
		if !ok || !deeper || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name }) {
			continue
		}
		if info, err := os.Lstat(prefix + name); err == nil {
			entries = append(entries, fs.FileInfoToDirEntry(info))
		}
	}
	return entries
}
