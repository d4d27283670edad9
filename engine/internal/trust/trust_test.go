package trust_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/trust"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/hints"
)

// flushed is a disk that records how files were appended to.
type flushed struct {
	durable.FS
	how []durable.Flush
}

func (f *flushed) Append(path string, data []byte, mode fs.FileMode, how durable.Flush) error {
	f.how = append(f.how, how)
	return f.FS.Append(path, data, mode, how)
}

// registry is heads with registered workflows.
type registry struct {
	memHeads
	named []heads.Named
}

type memHeads = heads.Heads

func (r registry) Workflows(context.Context) ([]heads.Named, error) { return r.named, nil }
func (r registry) Workflow(context.Context, string) (protocol.Hash, error) {
	return "", heads.ErrNoWorkflow
}
func (r registry) Register(context.Context, string, protocol.Hash) error {
	return errors.ErrUnsupported
}

type world struct {
	*statustest.World
	judge trust.Judge
	disk  *flushed
}

func newWorld(t *testing.T) *world {
	w := &world{World: statustest.New(t), disk: &flushed{FS: durable.OS()}}
	require.NoError(t, os.MkdirAll(w.Dirs.Home, 0o700))
	w.FS = w.disk
	w.judge.Reader = &w.Reader
	return w
}

// runs returns the hash of a workflow with a command, or without one if the name is silent.
func (w *world) runs(name string) protocol.Hash {
	wf := statustest.Line(map[string]protocol.Role{"build": {Run: []string{"make", "it all"}}}, "build")
	wf.Name = name
	return w.World.Workflow(wf)
}

func (w *world) silent() protocol.Hash {
	return w.World.Workflow(statustest.Line(map[string]protocol.Role{"plan": {}}, "plan"))
}

// requireUntrusted requires an error about a missing confirmation.
func requireUntrusted(t *testing.T, err error) *trust.UntrustedError {
	t.Helper()
	var untrusted *trust.UntrustedError
	require.ErrorAs(t, err, &untrusted)
	require.Equal(t, protocol.CodeUsage, fault.Of(err).Code)
	require.NotEmpty(t, hints.All("", fault.Of(err)))
	return untrusted
}

// A workflow's commands include the commands of workflows it runs, once each.
func TestCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inner := w.runs("inner")
	wf := statustest.Line(map[string]protocol.Role{
		"a": {Run: []string{"ls"}}, "b": {Workflow: inner},
		"c": {All: map[string]protocol.ChildRole{"x": {Workflow: inner}, "y": {Role: "plan"}}}, "plan": {},
	}, "a", "b", "c")
	got, err := w.judge.Commands(t.Context(), "", wf)
	require.NoError(t, err)
	require.Equal(t, []string{"a runs: ls", `inner: build runs: make 'it all'`}, got)
	require.Equal(t, []string{"a runs: ls"}, trust.CommandsOf(protocol.Config{}, "", wf, nil))
	got, err = w.judge.Commands(t.Context(), "", statustest.Line(map[string]protocol.Role{"plan": {}}, "plan"))
	require.NoError(t, err)
	require.Empty(t, got)
	outer := func(name string) protocol.Hash {
		wf := statustest.Line(map[string]protocol.Role{"b": {Workflow: inner}}, "b")
		wf.Name = name
		return w.World.Workflow(wf)
	}
	twice := statustest.Line(map[string]protocol.Role{"x": {Workflow: outer("one")}, "y": {Workflow: outer("two")}}, "x", "y")
	got, err = w.judge.Commands(t.Context(), "", twice)
	require.NoError(t, err)
	require.Len(t, got, 1, "whoever reads it has read it")
	w.Lose(inner)
	_, err = w.judge.Commands(t.Context(), "", wf)
	require.Equal(t, protocol.CodeCorrupt, fault.Of(err).Code, "what cannot be read is not no command")
}

// Commands run if they were confirmed, or if the workflow is registered under a valid name.
func TestMustTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	id := w.runs("one")
	other := w.runs("another")
	require.NoError(t, w.judge.MustTrust(ctx, w.silent(), "came"))
	u := requireUntrusted(t, w.judge.MustTrust(ctx, id, "came by mail"))
	require.Equal(t, trust.UntrustedError{Workflow: id, Name: "one", Why: "came by mail", Commands: []string{"build runs: make 'it all'"}}, *u)
	require.Contains(t, hints.All("", fault.Of(w.judge.MustTrust(ctx, id, "")))[1], "uwf workflow trust "+string(id))
	for range 2 {
		require.NoError(t, w.judge.Trust(ctx, id))
	}
	require.Equal(t, []durable.Flush{durable.NoFlush, durable.FullFlush}, w.disk.how, "once, and it survives a power cut")
	require.NoError(t, w.judge.MustTrust(ctx, id, ""))
	requireUntrusted(t, w.judge.MustTrust(ctx, other, ""))

	for problem, want := range map[string]bool{"": true, " is damaged": false} {
		w.Heads = registry{w.Heads, []heads.Named{{Name: "x", Hash: other, Problem: problem}}}
		require.Equal(t, want, w.judge.MustTrust(ctx, other, "") == nil)
	}
	third := w.runs("third")
	requireUntrusted(t, w.judge.MustTrust(ctx, third, ""))
	w.Lose(third)
	require.Equal(t, protocol.CodeCorrupt, fault.Of(w.judge.MustTrust(ctx, third, "")).Code)

	// An unreadable file confirms nothing, and is an error.
	require.NoError(t, os.Remove(filepath.Join(w.Dirs.Home, "trusted.jsonl")))
	require.NoError(t, os.Mkdir(filepath.Join(w.Dirs.Home, "trusted.jsonl"), 0o700))
	for _, err := range []error{w.judge.MustTrust(ctx, id, ""), w.judge.Trust(ctx, id), w.judge.TrustOwn(ctx, id)} {
		require.Error(t, err)
		require.False(t, errors.As(err, new(*trust.UntrustedError)))
	}
}

// The workflow of a returning own thread is trusted, unless it ever came with a foreign thread.
func TestTrustOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	own, theirs := w.runs("own"), w.runs("theirs")
	head := w.At(w.Start(theirs, heads.Facts{}))
	for range 2 {
		require.NoError(t, w.judge.NoteForeign(ctx, head))
	}
	require.Equal(t, []durable.Flush{durable.NoFlush, durable.FullFlush}, w.disk.how)
	require.NoError(t, w.judge.TrustOwn(ctx, own))
	require.NoError(t, w.judge.TrustOwn(ctx, theirs))
	require.NoError(t, w.judge.MustTrust(ctx, own, ""))
	requireUntrusted(t, w.judge.MustTrust(ctx, theirs, ""))
	requireUntrusted(t, w.judge.Stored(ctx, theirs, w.read(theirs)))
	require.NoError(t, w.judge.Trust(ctx, theirs))
	require.NoError(t, w.judge.Stored(ctx, theirs, w.read(theirs)))
	require.Error(t, w.judge.NoteForeign(ctx, "0000000000000"))
}

// A line that a kill cut off doesn't damage the next one.
func TestACutLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := w.runs("theirs")
	require.NoError(t, os.WriteFile(filepath.Join(w.Dirs.Home, "trusted.jsonl"), []byte(`{"workflow":"0123`), 0o600))
	require.NoError(t, w.judge.NoteForeign(t.Context(), w.At(w.Start(theirs, heads.Facts{}))))
	requireUntrusted(t, w.judge.Stored(t.Context(), theirs, w.read(theirs)))
}

// Ancestors that form a circle are an error.
func TestEndlessAncestors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	one := w.Start(w.runs("one"), heads.Facts{})
	pos, err := w.Position(ctx, one, w.At(one))
	require.NoError(t, err)
	two := w.Start(w.runs("two"), heads.Facts{Parent: &heads.Parent{Thread: one}})
	require.NoError(t, w.Heads.SetFacts(ctx, one, heads.Facts{Parent: &heads.Parent{Thread: two}, Imported: &heads.Imported{}}))
	facts, err := w.Heads.Facts(ctx, one)
	require.NoError(t, err)
	require.Error(t, w.judge.Imported(ctx, one, w.At(one), facts))
	require.Error(t, w.judge.Words(ctx, pos, facts, "build", []string{"make"}))
}

func (w *world) read(h protocol.Hash) protocol.Workflow {
	wf, err := w.Reader.Workflow(w.T.Context(), h)
	require.NoError(w.T, err)
	return wf
}

// TestStored checks which stored workflows may have come with a foreign thread.
func TestStored(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		facts heads.Facts
		ended bool
		want  bool // must be confirmed
	}{
		"a thread made here":      {},
		"an imported one":         {facts: heads.Facts{Imported: &heads.Imported{}}, want: true},
		"a confirmed one":         {facts: heads.Facts{Imported: &heads.Imported{Confirmed: true}}, want: true},
		"one that has ended":      {facts: heads.Facts{Imported: &heads.Imported{}}, ended: true, want: true},
		"one that went on there":  {facts: heads.Facts{Imported: &heads.Imported{Inherited: true}}},
		"a fork of a foreign one": {facts: heads.Facts{Imported: &heads.Imported{Inherited: true}, Fork: &heads.Fork{}}, want: true},
		"one that may be foreign": {facts: heads.Facts{Imported: &heads.Imported{Inherited: true, Lost: true}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			wf := w.runs("one")
			id := w.Start(wf, tt.facts)
			w.Start(w.silent(), heads.Facts{Imported: &heads.Imported{}})
			if tt.ended {
				w.End(id, protocol.StatusCompleted)
			}
			err := w.judge.Stored(t.Context(), wf, w.read(wf))
			if !tt.want {
				require.NoError(t, err)
				return
			}
			requireUntrusted(t, err)
			silent := w.silent()
			require.NoError(t, w.judge.Stored(t.Context(), silent, w.read(silent)))
		})
	}
}

// The workflow of an imported thread must be confirmed; for a child, the workflow of its topmost parent.
func TestImported(t *testing.T) {
	t.Parallel()
	foreign := &heads.Imported{From: "x.bundle"}
	for name, tt := range map[string]struct {
		facts heads.Facts
		want  bool
	}{
		"made here":             {},
		"imported":              {heads.Facts{Imported: foreign}, true},
		"confirmed":             {heads.Facts{Imported: &heads.Imported{Confirmed: true}}, true},
		"in doubt":              {heads.Facts{Doubt: errors.New("line 3")}, true},
		"in doubt and imported": {heads.Facts{Doubt: errors.New("line 3"), Imported: foreign}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := t.Context()
			wf := w.runs("one")
			id := w.Start(wf, tt.facts)
			check := func() error { return w.judge.Imported(ctx, id, w.At(id), tt.facts) }
			if !tt.want {
				require.NoError(t, check())
				return
			}
			requireUntrusted(t, check())
			require.Contains(t, hints.All("", fault.Of(check()))[1], "uwf thread trust "+id)
			w.Lose(w.At(id))
			require.NoError(t, check(), "its step says what is wrong with it")
		})
	}
	w := newWorld(t)
	ctx := t.Context()
	top, below := w.runs("top"), w.runs("below")
	id := w.Start(top, heads.Facts{Imported: foreign})
	childFacts := heads.Facts{Imported: foreign, Parent: &heads.Parent{Thread: id}}
	child := w.Start(below, childFacts)
	require.Equal(t, top, requireUntrusted(t, w.judge.Imported(ctx, child, w.At(child), childFacts)).Workflow)
	workflow, commands, err := w.judge.ThreadCommands(ctx, child)
	require.NoError(t, err)
	require.Equal(t, top, workflow)
	require.Len(t, commands, 1)
	require.NoError(t, w.judge.Trust(ctx, top))
	require.NoError(t, w.judge.Imported(ctx, child, w.At(child), childFacts))
	silent := w.Start(w.silent(), heads.Facts{Imported: foreign})
	require.NoError(t, w.judge.Imported(ctx, silent, w.At(silent), heads.Facts{Imported: foreign}))
	_, _, err = w.judge.ThreadCommands(ctx, "01JZ0000000000000000000000")
	require.Equal(t, protocol.CodeNotFound, fault.Of(err).Code)
}

// Rendered commands of a foreign thread must be confirmed for it, or for a parent, since its arrival.
func TestWords(t *testing.T) {
	t.Parallel()
	const at = 1_800_000_000_000
	foreign := func(ms int64) heads.Facts { return heads.Facts{Imported: &heads.Imported{From: "x", AtMs: ms}} }
	for name, tt := range map[string]struct {
		top, child heads.Facts
		trust      string // top, child or other
		want       bool   // it is confirmed
	}{
		"made here":                   {want: true},
		"imported":                    {top: foreign(at), child: foreign(at)},
		"the child is confirmed":      {top: foreign(at), child: foreign(at), trust: "child", want: true},
		"its parent is":               {top: foreign(at), child: foreign(at), trust: "top", want: true},
		"another thread is":           {top: foreign(at), child: foreign(at), trust: "another"},
		"only its parent is foreign":  {top: foreign(at)},
		"it arrived at that moment":   {child: foreign(at + 10_000), trust: "child", want: true},
		"it arrived again":            {child: foreign(at + 10_001), trust: "child"},
		"its parent arrived again":    {top: foreign(at + 10_001), child: foreign(at), trust: "child"},
		"it arrived after its parent": {top: foreign(at), child: foreign(at + 10_001), trust: "top"},
		"its parent is in doubt":      {top: heads.Facts{Doubt: errors.New("line 3")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := t.Context()
			wf := w.runs("one")
			top := w.Start(wf, heads.Facts{})
			tt.child.Parent = &heads.Parent{Thread: top}
			child := w.Start(wf, heads.Facts{})
			pos, err := w.HeadPosition(ctx, child)
			require.NoError(t, err)
			w.Clock = time.UnixMilli(at + 10_000)
			if tt.trust != "" {
				id := map[string]string{"top": top, "child": child}[tt.trust]
				if id == "" {
					id = w.Start(wf, heads.Facts{})
				}
				w.Clock = time.UnixMilli(at + 10_000)
				require.NoError(t, w.judge.TrustThread(ctx, id))
				require.NoError(t, w.judge.MustTrust(ctx, wf, ""), "its workflow is confirmed, too")
				require.NotContains(t, w.disk.how[1:], durable.NoFlush, "only the new file")
			}
			w.Heads = doubtful{w.Heads, top, tt.top}
			err = w.judge.Words(ctx, pos, tt.child, "build", []string{"rm", "-rf", "$(x)"})
			if tt.want {
				require.NoError(t, err)
				return
			}
			u := requireUntrusted(t, err)
			require.Equal(t, child, u.Thread)
			require.Equal(t, []string{`build runs: rm -rf '$(x)'`}, u.Commands)
			require.Contains(t, hints.All("", fault.Of(err))[2], "uwf thread trust "+top)
		})
	}
}

// doubtful is heads with these facts of one thread.
type doubtful struct {
	memHeads
	id    string
	facts heads.Facts
}

func (d doubtful) Facts(ctx context.Context, id string) (heads.Facts, error) {
	if id == d.id {
		return d.facts, nil
	}
	return d.memHeads.Facts(ctx, id)
}

func (d doubtful) AllFacts(ctx context.Context) (map[string]heads.Facts, error) {
	all, err := d.memHeads.AllFacts(ctx)
	all[d.id] = d.facts
	return all, err
}

// A fork is as foreign as the thread of its node, and keeps the limits set for it.
func TestInherited(t *testing.T) {
	t.Parallel()
	at := int64(1_800_000_000_000)
	imported := &heads.Imported{From: "x", AtMs: 7, Confirmed: true}
	place := &heads.Workspace{Mode: "none", Root: "/x"}
	for name, tt := range map[string]struct {
		of   []heads.Facts // threads with that start, oldest first; nil: none
		want heads.Facts
		from int // the index of the original
	}{
		"of a thread made here": {of: []heads.Facts{{Workspace: place}}},
		"of an imported one": {of: []heads.Facts{{Imported: imported, Workspace: place}},
			want: heads.Facts{Imported: &heads.Imported{From: "x", AtMs: 7, Confirmed: true, Inherited: true}, Workspace: place}},
		"of no thread": {want: heads.Facts{Imported: &heads.Imported{AtMs: at + 1000, Inherited: true}}, from: -1},
		"of one that may be foreign": {of: []heads.Facts{{Imported: &heads.Imported{Lost: true}}},
			want: heads.Facts{Imported: &heads.Imported{Inherited: true}}},
		"of one in doubt": {of: []heads.Facts{{Doubt: errors.New("line 3")}},
			want: heads.Facts{Imported: &heads.Imported{Inherited: true}}},
		"of the newest": {of: []heads.Facts{{}, {}}, from: 1},
		"of the foreign one rather": {of: []heads.Facts{{Imported: imported}, {}},
			want: heads.Facts{Imported: &heads.Imported{From: "x", AtMs: 7, Confirmed: true, Inherited: true}}},
		"of the foreign one rather than its fork": {of: []heads.Facts{{Imported: imported}, {Imported: &heads.Imported{AtMs: 9, Confirmed: true, Inherited: true}, Fork: &heads.Fork{}}},
			want: heads.Facts{Imported: &heads.Imported{From: "x", AtMs: 7, Confirmed: true, Inherited: true}}},
		"of the one that nobody has confirmed": {of: []heads.Facts{{Imported: &heads.Imported{AtMs: 9}}, {Imported: imported}},
			want: heads.Facts{Imported: &heads.Imported{AtMs: 9, Inherited: true}}},
		"with limits": {of: []heads.Facts{{Limits: &heads.Limits{Limits: protocol.Limits{MaxCostUSD: 3}, More: protocol.Amount{CostUSD: 5}, Replaced: heads.Replaced{Unknown: protocol.Unknown{Unpriced: 1}}}}},
			want: heads.Facts{Limits: &heads.Limits{Limits: protocol.Limits{MaxCostUSD: 3}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			wf := w.silent()
			var ids []string
			for _, f := range tt.of {
				doubt := f.Doubt
				f.Doubt = nil
				id := w.Start(wf, f)
				if ids = append(ids, id); doubt != nil {
					f.Doubt = doubt
					w.Heads = doubtful{w.Heads, id, f}
				}
			}
			another := w.StartWith(protocol.Start{Workflow: wf, Prompt: "another", Cwd: "/"}, heads.Facts{Imported: imported})
			node := w.Add(protocol.Start{Workflow: wf, Prompt: "the task", Cwd: w.Env.Dir})
			if tt.from < 0 {
				node = w.Add(protocol.Start{Workflow: wf, Prompt: "nobody's", Cwd: "/"})
				w.Lose(w.At(another))
			}
			start, err := thread.Open(t.Context(), w.Store, node)
			require.NoError(t, err)
			got, err := w.judge.Inherited(t.Context(), start, node)
			require.NoError(t, err)
			want := tt.want
			want.Fork = &heads.Fork{Step: node}
			if tt.from >= 0 {
				want.Fork.Thread = ids[tt.from]
			}
			require.Equal(t, want, got)
		})
	}
}

// The question where a foreign thread may work describes it, even if little can be read.
func TestMustSayWhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		facts heads.Facts
		lose  bool
		says  []string
	}{
		"imported": {facts: heads.Facts{Imported: &heads.Imported{From: "x.bundle", AtMs: 86_400_000}}, says: []string{"x.bundle on 1970-01-0", "one ", "/there"}},
		"nobody's": {facts: heads.Facts{Imported: &heads.Imported{}}, says: []string{"no thread of this home"}},
		"lost":     {facts: heads.Facts{Imported: &heads.Imported{Lost: true}}, says: []string{"may come"}},
		"in doubt": {facts: heads.Facts{Doubt: errors.New("line 3"), Imported: &heads.Imported{}}, says: []string{"may come", "line 3"}},
		"damaged":  {facts: heads.Facts{Imported: &heads.Imported{}}, lose: true, says: []string{"unknown"}},
	} {
		w := newWorld(t)
		id := w.StartWith(protocol.Start{Workflow: w.runs("one"), Prompt: "x", Cwd: "/there"}, heads.Facts{})
		head := w.At(id)
		if tt.lose {
			w.Lose(head)
		}
		err := fault.Of(w.judge.MustSayWhere(t.Context(), id, head, tt.facts, "resume"))
		require.Equal(t, protocol.CodeUsage, err.Code, name)
		for _, text := range tt.says {
			require.Contains(t, err.Message, text, name)
		}
		require.Equal(t, "to let it work here from now on: uwf thread resume "+id+" --cwd "+w.Env.Dir, hints.All("", err)[1])
	}
}
