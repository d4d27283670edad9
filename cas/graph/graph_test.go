package graph_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/protocol"
)

// Hashes that look like refs but identify no node.
const (
	refA = "00000000000AA"
	refB = "00000000000BB"
	refC = "00000000000CC"
)

var refSchema = map[string]any{"type": "string", "format": "ocas_ref"}

type object = map[string]any

func noon() time.Time { return time.UnixMilli(1780000000000) }

func TestRefs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema string
		value  string
		want   []cas.Hash
	}{
		"the value itself": {`{"format":"ocas_ref"}`, `"00000000000AA"`, []cas.Hash{refA}},
		"the older name":   {`{"format":"cas_ref"}`, `"00000000000AA"`, []cas.Hash{refA}},
		"not declared":     {`{"type":"string"}`, `"00000000000AA"`, nil},
		"null":             {`{"anyOf":[{"format":"ocas_ref"},{"type":"null"}]}`, `null`, nil},
		"not in the right form": {
			`{"items":{"format":"ocas_ref"}}`, `["00000000000aa","","00000000000A","ZZZZZZZZZZZZZ",7]`, nil,
		},
		"properties": {
			`{"properties":{"b":{"format":"ocas_ref"},"aa":{"format":"ocas_ref"},"c":{}}}`,
			`{"aa":"00000000000AA","b":"00000000000BB","c":"00000000000CC","d":"00000000000CC"}`, []cas.Hash{refB, refA},
		},
		"items":                {`{"items":{"format":"ocas_ref"}}`, `["00000000000BB","00000000000AA","00000000000BB"]`, []cas.Hash{refB, refA}},
		"prefixItems":          {`{"prefixItems":[{},{"format":"ocas_ref"}]}`, `["00000000000AA","00000000000BB","00000000000CC"]`, []cas.Hash{refB}},
		"contains":             {`{"contains":{"format":"ocas_ref"}}`, `[1,"00000000000BB"]`, []cas.Hash{refB}},
		"additionalProperties": {`{"properties":{"a":{}},"additionalProperties":{"format":"ocas_ref"}}`, `{"a":"00000000000AA","b":"00000000000BB"}`, []cas.Hash{refB}},
		"patternProperties": {
			`{"patternProperties":{"^x":{"format":"ocas_ref"}},"additionalProperties":{"items":{"format":"ocas_ref"}}}`,
			`{"x1":"00000000000AA","y":"00000000000BB","z":["00000000000CC"]}`, []cas.Hash{refC, refA},
		},
		"allOf":        {`{"allOf":[{"properties":{"a":{"format":"ocas_ref"}}},{"properties":{"b":{"format":"ocas_ref"}}}]}`, `{"a":"00000000000AA","b":"00000000000BB"}`, []cas.Hash{refA, refB}},
		"every anyOf":  {`{"anyOf":[{"type":"string"},{"format":"ocas_ref"}]}`, `"00000000000AA"`, []cas.Hash{refA}},
		"every oneOf":  {`{"oneOf":[{"required":["x"]},{"properties":{"a":{"format":"ocas_ref"}}}]}`, `{"a":"00000000000AA"}`, []cas.Hash{refA}},
		"if then else": {`{"if":{"properties":{"a":{"format":"ocas_ref"}}},"then":{"properties":{"b":{"format":"ocas_ref"}}},"else":{"properties":{"c":{"format":"ocas_ref"}}}}`, `{"a":"00000000000AA","b":"00000000000BB","c":"00000000000CC"}`, []cas.Hash{refA, refB, refC}},
		"not":          {`{"not":{"properties":{"a":{"format":"ocas_ref"}}}}`, `{"a":"00000000000AA"}`, []cas.Hash{refA}},
		"anyOf beside properties": {
			`{"anyOf":[{"properties":{"b":{"format":"ocas_ref"}}},{}],"properties":{"a":{"format":"ocas_ref"}}}`,
			`{"b":"00000000000BB","a":"00000000000AA"}`, []cas.Hash{refA, refB},
		},
		"deep": {
			`{"properties":{"l":{"items":{"additionalProperties":{"oneOf":[{"type":"null"},{"items":{"format":"ocas_ref"}}]}}}}}`,
			`{"l":[{"x":null},{"y":["00000000000AA"]}]}`, []cas.Hash{refA},
		},
		"a keyword as the name of a property": {`{"properties":{"format":{"format":"ocas_ref"},"items":{}}}`, `{"format":"00000000000AA","items":["00000000000BB"]}`, []cas.Hash{refA}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			s := castest.NewStore(t, cas.XXH3)
			n := putUnchecked(t, s, parseJSON(t, c.schema), parseJSON(t, c.value))
			refs, err := graph.Refs(ctx, s, n)
			require.NoError(t, err)
			require.Equal(t, c.want, refs)
		})
	}
}

// putUnchecked puts a schema and a value of it without validation, as in the original's stores.
func putUnchecked(t testing.TB, s cas.Store, schema, value any) cas.Node {
	t.Helper()
	typ := putNode(t, s, s.Kinds().MetaHash(), schema)
	return putNode(t, s, typ.Hash, value)
}

func putNode(t testing.TB, s cas.Store, typ cas.Hash, value any) cas.Node {
	t.Helper()
	payload, err := cas.Encode(value)
	require.NoError(t, err)
	n := cas.Node{Hash: s.Algorithm().Sum(typ, payload), Type: typ, Payload: payload}
	require.NoError(t, s.Put(context.Background(), s.Kinds().Meta(), n))
	return n
}

func TestRefsOfTheKinds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := cas.NewBatch(castest.NewStore(t, cas.XXH3), noon)
	a, p, o, d := cas.Hash("000000000000A"), cas.Hash("000000000000P"), cas.Hash("000000000000N"), cas.Hash("000000000000D")
	h, err := b.Add(ctx, protocol.Step{
		Start: a, Prev: &p, Output: o, Detail: d, Visits: map[string]int{}, ExtractedBy: protocol.ByValue,
		Role: "00000000000ZZ",
	})
	require.NoError(t, err)
	n, err := b.Get(ctx, h)
	require.NoError(t, err)
	refs, err := graph.Refs(ctx, b, n)
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{p, a, d, o}, refs, "in the order of the encoding: shorter keys first")

	schema, err := b.Get(ctx, n.Type)
	require.NoError(t, err)
	refs, err = graph.Refs(ctx, b, schema)
	require.NoError(t, err)
	require.Empty(t, refs, "schemas refer to nothing")
}

func TestRefsNeedTheSchema(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH3)
	n := castest.Node(t, cas.XXH3, "x")
	_, err := graph.Refs(context.Background(), s, n)
	require.ErrorIs(t, err, cas.ErrNotFound)
	require.ErrorContains(t, err, string(n.Hash))
	require.ErrorContains(t, err, string(n.Type))
}

// diamond is root → left, right → bottom, each an object with refs.
type diamond struct{ typ, root, left, right, bottom cas.Hash }

func putDiamond(t testing.TB, s cas.Store) diamond {
	t.Helper()
	ctx := context.Background()
	b := cas.NewBatch(s, noon)
	typ, err := b.AddSchema(ctx, object{
		"type":       "object",
		"properties": object{"name": object{"type": "string"}, "refs": object{"type": "array", "items": refSchema}},
	})
	require.NoError(t, err)
	add := func(name string, refs ...any) cas.Hash {
		h, err := b.AddValue(ctx, typ, object{"name": name, "refs": append([]any{}, refs...)})
		require.NoError(t, err)
		return h
	}
	d := diamond{typ: typ, bottom: add("bottom")}
	d.left = add("left", d.bottom)
	d.right = add("right", d.bottom)
	d.root = add("root", d.left, d.right)
	require.NoError(t, b.Commit(ctx))
	return d
}

func TestWalk(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH3)
	d := putDiamond(t, s)
	meta := s.Kinds().MetaHash()

	require.Equal(t, []cas.Hash{d.root, d.left, d.right, d.bottom}, walk(t, s, graph.WalkOptions{}, d.root, d.root))
	require.Equal(t, []cas.Hash{d.bottom, d.right}, walk(t, s, graph.WalkOptions{}, d.bottom, d.right))
	require.Equal(t, []cas.Hash{d.root, d.left, d.right, d.typ, d.bottom, meta}, walk(t, s, graph.WalkOptions{FollowTypes: true}, d.root))
	require.Empty(t, walk(t, s, graph.WalkOptions{}))
}

func walk(t testing.TB, r cas.Reader, o graph.WalkOptions, roots ...cas.Hash) []cas.Hash {
	t.Helper()
	var hashes []cas.Hash
	for n, err := range graph.Walk(context.Background(), r, roots, o) {
		require.NoError(t, err)
		hashes = append(hashes, n.Hash)
	}
	return hashes
}

// A walk reports a fault and continues: nothing is silently skipped.
func TestWalkReportsFaults(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := castest.NewStore(t, cas.XXH3)
	d := putDiamond(t, s)
	orphan := castest.Node(t, cas.XXH3, "its type is nowhere")
	require.NoError(t, s.Put(ctx, orphan))
	top := putNode(t, s, d.typ, object{"refs": []any{refA, orphan.Hash, d.left}})

	faults := map[cas.Hash]error{}
	var seen []cas.Hash
	for n, err := range graph.Walk(ctx, s, []cas.Hash{top.Hash}, graph.WalkOptions{}) {
		seen = append(seen, n.Hash)
		if err != nil {
			faults[n.Hash] = err
		}
	}
	require.Equal(t, []cas.Hash{top.Hash, refA, orphan.Hash, d.left, d.bottom}, seen)
	require.Len(t, faults, 2)
	require.ErrorIs(t, faults[refA], cas.ErrNotFound)
	require.ErrorContains(t, faults[orphan.Hash], "schema: ")

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	count := 0
	for _, err := range graph.Walk(ctx, s, []cas.Hash{d.root}, graph.WalkOptions{}) {
		if count++; count == 2 {
			require.ErrorIs(t, err, context.Canceled)
		}
		cancel()
	}
	require.Equal(t, 2, count)
	for n := range graph.Walk(context.Background(), s, []cas.Hash{d.root}, graph.WalkOptions{}) {
		require.Equal(t, d.root, n.Hash)
		break
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := castest.NewStore(t, cas.XXH3)
	d := putDiamond(t, s)
	bottom := object{"name": "bottom", "refs": []any{}}
	whole := object{"name": "root", "refs": []any{
		object{"name": "left", "refs": []any{bottom}},
		object{"name": "right", "refs": []any{bottom}},
	}}
	got, err := graph.Expand(ctx, s, d.root)
	require.NoError(t, err)
	require.Equal(t, whole, got)

	dangling := putNode(t, s, d.typ, object{"refs": []any{refA}})
	_, err = graph.Expand(ctx, s, dangling.Hash)
	require.ErrorIs(t, err, cas.ErrNotFound, "a missing node is never skipped in silence")
}

// A content-addressed store has no cycles except through collisions and hostile files.
func TestCyclesEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := cycle{castest.NewStore(t, cas.XXH3)}
	typ := putNode(t, r, r.Kinds().MetaHash(), refSchema)
	require.Equal(t, []cas.Hash{refA, refB}, walk(t, cycleOf{r, typ.Hash}, graph.WalkOptions{}, refA))
	v, err := graph.Expand(ctx, cycleOf{r, typ.Hash}, refA)
	require.NoError(t, err)
	require.Equal(t, refA, v)
}

type cycle struct{ *fsstore.Store }

// cycleOf contains refA and refB, which reference each other.
type cycleOf struct {
	cycle
	typ cas.Hash
}

func (c cycleOf) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	other := map[cas.Hash]string{refA: refB, refB: refA}[h]
	if other == "" {
		return c.cycle.Get(ctx, h)
	}
	payload, err := cas.Encode(other)
	return cas.Node{Hash: h, Type: c.typ, Payload: payload}, err
}

// Shared nodes are expanded once: 2^40 copies would never finish.
func TestExpandOfALadder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := castest.NewStore(t, cas.XXH3)
	d := putDiamond(t, s)
	h := d.bottom
	for range 40 {
		h = putNode(t, s, d.typ, object{"refs": []any{h, h, h}}).Hash
	}
	_, err := graph.Expand(ctx, s, h)
	require.NoError(t, err)
}

func parseJSON(t testing.TB, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v))
	return v
}

// BenchmarkWalk visits a chain of 1,000 steps.
func BenchmarkWalk(b *testing.B) {
	s := castest.NewStore(b, cas.XXH3)
	batch := cas.NewBatch(s, time.Now)
	detail, err := batch.Add(b.Context(), protocol.Text("detail"))
	require.NoError(b, err)
	var head cas.Hash
	for i := range 1000 {
		step := protocol.Step{
			Index: i, Start: detail, Output: detail, Detail: detail, Role: "developer", Visits: map[string]int{},
			ExtractedBy: protocol.ByValue,
		}
		if i > 0 {
			step.Prev = new(head)
		}
		head, err = batch.Add(b.Context(), step)
		require.NoError(b, err)
	}
	require.NoError(b, batch.Put(b.Context()))
	for b.Loop() {
		for _, err := range graph.Walk(b.Context(), s, []cas.Hash{head}, graph.WalkOptions{}) {
			require.NoError(b, err)
		}
	}
}
