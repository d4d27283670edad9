package durable_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// bulk is a disk that can flush everything at once, on any file system.
type bulk struct {
	durable.FS
	fails error
}

func (bulk) FlushesAll([]string) bool { return true }

func (b bulk) SyncAll(string) error { return b.fails }

func some(root string) (files []durable.File) {
	for _, name := range []string{"AA/1", "AA/2", "BB/3"} {
		files = append(files, durable.File{Path: filepath.Join(root, filepath.FromSlash(name)), Data: []byte("content of " + name), Perm: 0o444})
	}
	return files
}

// Many files need two flushes. After a power cut at any point, a name refers to complete content, and after
// WriteAll returns, all files exist.
func TestWriteMany(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rec := durabletest.NewRecorder(bulk{FS: durable.OS()}, root)
	require.NoError(t, durable.WriteAllMany(rec, some(root), durable.Full))
	flushes := 0
	for _, op := range rec.Ops() {
		require.NotEqual(t, durable.FullFlush, op.Flush)
		if op.Kind == durabletest.OpSyncAll {
			flushes++
		}
	}
	require.Equal(t, 2, flushes)

	ops := rec.Ops()
	for _, model := range []durabletest.Model{durabletest.Posix, durabletest.Ordered} {
		for n := range len(ops) + 1 {
			for outcome := range durabletest.Replay(ops, n, model) {
				dir := t.TempDir()
				require.NoError(t, outcome.Write(dir))
				for _, f := range some(dir) {
					data, err := os.ReadFile(f.Path)
					if n < len(ops) && errors.Is(err, os.ErrNotExist) {
						continue
					}
					require.NoError(t, err, "cut %d: %s", n, outcome.Name)
					require.Equal(t, string(f.Data), string(data), "cut %d: %s", n, outcome.Name)
				}
			}
		}
	}
}

// Many verified files need one flush. After a power cut at any point, a file is complete or damaged, and
// after WriteChecked returns, all files exist.
func TestWriteChecked(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rec := durabletest.NewRecorder(bulk{FS: durable.OS()}, root)
	early := some(root)[0]
	require.NoError(t, durable.WriteAll(rec, []durable.File{early}, durable.None)) // by another process, without a flush
	files := append([]durable.File{{Path: early.Path, Present: true}}, some(root)[1:]...)
	done, err := durable.WriteCheckedMany(rec, files)
	require.NoError(t, err)
	require.True(t, done)
	ops := rec.Ops()
	require.Equal(t, durabletest.OpSyncAll, ops[len(ops)-1].Kind)
	for _, model := range []durabletest.Model{durabletest.Posix, durabletest.Ordered} {
		for outcome := range durabletest.Replay(ops, len(ops), model) {
			dir := t.TempDir()
			require.NoError(t, outcome.Write(dir))
			for _, f := range some(dir) {
				require.Equal(t, string(f.Data), read(t, f.Path), outcome.Name)
			}
		}
	}

	done, err = durable.WriteChecked(rec, files)
	require.NoError(t, err)
	require.False(t, done, "these are few")
	done, err = durable.WriteCheckedMany(durabletest.NewRecorder(plain{durable.OS()}, root), files)
	require.NoError(t, err)
	require.False(t, done, "a disk that cannot")
	_, err = durable.WriteCheckedMany(bulk{FS: durable.OS(), fails: errors.New("the disk is broken")}, files)
	require.ErrorContains(t, err, "broken")
}

// plain is a disk that can't flush everything at once.
type plain struct{ durable.FS }

// A failed flush is reported, and no temporary files remain.
func TestWriteManyFails(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	err := durable.WriteAllMany(bulk{FS: durable.OS(), fails: errors.New("the disk is broken")}, some(root), durable.Full)
	require.ErrorContains(t, err, "broken")
	for _, dir := range []string{"AA", "BB"} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		require.NoError(t, err)
		require.Empty(t, entries)
	}
}

// On a real disk many files are written, whether or not it can flush all at once.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var files []durable.File
	for i := range 600 {
		files = append(files, durable.File{Path: filepath.Join(root, fmt.Sprint(i%7), fmt.Sprint(i)), Data: []byte(fmt.Sprint(i)), Perm: 0o444})
	}
	require.NoError(t, durable.WriteAll(durable.OS(), files, durable.Full))
	files[0].Present, files[0].Data = true, nil
	require.NoError(t, durable.WriteAll(durable.OS(), files, durable.Full), "what is there is flushed or replaced")
	for _, f := range files {
		data, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(f.Path, string(data)))
	}
}
