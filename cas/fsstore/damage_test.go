package fsstore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Reading a damaged node returns an error with its place and the problem, and putting the node again restores it.
func TestDamage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := castest.Node(t, cas.XXH3, "a text that is long enough to be damaged in many ways")
	other := castest.Node(t, cas.XXH3, "another text")
	for name, at := range map[string]int{"text": 40, "type": 10, "head": 0, "middle": 22, "tail": -12} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, fsstore.Options{})
			require.NoError(t, s.Put(ctx, n, other))
			r := castest.FindRecord(t, dir, n.Hash)
			if at < 0 {
				at += r.Head.Length
			}
			r.Overwrite(at, []byte{r.Body()[at] ^ 1})
			damaged := r.Body()

			_, err := s.Get(ctx, n.Hash)
			var corrupt *cas.CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, n.Hash, corrupt.Hash)
			require.Equal(t, s.Where(n.Hash), corrupt.Path)
			require.Contains(t, corrupt.Path, r.Path)
			prosetest.Text(t, corrupt.Reason)
			_, err = s.Get(ctx, other.Hash)
			require.NoError(t, err, "other nodes are unaffected")

			_, err = s.Quarantine(ctx, n.Hash)
			require.NoError(t, err)
			for _, put := range []func(context.Context, ...cas.Node) error{s.Put, s.Commit, s.Put} {
				require.NoError(t, put(ctx, n, other))
				got, err := s.Get(ctx, n.Hash)
				require.NoError(t, err)
				require.Equal(t, n, got)
				castest.FindRecord(t, dir, n.Hash).Flip()
			}
			require.Equal(t, string(damaged), read(t, filepath.Join(dir, "quarantine", string(n.Hash)+".bin")))
		})
	}
}

// A power cut after a Put, which doesn't flush, can tear a record. Reading it fails, but the node can be put
// again: a retried step puts the same nodes.
func TestATornPutCanBeRepeated(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := castest.Node(t, cas.XXH3, "a text that is long enough to be torn")
	for name, from := range map[string]int{"half": 50, "all": 0, "near its end": -15} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, fsstore.Options{})
			require.NoError(t, s.Put(ctx, n))
			r := castest.FindRecord(t, dir, n.Hash)
			if from < 0 {
				from += r.Head.Length
			}
			r.Overwrite(from, make([]byte, r.Head.Length-from))
			_, err := s.Get(ctx, n.Hash)
			require.ErrorAs(t, err, new(*cas.CorruptError))
			require.NoError(t, s.Put(ctx, n))
			got, err := s.Get(ctx, n.Hash)
			require.NoError(t, err)
			require.Equal(t, n, got)
		})
	}
}

// Another program cuts off or replaces the content of the segment that an open store has read.
func TestACutSegment(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, left := range map[string]string{"nothing": "", "a few bytes": "x\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, n := open(t, dir, fsstore.Options{}), castest.Node(t, cas.XXH3, "a text")
			require.NoError(t, s.Put(ctx, n))
			write(t, filepath.Join(dir, "log", "00000001.seg"), left)
			_, err := s.Get(ctx, n.Hash)
			require.ErrorIs(t, err, cas.ErrNotFound)
			require.NoError(t, s.Commit(ctx, n))
			for _, s := range []*fsstore.Store{s, open(t, dir, fsstore.Options{})} {
				got, err := s.Get(ctx, n.Hash)
				require.NoError(t, err)
				require.Equal(t, n, got)
			}
		})
	}
}

// A flipped bit anywhere in a segment costs at most the node that it hits, with its index and without, sealed or
// not, and in a pack at most the nodes of its frame.
func TestEveryFlippedBitOfALog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	home := t.TempDir()
	s := open(t, filepath.Join(home, "whole"), fsstore.Options{})
	var nodes []cas.Node
	for i := range 4 {
		nodes = append(nodes, castest.Node(t, cas.XXH3, fmt.Sprint("node ", i)))
	}
	require.NoError(t, s.Commit(ctx, nodes...))
	for name, prepare := range map[string]func(dir string){
		"with an index":   func(string) {},
		"without":         func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "log", "00000001.idx"))) },
		"a foreign index": func(dir string) { write(t, filepath.Join(dir, "log", "00000001.idx"), foreignIndex(t)) },
		"sealed later":    func(string) {},
		"a damaged index": func(dir string) { flipAt(t, filepath.Join(dir, "log", "00000001.idx"), 40) },
		"sealed":          func(dir string) { sealed(t, dir) },
		"sealed, no index": func(dir string) {
			sealed(t, dir)
			require.NoError(t, os.Remove(filepath.Join(dir, "log", "00000001.idx")))
		},
		"sealed, damaged": func(dir string) { sealed(t, dir); flipAt(t, filepath.Join(dir, "log", "00000001.idx"), 2200) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cas")
			require.NoError(t, os.CopyFS(dir, os.DirFS(s.Dir())))
			prepare(dir)
			segment := filepath.Join(dir, "log", "00000001.seg")
			whole, index := read(t, segment), read(t, filepath.Join(s.Dir(), "log", "00000001.idx"))
			first := castest.FindRecord(t, dir, nodes[0].Hash)
			for at := first.At; at < len(whole); at++ {
				write(t, segment, whole)
				flipAt(t, segment, at)
				lost := 0
				if name == "sealed later" {
					write(t, filepath.Join(dir, "log", "00000001.idx"), index)
					sealed(t, dir)
				}
				fresh := open(t, dir, fsstore.Options{})
				for i, n := range nodes {
					got, err := fresh.Get(ctx, n.Hash)
					if err != nil {
						lost++
						r := first
						if i > 0 {
							r.At = first.At + i*int(first.Head.Size())
						}
						require.True(t, r.At <= at && at < r.At+int(first.Head.Size()), "byte %d: %v", at, err)
						continue
					}
					require.True(t, got.Equal(n))
				}
				require.LessOrEqual(t, lost, 1)
				if inHeader := (at-first.At)%int(first.Head.Size()) < record.HeaderSize; inHeader && slices.Contains([]string{"with an index", "sealed", "sealed later"}, name) {
					require.Zero(t, lost, "the index has the place: byte %d", at)
				}
			}
		})
	}
}

// Sealing a segment also keeps seals and homes whose headers are damaged: the index has their places.
func TestSealingKeepsWhatOnlyTheIndexHas(t *testing.T) {
	t.Parallel()
	dir, home := filepath.Join(t.TempDir(), "cas"), filepath.Join(t.TempDir(), "home")
	n := castest.Node(t, cas.XXH3, "node")
	s := open(t, dir, fsstore.Options{Home: home})
	require.NoError(t, s.Commit(t.Context(), n))
	seal := cas.SealOf(n, nil)
	require.NoError(t, s.KeepSeals(t.Context(), map[cas.Hash]cas.Seal{n.Hash: seal}))
	records := castest.FindRecord(t, dir, n.Hash, record.Seal)
	flipAt(t, records.Path, records.At)
	flipAt(t, records.Path, findHome(t, dir, home).At)

	sealed(t, dir)
	s = open(t, dir, fsstore.Options{})
	kept, err := s.Seal(n.Hash)
	require.NoError(t, err)
	require.Equal(t, seal, kept)
	homes, err := s.Homes()
	require.NoError(t, err)
	require.Equal(t, []string{home}, homes)
}

// findHome returns the record of a home.
func findHome(t *testing.T, dir, home string) castest.Record {
	return castest.FindRecord(t, dir, cas.XXH64.Sum("", []byte(home)), record.Home)
}

// sealed seals the newest segment of a store.
func sealed(t *testing.T, dir string) {
	c, err := open(t, dir, fsstore.Options{}).Compact(t.Context(), time.Now().Add(time.Hour), false)
	require.NoError(t, err)
	require.NoError(t, c.Release())
}

func foreignIndex(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, open(t, dir, fsstore.Options{}).Commit(t.Context(), castest.Node(t, cas.XXH3, "elsewhere")))
	return read(t, filepath.Join(dir, "log", "00000001.idx"))
}

func flipAt(t testing.TB, path string, at int) {
	t.Helper()
	data := []byte(read(t, path))
	require.Less(t, at, len(data), path)
	data[at] ^= 1
	write(t, path, string(data))
}

// A segment that is missing costs its nodes only, and something else in its place is an error.
func TestNotASegment(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	n := castest.Node(t, cas.XXH3, "node")
	require.NoError(t, s.Put(ctx, n))
	path := castest.FindRecord(t, dir, n.Hash).Path

	require.NoError(t, os.Remove(path))
	_, err := s.Get(ctx, n.Hash)
	require.ErrorIs(t, err, cas.ErrNotFound)
	require.ErrorContains(t, err, string(n.Hash))
	require.NoError(t, s.Commit(ctx, n))
	_, err = s.Get(ctx, n.Hash)
	require.NoError(t, err)

	path = castest.FindRecord(t, dir, n.Hash).Path
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o755))
	_, err = open(t, dir, fsstore.Options{}).Get(ctx, n.Hash)
	require.ErrorContains(t, err, path)
	require.NotErrorIs(t, err, cas.ErrNotFound, "that is not known")
}

// An empty pack is damage of its nodes, like any other.
func TestEmptyPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	n := castest.Node(t, cas.XXH3, "node")
	require.NoError(t, s.Commit(t.Context(), n))
	compact(t, s)
	packs, err := filepath.Glob(filepath.Join(dir, "packs", "*.pack"))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(packs[0], 0))
	_, err = open(t, dir, fsstore.Options{}).Get(t.Context(), n.Hash)
	require.True(t, errors.Is(err, cas.ErrNotFound) || errors.As(err, new(*cas.CorruptError)), "%v", err)
}

// A copy of a store can be written to, even if what made it omitted empty directories.
func TestCopyWithoutEmptyDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	n := castest.Node(t, cas.XXH3, "node")
	require.NoError(t, s.Commit(t.Context(), n))
	compact(t, s)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "log")))
	s = open(t, dir, fsstore.Options{})
	added := castest.Node(t, cas.XXH3, "added")
	require.NoError(t, s.Commit(t.Context(), added))
	requireNodes(t, open(t, dir, fsstore.Options{}), []cas.Node{n, added})
}

// noWrites is a read-only disk.
type noWrites struct{ durable.FS }

func (noWrites) Touch(path string) error {
	return &fs.PathError{Op: "touch", Path: path, Err: fs.ErrPermission}
}

func (noWrites) Append(path string, _ []byte, _ fs.FileMode, _ durable.Flush) error {
	return &fs.PathError{Op: "append to", Path: path, Err: fs.ErrPermission}
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
	require.Contains(t, list(t, s), n.Hash)
	require.NoError(t, s.Put(ctx, n), "there is nothing to write")
}

// A read of a sparse index of 200 GB stops at the size of its segment.
func TestHugeIndex(t *testing.T) { // alone: it measures all allocations
	dir, n := t.TempDir(), castest.Node(t, cas.XXH3, "a text")
	require.NoError(t, open(t, dir, fsstore.Options{}).Put(t.Context(), n))
	indexes, err := filepath.Glob(filepath.Join(dir, "log", "*.idx"))
	require.NoError(t, err)
	require.Len(t, indexes, 1)
	require.NoError(t, os.Truncate(indexes[0], 200<<30))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := open(t, dir, fsstore.Options{}).Get(t.Context(), n.Hash)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, n, got)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}
