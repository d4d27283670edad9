package cas_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func noon() time.Time { return time.UnixMilli(1780000000000) }

// recordingStore records the nodes of each Commit and Put.
type recordingStore struct {
	*fsstore.Store
	puts, commits [][]cas.Hash
}

func (s *recordingStore) Put(ctx context.Context, nodes ...cas.Node) error {
	s.puts = append(s.puts, hashesOf(nodes))
	return s.Store.Put(ctx, nodes...)
}

func (s *recordingStore) Commit(ctx context.Context, nodes ...cas.Node) error {
	s.commits = append(s.commits, hashesOf(nodes))
	return s.Store.Commit(ctx, nodes...)
}

func hashesOf(nodes []cas.Node) []cas.Hash {
	var hashes []cas.Hash
	for _, n := range nodes {
		hashes = append(hashes, n.Hash)
	}
	return hashes
}

func newBatch(t testing.TB) (*cas.Batch, *recordingStore) {
	t.Helper()
	s := &recordingStore{Store: castest.NewStore(t, cas.XXH3)}
	return cas.NewBatch(s, noon), s
}

func TestBatchReadsWhatItHolds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, s := newBatch(t)
	h, err := b.Add(ctx, protocol.Text("hello"))
	require.NoError(t, err)

	text, err := cas.Read[protocol.Text](ctx, b, h)
	require.NoError(t, err)
	require.Equal(t, protocol.Text("hello"), text)
	_, err = s.Get(ctx, h)
	require.ErrorIs(t, err, cas.ErrNotFound, "nothing is written before Put")

	require.NoError(t, b.Put(ctx))
	n, err := s.Get(ctx, h)
	require.NoError(t, err)
	require.Equal(t, int64(1780000000000), n.Timestamp)
	require.NoError(t, cas.Verify(ctx, s, h), "the schema and the meta-schema are there")
}

// A step's turns are put as they happen and committed at its end; another process might have put the schemas
// without flushing them.
func TestCommitCoversEverythingEverAdded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, s := newBatch(t)
	require.NoError(t, s.Store.Put(ctx, s.Kinds().Meta(), s.Kinds().Schema(protocol.Type{Kind: protocol.KindText, Version: 1})))

	early, err := b.Add(ctx, protocol.Text("early"))
	require.NoError(t, err)
	require.NoError(t, b.Put(ctx))
	late, err := b.Add(ctx, protocol.Text("late"))
	require.NoError(t, err)
	require.NoError(t, b.Put(ctx))
	require.NoError(t, b.Commit(ctx))

	require.Equal(t, []cas.Hash{late}, s.puts[1], "what was put is not put again")
	meta, kind := s.Kinds().MetaHash(), s.Kinds().Hash(protocol.KindText)
	require.Equal(t, [][]cas.Hash{{meta, kind, early, late}}, s.commits, "types come before what has them")
}

// A step can have more turns than fit into memory: they are read back for the commit, in order, and the last
// nodes are committed last.
func TestBatchOfAnySize(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, s := newBatch(t)
	var added []cas.Hash
	for i := range 40 {
		h, err := b.Add(ctx, protocol.Text(strconv.Itoa(i)+strings.Repeat("x", 1<<20)))
		require.NoError(t, err)
		require.NoError(t, b.Put(ctx))
		added = append(added, h)
	}
	again, err := b.Add(ctx, protocol.Text("0"+strings.Repeat("x", 1<<20)))
	require.NoError(t, err)
	require.Equal(t, added[0], again)
	text, err := cas.Read[protocol.Text](ctx, b, added[0])
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "0x"))
	last, err := b.Add(ctx, protocol.Text("last"))
	require.NoError(t, err)

	require.NoError(t, b.Commit(ctx))
	require.Greater(t, len(s.commits), 2, "not all at once")
	all := slices.Concat(s.commits...)
	require.Equal(t, append(slices.Clone(added), added[0], last), all[2:], "after the schemas, in order")
}

// A caller that puts nodes itself gets each once, and the commit includes them.
func TestHandover(t *testing.T) {
	t.Parallel()
	store := castest.NewStore(t, cas.XXH3)
	b := cas.NewBatch(store, noon)
	first, err := b.Add(t.Context(), protocol.Text("first"))
	require.NoError(t, err)
	nodes := b.Handover()
	require.Equal(t, first, nodes[len(nodes)-1].Hash)
	require.Empty(t, b.Handover())
	require.NoError(t, store.Put(t.Context(), nodes...))
	second, err := b.Add(t.Context(), protocol.Text("second"))
	require.NoError(t, err)
	nodes = b.Handover()
	require.Len(t, nodes, 1)
	require.Equal(t, second, nodes[0].Hash)
	require.NoError(t, b.Commit(t.Context()))
	for _, h := range []cas.Hash{first, second} {
		_, err := store.Get(t.Context(), h)
		require.NoError(t, err)
	}
}

func TestBatchAddsEachNodeOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, s := newBatch(t)
	for range 3 {
		_, err := b.Add(ctx, protocol.Text("again"))
		require.NoError(t, err)
	}
	require.NoError(t, b.Commit(ctx))
	require.Len(t, s.commits[0], 3)
}

func TestBatchRejectsWrongKind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, s := newBatch(t)
	_, err := b.Add(ctx, protocol.Start{Workflow: "nope"})
	prosetest.Error(t, err)
	_, err = b.Add(ctx, protocol.Text("\xff"))
	require.ErrorContains(t, err, "text: encode: ")
	require.NoError(t, b.Commit(ctx))
	require.Empty(t, slices.Concat(s.commits...), "what was refused leaves nothing behind")
}

func TestAddValue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, s := newBatch(t)
	typ, err := b.AddSchema(ctx, map[string]any{
		"type": "object", "required": []any{"$status"}, "additionalProperties": false,
		"properties": map[string]any{"$status": map[string]any{"const": "done"}, "count": map[string]any{"type": "integer", "minimum": 1}},
	})
	require.NoError(t, err)

	h, err := b.AddValue(ctx, typ, map[string]any{"$status": "done", "count": 2.0})
	require.NoError(t, err)
	same, err := b.AddValue(ctx, typ, struct {
		Status string `json:"$status"`
		Count  int    `json:"count"`
	}{"done", 2})
	require.NoError(t, err)
	require.Equal(t, h, same)

	_, err = b.AddValue(ctx, typ, map[string]any{"$status": "nope", "count": 0})
	var invalid *cas.SchemaError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, typ, invalid.Type)
	require.Len(t, invalid.Problems, 2, "all problems, not the first")

	require.NoError(t, b.Commit(ctx))
	require.NoError(t, cas.Verify(ctx, s, h))
	require.NoError(t, cas.Verify(ctx, s, typ))
}

// An earlier process registered the schema of the value.
func TestAddValueFindsTheSchemaInTheStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, s := newBatch(t)
	typ, err := b.AddSchema(ctx, map[string]any{"type": "string"})
	require.NoError(t, err)
	require.NoError(t, b.Commit(ctx))

	later := cas.NewBatch(s, noon)
	h, err := later.AddValue(ctx, typ, "x")
	require.NoError(t, err)
	require.NoError(t, later.Commit(ctx))
	require.Equal(t, []cas.Hash{s.Kinds().MetaHash(), typ, h}, s.commits[1], "the schema is made durable too")
	_, err = later.AddValue(ctx, typ, 1)
	require.Error(t, err)
}

func TestAddValueNeedsASchema(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, _ := newBatch(t)
	_, err := b.AddValue(ctx, "0000000000000", 1)
	require.ErrorIs(t, err, cas.ErrNotFound)

	text, err := b.Add(ctx, protocol.Text("not a schema"))
	require.NoError(t, err)
	_, err = b.AddValue(ctx, text, 1)
	var corrupt *cas.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, text, corrupt.Hash)
}

func TestAddSchemaRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, s := newBatch(t)
	for name, schema := range map[string]any{
		"no object":       true,
		"unknown keyword": map[string]any{"propertes": map[string]any{}},
		"reference":       map[string]any{"$ref": "#"},
		"unknown type":    map[string]any{"type": "text"},
		"nested":          map[string]any{"items": map[string]any{"format": "telephone"}},
		"bad pattern":     map[string]any{"pattern": "("},
	} {
		_, err := b.AddSchema(ctx, schema)
		var invalid *cas.SchemaError
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, s.Kinds().MetaHash(), invalid.Type, name)
		require.NotEmpty(t, invalid.Problems, name)
		require.ErrorContains(t, err, string(invalid.Type), name)

		_, err = b.AddValue(ctx, s.Kinds().MetaHash(), schema)
		require.ErrorAs(t, err, &invalid, "a value of the meta-schema is a schema: %s", name)
	}
	require.NoError(t, b.Commit(ctx))
	require.Empty(t, slices.Concat(s.commits...))
}

func TestBatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b, _ := newBatch(t)
	typ, err := b.AddSchema(context.Background(), map[string]any{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = b.Add(ctx, protocol.Text("x"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.AddValue(ctx, typ, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.AddSchema(ctx, map[string]any{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Get(ctx, typ)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, b.Put(ctx), context.Canceled)
	require.ErrorIs(t, b.Commit(ctx), context.Canceled)
}
