// Package castest is the test suite for implementations of [cas.Store].
package castest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/protocol"
)

// typ is the type of the suite's nodes; a store doesn't check it.
const typ = cas.Hash("7VQ43ZSJTEWA7")

// Node returns a node with a JSON value.
func Node(t testing.TB, a cas.Algorithm, value any) cas.Node {
	t.Helper()
	payload, err := cas.Encode(value)
	require.NoError(t, err)
	return cas.Node{Hash: a.Sum(typ, payload), Type: typ, Payload: payload, Timestamp: 1780000000000}
}

// NewStore returns an empty store of files.
func NewStore(t testing.TB, a cas.Algorithm) *fsstore.Store {
	t.Helper()
	s, err := fsstore.Open(t.Context(), t.TempDir(), fsstore.Options{Hash: a})
	require.NoError(t, err)
	return s
}

// TestStore runs the suite. open returns an empty store each time.
func TestStore(t *testing.T, open func(t *testing.T) cas.Store) {
	for name, test := range map[string]func(*testing.T, cas.Store){
		"put makes readable":                   testPut,
		"commit makes readable":                testCommit,
		"unknown nodes are not found":          testNotFound,
		"what is there stays":                  testIdempotent,
		"a collision is refused":               testCollision,
		"a wrong node is refused":              testRefusal,
		"all lists in order":                   testAll,
		"callers may change their slices":      testAliasing,
		"many writers and readers":             testConcurrency,
		"a cancelled context ends everything":  testContext,
		"the kinds are those of its algorithm": testKinds,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func testPut(t *testing.T, s cas.Store) {
	ctx := context.Background()
	for _, value := range []any{nil, true, "", "text", 1, -1.5, []any{}, map[string]any{"b": "x", "a": []any{nil}}} {
		n := Node(t, s.Algorithm(), value)
		ok, err := s.Has(ctx, n.Hash)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, s.Put(ctx, n))
		ok, err = s.Has(ctx, n.Hash)
		require.NoError(t, err)
		require.True(t, ok)
		got, err := s.Get(ctx, n.Hash)
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	require.NoError(t, s.Put(ctx), "nothing is nothing to do")
}

func testCommit(t *testing.T, s cas.Store) {
	ctx := context.Background()
	early, late := Node(t, s.Algorithm(), "early"), Node(t, s.Algorithm(), "late")
	require.NoError(t, s.Put(ctx, early))
	require.NoError(t, s.Commit(ctx, early, late, late))
	require.NoError(t, s.Commit(ctx, early, late))
	require.NoError(t, s.Commit(ctx))
	for _, n := range []cas.Node{early, late} {
		got, err := s.Get(ctx, n.Hash)
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
}

func testNotFound(t *testing.T, s cas.Store) {
	ctx := context.Background()
	for _, h := range []cas.Hash{"0000000000000", "FZZZZZZZZZZZZ", "", "short", "../../../etc/pa", "0000000000000.bin",
		"c8yyhnmsyy3px"} {
		_, err := s.Get(ctx, h)
		require.ErrorIs(t, err, cas.ErrNotFound, "%q", h)
		ok, err := s.Has(ctx, h)
		require.NoError(t, err, "%q", h)
		require.False(t, ok, "%q", h)
	}
}

func testIdempotent(t *testing.T, s cas.Store) {
	ctx := context.Background()
	n := Node(t, s.Algorithm(), "once")
	require.NoError(t, s.Put(ctx, n))
	later := n
	later.Timestamp++
	require.NoError(t, s.Put(ctx, later))
	require.NoError(t, s.Commit(ctx, later))
	got, err := s.Get(ctx, n.Hash)
	require.NoError(t, err)
	require.Equal(t, n.Timestamp, got.Timestamp, "the first put gives the timestamp")
}

func testCollision(t *testing.T, s cas.Store) {
	ctx := context.Background()
	one, two := Collision(t, s.Algorithm())
	var collision *cas.CollisionError

	require.ErrorAs(t, s.Put(ctx, one, two), &collision, "in one call")
	require.NoError(t, s.Put(ctx, one))
	require.ErrorAs(t, s.Put(ctx, two), &collision)
	require.ErrorAs(t, s.Commit(ctx, two), &collision)
	require.Equal(t, two.Hash, collision.Hash)

	got, err := s.Get(ctx, one.Hash)
	require.NoError(t, err)
	require.Equal(t, one, got, "the first one stays")
}

func testRefusal(t *testing.T, s cas.Store) {
	ctx := context.Background()
	a := s.Algorithm()
	good := Node(t, a, "good")
	other := a.Sum(typ, []byte("\x63bad"))
	for name, n := range map[string]cas.Node{
		"hash of another node": {Hash: other, Type: good.Type, Payload: good.Payload},
		"no hash":              {Type: good.Type, Payload: good.Payload},
		"hash in lower case":   {Hash: "c8yyhnmsyy3px", Type: good.Type, Payload: good.Payload},
		"hash of 65 bits":      {Hash: "ZZZZZZZZZZZZZ", Type: good.Type, Payload: good.Payload},
		"path as hash":         {Hash: "../../../etc/", Type: good.Type, Payload: good.Payload},
		"no type":              {Hash: a.Sum("", good.Payload), Payload: good.Payload},
		"no payload":           {Hash: a.Sum(typ, nil), Type: typ},
		"payload not canonical": {
			Hash: a.Sum(typ, []byte{0x18, 1}), Type: typ, Payload: []byte{0x18, 1},
		},
		"timestamp before 1970": {Hash: good.Hash, Type: good.Type, Payload: good.Payload, Timestamp: -1},
	} {
		require.Error(t, s.Put(ctx, n), name)
		require.Error(t, s.Commit(ctx, n), name)
		_, err := s.Get(ctx, n.Hash)
		require.ErrorIs(t, err, cas.ErrNotFound, name)
	}
	require.Error(t, s.Put(ctx, good, cas.Node{Hash: other, Type: typ, Payload: good.Payload}))
	require.NoError(t, s.Put(ctx, good), "a refusal leaves nothing behind that is in the way")
}

func testAll(t *testing.T, s cas.Store) {
	ctx := context.Background()
	require.Empty(t, List(t, s, ""))
	var want []cas.Hash
	for i := range 100 {
		n := Node(t, s.Algorithm(), fmt.Sprint("node ", i))
		require.NoError(t, s.Put(ctx, n))
		want = append(want, n.Hash)
	}
	slices.Sort(want)
	require.Equal(t, want, List(t, s, ""))
	for _, cut := range []int{1, 2, 3, 13} {
		prefix := string(want[50][:cut])
		var matching []cas.Hash
		for _, h := range want {
			if string(h[:cut]) == prefix {
				matching = append(matching, h)
			}
		}
		require.Equal(t, matching, List(t, s, prefix), prefix)
	}
	for _, prefix := range []string{"00000000000000", "..", "../", "U", "Z", string(want[0]) + "0"} {
		require.Empty(t, List(t, s, prefix), prefix)
	}
	for h, err := range s.All(ctx, "") {
		require.NoError(t, err)
		require.LessOrEqual(t, h, want[0])
		break
	}
}

// List lists the nodes whose hash starts with prefix, except the schemas of our kinds, which a new store
// might contain.
func List(t testing.TB, s cas.Store, prefix string) []cas.Hash {
	t.Helper()
	schemas := map[cas.Hash]bool{s.Kinds().MetaHash(): true}
	for _, k := range protocol.Kinds() {
		schemas[s.Kinds().Hash(k)] = true
	}
	var hashes []cas.Hash
	last := cas.Hash("")
	for h, err := range s.All(context.Background(), prefix) {
		require.NoError(t, err)
		require.Greater(t, h, last, "in order, each once")
		last = h
		if !schemas[h] {
			hashes = append(hashes, h)
		}
	}
	return hashes
}

func testAliasing(t *testing.T, s cas.Store) {
	ctx := context.Background()
	n := Node(t, s.Algorithm(), "mine")
	given := n
	given.Payload = slices.Clone(n.Payload)
	require.NoError(t, s.Put(ctx, given))
	given.Payload[1] ^= 1
	for range 2 {
		got, err := s.Get(ctx, n.Hash)
		require.NoError(t, err)
		require.Equal(t, n, got)
		got.Payload[1] ^= 1
	}
}

func testConcurrency(t *testing.T, s cas.Store) {
	ctx := context.Background()
	const workers, count = 8, 20
	var nodes []cas.Node
	for i := range count {
		nodes = append(nodes, Node(t, s.Algorithm(), fmt.Sprint("shared ", i)))
	}
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() { errs[w] = putAndGet(ctx, s, nodes, w) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Len(t, List(t, s, ""), count)
}

// putAndGet writes the same nodes as every other worker, starting at a different offset.
func putAndGet(ctx context.Context, s cas.Store, nodes []cas.Node, offset int) error {
	for i := range nodes {
		n := nodes[(i+offset)%len(nodes)]
		write := s.Put
		if i%4 == 0 {
			write = s.Commit
		}
		if err := write(ctx, n); err != nil {
			return err
		}
		got, err := s.Get(ctx, n.Hash)
		if err != nil {
			return err
		}
		if !got.Equal(n) {
			return fmt.Errorf("node %s was read with other content", n.Hash)
		}
	}
	return nil
}

func testContext(t *testing.T, s cas.Store) {
	n := Node(t, s.Algorithm(), "never")
	require.NoError(t, s.Put(context.Background(), Node(t, s.Algorithm(), "there")))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()

	require.ErrorIs(t, s.Put(ctx, n), context.Canceled)
	require.ErrorIs(t, s.Commit(ctx, n), context.Canceled)
	_, err := s.Get(ctx, n.Hash)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Has(ctx, n.Hash)
	require.ErrorIs(t, err, context.Canceled)
	for h, err := range s.All(ctx, "") {
		require.Empty(t, h)
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err = s.Get(context.Background(), n.Hash)
	require.ErrorIs(t, err, cas.ErrNotFound)
}

func testKinds(t *testing.T, s cas.Store) {
	require.Equal(t, s.Algorithm().MetaHash(), s.Kinds().MetaHash())
	require.Same(t, s.Kinds(), s.Kinds())
	require.NoError(t, s.Put(context.Background(), s.Kinds().Meta()), "the meta-schema is its own type")
	got, err := s.Get(context.Background(), s.Kinds().MetaHash())
	require.NoError(t, err)
	require.Equal(t, got.Hash, got.Type)
}

// Collision returns two nodes with different contents and the same hash. Neither hash function resists collisions:
// XXH3 multiplies two words of the input, each mixed with a part of a publicly known secret, and a word equal to that
// part makes the product zero for any other word. For any word in a lane of XXH64 there is a later one that leads to
// the same state.
func Collision(t testing.TB, a cas.Algorithm) (n, m cas.Node) {
	t.Helper()
	one, two := "9821fbcb79e64eccc0e578fbbff1111111111101", "9821fbcb79e64eccc0e578fbbff2222222222201"
	if a == cas.XXH64 {
		one = "98210000000000000000fbbff111111111111100000000000000" +
			"00000000000000000000000000000000fbbff2222222222222"
		two = "98210000000000000000fbbff111111211111100000000000000" +
			"00000000000000000000000000000000fbd70dbd7b6912a90b"
	}
	const typ, length = "0000000000000", 2 * 51 // arrays of 33 numbers
	nodes := [2]cas.Node{}
	for i, digits := range []string{one, two} {
		payload, err := hex.DecodeString(digits + strings.Repeat("0", length-len(digits)))
		require.NoError(t, err)
		nodes[i] = cas.Node{Hash: a.Sum(typ, payload), Type: typ, Payload: payload, Timestamp: int64(i + 1)}
		require.NoError(t, a.Check(nodes[i]))
	}
	require.Equal(t, nodes[0].Hash, nodes[1].Hash)
	return nodes[0], nodes[1]
}

// Record is a record in the log of a store on disk, for tests that damage it.
type Record struct {
	t    require.TestingT
	Path string // of the segment
	At   int    // of the record in it
	Head record.Header
}

// FindRecord returns the newest record of one of some kinds in the log of the store at dir; by default of a node or
// tombstone. If it is in a pack, the packs become segments first. The hash of a home is computed from its path.
func FindRecord(t require.TestingT, dir string, h cas.Hash, kinds ...record.Kind) Record {
	if len(kinds) == 0 {
		kinds = []record.Kind{record.Node, record.Tombstone}
	}
	found := find(t, dir, h, kinds...)
	if found.Path == "" {
		unpack(t, dir)
		found = find(t, dir, h, kinds...)
	}
	require.NotEmpty(t, found.Path, "%s is not in the log of %s", h, dir)
	return found
}

// unpack makes the packs segments, newer than the others.
func unpack(t require.TestingT, dir string) {
	packs, err := filepath.Glob(filepath.Join(dir, "packs", "*.pack"))
	require.NoError(t, err)
	next := 1
	for _, pattern := range []string{"log/*.seg", "packs/*.pack"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		for _, name := range names {
			var number int
			_, err := fmt.Sscanf(filepath.Base(name), "%d", &number)
			require.NoError(t, err)
			next = max(next, number+1)
		}
	}
	for i, path := range packs {
		records := contents(t, path)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "log"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "log", fmt.Sprintf("%08d.seg", next+i)), records, 0o644))
		require.NoError(t, os.Remove(path))
	}
}

// contents returns the content of a file, of a pack the uncompressed one.
func contents(t require.TestingT, path string) []byte {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if filepath.Ext(path) != ".pack" {
		return data
	}
	decoder, err := zstd.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer decoder.Close()
	data, err = io.ReadAll(decoder)
	require.NoError(t, err)
	return data
}

// RequireErased checks that no file of the store at dir contains a text, not even compressed.
func RequireErased(t require.TestingT, dir string, text []byte) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			require.False(t, bytes.Contains(contents(t, path), text), path)
		}
		return err
	}))
}

func find(t require.TestingT, dir string, h cas.Hash, kinds ...record.Kind) Record {
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*.seg"))
	require.NoError(t, err)
	found := Record{t: t}
	for _, path := range segments {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for at, head := range record.Scan(data) {
			if head.Hash == h.Number() && slices.Contains(kinds, head.Kind) {
				found.Path, found.At, found.Head = path, at, head
			}
		}
	}
	return found
}

// Body returns the body of the record.
func (r Record) Body() []byte {
	data, err := os.ReadFile(r.Path)
	require.NoError(r.t, err)
	start := r.At + record.HeaderSize
	return data[start : start+r.Head.Length]
}

// Overwrite replaces bytes of the body, from an offset on.
func (r Record) Overwrite(at int, with []byte) {
	require.LessOrEqual(r.t, at+len(with), r.Head.Length)
	r.write(r.At+record.HeaderSize+at, with)
}

// Flip flips a bit in the middle of the body.
func (r Record) Flip() {
	middle := r.Head.Length / 2
	r.Overwrite(middle, []byte{r.Body()[middle] ^ 1})
}

// Tear replaces the second half of the body by zeros, as a power cut can.
func (r Record) Tear() {
	half := r.Head.Length / 2
	r.Overwrite(half, make([]byte, r.Head.Length-half))
}

// Replace replaces the record by one with another body.
func (r Record) Replace(body []byte) Record {
	r.Lose()
	return Forge(r.t, filepath.Dir(filepath.Dir(r.Path)), r.Head.Kind, r.Head.Hash, body)
}

// Forge appends a record to the log of the store at dir, whatever its body.
func Forge(t require.TestingT, dir string, kind record.Kind, hash uint64, body []byte) Record {
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*.seg"))
	require.NoError(t, err)
	r := Record{t: t, Path: filepath.Join(dir, "log", "00000001.seg"), Head: record.Header{Kind: kind, Length: len(body), Hash: hash}}
	if n := len(segments); n > 0 {
		r.Path = segments[n-1]
	}
	index, _ := os.ReadFile(strings.TrimSuffix(r.Path, ".seg") + ".idx") // it needn't exist
	if bytes.HasPrefix(index, []byte("uwf index")) {                     // the segment is sealed
		var number int
		_, err := fmt.Sscanf(filepath.Base(r.Path), "%d.seg", &number)
		require.NoError(t, err)
		r.Path = filepath.Join(dir, "log", fmt.Sprintf("%08d.seg", number+1))
	}
	if info, err := os.Stat(r.Path); err == nil {
		r.At = int(info.Size())
	}
	r.write(r.At, record.Append(nil, kind, hash, body))
	return r
}

// Lose overwrites the whole record with zeros.
func (r Record) Lose() {
	r.write(r.At, make([]byte, r.Head.Size()))
}

func (r Record) write(at int, with []byte) {
	f, err := os.OpenFile(r.Path, os.O_WRONLY|os.O_CREATE, 0o644)
	require.NoError(r.t, err)
	_, err = f.WriteAt(with, int64(at))
	require.NoError(r.t, err)
	require.NoError(r.t, f.Close())
}
