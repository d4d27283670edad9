package files

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
	"github.com/united-workforce/uwf/step/files/gitobject"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
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
	text := gitobject.Commit(sumOf(tree), parent, now)
	commit = gitobject.Hash(tree.Function(), "commit", text)
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
	return durable.WriteAll(durable.OS(), []durable.File{{Path: loosePath(g.store(), sum), Data: zipped.Bytes(), Perm: 0o444}}, durable.Full)
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
	text, err := careful.ReadFile(filepath.Join(g.store(), filepath.FromSlash(ref)), maxSetting, careful.NoFollow)
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
