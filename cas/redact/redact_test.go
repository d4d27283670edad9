package redact_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/internal/steptest"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

const (
	idA = "01ARZ3NDEKTSV4RRFFQ69G5FAA"
	idB = "01ARZ3NDEKTSV4RRFFQ69G5FAB"
)

func clock() time.Time { return time.UnixMilli(1_780_000_000_000) }

// world is a home with a thread of three steps.
type world struct {
	t     *testing.T
	home  string
	store *fsstore.Store
	index *fileheads.Heads
	steps []thread.Step // oldest first
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx := t.Context()
	home := t.TempDir()
	s, err := fsstore.Open(ctx, filepath.Join(home, "cas"), fsstore.Options{Home: home})
	require.NoError(t, err)
	w := &world{t: t, home: home, store: s, index: fileheads.Open(home, durable.OS())}
	b := cas.NewBatch(s, clock)
	schema, err := b.AddSchema(ctx, map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}})
	require.NoError(t, err)
	workflow, err := b.Add(ctx, protocol.Workflow{
		Name: "w", Description: "d", Graph: map[string]protocol.GraphNode{},
		Roles: map[string]protocol.Role{"r": {Description: "d", Goal: "g", Procedure: "p", Output: "o", Capabilities: []string{}, Frontmatter: schema}},
	})
	require.NoError(t, err)
	start, err := b.Add(ctx, protocol.Start{Workflow: workflow, Prompt: "the task", Cwd: "/"})
	require.NoError(t, err)
	require.NoError(t, b.Commit(ctx))
	require.NoError(t, w.index.Add(ctx, idA, start, heads.Facts{}))
	for i := range 3 {
		w.step(idA, fmt.Sprintf("secret %d", i), i)
	}
	return w
}

// step makes a step as an agent does.
func (w *world) step(id, secret string, n int) {
	w.t.Helper()
	ctx := w.t.Context()
	head, err := w.index.Head(ctx, id)
	require.NoError(w.t, err)
	chain, err := thread.Open(ctx, w.store, head)
	require.NoError(w.t, err)
	wf, err := chain.Workflow(ctx)
	require.NoError(w.t, err)
	next, err := steptest.Append(ctx, cas.NewBatch(w.store, clock), chain, steptest.Step{
		Role: "r", Type: wf.Roles["r"].Frontmatter, Value: map[string]any{"n": n}, Answer: secret, Prompt: "do " + secret,
	})
	require.NoError(w.t, err)
	require.NoError(w.t, w.index.Move(ctx, id, head, next))
	chain, err = thread.Open(ctx, w.store, next)
	require.NoError(w.t, err)
	w.steps = append(w.steps, *chain.Last)
}

func (w *world) turn(i int) cas.Hash {
	w.t.Helper()
	d, err := cas.Read[protocol.Detail](w.t.Context(), w.store, w.steps[i].Detail)
	require.NoError(w.t, err)
	return d.Turns[0]
}

func (w *world) redact(h cas.Hash, o redact.Options) (redact.Done, error) {
	o.Now = clock
	o.Others = func() (map[string]heads.Heads, error) {
		homes, err := w.store.Homes()
		return fileheads.Others(w.home, homes, durable.OS()), err
	}
	return redact.Node(w.t.Context(), w.store, w.index, idA, h, o)
}

func never(context.Context, protocol.Workflow) (bool, error) { return false, nil }

func (w *world) gone(h cas.Hash) {
	w.t.Helper()
	_, err := w.store.Get(w.t.Context(), h)
	_, redacted := cas.AsRedacted(err)
	require.True(w.t, redacted, "%v", err)
}

// busyStore is a store in which a thread moves whenever something is redacted.
type busyStore struct {
	*fsstore.Store
	move func()
}

func (s busyStore) Redact(ctx context.Context, check func() error, tombstones ...cas.Tombstone) error {
	s.move()
	return s.Store.Redact(ctx, check, tombstones...)
}

// Threads that move all the time don't prevent a redaction, unless one needs the node now.
func TestThreadsThatKeepMoving(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	require.NoError(t, w.index.Add(ctx, idB, w.steps[2].Start, heads.Facts{}))
	made := 0
	s := busyStore{w.store, func() { made++; w.step(idB, fmt.Sprint("other ", made), made) }}
	_, err := redact.Node(ctx, s, w.index, idA, *w.steps[0].Prompt, redact.Options{Reason: "why", Now: clock})
	require.NoError(t, err)
	w.gone(*w.steps[0].Prompt)

	made = 0
	s.move = func() { made++; w.step(idB, "secret 1", made) }
	_, err = redact.Node(ctx, s, w.index, idA, *w.steps[1].Prompt, redact.Options{Reason: "why", Now: clock})
	require.ErrorAs(t, err, new(*redact.SharedError))
}

// unreadable is a store in which a node can't be read.
type unreadable struct {
	*fsstore.Store
	hash cas.Hash
}

func (s unreadable) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if h == s.hash {
		return cas.Node{}, &fs.PathError{Op: "read", Path: s.Where(h), Err: fs.ErrPermission}
	}
	return s.Store.Get(ctx, h)
}

// A node that can't be read might show that another one is shared or needed, or complete its seal.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.index.Add(t.Context(), idB, w.steps[0].Start, heads.Facts{}))
	w.step(idB, "secret 1", 5)
	half := w.turn(3)
	for what, c := range map[string]struct{ unread, node cas.Hash }{
		"another thread": {w.steps[3].Hash, *w.steps[1].Prompt}, "step": {w.steps[1].Hash, w.steps[1].Output},
		"half-written turn": {half, *w.steps[2].Prompt}, "type": {w.store.Kinds().Hash(protocol.KindStep), *w.steps[1].Prompt},
	} {
		_, err := redact.Node(t.Context(), unreadable{w.store, c.unread}, w.index, idA, c.node,
			redact.Options{LooksBack: never, Now: clock, Half: []cas.Hash{half}})
		require.ErrorIs(t, err, fs.ErrPermission, what)
		_, err = w.store.Get(t.Context(), c.node)
		require.NoError(t, err, what)
	}
}

// What a thread needs to continue stays, everything else can be redacted.
func TestWhatMayGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	last := w.steps[2]
	wf, err := cas.Read[protocol.Start](t.Context(), w.store, last.Start)
	require.NoError(t, err)
	out, err := w.store.Get(t.Context(), last.Output)
	require.NoError(t, err)
	for name, h := range map[string]cas.Hash{
		"head": last.Hash, "step": w.steps[0].Hash, "start": last.Start, "workflow": wf.Workflow,
		"schema": out.Type, "newest output": last.Output, "schema of a kind": w.store.Kinds().Hash(protocol.KindTurn),
	} {
		_, err := w.redact(h, redact.Options{Shared: true, LooksBack: never})
		var needed *redact.NeededError
		require.ErrorAs(t, err, &needed, name)
		_, err = w.store.Get(t.Context(), h)
		require.NoError(t, err, name)
	}
	// An older output can be redacted only if no condition can read it.
	_, err = w.redact(w.steps[0].Output, redact.Options{})
	var needed *redact.NeededError
	require.ErrorAs(t, err, &needed)
	for _, h := range []cas.Hash{w.steps[0].Output, w.turn(0), *w.steps[0].Prompt, w.steps[0].Detail, w.turn(2), w.steps[2].Detail} {
		done, err := w.redact(h, redact.Options{LooksBack: never, Reason: "  two\nlines "})
		require.NoError(t, err)
		require.Equal(t, "two lines", done.Reason)
		require.Len(t, done.Seal, 64)
		w.gone(h)
	}
	_, err = w.redact("0000000000000", redact.Options{})
	require.ErrorIs(t, err, cas.ErrNotFound)
	_, err = redact.Node(t.Context(), w.store, w.index, idB, last.Detail, redact.Options{Now: clock})
	require.ErrorIs(t, err, heads.ErrNoThread)
	w.sound(6)
}

// sound checks the store and its number of tombstones.
func (w *world) sound(tombstones int) {
	w.t.Helper()
	report, err := fsck.Run(w.t.Context(), w.store, fsck.Options{Home: w.home, Now: clock})
	require.NoError(w.t, err)
	require.True(w.t, report.Sound(), "%v", report.Faults)
	require.Len(w.t, report.Tombstones, tombstones)
}

// The content of a replaced step also belongs to the thread, and nothing needs it.
func TestReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	last := len(w.steps) - 1
	turn := w.turn(last)
	require.NoError(t, w.index.Move(t.Context(), idA, w.steps[last].Hash, w.steps[last-1].Hash))
	for _, h := range []cas.Hash{turn, w.steps[last].Output} {
		done, err := w.redact(h, redact.Options{})
		require.NoError(t, err)
		require.Empty(t, done.Shared)
		w.gone(h)
	}
}

// A node that other threads reference is redacted for all of them, or not at all.
func TestShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.index.Add(t.Context(), idB, w.steps[0].Hash, heads.Facts{}))
	_, err := w.redact(w.turn(0), redact.Options{})
	var shared *redact.SharedError
	require.ErrorAs(t, err, &shared)
	require.Equal(t, []string{idB}, shared.Threads)
	turn := w.turn(0)
	done, err := w.redact(turn, redact.Options{Shared: true})
	require.NoError(t, err)
	require.Equal(t, []string{idB}, done.Shared)
	w.gone(turn)
	done, err = w.redact(turn, redact.Options{Shared: true})
	require.NoError(t, err)
	require.True(t, done.Already)

	// An output that determines the next role in another thread is needed there.
	_, err = w.redact(w.steps[0].Output, redact.Options{Shared: true, LooksBack: never})
	var needed *redact.NeededError
	require.ErrorAs(t, err, &needed)
	require.Contains(t, needed.Reason, idB)

	// A node of another thread isn't part of this one.
	w.step(idB, "of the other", 7)
	_, err = w.redact(w.steps[3].Detail, redact.Options{})
	require.ErrorIs(t, err, redact.ErrNotPart)
}

// Threads of another home on the same store count as well.
func TestSharedWithAnotherHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	home := t.TempDir()
	other, err := fsstore.Open(t.Context(), w.store.Dir(), fsstore.Options{Home: home})
	require.NoError(t, err)
	b := cas.NewBatch(other, clock)
	_, err = b.Add(t.Context(), protocol.Text("it is used"))
	require.NoError(t, err)
	require.NoError(t, b.Commit(t.Context()))
	require.NoError(t, fileheads.Open(home, durable.OS()).Add(t.Context(), idB, w.steps[1].Hash, heads.Facts{}))
	_, err = w.redact(w.turn(0), redact.Options{})
	var shared *redact.SharedError
	require.ErrorAs(t, err, &shared)
	require.Equal(t, []string{idB + " in " + home}, shared.Threads)
}

// A thread whose line in threads.yaml is lost might share the node.
func TestSharedWithALostThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.index.Add(t.Context(), idB, w.steps[0].Hash, heads.Facts{}))
	require.NoError(t, os.MkdirAll(filepath.Join(w.home, "runs", idB), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "runs", idB, "run.json"), []byte("{}\n"), 0o600))
	path := filepath.Join(w.home, "threads.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	kept := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool { return strings.Contains(line, idB) || strings.HasPrefix(line, "# sum") })
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600))
	turn := w.turn(0)
	_, err = w.redact(turn, redact.Options{})
	require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeCorrupt})
	_, err = w.store.Get(t.Context(), turn)
	require.NoError(t, err)
	_, err = w.redact(turn, redact.Options{Shared: true})
	require.NoError(t, err)
}

// Putting the content again doesn't restore it; a step with the same content can still be made.
func TestPutAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	turn := w.turn(0)
	n, err := w.store.Get(ctx, turn)
	require.NoError(t, err)
	_, err = w.redact(turn, redact.Options{Reason: "why"})
	require.NoError(t, err)
	require.NoError(t, w.store.Put(ctx, n))
	require.NoError(t, w.store.Commit(ctx, n))
	w.gone(turn)
	w.step(idA, "secret 0", 3) // the same turn
	require.Equal(t, turn, func() cas.Hash {
		refs, err := w.store.Get(ctx, w.steps[3].Detail)
		require.NoError(t, err)
		all, err := graph.Refs(ctx, w.store, refs)
		require.NoError(t, err)
		return all[0]
	}())
	w.gone(turn)
	w.sound(1)
}

// All readers of a thread handle redacted content and show a note.
func TestReaders(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	for _, h := range []cas.Hash{w.turn(0), w.steps[1].Detail, w.steps[0].Output, *w.steps[0].Prompt} {
		_, err := w.redact(h, redact.Options{Reason: "a key", LooksBack: never})
		require.NoError(t, err)
	}
	chain, err := thread.Open(ctx, w.store, w.steps[2].Hash)
	require.NoError(t, err)
	for s, err := range chain.Steps(ctx) {
		require.NoError(t, err)
		content, err := thread.Content(ctx, w.store, s.Detail)
		require.NoError(t, err)
		if s.Index < 2 {
			require.Equal(t, "[redacted: a key]", content)
		}
		out, err := chain.Shown(ctx, s)
		require.NoError(t, err)
		if s.Index == 0 {
			require.Equal(t, map[string]any{"$redacted": string(s.Output), "reason": "a key"}, out.Value)
			_, err := chain.Output(ctx, s)
			_, redacted := cas.AsRedacted(err)
			require.True(t, redacted, "nobody decides by it")
		}
	}
	turn, err := thread.ShownTurn(ctx, w.store, w.steps[1].Detail)
	require.NoError(t, err)
	require.Equal(t, "[redacted: a key]", turn.Content)
	detail, err := thread.ShownDetail(ctx, w.store, w.steps[1].Detail)
	require.NoError(t, err)
	require.Equal(t, "[redacted: a key]", detail.Outcome)

	whole, err := graph.Expand(ctx, w.store, w.steps[2].Hash)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(whole), "$redacted")
}

// The collector keeps tombstones that threads reference, and removes what only they referenced.
func TestCollect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	detail, turn := w.steps[1].Detail, w.turn(1)
	_, err := w.redact(detail, redact.Options{})
	require.NoError(t, err)
	report, err := gc.Run(t.Context(), w.store, gc.Options{Homes: []string{w.home}, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	require.NoError(t, err)
	require.Equal(t, 1, report.Freed)
	w.gone(detail)
	_, err = w.store.Get(t.Context(), turn)
	require.ErrorIs(t, err, cas.ErrNotFound)
	w.sound(1)
}

// Content redacted here stays away even if no thread references it any more: the collector keeps the
// tombstone, but removes imported ones.
func TestNothingComesBackAfterTheCollector(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	turn := w.turn(0)
	whole, err := w.store.Get(ctx, turn)
	require.NoError(t, err)
	_, err = w.redact(turn, redact.Options{Reason: "why"})
	require.NoError(t, err)
	_, err = w.store.Bury(ctx, cas.Tombstone{Hash: "0123456789ABC", Type: whole.Type})
	require.NoError(t, err)
	head, err := w.index.Head(ctx, idA)
	require.NoError(t, err)
	require.NoError(t, w.index.Archive(ctx, heads.Ended{Thread: idA, Head: head, Status: protocol.StatusCancelled}))
	_, err = w.index.Forget(ctx, map[string]bool{idA: true})
	require.NoError(t, err)
	for _, dry := range []bool{true, false} {
		report, err := gc.Run(ctx, w.store, gc.Options{Homes: []string{w.home}, DryRun: dry, Now: func() time.Time { return time.Now().Add(time.Hour) }})
		require.NoError(t, err)
		require.Equal(t, report.Reachable, report.Nodes-report.Freed)
		require.Positive(t, report.Freed)
	}
	w.gone(turn)
	require.NoError(t, w.store.Commit(ctx, whole))
	w.gone(turn)
	there, err := w.store.Has(ctx, "0123456789ABC")
	require.NoError(t, err)
	require.False(t, there)
}

// A damaged tombstone is reported, and the content doesn't come back.
func TestDamagedTombstone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	turn := w.turn(0)
	_, err := w.redact(turn, redact.Options{Reason: "why"})
	require.NoError(t, err)
	r := castest.FindRecord(t, w.store.Dir(), turn)
	good := r.Body()
	for i := range good {
		r.Overwrite(i, []byte{good[i] ^ 4})
		_, err := w.store.Get(t.Context(), turn)
		require.ErrorAs(t, err, new(*cas.CorruptError), "byte %d", i)
		if i < len(good)-1 {
			r.Overwrite(i, good[i:i+1])
		}
	}
	report, err := fsck.Run(t.Context(), w.store, fsck.Options{Home: w.home, Now: clock})
	require.NoError(t, err)
	require.Len(t, report.Faults, 1)
	require.Equal(t, fsck.Damaged, report.Faults[0].Kind)
}

// A redaction removes the content from segments and packs, also what an interrupted one has left. What was put lately
// still counts as young.
func TestContentIsGone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	later := gc.Options{Homes: []string{w.home}, Now: func() time.Time { return time.Now().Add(time.Hour) }}
	_, err := gc.Run(ctx, w.store, later)
	require.NoError(t, err)
	later.Now = time.Now
	whole, err := w.store.Get(ctx, w.turn(0))
	require.NoError(t, err)
	require.NoError(t, w.store.Put(ctx, whole), "so that it is in the log, too")
	castest.FindRecord(t, w.store.Dir(), whole.Hash)
	b := cas.NewBatch(w.store, time.Now)
	lately, err := b.Add(ctx, protocol.Text("nothing refers to it yet"))
	require.NoError(t, err)
	require.NoError(t, b.Put(ctx))
	_, err = w.redact(whole.Hash, redact.Options{Reason: "why"})
	require.NoError(t, err)
	w.gone(whole.Hash)
	castest.RequireErased(t, w.store.Dir(), whole.Payload[len(whole.Payload)/2:])
	for _, stays := range []bool{true, false} {
		_, err = gc.Run(ctx, w.store, gc.Options{Homes: []string{w.home}, Grace: time.Hour, Now: later.Now})
		require.NoError(t, err)
		there, err := w.store.Has(ctx, lately)
		require.NoError(t, err)
		require.Equal(t, stays, there)
		later.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	}

	tombstone := castest.FindRecord(t, w.store.Dir(), whole.Hash).Body()
	castest.Forge(t, w.store.Dir(), record.Node, whole.Hash.Number(), cas.MarshalFile(whole))
	castest.Forge(t, w.store.Dir(), record.Tombstone, whole.Hash.Number(), tombstone)
	again, err := w.redact(whole.Hash, redact.Options{Reason: "why"})
	require.NoError(t, err)
	require.True(t, again.Already)
	castest.RequireErased(t, w.store.Dir(), whole.Payload[len(whole.Payload)/2:])
	w.sound(1)
}

// Forged tombstones in place of nodes that a chain needs are faults.
func TestTombstoneInTheWay(t *testing.T) {
	t.Parallel()
	for name, pick := range map[string]func(w *world) cas.Hash{
		"head":  func(w *world) cas.Hash { return w.steps[2].Hash },
		"step":  func(w *world) cas.Hash { return w.steps[1].Hash },
		"start": func(w *world) cas.Hash { return w.steps[1].Start },
	} {
		w := newWorld(t)
		h := pick(w)
		require.NoError(t, w.store.Redact(t.Context(), func() error { return nil }, cas.Tombstone{Hash: h, Type: h}))
		report, err := fsck.Run(t.Context(), w.store, fsck.Options{Home: w.home, Now: clock})
		require.NoError(t, err)
		require.NotEmpty(t, report.Faults, name)
		require.Contains(t, report.Faults[0].Message, "was redacted", name)
	}
}

// Half-written turns of the run are redacted as well; a node that the chain needs isn't, even if an agent
// lists it.
func TestHalfWrittenTurnsGoAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := cas.NewBatch(w.store, clock)
	half, err := b.Add(t.Context(), protocol.Turn{Index: 1, Role: protocol.TurnAssistant, Content: "secr", AtMs: 1})
	require.NoError(t, err)
	text, err := b.Add(t.Context(), protocol.Text("not a turn"))
	require.NoError(t, err)
	require.NoError(t, b.Put(t.Context()))
	missing := cas.Hash("0123456789ABC")
	done, err := w.redact(w.turn(1), redact.Options{LooksBack: never, Half: []cas.Hash{w.turn(0), half, w.turn(1), w.steps[1].Hash, text, missing}})
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{half}, done.Half)
	w.gone(half)
	w.gone(w.turn(1))
	_, err = w.store.Get(t.Context(), w.turn(0))
	require.NoError(t, err)
}

func TestLooksBack(t *testing.T) {
	t.Parallel()
	edge := func(condition string) protocol.GraphNode {
		return protocol.GraphNode{Transitions: []protocol.Transition{{}, {Condition: condition}}}
	}
	for _, c := range []struct {
		graph map[string]protocol.GraphNode
		want  bool
	}{
		{nil, false},
		{map[string]protocol.GraphNode{"a": {}, "b": edge("")}, false},
		{map[string]protocol.GraphNode{"a": edge(""), "b": edge("n > 1")}, true},
	} {
		got, err := redact.LooksBack(t.Context(), protocol.Workflow{Graph: c.graph})
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}
