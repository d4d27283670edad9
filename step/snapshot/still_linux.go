package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitindex"
	"github.com/united-workforce/uwf/util/safeopen"
)

// While the times, inodes and sizes of files are those in the index, and those of directories, of rules for ignored files
// and of the other files stand, git would find what it found before.

// recent is the time before a look in which a change may have the same time as one after it: two ticks of the
// slowest kernel.
const recent = 20 * time.Millisecond

// maxEmpty bounds the directories without files in the index that git looks into, and the rules for ignored files.
const maxEmpty = 5000

// still returns a digest of what git's look at a work tree depends on, without the files that are as in the index, and
// the directories with files in the index; empty are the other files and directories that git looks into. ok is false
// if a digest isn't enough, or something has changed after a time, unless that is zero.
func still(environ []string, s Spec, empty []string, after time.Time) (digest string, dirs map[string]bool, ok bool) {
	index, err := safeopen.ReadFile(s.Index, gitindex.MaxBytes, safeopen.NoFollow)
	if err != nil || !keepsTimes(s.Root) {
		return "", nil, false
	}
	root, err := os.Open(s.Root)
	if err != nil {
		return "", nil, false
	}
	defer func() { _ = root.Close() }()
	var changed atomic.Bool
	stat := func(name string) (st unix.Stat_t) {
		if unix.Fstatat(int(root.Fd()), filepath.FromSlash(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			st = unix.Stat_t{} // it may be gone, or not be checked out
		}
		if !after.IsZero() && max(st.Mtim.Nano(), st.Ctim.Nano()) > after.UnixNano() {
			changed.Store(true)
		}
		return st
	}
	var found [parts]bytes.Buffer
	add := func(part int, name []byte, st unix.Stat_t) {
		fmt.Fprintf(&found[part], "%s\x00%d %d %d %d %d\n", name, st.Mode, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
	}
	dirs = map[string]bool{".": true}
	var looks sync.WaitGroup
	for part := range parts {
		looks.Go(func() {
			n, last := 0, ""
			whole := gitindex.Each(index, len(sumOf(s.Tree))/2, func(e gitindex.Entry, name []byte) bool {
				if at := bytes.LastIndexByte(name, '/'); part == 0 && at >= 0 && string(name[:at]) != last {
					last = string(name[:at])
					for dir := last; !dirs[dir]; dir = path.Dir(dir) {
						dirs[dir] = true
					}
				}
				if n++; n/stretch%parts != part {
					return true
				}
				st := stat(string(name))
				if is, _ := matches(e, st); !is {
					add(part, name, st)
				}
				return !e.Link && !e.Partial && !changed.Load()
			})
			if !whole {
				changed.Store(true)
			}
		})
	}
	if looks.Wait(); changed.Load() {
		return "", nil, false
	}
	names := slices.AppendSeq(append(rulesOf(environ, s), empty...), maps.Keys(dirs))
	slices.Sort(names)
	for part := range parts {
		looks.Go(func() {
			for _, name := range names[part*len(names)/parts : (part+1)*len(names)/parts] {
				add(part, []byte(name), stat(name))
			}
		})
	}
	looks.Wait()
	all := fmt.Appendf(nil, "%q", []any{s.Root, s.MaxFile, s.Keys, s.Skip, s.Outputs, s.Redacted, s.DenyRead})
	for part := range parts {
		all = append(all, found[part].Bytes()...)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), dirs, !changed.Load()
}

func matches(e gitindex.Entry, st unix.Stat_t) (is, toSecond bool) {
	return e.Matches(time.Unix(st.Ctim.Unix()), time.Unix(st.Mtim.Unix()), st.Ino, st.Size)
}

// distrust makes git read files that have changed in the second of their previous change. Git wouldn't notice if a
// program has restored the size and the other time. s.Tree is the tree of the index.
func distrust(s Spec) error {
	info, err := os.Lstat(s.Index)
	if err != nil {
		return nil // there may be no files, and git reports other errors
	}
	index, err := safeopen.ReadFile(s.Index, gitindex.MaxBytes, safeopen.NoFollow)
	if err != nil {
		return err
	}
	since := info.ModTime().Add(-patience).Unix() // files that changed before were looked at later
	hash, found := len(sumOf(s.Tree))/2, false
	gitindex.Each(index, hash, func(e gitindex.Entry, name []byte) bool {
		var st unix.Stat_t
		if e.Changed() < since || unix.Lstat(filepath.Join(s.Root, filepath.FromSlash(string(name))), &st) != nil {
			return true
		}
		if is, toSecond := matches(e, st); toSecond && !is {
			e.Distrust()
			found = true
		}
		return true
	})
	if !found {
		return nil
	}
	gitindex.Sign(index, hash)
	next := s.Index + ".next"
	err = os.WriteFile(next, index, 0o600)
	if err == nil { // git compares the time of the index with those of files
		err = os.Chtimes(next, info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = os.Rename(next, s.Index)
	}
	return err
}

// stretch is the number of files that one goroutine looks at in turn, because they are mostly in one directory.
const stretch = 100

// keepsTimes reports whether a file system is known to change a directory's time with its entries.
func keepsTimes(dir string) bool {
	var on syscall.Statfs_t
	// ext4, XFS, Btrfs, tmpfs, overlay, F2FS, ZFS, bcachefs
	known := []uint32{0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e}
	return syscall.Statfs(dir, &on) == nil && slices.Contains(known, uint32(on.Type))
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

// emptyDirs returns the directories without files in the index that git looks into, given those with files: a
// file that appears there changes the time of no other directory. It also returns the rules for ignored files, which
// may be in no index.
func (g git) emptyDirs(ctx context.Context, s Spec, dirs map[string]bool) (empty []string, ok bool) {
	for look := slices.Collect(maps.Keys(dirs)); len(look) > 0; {
		var found []string
		for _, dir := range look {
			entries, err := os.ReadDir(filepath.Join(s.Root, filepath.FromSlash(dir)))
			if err != nil {
				return nil, false
			}
			for _, e := range entries {
				at := path.Join(dir, e.Name())
				if e.Name() == ".gitignore" && !e.IsDir() {
					empty = append(empty, at)
				} else if e.IsDir() && e.Name() != ".git" && !dirs[at] && !skipped(at, s.Skip) {
					found = append(found, at)
				}
			}
		}
		if len(found) == 0 {
			return empty, true
		}
		plain := g
		plain.env = slices.DeleteFunc(slices.Clone(g.env), isLiteral) // check-ignore doesn't support it
		out, err := plain.run(ctx, joined(found), "check-ignore", "-z", "--stdin")
		if err != nil && !ended(err, exitNo) {
			return nil, false
		}
		ignored := bytes.Split(out, []byte{0})
		look = slices.DeleteFunc(found, func(dir string) bool {
			return slices.ContainsFunc(ignored, func(path []byte) bool { return string(path) == dir })
		})
		if empty = append(empty, look...); len(empty) > maxEmpty {
			return nil, false
		}
	}
	return empty, true
}

// fileTime returns the time that the file system gives to a change now, or zero if that is unknown.
func fileTime(index string) (now time.Time) {
	f, err := os.CreateTemp(filepath.Dir(index), ".uwf-*.tmp")
	if err != nil {
		return now
	}
	if info, err := f.Stat(); err == nil {
		now = info.ModTime()
	}
	if errors.Join(f.Close(), os.Remove(f.Name())) != nil {
		return time.Time{}
	}
	return now
}

// stands adds what git's look depended on to a note, if nothing has changed since shortly before the look began.
func (n *indexNote) stands(ctx context.Context, g git, s Spec, known indexNote, began time.Time) {
	if began.IsZero() {
		return
	}
	s.Tree, began = n.Tree, began.Add(-recent)
	digest, dirs, ok := still(g.env, s, known.Empty, began)
	if !ok {
		return
	}
	if digest == known.Dirs {
		n.Dirs, n.Empty = digest, known.Empty
		return
	}
	if n.Empty, ok = g.emptyDirs(ctx, s, dirs); !ok {
		n.Empty = nil
		return
	}
	if n.Dirs, _, ok = still(g.env, s, n.Empty, began); !ok {
		n.Dirs = ""
	}
}
