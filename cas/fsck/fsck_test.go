package fsck_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/internal/steptest"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

const threadID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// world is a home with one thread of a few steps and a registered workflow.
type world struct {
	testing.TB
	home     string
	store    *fsstore.Store
	index    *fileheads.Heads
	workflow cas.Hash
	start    cas.Hash
	steps    []cas.Hash
}

func newWorld(t testing.TB, steps int) *world {
	ctx := context.Background()
	home := t.TempDir()
	w := &world{TB: t, home: home, index: fileheads.Open(home, durable.OS())}
	w.open()
	b := w.batch()
	schema, err := b.AddSchema(ctx, map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}})
	require.NoError(t, err)
	w.workflow, err = b.Add(ctx, protocol.Workflow{
		Name: "w", Graph: map[string]protocol.GraphNode{}, Roles: map[string]protocol.Role{
			"r": {Description: "d", Goal: "g", Capabilities: []string{}, Procedure: "p", Output: "o", Frontmatter: schema},
		},
	})
	require.NoError(t, err)
	w.start, err = b.Add(ctx, protocol.Start{Workflow: w.workflow, Prompt: "p", Cwd: "/"})
	require.NoError(t, err)
	require.NoError(t, b.Commit(ctx))
	require.NoError(t, w.index.Register(ctx, "w", w.workflow))
	head := w.start
	for i := range steps {
		head = w.step(head, schema, i)
		w.steps = append(w.steps, head)
	}
	require.NoError(t, w.index.Add(ctx, threadID, head, heads.Facts{}))
	return w
}

func (w *world) open() {
	s, err := fsstore.Open(context.Background(), filepath.Join(w.home, "cas"), fsstore.Options{Home: w.home})
	require.NoError(w, err)
	w.store = s
}

func (w *world) batch() *cas.Batch { return cas.NewBatch(w.store, time.Now) }

func (w *world) step(head, schema cas.Hash, i int) cas.Hash {
	ctx := context.Background()
	t, err := thread.Open(ctx, w.store, head)
	require.NoError(w, err)
	next, err := steptest.Append(ctx, w.batch(), t, steptest.Step{
		Role: "r", Type: schema, Value: map[string]any{"n": i},
		Answer: fmt.Sprintf("answer %d", i), Prompt: fmt.Sprintf("prompt %d", i),
	})
	require.NoError(w, err)
	return next
}

func (w *world) check(repair bool) fsck.Report {
	r, err := fsck.Run(context.Background(), w.store, fsck.Options{Home: w.home, Repair: repair, Now: time.Now})
	require.NoError(w, err)
	return r
}

// change replaces a node's record.
func (w *world) change(h cas.Hash, change func([]byte) []byte) {
	r := castest.FindRecord(w, w.store.Dir(), h)
	r.Replace(change(r.Body()))
}

func (w *world) lose(h cas.Hash) { castest.FindRecord(w, w.store.Dir(), h).Lose() }

func (w *world) all() (hashes []cas.Hash) {
	for h, err := range w.store.All(context.Background(), "") {
		require.NoError(w, err)
		hashes = append(hashes, h)
	}
	return hashes
}

func TestSound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	report := w.check(false)
	require.Empty(t, report.Faults)
	require.True(t, report.Sound())
	require.Equal(t, len(w.all()), report.Nodes)
	require.Equal(t, 1, report.Threads)
	require.Equal(t, 1, report.Workflows)
}

// Any damage to a node is reported with its place, and after a repair the node can be put again.
func TestEveryFaultIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	hashes := w.all()
	random := rand.New(rand.NewPCG(1, 2))
	const tail = 1 + len("timestamp") + 9 // no hash covers the timestamp
	faults := map[string]func(data []byte) []byte{
		"a flipped bit": func(d []byte) []byte {
			d[random.IntN(len(d)-9)] ^= 1 << random.IntN(8)
			return d
		},
		"cut short":     func(d []byte) []byte { return d[:random.IntN(len(d))] },
		"longer":        func(d []byte) []byte { return append(d, byte(random.IntN(256))) },
		"zeros":         func(d []byte) []byte { clear(d[random.IntN(len(d)-tail):]); return d },
		"another node":  func([]byte) []byte { return cas.MarshalFile(otherNode(w)) },
		"bytes swapped": func(d []byte) []byte { return swapped(random, d, len(d)-tail) },
		"empty":         func([]byte) []byte { return nil },
	}
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		fault := faults[name]
		for range 40 {
			h := hashes[random.IntN(len(hashes))]
			whole := castest.FindRecord(t, w.store.Dir(), h).Body()
			w.change(h, fault)
			report := w.check(false)
			require.False(t, report.Sound(), name)
			require.True(t, hasFault(report, fsck.Damaged, h), "%s in %s: %+v", name, h, report.Faults)
			w.change(h, func([]byte) []byte { return whole })
		}
	}
	require.True(t, w.check(false).Sound())
}

func swapped(random *rand.Rand, d []byte, n int) []byte {
	for {
		i, j := random.IntN(n), random.IntN(n)
		if d[i] != d[j] {
			d[i], d[j] = d[j], d[i]
			return d
		}
	}
}

func otherNode(w *world) cas.Node {
	payload, err := cas.Encode(fmt.Sprint(rand.Uint64()))
	require.NoError(w, err)
	typ := w.store.Kinds().Hash(protocol.KindText)
	return cas.Node{Type: typ, Payload: payload, Hash: w.store.Algorithm().Sum(typ, payload), Timestamp: 1}
}

func hasFault(r fsck.Report, k fsck.Kind, h cas.Hash) bool {
	for _, f := range r.Faults {
		if f.Kind == k && f.Hash == h {
			return true
		}
	}
	return false
}

// Each needed but missing node is reported, with the threads and workflows that need it.
func TestMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	for _, h := range w.all() {
		data := castest.FindRecord(t, w.store.Dir(), h).Body()
		w.lose(h)
		report := w.check(false)
		require.True(t, hasFault(report, fsck.Missing, h), h)
		castest.Forge(t, w.store.Dir(), record.Node, h.Number(), data)
	}
	w.lose(w.workflow)
	f := w.check(false).Faults
	require.Len(t, f, 1)
	require.Equal(t, []string{threadID}, f[0].Threads)
	require.Equal(t, []string{"w"}, f[0].Workflows)
	require.Equal(t, 2, f[0].Dependents)
	require.Equal(t, w.store.Where(w.workflow), f[0].Path)
}

// The damaged seal of a node that isn't in the store is a fault like others.
func TestDamagedSealWithoutANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	n := otherNode(w)
	require.NoError(t, w.store.KeepSeals(t.Context(), map[cas.Hash]cas.Seal{n.Hash: cas.SealOf(n, nil)}))
	castest.FindRecord(t, w.store.Dir(), n.Hash, record.Seal).Flip()
	report := w.check(false)
	require.Len(t, report.Faults, 1)
	require.Equal(t, fsck.Seal, report.Faults[0].Kind)
	require.Equal(t, n.Hash, report.Faults[0].Hash)
}

// Valid bytes with invalid content are detected.
func TestWrongContent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	put := func(w *world, typ cas.Hash, value any, at int64) cas.Hash {
		payload, err := cas.Encode(value)
		require.NoError(w, err)
		n := cas.Node{Type: typ, Payload: payload, Hash: w.store.Algorithm().Sum(typ, payload), Timestamp: at}
		require.NoError(w, w.store.Put(ctx, n))
		return n.Hash
	}
	text := func(w *world) cas.Hash { return w.store.Kinds().Hash(protocol.KindText) }
	for name, test := range map[string]struct {
		kind fsck.Kind
		do   func(w *world) cas.Hash
	}{
		"a payload against its schema": {fsck.Invalid, func(w *world) cas.Hash { return put(w, text(w), 7, 1) }},
		"a type that is not there":     {fsck.Missing, func(w *world) cas.Hash { put(w, "0000000000000", "x", 1); return "0000000000000" }},
		"a type that is no schema":     {fsck.Invalid, func(w *world) cas.Hash { return put(w, w.start, "x", 1) }},
		"a date in the future":         {fsck.Future, func(w *world) cas.Hash { return put(w, text(w), "x", time.Now().Add(48*time.Hour).UnixMilli()) }},
		"a step out of order": {fsck.Chain, func(w *world) cas.Hash {
			s, err := cas.Read[protocol.Step](ctx, w.store, w.steps[1])
			require.NoError(w, err)
			s.Index = 7
			return put(w, w.store.Kinds().Hash(protocol.KindStep), s, 1)
		}},
		"a head that is no step": {fsck.Index, func(w *world) cas.Hash {
			require.NoError(w, w.index.Move(ctx, threadID, w.steps[1], w.workflow))
			return w.workflow
		}},
		"a name that stands for no workflow": {fsck.Index, func(w *world) cas.Hash {
			require.NoError(w, w.index.Register(ctx, "x", w.start))
			return w.start
		}},
		"a head that is not there": {fsck.Missing, func(w *world) cas.Hash {
			require.NoError(w, w.index.Move(ctx, threadID, w.steps[1], "0000000000001"))
			return "0000000000001"
		}},
		"a line that cannot be read": {fsck.Index, func(w *world) cas.Hash {
			require.NoError(w, os.WriteFile(filepath.Join(w.home, "threads.yaml"), []byte("a: b\n"), 0o644))
			return ""
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			h := test.do(w)
			require.True(t, hasFault(w.check(false), test.kind, h), "%+v", w.check(false).Faults)
		})
	}
}

// Remains of an unacknowledged commit after a power cut are garbage rather than faults, unless there is
// another fault.
func TestGarbageThatIsIncomplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	payload, err := cas.Encode("x")
	require.NoError(t, err)
	const nowhere = "0000000000000"
	require.NoError(t, w.store.Put(context.Background(),
		cas.Node{Type: nowhere, Payload: payload, Hash: w.store.Algorithm().Sum(nowhere, payload), Timestamp: 1}))
	report := w.check(false)
	require.True(t, hasFault(report, fsck.Missing, "0000000000000"))
	require.True(t, report.Sound(), "%+v", report.Faults)

	torn := castest.Node(t, cas.XXH3, "a text that nothing names, torn by the power cut")
	for _, left := range []int{0, 4, 20, 40} {
		require.NoError(t, w.store.Put(context.Background(), torn))
		w.change(torn.Hash, func(whole []byte) []byte { return append(whole[:left:left], make([]byte, left)...) })
		report = w.check(false)
		require.True(t, hasFault(report, fsck.Damaged, torn.Hash))
		require.True(t, report.Sound(), "%+v", report.Faults)
	}
	w.change(torn.Hash, func([]byte) []byte { return []byte("no power cut leaves this") })
	require.False(t, w.check(false).Sound())
	w.lose(torn.Hash)

	w.lose(w.steps[0])
	report = w.check(false)
	require.False(t, report.Sound())
	for _, f := range report.Faults {
		require.True(t, f.Remains, "%+v", f)
	}
}

// A repair restores what is built into this program, quarantines the rest, and deletes nothing.
func TestRepair(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, 2)
	step := w.store.Kinds().Hash(protocol.KindStep)
	w.change(step, func([]byte) []byte { return []byte("rubbish") })
	w.lose(w.store.Kinds().Hash(protocol.KindTurn))
	w.change(w.steps[0], func(d []byte) []byte { d[40] ^= 1; return d })
	history := filepath.Join(w.home, "history.jsonl")
	require.NoError(t, os.WriteFile(history, []byte("rubbish\n"), 0o644))

	facts := filepath.Join(w.home, "facts.jsonl")
	require.NoError(t, os.WriteFile(facts, []byte("one\n{\"thread\":\""+threadID+"\"}\ntwo\n"), 0o644))

	report := w.check(true)
	require.False(t, report.Sound(), "one step is lost")
	require.Len(t, report.Faults, 7)
	for _, f := range report.Faults {
		require.Equal(t, f.Kind == fsck.Missing && f.Hash == w.steps[0], f.Remains, "%+v", f)
		require.Equal(t, f.Repaired == "", f.Remains, "%+v", f)
	}
	again := w.check(false)
	require.Len(t, again.Faults, 1)
	require.True(t, hasFault(again, fsck.Missing, w.steps[0]))
	require.Equal(t, []string{threadID}, again.Faults[0].Threads)
	for _, name := range []string{string(step) + ".bin", string(w.steps[0]) + ".bin"} {
		require.FileExists(t, filepath.Join(w.home, "cas", "quarantine", name))
	}
	kept, err := os.ReadFile(filepath.Join(w.home, "quarantine", "history.jsonl"))
	require.NoError(t, err)
	require.Equal(t, "rubbish\n", string(kept))
	kept, err = os.ReadFile(filepath.Join(w.home, "quarantine", "facts.jsonl"))
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", string(kept))
	_, err = w.store.Get(ctx, w.steps[1])
	require.NoError(t, err)
}
