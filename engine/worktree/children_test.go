package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/engine/worktree/worktreetest"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
)

// Worktrees of children start with their parent's current files, at the same place in the tree.
func TestChildTrees(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: written})
	w.Write(filepath.Join(w.Repo, "a"), "mine")
	trees, err := w.Keeper().ChildTrees(ctx, w.Thread(id), "panel", w.Repo, filepath.Join(w.Repo, "sub"))
	require.NoError(t, err)
	chain, here := trees.Of("KID")
	require.Equal(t, &heads.Workspace{
		Mode: inTree, Root: filepath.Join(w.Dirs.Worktree("KID"), "sub"), Repo: filepath.Join(w.Repo, ".git"), Base: w.Git(w.Repo, "rev-parse", "HEAD"),
	}, here)
	require.Equal(t, inTree, chain.Mode)
	k, err := w.Keeper().Open(ctx, id, w.Repo, w.Workspace(id))
	require.NoError(t, err)
	require.Equal(t, k.Spec.Tree, chain.Tree)
	k.Release()
	chain, here = (*worktree.ChildTrees)(nil).Of("KID")
	require.Nil(t, chain)
	require.Nil(t, here)

	for name, refuse := range map[string]func(){
		"outside":   func() {},
		"no commit": func() { w.Git(w.Repo, "update-ref", "-d", "HEAD") },
		"not kept":  func() { w.Change(id, heads.Facts{Workspace: &heads.Workspace{Mode: asItIs}}) },
	} {
		if refuse(); name == "outside" {
			_, err = w.Keeper().ChildTrees(ctx, w.Thread(id), "panel", w.Repo, "/")
		} else {
			_, err = w.Keeper().ChildTrees(ctx, w.Thread(id), "panel", w.Repo, w.Repo)
		}
		require.Equal(t, protocol.CodeFailed, codeOf(err), name)
	}
}

// panel is a parent with two children in worktrees.
type panel struct {
	*world
	id   string
	kids children.Children
	kept *worktree.Checkout // the start of the last merge
}

func newPanel(t *testing.T) *panel {
	p := &panel{world: worktreetest.New(t)}
	p.id = p.NewThread(worktree.Options{Mode: written})
	return p
}

// child runs a child to its end and writes files in its worktree.
func (p *panel) child(key string, files map[string]string, status protocol.Status) string {
	p.T.Helper()
	ctx := p.T.Context()
	trees, err := p.Keeper().ChildTrees(ctx, p.Thread(p.id), "plan", p.Repo, p.Repo)
	require.NoError(p.T, err)
	start := p.Chain(p.id).Start
	start.Prompt, start.Child = "child "+key, &protocol.Child{Of: p.At(p.id), Role: "plan", Key: key}
	child := p.StartWith(start, heads.Facts{Parent: &heads.Parent{Thread: p.id}})
	its, here := trees.Of(child)
	start.Workspace = its
	require.NoError(p.T, p.Heads.Move(ctx, child, p.At(child), p.Add(start)))
	p.Change(child, heads.Facts{Workspace: here})
	require.NoError(p.T, p.Keeper().Recreate(ctx, p.Thread(child)))
	if files != nil {
		p.Made(child, files)
	}
	k := children.Child{Child: moderator.Child{Key: key}, ID: child, Head: p.At(child)}
	p.End(child, status)
	at, err := heads.Find(ctx, p.Heads, child)
	require.NoError(p.T, err)
	k.Ended = at.End
	p.kids = append(p.kids, k)
	return child
}

// merge merges the children's files, and writes the result unless there is a conflict.
func (p *panel) merge() (results []moderator.Result, conflicts []string, err error) {
	p.T.Helper()
	ctx := p.T.Context()
	k, err := p.Keeper().Open(ctx, p.id, p.Repo, p.Workspace(p.id))
	require.NoError(p.T, err)
	defer k.Release()
	p.kept = k
	j := worktree.Joined{Keeper: p.Keeper(), Thread: p.id, Chain: p.Chain(p.id), Role: "plan", Children: p.kids}
	results = make([]moderator.Result, len(p.kids))
	if err := j.Find(ctx, results); err != nil {
		return results, nil, err
	}
	to, conflicts, err := j.Merge(ctx, k)
	if err == nil && conflicts == nil {
		err = p.Keeper().WriteMerged(ctx, k, to)
	}
	return results, conflicts, err
}

func TestMerge(t *testing.T) {
	t.Parallel()
	const done = protocol.StatusCompleted
	for name, tt := range map[string]struct {
		make      func(p *panel)
		files     [][]string // per child
		conflicts []string
		has       map[string]string
		code      protocol.Code
	}{
		"two files": {make: func(p *panel) {
			p.child("x", map[string]string{"a": "x"}, done)
			p.child("y", map[string]string{"n": "y", "sub/b": ""}, done)
		}, files: [][]string{{"a"}, {"n", "sub/b"}}, has: map[string]string{"a": "x", "n": "y"}},
		"the same place": {make: func(p *panel) {
			p.child("x", map[string]string{"a": "x", "sub/b": "x"}, done)
			p.child("y", map[string]string{"a": "y", "sub/b": "y"}, done)
		}, files: [][]string{{"a", "sub/b"}, {"a", "sub/b"}}, conflicts: []string{"a", "sub/b"},
			has: map[string]string{"a": "one\n", "sub/b": "two\n"}},
		"one was cancelled": {make: func(p *panel) {
			p.child("x", map[string]string{"a": "x"}, protocol.StatusCancelled)
			p.child("y", map[string]string{"n": "y"}, done)
		}, files: [][]string{nil, {"n"}}, has: map[string]string{"a": "one\n", "sub/b": "two\n", "n": "y"}},
		"the person worked on": {make: func(p *panel) {
			p.child("x", map[string]string{"a": "x"}, done)
			p.Write(filepath.Join(p.Repo, "mine"), "m")
		}, files: [][]string{{"a"}}, has: map[string]string{"a": "x", "sub/b": "two\n", "mine": "m"}},
		"its files are lost": {make: func(p *panel) {
			child := p.child("x", map[string]string{"a": "x"}, done)
			require.NoError(p.T, os.RemoveAll(p.Dirs.Git()))
			_ = child
		}, code: protocol.CodeNotFound, has: map[string]string{"a": "one\n", "sub/b": "two\n"}},
		"none has made a step": {make: func(p *panel) { p.child("x", nil, done) },
			code: protocol.CodeNotFound, has: map[string]string{"a": "one\n", "sub/b": "two\n"}},
		"merged by an earlier step": {make: func(p *panel) {
			p.child("x", map[string]string{"a": "x"}, done)
			p.joined("again")
			p.Write(filepath.Join(p.Repo, "a"), "by hand")
		}, files: [][]string{{"a"}}, has: map[string]string{"a": "by hand", "sub/b": "two\n"}},
		"a conflict by an earlier step": {make: func(p *panel) {
			p.child("x", map[string]string{"a": "x"}, done)
			p.joined(moderator.JoinConflict)
		}, files: [][]string{{"a"}}, has: map[string]string{"a": "x", "sub/b": "two\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPanel(t)
			tt.make(p)
			results, conflicts, err := p.merge()
			require.Equal(t, tt.code, codeOf(err), "%v", err)
			if err == nil {
				for i, want := range tt.files {
					require.Equal(t, want, results[i].Files)
				}
				require.Equal(t, tt.conflicts, conflicts)
			} else {
				require.NotEmpty(t, hints.All("", fault.Of(err)))
			}
			require.Equal(t, tt.has, p.Has(p.Repo))
		})
	}
	p := newPanel(t)
	j := worktree.Joined{Keeper: p.Keeper(), Thread: p.id, Chain: p.Chain(p.id), Role: "plan"}
	_, _, err := j.Merge(t.Context(), nil)
	require.Equal(t, protocol.CodeFailed, codeOf(err))
}

// joined makes a step that joins the children.
func (p *panel) joined(status string) {
	s := protocol.Step{Role: "plan"}
	for _, k := range p.kids {
		s.Children = append(s.Children, protocol.ChildEnded{Key: k.Key, Head: k.Ended.Head, Status: k.Ended.Status})
	}
	p.MadeBy(p.id, s, status, nil)
}

// The worktree of an imported child is next to its parent's.
func TestOwnTree(t *testing.T) {
	t.Parallel()
	p := newPanel(t)
	ctx := t.Context()
	child := p.child("x", nil, protocol.StatusCompleted)
	above := *p.Workspace(p.id)
	above.Root = filepath.Join(p.Repo, "sub")
	own, err := p.Keeper().OwnTree(ctx, child, &above)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(p.Dirs.Worktree(child), "sub"), own.Root)
	own, err = p.Keeper().OwnTree(ctx, p.id, &above)
	require.NoError(t, err)
	require.Nil(t, own)
	above.Root = "/"
	_, err = p.Keeper().OwnTree(ctx, child, &above)
	require.Equal(t, protocol.CodeFailed, codeOf(err))
}

// Bisect finds the first step after which a command fails, with the fewest tries, and leaves nothing behind.
func TestBisect(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		steps   []string // what each writes to a; "-": its files aren't kept
		good    int      // 0: the start
		command string
		first   int
		unsure  []int
		tried   int
		code    protocol.Code
	}{
		"the third of four":       {steps: []string{"1", "2", "bad", "bad too"}, command: "! grep -q bad a", first: 3, tried: 4},
		"the last":                {steps: []string{"1", "bad"}, command: "! grep -q bad a", first: 2, tried: 3},
		"from a step":             {steps: []string{"1", "2", "bad"}, good: 1, command: "! grep -q bad a", first: 3, tried: 3},
		"one cannot tell":         {steps: []string{"1", "2", "bad"}, command: "if grep -q 2 a; then exit 125; fi; ! grep -q bad a", first: 3, unsure: []int{2}, tried: 4},
		"one is not kept":         {steps: []string{"1", "-", "bad"}, command: "! grep -q bad a", first: 3, unsure: []int{2}, tried: 3},
		"the good one is bad":     {steps: []string{"1", "2"}, command: "false", code: protocol.CodeFailed},
		"the bad one is good":     {steps: []string{"1", "2"}, command: "true", code: protocol.CodeFailed},
		"no such command":         {steps: []string{"1", "2"}, command: "exit 127", code: protocol.CodeFailed},
		"it was killed":           {steps: []string{"1", "2"}, command: "kill -9 $$", code: protocol.CodeFailed},
		"the bad one is not kept": {steps: []string{"1", "-"}, command: "true", code: protocol.CodeNotFound},
		"a step is good and bad":  {steps: []string{"1"}, good: 1, command: "true", code: protocol.CodeUsage},
		"what a try left is gone": {steps: []string{"1", "2", "bad"}, command: "test ! -e left || exit 126; touch left; ! grep -q bad a", first: 3, tried: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			id := w.NewThread(worktree.Options{Mode: written})
			nodes := []protocol.Hash{w.At(id)}
			for _, text := range tt.steps {
				if text == "-" {
					nodes = append(nodes, w.Step(id, protocol.Step{Role: "plan", Root: w.Repo}, map[string]any{"$status": "again"}))
					continue
				}
				nodes = append(nodes, w.Made(id, map[string]string{"a": text}))
			}
			told := 0
			out, err := w.Keeper().Bisect(t.Context(), nodes[tt.good], w.At(id), worktree.BisectOptions{
				Argv: []string{"sh", "-c", tt.command}, Tried: func(protocol.BisectedStep) { told++ },
			})
			require.Equal(t, tt.code, codeOf(err), "%v", err)
			require.Equal(t, tt.steps[len(tt.steps)-1] != "-", w.Read(filepath.Join(w.Repo, "a")) == tt.steps[len(tt.steps)-1], "the person's files stay")
			require.Equal(t, w.Repo, w.Git(w.Repo, "worktree", "list", "--porcelain")[len("worktree "):][:len(w.Repo)])
			entries, _ := os.ReadDir(filepath.Dir(w.Dirs.Worktree("x")))
			require.Empty(t, entries)
			if tt.code != "" {
				return
			}
			require.Equal(t, tt.first, out.First.Number)
			require.Equal(t, nodes[tt.first], out.First.Step)
			require.Equal(t, protocol.BisectBad, out.First.Result)
			require.Len(t, out.Tried, tt.tried)
			require.Equal(t, tt.tried, told)
			var unsure []int
			for _, s := range out.Unsure {
				unsure = append(unsure, s.Number)
			}
			require.Equal(t, tt.unsure, unsure)
		})
	}
}

// A finder reports redacted states and what represents a state.
func TestFinder(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: written})
	w.Made(id, map[string]string{"a": "made"})
	tree := w.Chain(id).Last.Files.Tree
	s := w.Keeper().Finder()
	_, by, err := s.Find(ctx, w.Repo, tree)
	require.NoError(t, err)
	require.Equal(t, tree, by)
	_, by, err = s.Find(ctx, w.Repo, "sha1:3333333333333333333333333333333333333333")
	require.NoError(t, err)
	require.Empty(t, by)
	none, err := s.Redacted(ctx)
	require.NoError(t, err)
	require.Empty(t, none)
	r, err := s.Redaction(ctx, func() (map[protocol.Tree]string, error) { t.Error("nothing was redacted"); return nil, nil })
	require.NoError(t, err)
	require.Nil(t, r)
}
