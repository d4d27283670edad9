package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitindex"
	"github.com/united-workforce/uwf/util/safeopen"
)

// While the times, inodes and sizes of all files and directories stand, and the rules for ignored files, git would
// find what it found before.

// recent is the time before a look in which a change may have the same time as one after it: two ticks of the
// slowest kernel.
const recent = 20 * time.Millisecond

// maxEmpty bounds the directories without files in the index that git looks into.
const maxEmpty = 1000

// still returns a digest of what git's look at a work tree depends on, and the directories with files in the index;
// empty are others that git looks into. ok is false if a digest isn't enough, or something has changed after
// a time, unless that is zero.
func still(environ []string, s Spec, empty []string, after time.Time) (digest string, dirs map[string]bool, ok bool) {
	index, err := safeopen.ReadFile(s.Index, gitindex.MaxBytes, safeopen.NoFollow)
	files, whole := gitindex.All(index)
	if err != nil || !whole || !keepsTimes(s.Root) {
		return "", nil, false
	}
	dirs = map[string]bool{".": true}
	names := rulesOf(environ, s)
	for _, f := range files {
		if f.Link || f.Partial {
			return "", nil, false
		}
		names = append(names, filepath.Join(s.Root, filepath.FromSlash(f.Name)))
		for dir := path.Dir(f.Name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for _, dir := range slices.Sorted(slices.Values(slices.AppendSeq(slices.Clip(empty), maps.Keys(dirs)))) {
		at := filepath.Join(s.Root, filepath.FromSlash(dir))
		names = append(names, at, filepath.Join(at, ".gitignore")) // which may ignore itself
	}
	var changed atomic.Bool
	var looks sync.WaitGroup
	parts := slices.Collect(slices.Chunk(names, len(names)/runtime.GOMAXPROCS(0)+1))
	sums := make([][sha256.Size]byte, len(parts))
	for i, part := range parts {
		looks.Go(func() {
			var all []byte
			for _, name := range part {
				var st syscall.Stat_t
				if syscall.Lstat(name, &st) != nil {
					st = syscall.Stat_t{} // it may be gone, or not be checked out
				}
				if !after.IsZero() && max(st.Mtim.Nano(), st.Ctim.Nano()) > after.UnixNano() {
					changed.Store(true)
					return
				}
				all = append(append(all, name...), 0)
				for _, n := range []int64{int64(st.Mode), int64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano()} {
					all = binary.LittleEndian.AppendUint64(all, uint64(n))
				}
			}
			sums[i] = sha256.Sum256(all)
		})
	}
	looks.Wait()
	settings := []any{s.Root, s.MaxFile, s.Keys, s.Skip, s.Outputs, s.Redacted, s.DenyRead}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %x", settings, sums))
	return hex.EncodeToString(sum[:]), dirs, !changed.Load()
}

// keepsTimes reports whether a file system is known to change a directory's time with its entries.
func keepsTimes(dir string) bool {
	var fs syscall.Statfs_t
	known := []uint32{0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e}
	return syscall.Statfs(dir, &fs) == nil && slices.Contains(known, uint32(fs.Type)) // ext4, XFS, Btrfs, tmpfs, overlay, F2FS, ZFS, bcachefs
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
	return []string{filepath.Join(s.Git, "info", "exclude"), excludes}
}

// emptyDirs returns the directories without files in the index that git looks into, given those with files: a
// file that appears there changes the time of no other directory.
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
				if e.IsDir() && e.Name() != ".git" && !dirs[at] && !skipped(at, s.Skip) {
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
	began = began.Add(-recent)
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
