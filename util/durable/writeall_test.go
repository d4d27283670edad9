package durable_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/durable/durabletest"
)

func TestWriteAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := []durable.File{
		{Path: filepath.Join(dir, "nodes", "AA", "1"), Data: []byte("one"), Perm: 0o444},
		{Path: filepath.Join(dir, "nodes", "AA", "2"), Data: []byte("two"), Perm: 0o444},
		{Path: filepath.Join(dir, "nodes", "BB", "3"), Data: nil, Perm: 0o444},
	}
	require.NoError(t, durable.WriteAll(durable.OS(), files))
	require.NoError(t, durable.WriteAll(durable.OS(), files), "what exists is replaced")
	for _, f := range files {
		require.Equal(t, string(f.Data), read(t, f.Path))
	}
	require.Equal(t, []string{"1", "2"}, names(t, filepath.Join(dir, "nodes", "AA")))
	require.NoError(t, durable.WriteAll(durable.OS(), nil))
}

// Each file is flushed, and each directory.
func TestWriteAllFlushes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "AA"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "BB"), 0o755))
	rec := durabletest.NewRecorder(durable.OS(), root)
	var files []durable.File
	for _, name := range []string{"AA/1", "AA/2", "BB/3", "BB/4"} {
		files = append(files, durable.File{Path: filepath.Join(root, name), Data: []byte(name), Perm: 0o444})
	}
	require.NoError(t, durable.WriteAll(rec, files))
	flushes := 0
	for _, op := range rec.Ops() {
		if op.Flush == durable.FullFlush || op.Kind == durabletest.OpSyncDir || op.Kind == durabletest.OpSyncFile {
			flushes++
		}
	}
	require.Equal(t, 4+2, flushes)
}

// A file that another process wrote without a flush becomes durable, including its name.
func TestWriteAllPresent(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprintf("alone %v", alone), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			rec := durabletest.NewRecorder(durable.OS(), root)
			early := durable.File{Path: filepath.Join(root, "early"), Data: []byte("early"), Perm: 0o444}
			require.NoError(t, durable.Replace(rec, early.Path, early.Data, early.Perm))
			// Another flush might have made the name durable, but not the content.
			require.NoError(t, rec.SyncDir(root))

			files := []durable.File{{Path: early.Path, Present: true}}
			want := "early=early"
			if !alone {
				files = append(files, durable.File{Path: filepath.Join(root, "late"), Data: []byte("late"), Perm: 0o444})
				want += " late=late"
			}
			require.NoError(t, durable.WriteAll(rec, files))
			for o := range durabletest.Replay(rec.Ops(), len(rec.Ops())) {
				dir := t.TempDir()
				require.NoError(t, o.Write(dir))
				require.Equal(t, want, tree(t, dir), o.Name)
			}
		})
	}
}

func TestWriteAllFailureLeavesNoTemporaryFile(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	dir := t.TempDir()
	files := []durable.File{
		{Path: filepath.Join(dir, "1"), Data: []byte("one"), Perm: 0o444},
		{Path: filepath.Join(dir, "2"), Data: []byte("two"), Perm: 0o444},
	}
	for _, f := range []durable.FS{failing{FS: durable.OS(), rename: full}, &fullAfter{FS: durable.OS(), writes: 1, err: full}} {
		require.ErrorIs(t, durable.WriteAll(f, files), full)
		require.NotContains(t, names(t, dir), "2")
		require.False(t, slices.ContainsFunc(names(t, dir), durable.IsTemp))
	}
}

// fullAfter is a disk with space for a few files.
type fullAfter struct {
	durable.FS
	writes int
	err    error
}

func (f *fullAfter) WriteTemp(path string, data []byte, perm os.FileMode, flush durable.Flush) (string, error) {
	if f.writes == 0 {
		return "", f.err
	}
	f.writes--
	return f.FS.WriteTemp(path, data, perm, flush)
}
