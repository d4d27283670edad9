package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitindex"
	"github.com/united-workforce/uwf/util/safeopen"
)

// A look compares a work tree with an index, and with the note of the previous look. The kernel sets a file's change
// time whenever its content, mode or name changes, and nobody else can set it. A file whose times, inode and size are
// those in the index is therefore unchanged, unless it was changed in the instant of the look that the index is from.
// Likewise, a directory with the noted change time still has the same entries.

// view is the result of a look.
type view struct {
	// partial means that git must look at all files: the note says nothing about other files than those in the index.
	partial  bool
	changed  []string        // files in the index that may have changed
	doubtful []string        // entries of others in which git might not notice a change
	dirs     map[string]bool // directories with files in the index
	empty    map[string]bool // [indexNote.Empty]
	read     []string        // directories that have changed
	added    []string        // their entries that are new to git, or that it ignores
	index    []byte
}

// maxEmpty bounds the directories without files in the index that git looks into, and the rules for ignored files.
const maxEmpty = 5000

// maxAdded bounds the new files and directories that git looks at one by one.
const maxAdded = 500

// look compares the files with the index. The note is zero if it isn't about this index.
func look(environ []string, s Spec, known indexNote) (v view, err error) {
	if v.index, err = safeopen.ReadFile(s.Index, gitindex.MaxBytes, safeopen.NoFollow); err != nil {
		return v, err
	}
	root, err := os.Open(s.Root)
	if err != nil {
		return v, err
	}
	defer func() { _ = root.Close() }()
	if !v.compare(root, s, known.Looked) {
		return v, errUnsound
	}
	if v.partial || len(known.Dirs) == 0 || known.For != s.scope() {
		v.partial = true
		return v, nil
	}
	names := known.names(environ, s, v.dirs)
	if v.partial = len(known.Dirs) != markSize*len(names); v.partial {
		return v, nil
	}
	for i, name := range names {
		st := statAt(root, name)
		switch isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR; {
		case bytes.Equal(mark(st, 0), known.Dirs[markSize*i:markSize*(i+1)]):
		case isDir:
			v.read = append(v.read, name)
		case st.Mode != 0 || filepath.IsAbs(name) || path.Base(name) == ignoreFile:
			v.partial = true // a link replaces a directory, or other files are ignored
			return v, nil
		}
	}
	v.readDirs(s, known)
	return v, nil
}

// ignoreFile is the file with the rules for ignored files in a directory.
const ignoreFile = ".gitignore"

// compare finds the files that may have changed, and reports whether the index is sound.
func (v *view) compare(root *os.File, s Spec, looked int64) (sound bool) {
	var found [parts]view
	var looks sync.WaitGroup
	looks.Go(func() { sound = gitindex.IsSound(v.index, len(sumOf(s.Tree))/2) })
	for part := range parts {
		looks.Go(func() { found[part].comparePart(root, v.index, s, looked, part) })
	}
	looks.Wait()
	v.dirs = found[0].dirs
	for _, f := range found {
		v.partial = v.partial || f.partial
		v.changed, v.doubtful = append(v.changed, f.changed...), append(v.doubtful, f.doubtful...)
	}
	return sound
}

// stretch is the number of files that one goroutine looks at in turn, because they are mostly in one directory.
const stretch = 100

func (v *view) comparePart(root *os.File, index []byte, s Spec, looked int64, part int) {
	v.dirs = map[string]bool{".": true}
	n, last := 0, ""
	whole := gitindex.Each(index, len(sumOf(s.Tree))/2, func(e gitindex.Entry, name []byte) bool {
		if part == 0 {
			last = v.addDirs(name, last)
		}
		if n++; n/stretch%parts != part {
			return true
		}
		st := statAt(root, string(name))
		is, toSecond := e.Matches(time.Unix(st.Ctim.Unix()), time.Unix(st.Mtim.Unix()), st.Ino, st.Size)
		switch fresh := looked > 0 && changedSince(st, looked); {
		case e.Link, e.Partial, e.Passed != "" && st.Mode != 0:
			v.partial = true
		case e.Passed != "": // sparse
		case is && !fresh:
		case toSecond: // most builds of git compare only seconds; a program can restore the size and the other time
			v.doubtful = append(v.doubtful, e.Info(name))
		default:
			v.changed = append(v.changed, string(name))
		}
		return true
	})
	v.partial = v.partial || !whole
}

// addDirs adds the directories of a file; last is the directory of the previous one.
func (v *view) addDirs(name []byte, last string) string {
	at := bytes.LastIndexByte(name, '/')
	if at < 0 || string(name[:at]) == last {
		return last
	}
	for dir := string(name[:at]); !v.dirs[dir]; dir = path.Dir(dir) {
		v.dirs[dir] = true
	}
	return string(name[:at])
}

func statAt(root *os.File, name string) (st unix.Stat_t) {
	if unix.Fstatat(int(root.Fd()), filepath.FromSlash(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return unix.Stat_t{} // it may be gone, or not be checked out
	}
	return st
}

// changedSince reports whether a file may have changed at or after a time.
func changedSince(st unix.Stat_t, at int64) bool {
	if st.Ctim.Nsec == 0 { // the file system may store only seconds
		return st.Ctim.Sec >= at/int64(time.Second)
	}
	return st.Ctim.Nano() >= at
}

// readDirs finds what is new in the directories that have changed.
func (v *view) readDirs(s Spec, known indexNote) {
	files, read := map[string]bool{}, map[string]bool{}
	v.empty = map[string]bool{}
	for _, at := range known.Empty {
		v.empty[at] = true
	}
	if len(v.read) == 0 {
		return
	}
	for _, dir := range v.read {
		read[dir] = true
	}
	gitindex.Each(v.index, len(sumOf(s.Tree))/2, func(_ gitindex.Entry, name []byte) bool {
		if at := bytes.LastIndexByte(name, '/'); at < 0 && read["."] || at >= 0 && read[string(name[:at])] {
			files[string(name)] = true
		}
		return true
	})
	for _, dir := range v.read {
		entries, err := os.ReadDir(filepath.Join(s.Root, filepath.FromSlash(dir)))
		if err != nil {
			v.partial = true // git reports it
		}
		for _, e := range entries {
			at := path.Join(dir, e.Name())
			switch {
			case at == ".git", skipped(at, s.Skip), e.IsDir() && (v.dirs[at] || v.empty[at]), !e.IsDir() && files[at]:
			case e.Name() == ".git", e.Name() == ignoreFile: // another repository, or other files are ignored
				v.partial = true
			default:
				v.added = append(v.added, at)
			}
		}
	}
	v.partial = v.partial || len(v.added) > maxAdded
}

// scope returns the settings that determine which files belong to a snapshot.
func (s Spec) scope() string {
	return fmt.Sprintf("%q", []any{s.Root, s.MaxFile, s.Keys, s.Skip, s.Outputs, s.Redacted, s.DenyRead})
}

// keepsTimes reports whether a file system is known to change a directory's time with its entries.
func keepsTimes(dir string) bool {
	var on syscall.Statfs_t
	// ext4, XFS, Btrfs, tmpfs, overlay, F2FS, ZFS, bcachefs
	known := []uint32{0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e}
	return syscall.Statfs(dir, &on) == nil && slices.Contains(known, uint32(on.Type))
}

// changeTime returns a time that no later change has a time before. Other file systems may use another machine's clock.
func changeTime(dir string) int64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return 1 // every file counts as changed since
	}
	if !keepsTimes(dir) {
		return now.Nano() - patience.Nanoseconds()
	}
	return now.Nano()
}

// markSize is the length of the mark of a directory.
const markSize = 16

// mark returns what a look remembers of a directory or of rules: none, if it may have changed since a time.
func mark(st unix.Stat_t, since int64) []byte {
	changed := st.Ctim.Nano()
	if since > 0 && st.Mode != 0 && changedSince(st, since) {
		changed = -1
	}
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(changed)), st.Ino)
}

// names returns the directories and rules that git's look at other files depends on.
func (n indexNote) names(environ []string, s Spec, dirs map[string]bool) []string {
	names := slices.AppendSeq(append(rulesOf(environ, s), n.Empty...), maps.Keys(dirs))
	slices.Sort(names)
	return slices.Compact(names)
}

// rulesOf returns the files outside of the work tree with rules for ignored files.
func rulesOf(environ []string, s Spec) []string {
	e := env.Env{Environ: environ}
	excludes := filepath.Join(e.Get("HOME"), ".config", "git", "ignore")
	if config := e.Get("XDG_CONFIG_HOME"); config != "" {
		excludes = filepath.Join(config, "git", "ignore")
	}
	for _, key := range s.Keys {
		if key[0] == "core.excludesfile" {
			excludes = expandHome(e, key[1])
		}
	}
	rules := []string{filepath.Join(s.Git, "info", "exclude"), excludes}
	if real, err := filepath.EvalSymlinks(excludes); err == nil { // git follows links there
		rules = append(rules, real)
	}
	return rules
}

// mark notes the state of the directories and rules that git's look depended on, which began at n.Looked. v is the
// look before it.
func (n *indexNote) mark(ctx context.Context, g git, s Spec, v view) {
	index, err := safeopen.ReadFile(s.Index, gitindex.MaxBytes, safeopen.NoFollow)
	if s.Tree = n.Tree; err != nil || !keepsTimes(s.Root) {
		return
	}
	root, err := os.Open(s.Root)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	now, last := view{dirs: map[string]bool{".": true}}, ""
	whole := gitindex.Each(index, len(sumOf(s.Tree))/2, func(e gitindex.Entry, name []byte) bool {
		last = now.addDirs(name, last)
		return !e.Link && !e.Partial
	})
	if !whole {
		return
	}
	now.empty = map[string]bool{}
	if now.read = slices.Collect(maps.Keys(now.dirs)); !v.partial {
		now.read = slices.DeleteFunc(now.read, func(dir string) bool { return v.dirs[dir] })
		now.read = append(now.read, v.read...)
		for dir := range v.dirs {
			if !now.dirs[dir] { // it may have become empty
				now.read = append(now.read, path.Dir(dir))
			}
		}
		now.read = slices.DeleteFunc(now.read, func(dir string) bool { return statAt(root, dir).Mode == 0 })
		for at := range v.empty {
			if !now.dirs[at] && statAt(root, at).Mode != 0 {
				now.empty[at] = true
			}
		}
	}
	if !g.emptyDirs(ctx, s, now) {
		return
	}
	n.Empty = slices.Sorted(maps.Keys(now.empty))
	for _, name := range n.names(g.env, s, now.dirs) {
		n.Dirs = append(n.Dirs, mark(statAt(root, name), n.Looked)...)
	}
	n.For = s.scope()
}

// emptyDirs finds the directories without files in the index that git looks into, below those to read: a file that
// appears there changes the time of no other directory. It also finds the rules for ignored files, which may be in no
// index.
func (g git) emptyDirs(ctx context.Context, s Spec, v view) (ok bool) {
	for look := v.read; len(look) > 0; {
		var found []string
		for _, dir := range look {
			entries, err := os.ReadDir(filepath.Join(s.Root, filepath.FromSlash(dir)))
			if err != nil {
				return false
			}
			for _, e := range entries {
				at := path.Join(dir, e.Name())
				switch {
				case e.Name() == ignoreFile && !e.IsDir():
					v.empty[at] = true
				case e.IsDir() && e.Name() != ".git" && !v.dirs[at] && !v.empty[at] && !skipped(at, s.Skip):
					found = append(found, at)
				}
			}
		}
		if len(found) == 0 {
			break
		}
		out, err := g.run(ctx, joined(found), "check-ignore", "-z", "--stdin")
		if err != nil && !ended(err, exitNo) {
			return false
		}
		ignored := strings.Split(string(out), "\x00")
		look = slices.DeleteFunc(found, func(dir string) bool { return slices.Contains(ignored, dir) })
		for _, dir := range look {
			v.empty[dir] = true
		}
		if len(v.empty) > maxEmpty {
			return false
		}
	}
	return true
}

// writable reports whether the user can change the entries of a directory.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
