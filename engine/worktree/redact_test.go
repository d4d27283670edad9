package worktree_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/engine/worktree/worktreetest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
)

// The snapshot before a first step that failed is in no step, but only in the list.
func TestRedactBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: written})
	dir := w.Chain(id).Start.Cwd
	w.Write(filepath.Join(dir, "key"), "secret")
	k, err := w.Keeper().Before(t.Context(), worktree.Step{Thread: w.Thread(id), Dir: dir})
	require.NoError(t, err)
	k.Release()
	out, err := filesOf(w).Redact(t.Context(), id, "key", false)
	require.NoError(t, err)
	require.Equal(t, 1, out.States)
}

// A path is removed from everything kept of a thread, and from nothing else. If other threads have it, a flag
// is needed.
func TestRedact(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	f := filesOf(w)
	id, other := w.NewThread(worktree.Options{Mode: written}), w.NewThread(worktree.Options{Mode: written})
	w.Made(id, map[string]string{"key": "secret one"})
	w.Made(id, map[string]string{"key": "secret two", "a": "made"})
	w.Write(filepath.Join(w.Repo, "key"), "")
	w.Made(id, nil)
	w.Write(filepath.Join(w.Repo, "b"), "of the other")
	w.Made(other, nil)
	for path, want := range map[string]protocol.Code{
		"../x": protocol.CodeUsage, "/etc": protocol.CodeUsage, ".": protocol.CodeUsage, "": protocol.CodeUsage, "x\ny": protocol.CodeUsage, "nothing": protocol.CodeNotFound,
	} {
		_, err := f.Redact(ctx, id, path, false)
		require.Equal(t, want, codeOf(err), path)
	}
	held, err := w.Locks.Lock(ctx, id)
	require.NoError(t, err)
	_, err = f.Redact(ctx, id, "key", false)
	require.Equal(t, protocol.CodeLocked, codeOf(err))
	require.NoError(t, held.Unlock())

	out, err := f.Redact(ctx, id, `.\key`, false)
	require.NoError(t, err)
	require.Equal(t, []any{id, "key", 2, []string(nil)}, []any{out.Thread, out.Path, out.States, out.Also})
	require.False(t, w.Locks.Held(ctx, id))
	second := *w.Chain(id).Last.Prev
	kept, err := f.StepFiles(ctx, second)
	require.NoError(t, err)
	var patch strings.Builder
	require.NoError(t, kept.Patch(ctx, &patch))
	require.NotContains(t, patch.String(), "secret")
	require.Contains(t, patch.String(), "+made", "the rest stays")
	_, err = f.Redact(ctx, id, "key", false)
	require.Equal(t, protocol.CodeNotFound, codeOf(err))

	// An undone step still has its files.
	undone := w.Made(id, map[string]string{"later": "secret three"})
	require.NoError(t, w.Heads.Move(ctx, id, undone, *w.Chain(id).Last.Prev))
	w.Change(id, heads.Facts{Undone: []protocol.Hash{undone}})
	out, err = f.Redact(ctx, id, "later", false)
	require.NoError(t, err)
	require.Equal(t, 1, out.States)
	w.Write(filepath.Join(w.Repo, "later"), "")

	// What two threads share is redacted in both, or in neither.
	_, err = f.Redact(ctx, other, "a", false)
	require.Equal(t, protocol.CodeInvalid, codeOf(err))
	require.Contains(t, fault.Of(err).Message, id)
	require.Contains(t, hints.All("", fault.Of(err))[0], "--shared")
	out, err = f.Redact(ctx, other, "a", true)
	require.NoError(t, err)
	require.Equal(t, []string{id}, out.Also)
	require.Positive(t, out.States)

	s := w.Keeper().Finder()
	last := w.Chain(id).Last.Files.Tree
	r, err := s.Redaction(ctx, func() (map[protocol.Tree]string, error) { return map[protocol.Tree]string{last: w.Repo}, nil })
	require.NoError(t, err)
	require.Contains(t, r.Paths, "key")
	require.NotEmpty(t, r.Instead[last])
	gone, err := s.Redacted(ctx)
	require.NoError(t, err)
	require.Len(t, gone, len(r.Contents))
}

// Threads with work that exists nowhere else are kept with their whole family; force removes them. A dry run
// removes nothing.
func TestPrune(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dry, force bool
		pruned     []string
	}{
		"as it is": {pruned: []string{"done", "place"}},
		"by force": {force: true, pruned: []string{"done", "child", "parent", "place", "sibling", "work"}},
		"dry":      {dry: true, pruned: []string{"done", "place"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			ctx := t.Context()
			require.NoError(t, os.MkdirAll(w.Dirs.Home, 0o700))
			w.Heads = fileheads.Open(w.Dirs.Home, w.FS)
			ids, names := map[string]string{}, map[string]string{}
			for _, name := range []string{"done", "place", "work", "parent", "child", "sibling"} {
				mode := inTree
				if name == "place" {
					mode = written
				}
				id := w.NewThread(worktree.Options{Mode: mode})
				if ids[name], names[id] = id, name; name == "child" || name == "sibling" {
					w.Change(id, heads.Facts{Parent: &heads.Parent{Thread: ids["parent"]}})
				}
				if name == "work" || name == "child" {
					w.Write(filepath.Join(w.Workspace(id).Root, "n"), "x")
				}
				w.End(id, protocol.StatusCompleted)
			}
			report, err := filesOf(w).Prune(ctx, prune.Options{Home: w.Dirs.Home, DryRun: tt.dry, Now: w.Clock.Add(1)}, tt.force)
			require.NoError(t, err)
			var pruned []string
			for _, e := range report.Pruned {
				pruned = append(pruned, names[e.Thread])
			}
			require.ElementsMatch(t, tt.pruned, pruned)
			for _, s := range report.Spared {
				whose := map[string]string{"parent": ids["child"], "sibling": ids["child"]}[names[s.Thread]]
				require.Contains(t, s.Reason, whose)
				require.Contains(t, s.Reason, "n")
			}
			for name, id := range ids {
				_, err := os.Lstat(w.Dirs.Worktree(id))
				stays := tt.dry || !slices.Contains(tt.pruned, name)
				require.Equal(t, stays && name != "place", err == nil, name)
			}
		})
	}
}

// A family stays if the worktree of one of its threads can't be inspected.
func TestPruneUninspected(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	require.NoError(t, os.MkdirAll(w.Dirs.Home, 0o700))
	w.Heads = fileheads.Open(w.Dirs.Home, w.FS)
	parent := w.NewThread(worktree.Options{Mode: inTree})
	child := w.NewThread(worktree.Options{Mode: inTree})
	w.Change(child, heads.Facts{Parent: &heads.Parent{Thread: parent}})
	w.Write(filepath.Join(w.Workspace(child).Root, ".git"), "gitdir: /nowhere\n")
	w.End(parent, protocol.StatusCompleted)
	w.End(child, protocol.StatusCompleted)
	report, err := filesOf(w).Prune(t.Context(), prune.Options{Home: w.Dirs.Home, Now: w.Clock.Add(1)}, false)
	require.NoError(t, err)
	require.Empty(t, report.Pruned)
	require.Len(t, report.Spared, 2)
	require.DirExists(t, w.Workspace(parent).Root)
}

// Redacted files don't return with an older bundle, and aren't part of a newer one.
func TestRedactedFilesAndBundles(t *testing.T) {
	t.Parallel()
	w, there := worktreetest.New(t), worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: written})
	w.Made(id, map[string]string{"key": "secret", "a": "made"})
	content := w.Git(w.Repo, "hash-object", filepath.Join(w.Repo, "key"))
	before := w.Bundle(id)
	require.True(t, before.HasObject(protocol.Tree("sha1:"+content)))
	_, err := filesOf(w).Redact(ctx, id, "key", false)
	require.NoError(t, err)
	w.Warnings = nil
	_, err = w.Keeper().KeepFiles(ctx, before)
	require.NoError(t, err)
	require.Len(t, w.Warnings, 1)
	there.Import(w, id)
	for _, home := range []*world{w, there} {
		stores, err := home.Keeper().Finder().Stores(ctx)
		require.NoError(t, err)
		require.NotEmpty(t, stores)
		for _, store := range stores {
			require.NotContains(t, home.Git(store, "cat-file", "--batch-all-objects", "--batch-check"), content)
		}
		kept, err := home.Keeper().StepFiles(ctx, home.At(id))
		require.NoError(t, err)
		require.NotEqual(t, home.Chain(id).Last.Files.Tree, kept.After, "another state stands for it")
		list, err := kept.Changes(ctx)
		require.NoError(t, err)
		require.Equal(t, &protocol.FileChanges{Changed: []string{"a"}}, worktree.FileChanges(list))
	}
}
