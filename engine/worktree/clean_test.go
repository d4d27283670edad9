package worktree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/engine/worktree/worktreetest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// TestUnsavedAndDrop checks which files of a thread exist nowhere else, and what is removed with it.
func TestUnsavedAndDrop(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode  string
		make  func(w *world, id, root string)
		facts heads.Facts
		want  []string
	}{
		"nothing":  {mode: inTree},
		"in place": {mode: written, make: func(w *world, id, _ string) { w.Made(id, map[string]string{"a": "made"}) }},
		"a step": {mode: inTree, make: func(w *world, id, _ string) { w.Made(id, map[string]string{"a": "made"}) },
			want: []string{"a"}},
		"by hand": {mode: inTree, make: func(w *world, _, root string) { w.Write(filepath.Join(root, "n"), "x") },
			want: []string{"n"}},
		"applied": {mode: inTree, make: func(w *world, id, _ string) {
			w.Made(id, map[string]string{"a": "made"})
			_, err := filesOf(w).Apply(w.Context(), id, worktree.ApplyOptions{Dir: w.Repo})
			require.NoError(w.T, err)
		}},
		"its worktree is gone": {mode: inTree, make: func(w *world, id, root string) {
			w.Made(id, map[string]string{"a": "made"})
			w.Git(w.Repo, "worktree", "remove", "--force", root)
		}, want: []string{"a"}},
		"gone, and applied": {mode: inTree, make: func(w *world, id, root string) {
			w.Made(id, map[string]string{"a": "made"})
			_, err := filesOf(w).Apply(w.Context(), id, worktree.ApplyOptions{Dir: w.Repo})
			require.NoError(w.T, err)
			w.Git(w.Repo, "worktree", "remove", "--force", root)
			w.Git(w.Repo, "branch", "-D", w.Workspace(id).Branch)
		}},
		"gone, as it began": {mode: inTree, make: func(w *world, id, root string) {
			w.Made(id, nil)
			w.Git(w.Repo, "worktree", "remove", "--force", root)
		}},
		"gone, a child's": {mode: inTree, facts: heads.Facts{Parent: &heads.Parent{Thread: "x"}},
			make: func(w *world, id, root string) {
				w.Made(id, map[string]string{"a": "made"})
				w.Git(w.Repo, "worktree", "remove", "--force", root)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			ctx := t.Context()
			f := filesOf(w)
			id := w.NewThread(worktree.Options{Mode: tt.mode})
			other := w.NewThread(worktree.Options{Mode: written})
			w.Made(other, nil)
			its := w.Workspace(id)
			if tt.make != nil {
				tt.make(w, id, its.Root)
			}
			w.Change(id, tt.facts)
			only, err := f.Unsaved(ctx, id, w.Thread(id).Facts)
			require.NoError(t, err)
			require.Equal(t, tt.want, only.Files)
			require.Equal(t, tt.want == nil, only.None())

			require.NoError(t, f.Drop(ctx, id, its))
			require.NoError(t, f.Drop(ctx, id, its))
			require.NoDirExists(t, w.Dirs.Worktree(id))
			require.DirExists(t, w.Repo)
			repo, err := snapshot.Find(ctx, w.Env, w.Repo)
			require.NoError(t, err)
			store := repo.Store(w.Dirs.Git())
			refs := w.Git(store, "for-each-ref", "--format=%(refname)") + w.Read(filepath.Join(store, "uwf-snapshots"))
			require.NotContains(t, refs, id)
			require.Contains(t, refs, other)
			require.Equal(t, name == "applied", strings.Contains(w.Git(w.Repo, "branch", "--list"), "uwf/"))
		})
	}
	w := worktreetest.New(t)
	require.NoError(t, filesOf(w).Drop(t.Context(), "x", nil))
	require.NoError(t, filesOf(w).Drop(t.Context(), "x", &heads.Workspace{Mode: worktree.ModeNone, Root: w.Repo}))
	none, err := filesOf(w).Unsaved(t.Context(), "x", heads.Facts{})
	require.NoError(t, err)
	require.True(t, none.None())
}

// TestWorktreesAndClean checks which worktrees are listed, and which of them a clean removes.
func TestWorktreesAndClean(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make    func(w *world, id, root string)
		status  protocol.Status
		listed  bool
		checked bool // by a clean
		gone    bool // afterwards
		stays   string
	}{
		"active": {status: protocol.StatusIdle, listed: true},
		"ended":  {make: func(w *world, id, _ string) { w.End(id, protocol.StatusCompleted) }, status: protocol.StatusCompleted, listed: true, checked: true, gone: true},
		"ended, its work kept": {make: func(w *world, id, _ string) {
			w.Made(id, map[string]string{"a": "made"})
			w.End(id, protocol.StatusCancelled)
		}, status: protocol.StatusCancelled, listed: true, checked: true, gone: true},
		"ended, with more": {make: func(w *world, id, root string) {
			w.Write(filepath.Join(root, "n"), "x")
			w.End(id, protocol.StatusCompleted)
		}, status: protocol.StatusCompleted, listed: true, checked: true, stays: "n"},
		"ended and gone": {make: func(w *world, id, root string) {
			w.Git(w.Repo, "worktree", "remove", "--force", root)
			w.End(id, protocol.StatusCompleted)
		}},
		"gone": {make: func(w *world, _, root string) { w.Git(w.Repo, "worktree", "remove", "--force", root) }, status: protocol.StatusIdle, listed: true},
		"a child's, gone": {make: func(w *world, id, root string) {
			w.Git(w.Repo, "worktree", "remove", "--force", root)
			w.Change(id, heads.Facts{Parent: &heads.Parent{Thread: "x"}})
		}},
		"held": {make: func(w *world, id, _ string) {
			w.End(id, protocol.StatusCompleted)
			held, err := w.Locks.Lock(w.Context(), id)
			require.NoError(w.T, err)
			w.T.Cleanup(func() { _ = held.Unlock() })
		}, status: protocol.StatusCompleted, listed: true, checked: true, stays: "held"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			ctx := t.Context()
			id := w.NewThread(worktree.Options{Mode: inTree})
			w.NewThread(worktree.Options{Mode: written})
			root := w.Workspace(id).Root
			if tt.make != nil {
				tt.make(w, id, root)
			}
			list, err := filesOf(w).Worktrees(ctx)
			require.NoError(t, err)
			require.Equal(t, tt.listed, len(list) == 1)
			_, err = os.Lstat(root)
			there := err == nil
			if tt.listed {
				its := w.Workspace(id)
				require.Equal(t, []any{id, root, its.Branch, its.Base, its.Repo, tt.status, !there}, []any{list[0].Thread, list[0].Path, list[0].Branch, list[0].Base, list[0].Repo, list[0].Status, list[0].Gone})
				require.Equal(t, there, list[0].Bytes > 0)
				require.NotZero(t, list[0].CreatedAt)
			}
			done, err := filesOf(w).Clean(ctx)
			require.NoError(t, err)
			require.Equal(t, tt.checked, len(done) == 1)
			if tt.checked {
				require.Equal(t, tt.gone, done[0].Gone)
				require.Contains(t, done[0].Stays, tt.stays)
				require.Equal(t, tt.gone, done[0].Stays == "")
			}
			_, err = os.Lstat(root)
			require.Equal(t, there && !tt.gone, err == nil)
		})
	}
}

// Worktrees without a thread are removed unless they have content or are in use.
func TestCleanOfNobodys(t *testing.T) {
	t.Parallel()
	const id = "06EBX0A2S0ABCDEFGHJKMNPQRS"
	for name, tt := range map[string]struct {
		make  func(w *world, root string)
		stays string // a part of the reason
		gone  bool
	}{
		"clean":        {gone: true},
		"with more":    {make: func(w *world, root string) { w.Write(filepath.Join(root, "n"), "x") }, stays: "n"},
		"with commits": {make: func(w *world, root string) { w.Git(root, "commit", "-q", "--allow-empty", "-m", "mine") }, stays: "commit"},
		"being made": {make: func(w *world, _ string) {
			held, err := w.Keeper().LockCreation(w.Context(), id)
			require.NoError(w.T, err)
			w.T.Cleanup(func() { _ = held.RemoveAndUnlock() })
		}, stays: "another process"},
		"no worktree": {make: func(w *world, root string) {
			w.Git(w.Repo, "worktree", "remove", "--force", root)
			require.NoError(w.T, os.Mkdir(root, 0o700))
		}, gone: true},
		"something else": {make: func(w *world, root string) {
			w.Git(w.Repo, "worktree", "remove", "--force", root)
			w.Write(filepath.Join(root, "n"), "x")
		}, stays: "not empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			root := w.Dirs.Worktree(id)
			require.NoError(t, os.MkdirAll(filepath.Dir(root), 0o700))
			w.Git(w.Repo, "worktree", "add", "-q", "--detach", root)
			if tt.make != nil {
				tt.make(w, root)
			}
			done, err := filesOf(w).Clean(t.Context())
			require.NoError(t, err)
			require.Len(t, done, 1)
			require.Empty(t, done[0].Thread)
			require.Equal(t, tt.gone, done[0].Gone)
			require.Contains(t, done[0].Stays, tt.stays)
			_, err = os.Lstat(root)
			require.Equal(t, !tt.gone, err == nil)
		})
	}
}

// A thread is removed even if the list of snapshots is damaged.
func TestDropWithADamagedList(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: inTree})
	w.Made(id, nil)
	lists, err := filepath.Glob(filepath.Join(w.Dirs.Git(), "*", "uwf-snapshots"))
	require.NoError(t, err)
	require.Len(t, lists, 1)
	require.NoError(t, os.Remove(lists[0]))
	require.NoError(t, os.Mkdir(lists[0], 0o700))
	w.Warnings = nil
	require.NoError(t, filesOf(w).Drop(t.Context(), id, w.Workspace(id)))
	require.NoDirExists(t, w.Dirs.Worktree(id))
	require.Len(t, w.Warnings, 1)
}

// halfRead is a list of threads whose facts are partly unreadable.
type halfRead struct{ threads }

type threads = heads.Heads

func (h halfRead) AllFacts(context.Context) (map[string]heads.Facts, error) {
	return map[string]heads.Facts{}, errors.New("line 1 is damaged")
}

// The worktree of a thread stays if its facts cannot be read.
func TestCleanWithDamagedFacts(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: inTree})
	f := filesOf(w)
	f.Heads = halfRead{f.Heads}
	done, err := f.Clean(t.Context())
	require.NoError(t, err)
	require.Empty(t, done)
	require.DirExists(t, w.Workspace(id).Root)
}

// If the worktree is gone and git doesn't run, it is unknown whether the result was applied.
func TestUnsavedWithoutGit(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: inTree})
	w.Made(id, map[string]string{"a": "made"})
	w.Git(w.Repo, "worktree", "remove", "--force", w.Workspace(id).Root)
	f := filesOf(w)
	f.Env.Environ = []string{"PATH=" + t.TempDir()}
	_, err := f.Unsaved(t.Context(), id, w.Thread(id).Facts)
	require.Error(t, err)
	require.NoError(t, os.RemoveAll(w.Repo))
	only, err := f.Unsaved(t.Context(), id, w.Thread(id).Facts)
	require.NoError(t, err)
	require.True(t, only.None())
}
