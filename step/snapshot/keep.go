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
	held, err := durable.Lock(ctx, filepath.Join(g.store(), refsLock))
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", ref, err)
	}
	defer func() { _ = held.Unlock() }()
	path := filepath.Join(g.store(), filepath.FromSlash(ref))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { // git removes empty ones
		return "", err
	}
	lock, err := os.OpenFile(path+lockSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", ref, err), os.Remove(lock.Name()))
		}
	}()
	if info, lost := lock.Stat(); lost == nil {
		text := commitText(sumOf(tree), parent, info.ModTime())
		commit = hashObject(tree.Function(), "commit", text)
		err = g.writeObject(commit, fmt.Sprintf("commit %d\x00%s", len(text), text))
	} else {
		err = lost
	}
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

// refsLock is held by whoever moves refs in one of uwf's git directories. A lock of git's that is there,
// too, was left by a git that was killed.
const refsLock = "uwf-refs.lock"

// moveRefs runs a git command that moves refs in a git directory of ours.
func (g git) moveRefs(ctx context.Context, stdin []byte, args []string) ([]byte, error) {
	held, err := durable.Lock(ctx, filepath.Join(g.store(), refsLock))
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.Unlock() }()
	out, err := g.feed(ctx, bytes.NewReader(stdin), args...)
	if err == nil || ctx.Err() != nil {
		return out, err
	}
	for _, left := range []string{packedLock, packedNew} {
		_ = os.Remove(filepath.Join(g.store(), left))
	}
	_ = filepath.WalkDir(filepath.Join(g.store(), "refs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == lockSuffix {
			_ = os.Remove(path) // the command reports it if it is still there
		}
		return nil //nolint:nilerr // what cannot be read has no lock that we could remove
	})
	return g.feed(ctx, bytes.NewReader(stdin), args...)
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

// isSum reports whether a text is the name of an object.
func isSum(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == "" && (len(text) == 40 || len(text) == 64)
}
