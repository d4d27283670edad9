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

	"github.com/united-workforce/uwf/utilagent/confine"
)

// devices can be written by every command.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom"}

// devpts holds the pseudoterminals of everybody.
const devpts = "/dev/pts"

// terminals are what makes and uses a pseudoterminal, in which some agents run their
// commands. What reaches the user's own through them is in the filter.
var terminals = []string{devpts, "/dev/ptmx", "/dev/tty"}

// filesOnly lets nobody make directories, links, sockets or pipes: git would find a
// repository in a directory that everybody may make things in.
const filesOnly = access.AccessFSReadDir | access.AccessFSReadFile | access.AccessFSWriteFile | access.AccessFSTruncate | access.AccessFSMakeReg | access.AccessFSRemoveFile

// maxGrants bounds how many paths are allowed one by one, since each costs each
// command some 10 µs. What comes after them stays closed.
const maxGrants = 5000

// restrictPaths applies Landlock. The library's best effort would also accept a
// kernel without it, so that is ruled out before; and it would accept one that
// cannot allow moving files between directories by allowing everything.
func restrictPaths(r confine.Rules) error {
	level := confine.Level()
	if level == 0 {
		return confine.ErrUnavailable
	}
	// One call for everything: each makes a layer, and a layer that says nothing
	// about moving files between directories forbids it. Nothing is said about
	// the network, since what could be forbidden there is easily got around.
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
		landlock.PathAccess(access.AccessFSReadDir, "/"), // names are no secret, and programs look around
		landlock.RODirs(append(read.dirs, exceptions.dirs...)...).IgnoreIfMissing(),
		landlock.ROFiles(append(read.files, exceptions.files...)...).IgnoreIfMissing(),
		writable.IgnoreIfMissing(),
		landlock.PathAccess(filesOnly, shared...).IgnoreIfMissing(),
		landlock.RWFiles(slices.Concat(write.files, r.Files, devices)...).IgnoreIfMissing(),
		landlock.RWDirs(ptys.dirs...).WithIoctlDev().IgnoreIfMissing(),
		landlock.RWFiles(ptys.files...).WithIoctlDev().IgnoreIfMissing(),
	)
}

// paths are what is allowed. Landlock has other rights for files than for
// directories.
type paths struct{ dirs, files []string }

func (p *paths) add(path string, mode fs.FileMode) {
	if mode.IsDir() {
		p.dirs = append(p.dirs, path)
	} else {
		p.files = append(p.files, path)
	}
}

// split sorts paths by what they are; what is not there is left out.
func split(list []string) paths {
	var p paths
	for _, path := range list {
		if info, err := os.Stat(path); err == nil {
			p.add(path, info.Mode())
		}
	}
	return p
}

// allowance finds what to allow so that what is hidden is not: Landlock can only
// allow, and allows all that is below.
type allowance struct {
	hidden []string
	count  int
}

// around is what is at and below a path, but for what is hidden. What is itself
// hidden, or is in what is, was named on purpose.
func (a *allowance) around(path string) (p paths, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("look at what may be used: %w", err)
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return p, fmt.Errorf("look at what may be used: %w", err)
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
	if err != nil { // nobody may list it: only the way to what is hidden is known
		entries = a.ways(path)
	}
	if len(entries) > maxGrants-a.count { // directories are worth more
		slices.SortStableFunc(entries, func(x, y fs.DirEntry) int { return cmp.Compare(isFile(x), isFile(y)) })
	}
	for _, entry := range entries {
		below := filepath.Join(path, entry.Name())
		// A link would allow what it leads to, which is allowed or hidden itself.
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

// ways are the entries of a directory that lead to what is hidden.
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
