package bundle_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Every change of a bundle's bytes is detected, and nothing is written to a store.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	from, to := sample(t), newWorld(t, cas.XXH3)
	to.start(idA)
	data := from.export()
	before := snapshot(t, to.home)
	random := rand.New(rand.NewPCG(1, 2))
	tried := 0
	for name, change := range changes {
		for range 300 {
			bad := change(random, slices.Clone(data))
			if bytes.Equal(bad, data) {
				continue
			}
			tried++
			_, err := to.imports(bad, bundle.ImportOptions{})
			require.Error(t, err, name)
		}
	}
	require.Greater(t, tried, 1800)
	require.Equal(t, before, snapshot(t, to.home))
}

// Every single byte matters.
func TestEveryByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cas.XXH3)
	w.start(idA)
	w.step(idA, map[string]any{"n": 1})
	data := w.export()
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 1 << (i % 8)
		_, err := verify(bad)
		require.Error(t, err, "byte %d", i)
		if i%25 == 0 {
			_, err = verify(data[:i])
			require.Error(t, err, "cut at %d", i)
		}
	}
	_, err := verify(data)
	require.NoError(t, err)
}

// changes lists ways to damage bytes.
var changes = map[string]func(*rand.Rand, []byte) []byte{
	"flip a bit": func(r *rand.Rand, b []byte) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	},
	"cut off": func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] },
	"take out": func(r *rand.Rand, b []byte) []byte {
		at := r.IntN(len(b))
		return slices.Delete(b, at, min(len(b), at+1+r.IntN(200)))
	},
	"insert": func(r *rand.Rand, b []byte) []byte {
		return slices.Insert(b, r.IntN(len(b)+1), make([]byte, 1+r.IntN(200))...)
	},
	"repeat": func(r *rand.Rand, b []byte) []byte {
		at := r.IntN(len(b))
		end := min(len(b), at+1+r.IntN(600))
		return slices.Insert(b, end, slices.Clone(b[at:end])...)
	},
	"swap": func(r *rand.Rand, b []byte) []byte {
		n := 1 + r.IntN(300)
		x, y := r.IntN(len(b)-n), r.IntN(len(b)-n)
		part := slices.Clone(b[x : x+n])
		copy(b[x:], b[y:y+n])
		copy(b[y:], part)
		return b
	},
	"zeros": func(r *rand.Rand, b []byte) []byte {
		at := r.IntN(len(b))
		clear(b[at:min(len(b), at+1+r.IntN(500))])
		return b
	},
}

// raw is a disassembled bundle, for building forged ones.
type raw struct {
	head    []byte
	records [][]byte // including frames
}

func takeApart(t testing.TB, data []byte) raw {
	t.Helper()
	out, ok := frames(data)
	require.True(t, ok)
	return out
}

// frames parses the frames of a bundle.
func frames(data []byte) (raw, bool) {
	const magic = len("uwf bundle 1\n")
	if len(data) < magic+4 {
		return raw{}, false
	}
	at := magic + 4 + int(binary.BigEndian.Uint32(data[magic:]))
	if at > len(data) {
		return raw{}, false
	}
	out := raw{head: data[:at]}
	for at+5 <= len(data) {
		if data[at] == 'e' {
			return out, true
		}
		end := at + 5 + int(binary.BigEndian.Uint32(data[at+1:]))
		if end > len(data) {
			return raw{}, false
		}
		out.records = append(out.records, data[at:end])
		at = end
	}
	return raw{}, false
}

// bytes assembles the bundle with a matching digest.
func (r raw) bytes() []byte {
	out := slices.Clone(r.head)
	for _, rec := range r.records {
		out = append(out, rec...)
	}
	out = append(out, 'e', 0, 0, 0, 40)
	out = binary.BigEndian.AppendUint64(out, uint64(len(r.records)))
	digest := sha256.Sum256(out)
	return append(out, digest[:]...)
}

func recordOf(n cas.Node) []byte {
	body := append([]byte(n.Hash), cas.MarshalFile(n)...)
	return append(binary.BigEndian.AppendUint32([]byte{'n'}, uint32(len(body))), body...)
}

// A bundle with a matching digest but forged content is rejected, with the position in the error.
func TestLies(t *testing.T) {
	t.Parallel()
	w := sample(t)
	data := w.export()
	other := textNode(t, "nobody needs this")
	for name, c := range map[string]struct {
		change func(r *raw)
		fails  bool
	}{
		"as it is":           {func(*raw) {}, false},
		"a node less":        {func(r *raw) { r.records = slices.Delete(r.records, 3, 4) }, true},
		"the last node less": {func(r *raw) { r.records = r.records[:len(r.records)-1] }, true},
		"no nodes":           {func(r *raw) { r.records = nil }, true},
		"a node twice":       {func(r *raw) { r.records = append(r.records, r.records[0]) }, true},
		"a node more at the end": {func(r *raw) { r.records = append(r.records, recordOf(other)) },
			true},
		"a node more at the beginning": {func(r *raw) { r.records = slices.Insert(r.records, 0, recordOf(other)) }, true},
		"two nodes the other way round": {func(r *raw) {
			n := len(r.records)
			r.records[n-1], r.records[n-2] = r.records[n-2], r.records[n-1]
		}, true},
		"all nodes the other way round": {func(r *raw) { slices.Reverse(r.records) }, true},
		"a node that lies about its hash": {func(r *raw) {
			lie := other
			lie.Hash = "0000000000000"
			r.records = append(r.records, recordOf(lie))
		}, true},
		"a hash that is none": {func(r *raw) {
			lie := other
			lie.Hash = "../../../etc/"
			r.records = append(r.records, recordOf(lie))
		}, true},
		"a record of another kind": {func(r *raw) {
			rec := slices.Clone(r.records[2])
			rec[0] = 'x'
			r.records[2] = rec
		}, true},
		"a node that says it is a tombstone": {func(r *raw) {
			rec := slices.Clone(r.records[2])
			rec[0] = 't'
			r.records[2] = rec
		}, true},
		"a huge length": {func(r *raw) {
			rec := slices.Clone(r.records[2])
			binary.BigEndian.PutUint32(rec[1:], 1<<31)
			r.records[2] = rec
		}, true},
	} {
		parts := takeApart(t, data)
		c.change(&parts)
		_, err := verify(parts.bytes())
		if !c.fails {
			require.NoError(t, err, name)
			continue
		}
		var fault *bundle.FaultError
		require.ErrorAs(t, err, &fault, name)
		prosetest.Error(t, err, name)
		require.ErrorContains(t, err, fmt.Sprintf("byte %d: ", fault.Offset), name)
	}
}

func textNode(t testing.TB, text string) cas.Node {
	t.Helper()
	payload, err := cas.Encode(text)
	require.NoError(t, err)
	kinds := cas.NewKinds(cas.XXH3)
	typ := kinds.Hash(protocol.KindText)
	return cas.Node{Hash: cas.XXH3.Sum(typ, payload), Type: typ, Payload: payload}
}

// withManifest replaces the manifest of a bundle.
func withManifest(t testing.TB, r raw, m any) []byte {
	t.Helper()
	data, err := cas.Encode(m)
	require.NoError(t, err)
	r.head = slices.Concat([]byte("uwf bundle 1\n"), binary.BigEndian.AppendUint32(nil, uint32(len(data))), data)
	return r.bytes()
}

// A manifest must be complete and in canonical form, and contain nothing that could become a path outside.
func TestManifest(t *testing.T) {
	t.Parallel()
	w := sample(t)
	parts := takeApart(t, w.export(idA))
	good := func() map[string]any {
		workflow, _ := w.workflow("w")
		return map[string]any{
			"hash": "xxh3", "roots": []any{}, "workflows": []any{map[string]any{"name": "w", "hash": workflow}},
			"threads": []any{map[string]any{"thread": idA, "head": w.head(idA)}},
		}
	}
	_, err := verify(withManifest(t, parts, good()))
	require.NoError(t, err)
	thread := func(m map[string]any) map[string]any { return m["threads"].([]any)[0].(map[string]any) }
	workflow := func(m map[string]any) map[string]any { return m["workflows"].([]any)[0].(map[string]any) }
	for name, change := range map[string]func(m map[string]any){
		"an id that climbs out":        func(m map[string]any) { thread(m)["thread"] = "../../../etc/passwd" },
		"an id in lower case":          func(m map[string]any) { thread(m)["thread"] = "01arz3ndektsv4rrffq69g5faa" },
		"a name that climbs out":       func(m map[string]any) { workflow(m)["name"] = "../w" },
		"a name with a line end":       func(m map[string]any) { workflow(m)["name"] = "w: 0\nx" },
		"a head that is none":          func(m map[string]any) { thread(m)["head"] = "x" },
		"a head that is not there":     func(m map[string]any) { thread(m)["head"] = "0000000000000" },
		"a head that is no step":       func(m map[string]any) { thread(m)["head"] = workflow(m)["hash"] },
		"a name for no workflow":       func(m map[string]any) { workflow(m)["hash"] = w.head(idA) },
		"an unknown hash function":     func(m map[string]any) { m["hash"] = "md5" },
		"the other hash function":      func(m map[string]any) { m["hash"] = "xxh64" },
		"an unknown entry":             func(m map[string]any) { m["more"] = true },
		"a thread with an entry more":  func(m map[string]any) { thread(m)["more"] = true },
		"no lists":                     func(m map[string]any) { m["roots"] = nil },
		"a thread twice":               func(m map[string]any) { m["threads"] = []any{thread(m), thread(m)} },
		"nothing":                      func(m map[string]any) { m["threads"] = []any{} },
		"an end without a status":      func(m map[string]any) { thread(m)["completedAt"] = 1 },
		"a status that is none":        func(m map[string]any) { thread(m)["status"] = "resumed" },
		"a seal that is none":          func(m map[string]any) { thread(m)["seal"] = "00" },
		"a seal that does not fit":     func(m map[string]any) { thread(m)["seal"] = fmt.Sprintf("%064x", 1) },
		"a word of nobody's":           func(m map[string]any) { thread(m)["status"] = "active" },
		"a time after the year 9999":   func(m map[string]any) { thread(m)["status"], thread(m)["completedAt"] = "completed", 253402300800000 },
		"a time before 1970":           func(m map[string]any) { thread(m)["status"], thread(m)["completedAt"] = "completed", -1 },
		"a root that is a thread's id": func(m map[string]any) { m["roots"] = []any{map[string]any{"hash": idA}} },
	} {
		m := good()
		change(m)
		_, err := verify(withManifest(t, parts, m))
		var fault *bundle.FaultError
		require.ErrorAs(t, err, &fault, name)
	}
}

// Nodes with the right hash but invalid content are rejected: steps out of order, payloads that don't match
// their type.
func TestForgedNodes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := sample(t)
	head, err := cas.Read[protocol.Step](ctx, w.store, w.head(idA))
	require.NoError(t, err)
	kinds := w.store.Kinds()
	forge := func(kind protocol.Kind, value any) cas.Node {
		payload, err := cas.Encode(value)
		require.NoError(t, err)
		typ := kinds.Hash(kind)
		n := cas.Node{Hash: cas.XXH3.Sum(typ, payload), Type: typ, Payload: payload}
		require.NoError(t, w.store.Put(ctx, n))
		return n
	}
	other := w.start(idB[:25] + "Z")
	for name, c := range map[string]struct {
		change func(s *protocol.Step)
	}{
		"a gap":               {func(s *protocol.Step) { s.Index += 2 }},
		"no previous step":    {func(s *protocol.Step) { s.Prev = nil }},
		"another start":       {func(s *protocol.Step) { s.Start = other }},
		"a start that is not": {func(s *protocol.Step) { s.Start = *s.Prev }},
		"previous is no step": {func(s *protocol.Step) { s.Prev = &s.Start }},
	} {
		s := head
		c.change(&s)
		n := forge(protocol.KindStep, s)
		_, err := verify(unchecked(t, w.store, bundle.Manifest{Hash: cas.XXH3, Roots: []bundle.Root{{Hash: n.Hash}}}))
		prosetest.Error(t, err, name)
	}
	bad := forge(protocol.KindTurn, map[string]any{"role": "nobody"})
	var schema *cas.SchemaError
	_, err = verify(unchecked(t, w.store, bundle.Manifest{Hash: cas.XXH3, Roots: []bundle.Root{{Hash: bad.Hash}}}))
	require.ErrorAs(t, err, &schema)
}

// unchecked writes a bundle like Write, without any checks.
func unchecked(t testing.TB, s cas.Store, m bundle.Manifest) []byte {
	t.Helper()
	ctx := context.Background()
	var out raw
	require.NoError(t, graph.BottomUp(ctx, s, []cas.Hash{m.Roots[0].Hash}, graph.BottomUpOptions{}, func(v graph.Visited) error {
		if v.Node.Type == s.Kinds().MetaHash() {
			v.Node.Timestamp = 0
		}
		out.records = append(out.records, recordOf(v.Node))
		return nil
	}))
	return withManifest(t, out, map[string]any{
		"hash": m.Hash, "threads": []any{}, "workflows": []any{}, "roots": []any{map[string]any{"hash": m.Roots[0].Hash}},
	})
}
