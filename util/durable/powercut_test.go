package durable_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// The fundamental guarantee: a file is durable before any durable file references it. Here a head references
// four nodes, and the power can fail at any point.
func TestPromiseHoldsAnywhere(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		flushes bool
		holds   bool
	}{
		"flushed":         {true, true},
		"nothing flushed": {false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			rec := durabletest.NewRecorder(durable.OS(), root)
			commitTwice(t, rec, root, tt.flushes)
			broken := firstBroken(t, rec.Ops(), checkPromise)
			if tt.holds {
				require.NoError(t, broken)
			} else {
				require.Error(t, broken, "the model is too kind")
			}
		})
	}
}

// commitTwice writes two steps of four nodes, and the head after each.
func commitTwice(t *testing.T, fsys durable.FS, root string, flushes bool) {
	t.Helper()
	for step := range 2 {
		var files []durable.File
		for i := range 4 {
			path := filepath.Join(root, "nodes", fmt.Sprintf("%02d", i), fmt.Sprintf("s%d.bin", step))
			files = append(files, durable.File{Path: path, Data: []byte(whole(step)), Perm: 0o444})
		}
		if flushes {
			require.NoError(t, durable.WriteAll(fsys, files))
		} else {
			for _, f := range files {
				require.NoError(t, fsys.MkdirAll(filepath.Dir(f.Path), 0o755))
				require.NoError(t, durable.Replace(fsys, f.Path, f.Data, f.Perm))
			}
		}
		require.NoError(t, durable.WriteFile(fsys, filepath.Join(root, "head"), fmt.Append(nil, step), 0o644))
	}
}

func whole(step int) string { return fmt.Sprintf("the whole node of step %d", step) }

// checkPromise reads the head, as the program does, and everything it references.
func checkPromise(dir string) error {
	head, err := os.ReadFile(filepath.Join(dir, "head"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var step int
	if _, err := fmt.Sscan(string(head), &step); err != nil {
		return fmt.Errorf("head %q: %w", head, err)
	}
	for i := range 4 {
		data, err := os.ReadFile(filepath.Join(dir, "nodes", fmt.Sprintf("%02d", i), fmt.Sprintf("s%d.bin", step)))
		if err != nil {
			return err
		}
		if string(data) != whole(step) {
			return fmt.Errorf("node %d of step %d is %q", i, step, data)
		}
	}
	return nil
}

// firstBroken simulates a power cut at every point until the check fails.
func firstBroken(t *testing.T, ops []durabletest.Op, check func(dir string) error) error {
	t.Helper()
	base := t.TempDir()
	for n := range len(ops) + 1 {
		i := 0
		for o := range durabletest.Replay(ops, n) {
			dir := filepath.Join(base, fmt.Sprintf("%d-%d", n, i))
			i++
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, o.Write(dir))
			if err := check(dir); err != nil {
				return fmt.Errorf("after %d operations, %s: %w", n, o.Name, err)
			}
		}
	}
	return nil
}

// Each case is a few operations in a directory, and all possible results of a power cut after the last.
func TestReplay(t *testing.T) {
	t.Parallel()
	type try = func(t *testing.T, fsys durable.FS, at func(string) string)
	write := func(flush durable.Flush) try {
		return func(t *testing.T, fsys durable.FS, at func(string) string) {
			temp, err := fsys.WriteTemp(at("f"), []byte("abcd"), 0o644, flush)
			require.NoError(t, err)
			require.NoError(t, fsys.Rename(temp, at("f")))
		}
	}
	tests := map[string]struct {
		do   try
		want []string
	}{
		"nothing": {
			do:   func(*testing.T, durable.FS, func(string) string) {},
			want: []string{""},
		},
		"flushed content, name at risk": {
			do: write(durable.FullFlush), want: []string{"", "f=abcd"},
		},
		"nothing flushed": {
			do: write(durable.NoFlush), want: []string{"", "f=", "f=ab", "f=ab00", "f=abcd"},
		},
		"a name is safe once its directory is": {
			do: func(t *testing.T, fsys durable.FS, at func(string) string) {
				write(durable.FullFlush)(t, fsys, at)
				require.NoError(t, fsys.SyncDir(at(".")))
			},
			want: []string{"f=abcd"},
		},
		"a name without content": {
			do: func(t *testing.T, fsys durable.FS, at func(string) string) {
				write(durable.NoFlush)(t, fsys, at)
				require.NoError(t, fsys.SyncDir(at(".")))
			},
			want: []string{"f=", "f=ab", "f=ab00", "f=abcd"},
		},
		"names in the order of a journal, or in any other": {
			do:   appendEach("a", "b", "c", "d"),
			want: []string{"", "a=", "a= b=", "a= b= c=", "a= b= c= d=", "a= b= d=", "a= c= d=", "b=", "b= c= d=", "c=", "d="},
		},
		"what is appended is torn, what was flushed is not": {
			do: func(t *testing.T, fsys durable.FS, at func(string) string) {
				appendEach("f")(t, fsys, at)
				require.NoError(t, fsys.SyncDir(at(".")))
				require.NoError(t, fsys.Append(at("f"), []byte("one\n"), 0o644, durable.FullFlush))
				require.NoError(t, fsys.Append(at("f"), []byte("two\n"), 0o644, durable.NoFlush))
			},
			want: []string{"f=one\n", "f=one\ntw", "f=one\ntw00", "f=one\ntwo\n"},
		},
		"a removal": {
			do: func(t *testing.T, fsys durable.FS, at func(string) string) {
				write(durable.FullFlush)(t, fsys, at)
				require.NoError(t, fsys.SyncDir(at(".")))
				require.NoError(t, fsys.Remove(at("f")))
			},
			want: []string{"", "f=abcd"},
		},
		"a cut": {
			do: func(t *testing.T, fsys durable.FS, at func(string) string) {
				write(durable.FullFlush)(t, fsys, at)
				require.NoError(t, fsys.SyncDir(at(".")))
				require.NoError(t, fsys.Truncate(at("f"), 1))
			},
			want: []string{"f=a", "f=abcd"},
		},
		"a cut that was flushed": {
			do: func(t *testing.T, fsys durable.FS, at func(string) string) {
				write(durable.FullFlush)(t, fsys, at)
				require.NoError(t, fsys.SyncDir(at(".")))
				require.NoError(t, fsys.Truncate(at("f"), 1))
				require.NoError(t, fsys.SyncFile(at("f")))
			},
			want: []string{"f=a"},
		},
		"a directory takes its files along": {
			do: func(t *testing.T, fsys durable.FS, at func(string) string) {
				require.NoError(t, fsys.MkdirAll(at("d/e"), 0o755))
				require.NoError(t, fsys.Append(at("d/e/f"), nil, 0o644, durable.FullFlush))
				require.NoError(t, fsys.SyncDir(at("d/e")))
				require.NoError(t, fsys.SyncDir(at("d")))
			},
			want: []string{"", "d/ d/e/ d/e/f="},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			rec := durabletest.NewRecorder(durable.OS(), root)
			tt.do(t, rec, func(name string) string { return filepath.Join(root, name) })
			var got []string
			for o := range durabletest.Replay(rec.Ops(), len(rec.Ops())) {
				dir := t.TempDir()
				require.NoError(t, o.Write(dir))
				got = append(got, tree(t, dir))
			}
			slices.Sort(got)
			require.Equal(t, tt.want, slices.Compact(got))
		})
	}
}

func appendEach(names ...string) func(*testing.T, durable.FS, func(string) string) {
	return func(t *testing.T, fsys durable.FS, at func(string) string) {
		for _, name := range names {
			require.NoError(t, fsys.Append(at(name), nil, 0o644, durable.NoFlush))
		}
	}
}

// The operation in progress during the power cut might have started.
func TestReplayStartedOperation(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rec := durabletest.NewRecorder(durable.OS(), root)
	require.NoError(t, rec.Append(filepath.Join(root, "f"), nil, 0o644, durable.NoFlush))
	require.NoError(t, rec.SyncDir(root))
	require.NoError(t, rec.Append(filepath.Join(root, "f"), []byte("line"), 0o644, durable.FullFlush))
	var got []string
	for o := range durabletest.Replay(rec.Ops(), 2) {
		dir := t.TempDir()
		require.NoError(t, o.Write(dir))
		got = append(got, tree(t, dir))
	}
	require.ElementsMatch(t, []string{"f=", "f=li", "f=li00", "f=line"}, got)
}

func TestRecorderRefusesOtherPlaces(t *testing.T) {
	t.Parallel()
	root, other := t.TempDir(), t.TempDir()
	rec := durabletest.NewRecorder(durable.OS(), root)
	require.Error(t, rec.Append(filepath.Join(other, "f"), nil, 0o644, durable.NoFlush))
	require.Error(t, durable.WriteFile(rec, filepath.Join(other, "f"), nil, 0o644))
	require.NoError(t, rec.SyncDir(filepath.Dir(root)), "making the root durable is no part of the recording")
	require.Error(t, rec.Remove(filepath.Join(root, "missing")))
	require.Empty(t, rec.Ops(), "what failed has not happened")
	require.Empty(t, names(t, other))
}

// tree lists files with their content, zeros as 0, except temporary ones.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case rel == "." || durable.IsTemp(path):
		case e.IsDir():
			list = append(list, filepath.ToSlash(rel)+"/")
		default:
			list = append(list, filepath.ToSlash(rel)+"="+strings.ReplaceAll(read(t, path), "\x00", "0"))
		}
		return nil
	}))
	return strings.Join(list, " ")
}
