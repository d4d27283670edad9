package fsstore_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/sampletest"
)

// nodes returns n different nodes.
func nodes(t testing.TB, a cas.Algorithm, n int) (all []cas.Node) {
	for i := range n {
		all = append(all, castest.Node(t, a, fmt.Sprint("node ", i, " of many")))
	}
	return all
}

// requireNodes checks that a store has nodes.
func requireNodes(t testing.TB, s cas.Store, all []cas.Node) {
	t.Helper()
	for i, n := range all {
		got, err := s.Get(t.Context(), n.Hash)
		require.NoError(t, err, "node %d", i)
		require.True(t, got.Equal(n))
	}
}

// What is kept is in a pack, and the rest is gone; a store that was open before sees the same. Compacting again
// changes nothing.
func TestCompact(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s, before := open(t, dir, fsstore.Options{}), open(t, dir, fsstore.Options{})
	all := nodes(t, cas.XXH3, 40)
	require.NoError(t, s.Commit(ctx, all[:20]...))
	requireNodes(t, before, all[:20])
	compact(t, s)
	require.NoError(t, s.Commit(ctx, all...))
	keep := func(h cas.Hash) bool { return h != all[3].Hash && h != all[33].Hash }
	collect(t, s, keep)
	for _, s := range []*fsstore.Store{s, before, open(t, dir, fsstore.Options{})} {
		for _, gone := range []cas.Node{all[3], all[33]} {
			_, err := s.Get(ctx, gone.Hash)
			require.ErrorIs(t, err, cas.ErrNotFound)
			require.NotContains(t, list(t, s), gone.Hash)
		}
		requireNodes(t, s, slices.DeleteFunc(slices.Clone(all), func(n cas.Node) bool { return !keep(n.Hash) }))
	}
	names := files(t, dir)
	collect(t, s, keep)
	require.Equal(t, names, files(t, dir))
	require.NoError(t, s.Commit(ctx, all...))
	requireNodes(t, before, all)
}

// collect packs the nodes for which keep returns true.
func collect(t testing.TB, s *fsstore.Store, keep func(cas.Hash) bool) {
	t.Helper()
	collectWith(t, s, keep, func() {})
}

// collectWith calls recheck before the pack counts.
func collectWith(t testing.TB, s *fsstore.Store, keep func(cas.Hash) bool, recheck func()) {
	t.Helper()
	kept := func(h cas.Hash) bool { return s.Kinds().InFoundation(h) || keep(h) }
	c, err := s.Compact(t.Context(), time.Now().Add(time.Hour), false)
	require.NoError(t, err)
	for _, err := range c.Nodes(t.Context()) {
		require.NoError(t, err)
	}
	require.NoError(t, c.Write(t.Context(), kept))
	require.NoError(t, c.Finish(t.Context(), func() error {
		recheck()
		return nil
	}, kept))
	require.NoError(t, c.Release())
}

// files lists the files of a store, without locks.
func files(t testing.TB, dir string) (names []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Ext(path) != ".lock" {
			names = append(names, path)
		}
		return err
	}))
	return names
}

// A store of our first version is readable, the first write gives it the current version, and its files go with
// the second compaction if a check has found no fault in between.
func TestFirstVersion(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	all := nodes(t, cas.XXH64, 20)
	write(t, filepath.Join(dir, "format.json"), `{"version":1,"hash":"xxh64","layout":"fan2","flush":"none"}`)
	for _, n := range all {
		write(t, filepath.Join(dir, "nodes", string(n.Hash[:2]), string(n.Hash)+".bin"), string(cas.MarshalFile(n)))
	}
	seal := cas.SealOf(all[0], nil)
	write(t, filepath.Join(dir, "seals", string(all[0].Hash[:2]), string(all[0].Hash)), seal.String()+"\n")
	home := t.TempDir()
	write(t, filepath.Join(dir, "homes", "x"), home+"\n")

	whole := func(s *fsstore.Store) {
		t.Helper()
		requireNodes(t, s, all)
		kept, err := s.Seal(all[0].Hash)
		require.NoError(t, err)
		require.Equal(t, seal, kept)
		homes, err := s.Homes()
		require.NoError(t, err)
		require.Equal(t, []string{home}, homes)
	}
	s, old := open(t, dir, fsstore.Options{}), open(t, dir, fsstore.Options{})
	whole(s)
	require.Contains(t, read(t, filepath.Join(dir, "format.json")), `"version":1`, "reading changes nothing")
	require.NoError(t, s.Put(ctx, castest.Node(t, cas.XXH64, "new")))
	require.Equal(t, `{"version":2,"hash":"xxh64"}`+"\n", read(t, filepath.Join(dir, "format.json")))
	whole(open(t, dir, fsstore.Options{}))
	require.NoError(t, s.Checked(), "nothing is packed yet")
	for range 2 {
		compact(t, s)
		require.DirExists(t, filepath.Join(dir, "nodes"))
		whole(open(t, dir, fsstore.Options{}))
	}
	require.NoError(t, s.Checked())
	compact(t, s)
	for _, gone := range []string{"nodes", "seals", "homes", "nodes.checked", ".tmp-version-1"} {
		require.NoFileExists(t, filepath.Join(dir, gone))
		require.NoDirExists(t, filepath.Join(dir, gone))
	}
	for _, s := range []*fsstore.Store{s, old, open(t, dir, fsstore.Options{})} {
		whole(s)
	}
}

// A flipped bit anywhere in a pack or its index costs at most the nodes of a frame, and in the index none.
func TestEveryFlippedBitOfAPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	all := nodes(t, cas.XXH3, 5)
	require.NoError(t, s.Commit(t.Context(), all...))
	compact(t, s)
	packs, err := filepath.Glob(filepath.Join(dir, "packs", "*"))
	require.NoError(t, err)
	require.Len(t, packs, 2)
	pick := sampletest.New(t)
	for _, path := range packs {
		good := read(t, path)
		for i := range good {
			if !pick() {
				continue
			}
			flipAt(t, path, i)
			s := open(t, dir, fsstore.Options{})
			for _, n := range all {
				got, err := s.Get(t.Context(), n.Hash)
				if filepath.Ext(path) == ".idx" && !errors.Is(err, &protocol.Error{Code: protocol.CodeUnsupportedVersion}) {
					require.NoError(t, err, "%s, byte %d", path, i)
				}
				require.NotErrorIs(t, err, cas.ErrNotFound, "%s, byte %d: what is there is damaged", path, i)
				if err == nil {
					require.True(t, got.Equal(n))
				}
			}
			write(t, path, good)
		}
	}
	requireNodes(t, open(t, dir, fsstore.Options{}), all)
}

// What is damaged in a pack stays in its index, also after a read of another damaged record has rebuilt that.
func TestDamagedRecordsOfAPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	all := nodes(t, cas.XXH3, 5)
	require.NoError(t, s.Commit(t.Context(), all...))
	compact(t, s)
	path := filepath.Join(dir, "packs", "00000001-1.pack")
	decoder, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer decoder.Close()
	stream, err := decoder.DecodeAll([]byte(read(t, path)), nil)
	require.NoError(t, err)
	for at, head := range record.Scan(slices.Clone(stream)) {
		stream[at], stream[at+record.HeaderSize+head.Length/2] = 0, 0
	}
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	write(t, path, string(encoder.EncodeAll(stream, nil)))

	requireDamaged := func() {
		s := open(t, dir, fsstore.Options{})
		for _, n := range slices.Concat(all, all) {
			_, err := s.Get(t.Context(), n.Hash)
			require.ErrorAs(t, err, new(*cas.CorruptError))
		}
	}
	requireDamaged()
	require.NoError(t, os.Truncate(path, 20))
	requireDamaged()
	// The damaged pack is not copied, so that fsck can report what restores it.
	c, err := open(t, dir, fsstore.Options{}).Compact(t.Context(), time.Now().Add(time.Hour), false)
	require.NoError(t, err)
	err = c.Write(t.Context(), func(cas.Hash) bool { return true })
	require.ErrorAs(t, err, new(*cas.CorruptError))
	require.NoError(t, c.Release())
}

// A node that is put again while a compaction runs stays, although its segment was sealed behind the back of the
// process that puts it.
func TestPutWhileASegmentIsSealed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	n := castest.Node(t, cas.XXH3, "node")
	require.NoError(t, s.Commit(ctx, n))
	long := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(castest.FindRecord(t, dir, n.Hash).Path, long, long))
	_, err := s.Get(ctx, n.Hash)
	require.NoError(t, err)

	c, err := open(t, dir, fsstore.Options{}).Compact(ctx, time.Now().Add(-time.Hour), false)
	require.NoError(t, err)
	for _, err := range c.Nodes(ctx) {
		require.NoError(t, err)
	}
	none := func(cas.Hash) bool { return false }
	require.NoError(t, c.Write(ctx, none))
	require.NoError(t, s.Commit(ctx, n))
	require.NoError(t, c.Finish(ctx, func() error { return nil }, none))
	require.NoError(t, c.Release())
	requireNodes(t, open(t, dir, fsstore.Options{}), []cas.Node{n})
}

// A compaction restores a damaged seek table and a lost index, so that not each process has to.
func TestTablesOfAPack(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(pack string){
		"seek table": func(pack string) { flipAt(t, pack, len(read(t, pack))-1) },
		"index":      func(pack string) { require.NoError(t, os.Remove(strings.TrimSuffix(pack, ".pack")+".idx")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, fsstore.Options{})
			all := nodes(t, cas.XXH3, 5)
			require.NoError(t, s.Commit(t.Context(), all...))
			compact(t, s)
			packs := func(ext string) []string {
				found, err := filepath.Glob(filepath.Join(dir, "packs", "*"+ext))
				require.NoError(t, err)
				require.Len(t, found, 1)
				return found
			}
			good := read(t, packs(".pack")[0])
			harm(packs(".pack")[0])
			s = open(t, dir, fsstore.Options{})
			requireNodes(t, s, all)
			compact(t, s)
			require.Equal(t, good, read(t, packs(".pack")[0]))
			requireNodes(t, open(t, dir, fsstore.Options{}), all)
			packs(".idx")
		})
	}
}

// A pack of a newer program is an error, and a pack without an index is read.
func TestPackOfANewerProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	all := nodes(t, cas.XXH3, 5)
	require.NoError(t, s.Commit(t.Context(), all...))
	compact(t, s)
	index := filepath.Join(dir, "packs", "00000001-1.idx")
	good := read(t, index)
	write(t, index, newer(good))
	_, err := open(t, dir, fsstore.Options{}).Get(t.Context(), all[0].Hash)
	require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUnsupportedVersion})
	require.ErrorContains(t, err, index)
	require.NoError(t, os.Remove(index))
	requireNodes(t, open(t, dir, fsstore.Options{}), all)
}

// newer returns an index with the next version and a valid checksum.
func newer(index string) string { return fsstore.WithVersion([]byte(index), '2') }

// A compaction is due when several sealed segments are old, and not again when one was begun.
func TestCompactionDue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	later := time.Now().Add(2 * time.Hour)
	for i, n := range nodes(t, cas.XXH3, 5) {
		require.False(t, s.CompactionDue(later), i)
		require.NoError(t, s.Put(t.Context(), n))
		if i < 4 {
			sealed(t, dir)
		}
	}
	require.True(t, s.CompactionDue(later))
	require.False(t, s.CompactionDue(time.Now()), "the segments are too new")
	require.NoError(t, s.BeginCompaction())
	require.False(t, s.CompactionDue(time.Now().Add(30*time.Minute)))
	require.True(t, s.CompactionDue(later))
	lock, err := durable.TryLock(filepath.Join(dir, "compact.lock"))
	require.NoError(t, err)
	require.False(t, s.CompactionDue(later), "one is running")
	require.NoError(t, lock.Unlock())
	compact(t, s)
	require.False(t, s.CompactionDue(later))
}

// full is a disk on which one operation fails, and every later one succeeds.
type full struct {
	durable.FS
	left   int
	killed bool // every later one fails as well
}

var errFull = errors.New("no space left on device")

func (f *full) fails() bool {
	f.left--
	return f.left == -1 || f.killed && f.left < 0
}

func (f *full) Remove(path string) error {
	if f.killed && f.left < 0 {
		return errFull
	}
	return f.FS.Remove(path)
}

func (f *full) WriteTemp(path string, data []byte, perm fs.FileMode, flush durable.Flush) (string, error) {
	if f.fails() {
		return "", errFull
	}
	return f.FS.WriteTemp(path, data, perm, flush)
}

func (f *full) Append(path string, data []byte, perm fs.FileMode, flush durable.Flush) error {
	if f.fails() {
		if len(data) > 20 { // a part of it was written, and could not be removed
			_ = f.FS.Append(path, data[:len(data)-9], perm, flush)
		}
		return errFull
	}
	return f.FS.Append(path, data, perm, flush)
}

func (f *full) Rename(from, to string) error {
	if f.fails() {
		return errFull
	}
	return f.FS.Rename(from, to)
}

func (f *full) SyncFile(path string) error {
	if f.fails() {
		return errFull
	}
	return f.FS.SyncFile(path)
}

// Whatever write or flush fails, nothing that was acknowledged is lost, and the next commit and compaction
// succeed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for failing := range 60 {
		dir := t.TempDir()
		disk := &full{FS: fast{durable.OS()}, left: failing}
		s := open(t, dir, fsstore.Options{FS: disk})
		var acknowledged []cas.Node
		failed := false
		all := nodes(t, cas.XXH3, 30)
		for i := 0; i < len(all); i += 3 {
			err := s.Commit(ctx, all[i:i+3]...)
			if err == nil {
				acknowledged = append(acknowledged, all[i:i+3]...)
			} else {
				require.ErrorIs(t, err, errFull)
				failed = true
			}
			if i%12 == 9 {
				failed = compactOnce(t.Context(), s) != nil || failed
			}
			requireNodes(t, open(t, dir, fsstore.Options{}), acknowledged)
			requireNodes(t, s, acknowledged)
		}
		disk.left = -2
		require.NoError(t, s.Commit(ctx, all...))
		require.NoError(t, compactOnce(t.Context(), s))
		requireNodes(t, open(t, dir, fsstore.Options{}), all)
		for _, name := range files(t, dir) {
			require.False(t, durable.IsTemp(name), name)
		}
		if !failed {
			require.Greater(t, failing, 20, "every operation has failed once")
			return
		}
	}
}

// Whatever write or flush of a redaction fails, or is the first one after a kill, other nodes stay, and repeating it
// removes the content.
func TestInterruptedRedaction(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for n := range 120 {
		dir := t.TempDir()
		disk := &full{FS: fast{durable.OS()}, left: -2}
		s := open(t, dir, fsstore.Options{FS: disk})
		all := nodes(t, cas.XXH3, 6)
		require.NoError(t, s.Commit(ctx, all[:3]...))
		require.NoError(t, compactOnce(ctx, s))
		require.NoError(t, s.Commit(ctx, all[2:]...)) // one is in a pack and in the log
		secret, others := all[2], append(all[:2:2], all[3:]...)
		redact := func(s *fsstore.Store) error {
			return s.Redact(ctx, func() error { return nil }, cas.Tombstone{Hash: secret.Hash, Type: secret.Type, Reason: "why"})
		}
		disk.left, disk.killed = n/2, n%2 == 1
		failed := redact(s)
		s = open(t, dir, fsstore.Options{})
		requireNodes(t, s, others)
		if got, err := s.Get(ctx, secret.Hash); failed == nil || err != nil {
			_, redacted := cas.AsRedacted(err)
			require.True(t, redacted, "%v", err)
		} else {
			require.Equal(t, secret, got)
		}
		require.NoError(t, s.Put(ctx, all...), "writers continue")
		require.NoError(t, redact(s))
		castest.RequireErased(t, dir, secret.Payload)
		requireNodes(t, open(t, dir, fsstore.Options{}), others)
		if failed == nil && disk.killed {
			require.Greater(t, n, 12, "every operation has failed once")
			return
		}
	}
}

// Redactions lose nothing that another process commits meanwhile.
func TestRedactionsBesideAWriter(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{FS: fast{durable.OS()}})
	const many = 12
	secrets, others := nodes(t, cas.XXH3, many), nodes(t, cas.XXH3, 20*many)[many:]
	require.NoError(t, s.Commit(ctx, secrets...))
	writer := open(t, dir, fsstore.Options{FS: fast{durable.OS()}})
	written := make(chan error, 1)
	go func() {
		var err error
		for part := range slices.Chunk(others, 3) {
			err = errors.Join(err, writer.Commit(ctx, append(part, secrets...)...))
		}
		written <- err
	}()
	for _, n := range secrets {
		require.NoError(t, s.Redact(ctx, func() error { return nil }, cas.Tombstone{Hash: n.Hash, Type: n.Type}))
	}
	require.NoError(t, <-written)
	s = open(t, dir, fsstore.Options{})
	requireNodes(t, s, others)
	for _, n := range secrets {
		_, err := s.Get(ctx, n.Hash)
		require.ErrorAs(t, err, new(*cas.RedactedError))
		castest.RequireErased(t, dir, cas.MarshalFile(n))
	}
}

// compactOnce packs all nodes.
func compactOnce(ctx context.Context, s *fsstore.Store) (err error) {
	all := func(cas.Hash) bool { return true }
	c, err := s.Compact(ctx, time.Now().Add(time.Hour), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Release()) }()
	for _, err := range c.Nodes(ctx) {
		if err != nil {
			return err
		}
	}
	if err := c.Write(ctx, all); err != nil {
		return err
	}
	return c.Finish(ctx, func() error { return nil }, all)
}

// A newer record that a power cut has torn hides no durable one: a put appends nodes that are only in a pack.
func TestATornRecordHidesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	all := nodes(t, cas.XXH3, 3)
	require.NoError(t, s.Commit(t.Context(), all...))
	compact(t, s)
	castest.Forge(t, dir, record.Node, all[0].Hash.Number(), make([]byte, 50))
	requireNodes(t, s, all)
	requireNodes(t, open(t, dir, fsstore.Options{}), all)
}

// A segment whose removal a power cut has undone doesn't count, and the next compaction removes it.
func TestAReplacedSegmentDoesNotCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	all := nodes(t, cas.XXH3, 3)
	require.NoError(t, s.Commit(t.Context(), all...))
	segment := castest.FindRecord(t, dir, all[0].Hash).Path
	content := read(t, segment)
	collect(t, s, func(h cas.Hash) bool { return h != all[0].Hash })
	write(t, segment, content)
	for _, s := range []*fsstore.Store{s, open(t, dir, fsstore.Options{})} {
		_, err := s.Get(t.Context(), all[0].Hash)
		require.ErrorIs(t, err, cas.ErrNotFound)
		requireNodes(t, s, all[1:])
	}
	compact(t, s)
	require.NoFileExists(t, segment)
}

// The steps of threads are in a pack's own frames: a list of threads, or a walk along one, reads nothing else.
func TestStepsAreTogetherInAPack(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s := open(t, dir, fsstore.Options{})
	batch := cas.NewBatch(s, time.Now)
	steps := map[cas.Hash]bool{}
	for i := range 10 {
		some, err := batch.Add(ctx, protocol.Text(fmt.Sprint("turn ", i)))
		require.NoError(t, err)
		h, err := batch.Add(ctx, protocol.Step{Start: some, Output: some, Detail: some, Index: 1, Visits: map[string]int{"r": 1},
			Role: "r", Agent: "a", ExtractedBy: protocol.ByFrontmatter})
		require.NoError(t, err)
		steps[h] = true
	}
	require.NoError(t, batch.Commit(ctx))
	compact(t, s)
	all, err := open(t, dir, fsstore.Options{}).InOrder(ctx)
	require.NoError(t, err)
	first := slices.IndexFunc(all, func(h cas.Hash) bool { return steps[h] })
	require.GreaterOrEqual(t, first, 0)
	for _, h := range all[first : first+len(steps)] {
		require.True(t, steps[h])
	}
}

// A pack whose end is damaged is read in parts, and a damaged frame costs only what is in it.
func TestDamagedPackIsReadInParts(t *testing.T) { //nolint:paralleltest // it measures memory
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	var all []cas.Node
	for i := range 10 {
		noise := make([]byte, 50_000)
		rand.NewChaCha8([32]byte{byte(i)}).Read(noise)
		all = append(all, castest.Node(t, cas.XXH3, hex.EncodeToString(noise)))
	}
	require.NoError(t, s.Commit(t.Context(), all...))
	compact(t, s)
	pack := filepath.Join(dir, "packs", "00000001-1.pack")
	require.NoError(t, os.Truncate(pack, 64<<20)) // a hole
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	requireNodes(t, open(t, dir, fsstore.Options{}), all)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(24<<20))

	flipAt(t, pack, 300_000)
	s = open(t, dir, fsstore.Options{})
	lost := 0
	for _, n := range all {
		if _, err := s.Get(t.Context(), n.Hash); err != nil {
			lost++
		}
	}
	require.LessOrEqual(t, lost, 1)
}
