package snapshot

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// A snapshot is kept by a commit, and that by a ref. We write both ourselves, as git
// does: two processes of git would take longer than all else that a small one costs.

// keep makes a commit of a tree, and a ref that keeps it. A parent that is gone, because
// the ref that kept it was damaged, kept states that are kept by themselves since.
func (g git) keep(ctx context.Context, tree protocol.Tree, parent, ref string) (commit string, err error) {
	if parent != "" && !g.has(ctx, parent) {
		parent = ""
	}
	path := filepath.Join(g.store(), filepath.FromSlash(ref))
	lock, now, err := lockRef(ctx, path)
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", ref, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", ref, err), os.Remove(lock.Name()))
		}
	}()
	text := Commit(sumOf(tree), parent, now)
	commit = Hash(tree.Function(), "commit", text)
	err = g.writeObject(commit, fmt.Sprintf("commit %d\x00%s", len(text), text))
	if err == nil {
		_, err = lock.WriteString(commit + "\n")
	}
	if err == nil {
		err = lock.Sync()
	}
	if err = errors.Join(err, lock.Close()); err != nil {
		return "", err
	}
	return commit, os.Rename(lock.Name(), path)
}

// refPatience is how long we wait for another git that is working on a ref.
const refPatience = 2 * time.Second

// lockRef takes the lock by which git lets one at a time write a ref, and tells the time.
func lockRef(ctx context.Context, path string) (lock *os.File, now time.Time, err error) {
	for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil { // git removes empty ones
			return nil, now, err
		}
		lock, err = os.OpenFile(path+lockSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if waits := errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist); !waits || waited >= refPatience {
			break
		}
		if waited == refPatience/10 { // a killed git may have left it
			unlocked(ctx, filepath.Dir(path), []string{filepath.Base(path) + lockSuffix})
		}
		select {
		case <-ctx.Done():
			return nil, now, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err != nil {
		return nil, now, err
	}
	info, err := lock.Stat()
	if err != nil {
		return nil, now, errors.Join(err, lock.Close(), os.Remove(lock.Name()))
	}
	return lock, info.ModTime(), nil
}

// loosePath is where an object lies that is in no pack.
func loosePath(store, sum string) string {
	return filepath.Join(store, "objects", sum[:2], sum[2:])
}

// writeObject writes an object, flushed.
func (g git) writeObject(sum, text string) error {
	var zipped bytes.Buffer
	w := zlib.NewWriter(&zipped)
	_, err := w.Write([]byte(text))
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return durable.WriteAll(durable.OS(), []durable.File{{Path: loosePath(g.store(), sum), Data: zipped.Bytes(),
		Perm: 0o444}}, durable.Full)
}

// has reports whether an object is there.
func (g git) has(ctx context.Context, sum string) bool {
	if info, err := os.Lstat(loosePath(g.store(), sum)); err == nil && info.Mode().IsRegular() {
		return true
	}
	_, err := g.run(ctx, nil, "cat-file", "-e", sum)
	return err == nil
}

// newest is the commit that a ref leads to, and the state that it keeps; "": there is none.
func (g git) newest(ctx context.Context, ref string, n indexNote) (commit string, tree protocol.Tree, err error) {
	text, err := safeopen.ReadFile(filepath.Join(g.store(), filepath.FromSlash(ref)), maxSetting, safeopen.NoFollow)
	if err == nil && n.Commit != "" && strings.TrimSuffix(string(text), "\n") == n.Commit {
		return n.Commit, n.Tree, nil
	}
	out, err := g.line(ctx, "for-each-ref", "--format=%(objectname) %(tree)", ref)
	commit, sum, _ := strings.Cut(out, " ")
	if err != nil || !isSum(sum) { // one that is damaged is none
		return "", "", ctx.Err()
	}
	return commit, treeOf(sum), nil
}

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

// A damaged ref of ours keeps nothing, and git refuses to write other refs or to collect while
// it exists. The steps name what it kept, so it is removed and they are kept again.

// mendRef removes the file of a ref in a git directory of ours if no hash stands in it.
func mendRef(store, ref string) {
	file := filepath.Join(store, filepath.FromSlash(ref))
	text, err := safeopen.ReadFile(file, maxSetting, safeopen.NoFollow)
	if err != nil || isSum(strings.TrimSuffix(string(text), "\n")) {
		return
	}
	_ = os.Remove(file)
}

// isSum reports whether a text is the name of an object.
func isSum(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == "" && (len(text) == 40 || len(text) == 64)
}

// mendRefs removes refs whose commit is missing, or whose commit's files are.
func (g git) mendRefs(ctx context.Context, store string) error {
	err := filepath.WalkDir(filepath.Join(store, "refs"), func(path string, d fs.DirEntry, err error) error {
		ref, _ := filepath.Rel(store, path) // it is below
		if err == nil && d.Type().IsRegular() && filepath.Ext(path) != ".lock" {
			mendRef(store, filepath.ToSlash(ref))
		}
		return err
	})
	if err != nil {
		return err
	}
	refs, err := g.ours(ctx)
	if err != nil || len(refs) == 0 {
		return err
	}
	const files = "^{tree}"
	out, err := g.run(ctx, []byte(strings.Join(refs, files+"\n")+files+"\n"), "cat-file", "--batch-check")
	if err != nil {
		return err
	}
	var gone bytes.Buffer
	for line := range strings.Lines(string(out)) {
		if ref, missing := strings.CutSuffix(line, files+" missing\n"); missing {
			gone.WriteString("delete " + ref + "\n")
		}
	}
	if gone.Len() > 0 {
		_, err = g.run(ctx, gone.Bytes(), "update-ref", "--stdin")
	}
	return err
}
