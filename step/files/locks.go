package files

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/util/durable"
)

// Git locks a ref by a file, for a moment. A git that is killed leaves it, and no other git
// moves that ref any more.

// movesRefs reports whether a command of git's locks refs.
func movesRefs(command string) bool {
	return command == "update-ref" || command == "pack-refs" || command == "fetch"
}

// refLocks are the locks of refs in a git directory of ours.
func refLocks(store string) (locks []string) {
	_ = filepath.WalkDir(filepath.Join(store, "refs"), func(path string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(store, path); err == nil && filepath.Ext(path) == lockSuffix {
			locks = append(locks, rel)
		}
		return nil //nolint:nilerr // what cannot be read has no lock that we could remove
	})
	return append(locks, packedLock)
}

const (
	lockSuffix = ".lock"
	packedLock = "packed-refs" + lockSuffix // of all refs that git has packed
	packedNew  = "packed-refs.new"          // made under it
)

// locksOf are the locks that git takes to move a ref of the user's, below their git
// directory.
func (r Repo) locksOf(ctx context.Context, ref string) (locks []string) {
	if ref == "HEAD" {
		if own, err := filepath.Rel(r.Common, r.Dir); err == nil {
			locks = append(locks, filepath.Join(own, ref+lockSuffix))
		}
		branch, err := r.Branch(ctx)
		if err != nil || branch == "" {
			return locks
		}
		ref = "refs/heads/" + branch
	}
	return append(locks, filepath.FromSlash(ref)+lockSuffix)
}

// unlocked gives locks below a directory time to go, and removes those that nobody has touched
// meanwhile. It reports whether there was one.
func unlocked(ctx context.Context, dir string, locks []string) bool {
	const moment = 3 * time.Second
	root, err := os.OpenRoot(dir) // no link leads out
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	held := map[string]fs.FileInfo{}
	for _, path := range locks {
		if info, err := root.Lstat(path); err == nil {
			held[path] = info
		}
	}
	if len(held) == 0 {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(moment):
	}
	for path, was := range held {
		if info, err := root.Lstat(path); err == nil && os.SameFile(info, was) && info.ModTime().Equal(was.ModTime()) {
			if path == packedLock {
				_ = root.Remove(packedNew)
			}
			_ = root.Remove(path) // the command says it if it is still there
		}
	}
	return true
}

// A git that fails or is killed while it writes an object leaves it half-written, under a
// temporary name: as large as a snapshot, and on a full disk in the way of the next one.

// writersLock is held shared by each git that writes objects in one of uwf's git directories.
const writersLock = "uwf-writers.lock"

// writesObjects reports whether a command of git's writes objects.
func writesObjects(command string) bool {
	writing := []string{
		"update-index", "write-tree", "hash-object", "mktree", "merge-tree", "fetch", "repack", "pack-objects",
	}
	return slices.Contains(writing, command)
}

// writing marks that git writes objects here. Without a lock, which needs a disk that can be
// written, nothing is removed either.
func (g git) writing(ctx context.Context) (release func()) {
	held, err := durable.LockShared(ctx, filepath.Join(g.store(), writersLock))
	if err != nil {
		return func() {}
	}
	return func() { _ = held.Unlock() }
}

// sweep removes half-written objects from one of uwf's git directories, unless a git that writes
// there keeps running.
func (g git) sweep(ctx context.Context) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	held, err := durable.Lock(ctx, filepath.Join(g.store(), writersLock))
	if err != nil {
		return
	}
	defer func() { _ = held.Unlock() }()
	for _, pattern := range []string{"tmp_*", "*/tmp_*", "pack/.tmp-*"} {
		left, _ := filepath.Glob(filepath.Join(g.store(), "objects", pattern)) // the pattern is well-formed
		for _, path := range left {
			_ = os.Remove(path) // the next collection tries again
		}
	}
}
