package fsstore_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
)

// pathOf returns the path of a node in our store.
func pathOf(dir string, h cas.Hash) string {
	return filepath.Join(dir, "nodes", string(h[:2]), string(h)+".bin")
}

// Reading a damaged node returns an error with its path and the problem, and putting the node again doesn't
// hide the damage.
func TestDamage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := castest.Node(t, cas.XXH3, "a text that is long enough to be damaged in many ways")
	other := castest.Node(t, cas.XXH3, "another text")
	whole := string(cas.MarshalFile(n))
	for name, c := range map[string]struct {
		content string
	}{
		"a flipped bit in the text":    {flip(whole, 40)},
		"a flipped bit in the type":    {flip(whole, 10)},
		"a flipped bit in the head":    {flip(whole, 0)},
		"a flipped bit in the middle":  {flip(whole, 22)},
		"a flipped bit in the tail":    {flip(whole, len(whole)-12)},
		"another node":                 {string(cas.MarshalFile(other))},
		"the node and more":            {whole + "x"},
		"the node twice":               {whole + whole},
		"something else":               {"garbage\n"},
		"its first half and something": {whole[:len(whole)/2] + "garbage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, fsstore.Options{})
			require.NoError(t, s.Put(ctx, n, other))
			write(t, pathOf(dir, n.Hash), c.content)

			_, err := s.Get(ctx, n.Hash)
			for _, err := range []error{err, s.Put(ctx, n), s.Commit(ctx, other, n)} {
				var corrupt *cas.CorruptError
				require.ErrorAs(t, err, &corrupt)
				require.Equal(t, n.Hash, corrupt.Hash)
				require.Equal(t, pathOf(dir, n.Hash), corrupt.Path)
				prosetest.Text(t, corrupt.Reason)
			}
			require.Equal(t, c.content, read(t, pathOf(dir, n.Hash)), "what is left may help to repair it")
			_, err = s.Get(ctx, other.Hash)
			require.NoError(t, err, "other nodes are unaffected")

			require.NoError(t, s.Repair(ctx, n, other))
			got, err := s.Get(ctx, n.Hash)
			require.NoError(t, err)
			require.Equal(t, n, got)
			require.Equal(t, c.content, read(t, filepath.Join(dir, "quarantine", string(n.Hash)+".bin")))
		})
	}
}

func flip(s string, i int) string {
	b := []byte(s)
	b[i] ^= 1
	return string(b)
}

// A power cut after a Put, which doesn't flush, can leave part of a file. Reading it fails, but the node can
// be put again: a retried step puts the same nodes.
func TestATornPutCanBeRepeated(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := castest.Node(t, cas.XXH3, "a text that is long enough to be torn")
	whole := string(cas.MarshalFile(n))
	older := n
	older.Timestamp /= 2
	for name, content := range map[string]string{
		"empty":                       "",
		"cut in half":                 whole[:len(whole)/2],
		"half zeros":                  whole[:len(whole)/2] + string(make([]byte, len(whole)-len(whole)/2)),
		"all zeros":                   string(make([]byte, len(whole))),
		"cut in the timestamp":        whole[:len(whole)-3],
		"cut in an older timestamp":   string(cas.MarshalFile(older)[:len(whole)-3]),
		"cut before the timestamp":    whole[:len(whole)-9],
		"zeros instead of the number": whole[:len(whole)-9] + string(make([]byte, 9)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, fsstore.Options{})
			require.NoError(t, s.Put(ctx, n))
			write(t, pathOf(dir, n.Hash), content)
			_, err := s.Get(ctx, n.Hash)
			var corrupt *cas.CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.NoError(t, s.Put(ctx, n))
			got, err := s.Get(ctx, n.Hash)
			require.NoError(t, err)
			require.Equal(t, n, got)
		})
	}
}

func TestEveryCutAndEveryFlippedBitIsSeen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	n := castest.Node(t, cas.XXH3, map[string]any{"k": []any{1, "two", 3.5}})
	require.NoError(t, s.Put(ctx, n))
	whole := cas.MarshalFile(n)
	var corrupt *cas.CorruptError
	for i := range whole {
		write(t, pathOf(dir, n.Hash), string(whole[:i]))
		_, err := s.Get(ctx, n.Hash)
		require.ErrorAs(t, err, &corrupt, "cut at %d", i)
		for bit := range 8 {
			damaged := bytes.Clone(whole)
			damaged[i] ^= 1 << bit
			write(t, pathOf(dir, n.Hash), string(damaged))
			if got, err := s.Get(ctx, n.Hash); err == nil {
				require.True(t, got.Equal(n), "only the timestamp is not covered: byte %d", i)
				require.GreaterOrEqual(t, i, len(whole)-9)
			}
		}
	}
}

func TestNotAFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	n := castest.Node(t, cas.XXH3, "node")
	require.NoError(t, s.Put(ctx, n))
	path := pathOf(dir, n.Hash)

	require.NoError(t, os.Remove(path))
	_, err := s.Get(ctx, n.Hash)
	require.ErrorIs(t, err, cas.ErrNotFound)
	require.ErrorContains(t, err, string(n.Hash))

	require.NoError(t, os.Mkdir(path, 0o755))
	var corrupt *cas.CorruptError
	_, err = s.Get(ctx, n.Hash)
	require.ErrorAs(t, err, &corrupt)
	require.Contains(t, corrupt.Reason, "a directory")
	require.ErrorAs(t, s.Put(ctx, n), &corrupt)

	require.NoError(t, os.Remove(path))
	write(t, path, "")
	require.NoError(t, os.Truncate(path, int64(cas.MaxFile)+1))
	_, err = s.Get(ctx, n.Hash)
	require.ErrorAs(t, err, &corrupt)
	prosetest.Text(t, corrupt.Reason)

	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	write(t, filepath.Dir(path), "a file where the directory should be")
	_, err = s.Get(ctx, n.Hash)
	require.ErrorContains(t, err, path)
	require.NotErrorIs(t, err, cas.ErrNotFound, "that is not known")
	require.NotErrorAs(t, err, &corrupt, "neither is this")
}

// noWrites is a read-only disk.
type noWrites struct{ durable.FS }

func (noWrites) Touch(path string) error {
	return &fs.PathError{Op: "touch", Path: path, Err: fs.ErrPermission}
}

func (noWrites) WriteTemp(path string, _ []byte, _ fs.FileMode, _ durable.Flush) (string, error) {
	return "", &fs.PathError{Op: "write", Path: path, Err: fs.ErrPermission}
}

func (noWrites) MkdirAll(path string, _ fs.FileMode) error {
	return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrPermission}
}

// Reading needs only read access.
func TestReadingNeverWrites(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	n := castest.Node(t, cas.XXH3, "node")
	require.NoError(t, open(t, dir, fsstore.Options{}).Put(ctx, n))

	// Every other method of the embedded nil interface would panic.
	s := open(t, dir, fsstore.Options{FS: noWrites{}, Home: dir})
	got, err := s.Get(ctx, n.Hash)
	require.NoError(t, err)
	require.Equal(t, n, got)
	_, err = s.Get(ctx, "0000000000000")
	require.ErrorIs(t, err, cas.ErrNotFound)
	require.Equal(t, []cas.Hash{n.Hash}, list(t, s))
	require.NoError(t, s.Put(ctx, n), "there is nothing to write")
	s.FlushMode()
}
