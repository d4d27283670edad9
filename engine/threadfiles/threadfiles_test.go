package threadfiles_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/threadfiles"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/engine/workspace/workspacetest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

type world = workspacetest.World

const (
	inTree  = workspace.InWorktree
	inPlace = workspace.ModeInPlace
)

// filesOf are the files of a home's threads. Their locks are the home's.
func filesOf(w *world) threadfiles.Files {
	lock := func(ctx context.Context, id string) (threadfiles.Locked, error) {
		brief, cancel := context.WithCancel(ctx)
		defer cancel()
		if w.Locks.Held(ctx, id) {
			return threadfiles.Locked{}, &protocol.Error{Code: protocol.CodeLocked, Message: "held", Err: locker.ErrLocked}
		}
		held, err := w.Locks.Lock(brief, id)
		if err != nil {
			return threadfiles.Locked{}, err
		}
		if _, err := heads.Find(ctx, w.Heads, id); err != nil {
			return threadfiles.Locked{}, errors.Join(err, held.Unlock())
		}
		return threadfiles.Locked{Thread: w.Thread(id), Release: func() { _ = held.Unlock() }}, nil
	}
	return threadfiles.Files{Keeper: w.Keeper(), Lock: lock, Show: w.Show}
}

func codeOf(err error) protocol.Code {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

// commit commits what is in the repository.
func commit(w *world, dir, message string) {
	w.Git(dir, "add", "-A")
	w.Git(dir, "commit", "-qm", message)
}

// An apply brings the result to a branch, all of it or nothing.
func TestApply(t *testing.T) {
	t.Parallel()
	type want struct {
		code    protocol.Code
		hint    string            // a part of one
		subject string            // of the branch's newest commit
		has     map[string]string // the person's files after
		branch  string
		already bool
		merged  bool
		files   *protocol.FileChanges
		left    []string
	}
	made := map[string]string{"a": "made", "sub/b": "two\n"}
	clean := map[string]string{"a": "one\n", "sub/b": "two\n"}
	changed := &protocol.FileChanges{Changed: []string{"a"}}
	for name, tt := range map[string]struct {
		mode    string
		make    func(w *world, id, root string) // after a step that made a
		options threadfiles.ApplyOptions
		want    want
	}{
		"a commit": {want: want{subject: "the task", has: made, branch: "main", files: changed}},
		"with a message": {options: threadfiles.ApplyOptions{Message: "mine"},
			want: want{subject: "mine", has: made, branch: "main", files: changed}},
		"with a title": {make: func(w *world, id, _ string) { w.Change(id, heads.Facts{Title: new("titled")}) },
			want: want{subject: "titled", has: made, branch: "main", files: changed}},
		"what is there now": {make: func(w *world, _, root string) { w.Write(filepath.Join(root, "a"), "by hand") },
			want: want{subject: "the task", has: map[string]string{"a": "by hand", "sub/b": "two\n"}, branch: "main", files: changed}},
		"its own commit": {make: func(w *world, _, root string) { commit(w, root, "the agent's") },
			want: want{subject: "the agent's", has: made, branch: "main", files: changed}},
		"nothing was made": {make: func(w *world, _, root string) { w.Write(filepath.Join(root, "a"), "one\n") },
			want: want{subject: "first", has: clean, branch: "main", already: true}},
		"the branch has moved": {make: func(w *world, _, _ string) {
			w.Write(filepath.Join(w.Repo, "sub", "b"), "mine")
			commit(w, w.Repo, "second")
		}, want: want{subject: "Merge the result",
			has: map[string]string{"a": "made", "sub/b": "mine"}, branch: "main", merged: true, files: changed}},
		"a conflict": {make: func(w *world, _, _ string) {
			w.Write(filepath.Join(w.Repo, "a"), "mine")
			commit(w, w.Repo, "second")
		}, want: want{code: protocol.CodeFailed, hint: "--branch NAME", subject: "second",
			has: map[string]string{"a": "mine", "sub/b": "two\n"}}},
		"the person has changed something": {make: func(w *world, _, _ string) { w.Write(filepath.Join(w.Repo, "sub", "b"), "mine") },
			want: want{code: protocol.CodeFailed, hint: "--dirty", subject: "first", has: map[string]string{"a": "one\n", "sub/b": "mine"}}},
		"something else, and says so": {make: func(w *world, _, _ string) { w.Write(filepath.Join(w.Repo, "sub", "b"), "mine") },
			options: threadfiles.ApplyOptions{Dirty: true},
			want:    want{subject: "the task", has: map[string]string{"a": "made", "sub/b": "mine"}, branch: "main", files: changed}},
		"the same, and says so": {make: func(w *world, _, _ string) { w.Write(filepath.Join(w.Repo, "a"), "mine") },
			options: threadfiles.ApplyOptions{Dirty: true},
			want:    want{code: protocol.CodeFailed, hint: "move it away", subject: "first", has: map[string]string{"a": "mine", "sub/b": "two\n"}}},
		"an untracked file in the way": {make: func(w *world, id, _ string) {
			w.Made(id, map[string]string{"n": "new"})
			w.Write(filepath.Join(w.Repo, "n"), "mine")
		}, want: want{code: protocol.CodeFailed, hint: "move it away", subject: "first",
			has: map[string]string{"a": "one\n", "sub/b": "two\n", "n": "mine"}}},
		"no branch": {make: func(w *world, _, _ string) { w.Git(w.Repo, "switch", "-q", "--detach") },
			want: want{code: protocol.CodeFailed, hint: "git switch", subject: "first", has: clean}},
		"git is busy": {make: func(w *world, _, _ string) { w.Write(filepath.Join(w.Repo, ".git", "index.lock"), "x") },
			want: want{code: protocol.CodeFailed, hint: "git status", subject: "first", has: clean}},
		"a merge is going on": {make: func(w *world, _, _ string) {
			w.Write(filepath.Join(w.Repo, ".git", "MERGE_HEAD"), w.Git(w.Repo, "rev-parse", "HEAD")+"\n")
		},
			want: want{code: protocol.CodeFailed, hint: "git status", subject: "first", has: clean}},
		"its own files": {mode: inPlace, want: want{subject: "first", has: made, already: true}},
		"its own to a branch": {mode: inPlace, options: threadfiles.ApplyOptions{Branch: "x"},
			want: want{code: protocol.CodeFailed, hint: "switch -c x", subject: "first", has: made}},
		"no files": {mode: workspace.AsItIs,
			want: want{code: protocol.CodeFailed, hint: "--workspace worktree", subject: "first", has: made}},
		"another repository": {options: threadfiles.ApplyOptions{Dir: "/"},
			want: want{code: protocol.CodeFailed, hint: "--cwd DIR", subject: "first", has: clean}},
		"its own worktree": {options: threadfiles.ApplyOptions{Dir: "ROOT"},
			want: want{code: protocol.CodeFailed, hint: "--cwd DIR", subject: "first", has: clean}},
		"its worktree is gone": {make: func(w *world, _, root string) { w.Git(w.Repo, "worktree", "remove", "--force", root) },
			want: want{subject: "the task", has: made, branch: "main", files: changed}},
		"the branch was deleted": {make: func(w *world, _, root string) { w.Git(root, "update-ref", "-d", "HEAD") },
			want: want{code: protocol.CodeFailed, hint: "uwf thread fork", subject: "first", has: clean}},
		"to a branch": {options: threadfiles.ApplyOptions{Branch: "x"},
			want: want{subject: "first", has: clean, branch: "x"}},
		"to a branch behind": {make: func(w *world, _, _ string) { w.Git(w.Repo, "branch", "x") }, options: threadfiles.ApplyOptions{Branch: "x"},
			want: want{subject: "first", has: clean, branch: "x"}},
		"to a branch that is out": {options: threadfiles.ApplyOptions{Branch: "main"},
			want: want{code: protocol.CodeFailed, hint: "without --branch", subject: "first", has: clean}},
		"to a branch ahead": {make: func(w *world, _, _ string) {
			w.Git(w.Repo, "branch", "x", w.Git(w.Repo, "commit-tree", "-p", "HEAD", "-m", "mine", "HEAD^{tree}"))
		}, options: threadfiles.ApplyOptions{Branch: "x"},
			want: want{code: protocol.CodeFailed, hint: "--branch names another", subject: "first", has: clean}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workspacetest.New(t)
			if tt.mode == "" {
				tt.mode = inTree
			}
			id := w.NewThread(workspace.Options{Mode: tt.mode})
			w.Made(id, map[string]string{"a": "made"})
			root := w.Repo
			if its := w.Workspace(id); its != nil {
				root = its.Root
			}
			if tt.make != nil {
				tt.make(w, id, root)
			}
			switch tt.options.Dir {
			case "":
				tt.options.Dir = w.Repo
			case "ROOT":
				tt.options.Dir = root
			}
			before := w.Git(w.Repo, "rev-parse", "HEAD")
			out, err := filesOf(w).Apply(t.Context(), id, tt.options)
			require.Equal(t, tt.want.code, codeOf(err), "%v", err)
			require.Contains(t, w.Git(w.Repo, "log", "-1", "--format=%s"), tt.want.subject)
			require.Equal(t, tt.want.has, w.Has(w.Repo))
			require.False(t, w.Locks.Held(t.Context(), id))
			if err != nil {
				require.Contains(t, strings.Join(fault.Of(err).Hints, "\n"), tt.want.hint)
				require.Equal(t, before, w.Git(w.Repo, "rev-parse", "HEAD"))
				return
			}
			require.Equal(t, []any{id, tt.want.branch, tt.want.already, tt.want.merged, tt.want.files, tt.want.left},
				[]any{out.Thread, out.Branch, out.Already, out.Merged, out.Files, out.Left})
			if out.Branch == "" {
				return
			}
			require.Equal(t, out.Commit, w.Git(w.Repo, "rev-parse", out.Branch))
			if tt.want.branch == "x" {
				require.Equal(t, "made", w.Git(w.Repo, "show", "x:a"))
				require.Equal(t, before, w.Git(w.Repo, "rev-parse", "HEAD"))
			}
			again, err := filesOf(w).Apply(t.Context(), id, tt.options)
			require.NoError(t, err)
			require.True(t, again.Already)
			require.Equal(t, out.Commit, again.Commit)
			if !tt.want.already && tt.options.Branch == "" && !tt.options.Dirty {
				require.Empty(t, w.Git(w.Repo, "status", "--porcelain"))
			}
		})
	}
}

// Nobody applies while the thread or the work tree is held.
func TestApplyIsLocked(t *testing.T) {
	t.Parallel()
	w := workspacetest.New(t)
	ctx := t.Context()
	id := w.NewThread(workspace.Options{Mode: inTree})
	w.Made(id, map[string]string{"a": "made"})
	held, err := w.Locks.Lock(ctx, id)
	require.NoError(t, err)
	_, err = filesOf(w).Apply(ctx, id, threadfiles.ApplyOptions{Dir: w.Repo})
	require.Equal(t, protocol.CodeLocked, codeOf(err))
	require.NoError(t, held.Unlock())
	tree, err := w.Keeper().LockTree(ctx, "another", w.Repo)
	require.NoError(t, err)
	_, err = filesOf(w).Apply(ctx, id, threadfiles.ApplyOptions{Dir: w.Repo})
	require.Equal(t, protocol.CodeLocked, codeOf(err))
	require.NoError(t, tree.RemoveAndUnlock())
	_, err = filesOf(w).Apply(ctx, id, threadfiles.ApplyOptions{Dir: w.Repo})
	require.NoError(t, err)
	locks, err := filepath.Glob(filepath.Join(w.Dirs.Locks(), "tree-*"))
	require.NoError(t, err)
	require.Empty(t, locks, "they were given back")
}

// An apply says what it does not bring.
func TestApplyLeavesOut(t *testing.T) {
	t.Parallel()
	w := workspacetest.New(t)
	w.Settings.Workspace = &protocol.WorkspaceConfig{MaxFileMB: 1}
	id := w.NewThread(workspace.Options{Mode: inTree})
	w.Made(id, map[string]string{"a": "made", "big": strings.Repeat("x", 1<<20+1)})
	out, err := filesOf(w).Apply(t.Context(), id, threadfiles.ApplyOptions{Dir: w.Repo})
	require.NoError(t, err)
	require.Equal(t, []string{"big"}, out.Left)
	require.Equal(t, map[string]string{"a": "made", "sub/b": "two\n"}, w.Has(w.Repo))
}

// An apply that wrote the files and was cut off is finished by the next one; what somebody has done since is left alone.
func TestApplyThatWasCutOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		since func(w *world)
		has   string
		code  protocol.Code
	}{
		"nothing happened since": {has: "made"},
		"somebody edits": {since: func(w *world) { w.Write(filepath.Join(w.Repo, "a"), "mine") }, has: "mine",
			code: protocol.CodeFailed},
		"somebody committed": {since: func(w *world) {
			w.Write(filepath.Join(w.Repo, "a"), "one\n")
			w.Write(filepath.Join(w.Repo, "sub", "b"), "mine")
			commit(w, w.Repo, "second")
		}, has: "made"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workspacetest.New(t)
			ctx := t.Context()
			id := w.NewThread(workspace.Options{Mode: inTree})
			w.Made(id, map[string]string{"a": "made"})
			out, err := filesOf(w).Apply(ctx, id, threadfiles.ApplyOptions{Dir: w.Repo})
			require.NoError(t, err)
			from := w.Git(w.Repo, "rev-parse", "HEAD~1")
			w.Git(w.Repo, "update-ref", "refs/heads/main", from) // as it was before the branch moved
			w.Git(w.Repo, "read-tree", from)
			repo, err := files.Find(ctx, w.Env, w.Repo)
			require.NoError(t, err)
			record := filepath.Join(repo.Store(w.Dirs.Git()), "apply", id+".json")
			w.Write(record, `{"root":"`+w.Repo+`","from":"`+from+`","to":"`+out.Commit+`"}`)
			if tt.since != nil {
				tt.since(w)
			}
			_, err = filesOf(w).Apply(ctx, id, threadfiles.ApplyOptions{Dir: w.Repo})
			require.Equal(t, tt.code, codeOf(err), "%v", err)
			require.Equal(t, tt.has, w.Read(filepath.Join(w.Repo, "a")))
			require.NoFileExists(t, record)
			if tt.since == nil {
				require.Equal(t, out.Commit, w.Git(w.Repo, "rev-parse", "HEAD"), "the same commit, once")
				require.Empty(t, w.Git(w.Repo, "status", "--porcelain"))
			}
		})
	}
}

// A thread that has gone on elsewhere brings home what its last step has.
func TestApplyFromElsewhere(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bool{inPlace: true, inTree: false} {
		w := workspacetest.New(t)
		id := w.NewThread(workspace.Options{Mode: mode})
		w.Made(id, map[string]string{"a": "here"})
		w.Made(id, map[string]string{"a": "elsewhere"})
		root := w.Workspace(id).Root
		w.Write(filepath.Join(root, "a"), "here")
		w.Change(id, heads.Facts{Imported: &heads.Imported{Inherited: true}})
		out, err := filesOf(w).Apply(t.Context(), id, threadfiles.ApplyOptions{Dir: w.Repo})
		require.NoError(t, err)
		require.Equal(t, "elsewhere", w.Read(filepath.Join(w.Repo, "a")))
		require.Equal(t, &protocol.FileChanges{Changed: []string{"a"}}, out.Files)
		require.Equal(t, want, out.Commit == "")
	}
	from, w := workspacetest.New(t), workspacetest.New(t)
	id := from.NewThread(workspace.Options{Mode: inPlace})
	from.Made(id, map[string]string{"a": "elsewhere"})
	w.Git(w.Repo, "fetch", "-q", from.Repo, "HEAD")
	w.Git(w.Repo, "reset", "-q", "--hard", "FETCH_HEAD")
	w.Import(from, id)
	out, err := filesOf(w).Apply(t.Context(), id, threadfiles.ApplyOptions{Dir: w.Repo})
	require.NoError(t, err)
	require.Equal(t, "main", out.Branch)
	require.Equal(t, "elsewhere", w.Read(filepath.Join(w.Repo, "a")))
}

// What of a thread is nowhere else, and what is removed with it.
func TestUnsavedAndDrop(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode  string
		make  func(w *world, id, root string)
		facts heads.Facts
		want  []string
	}{
		"nothing":  {mode: inTree},
		"in place": {mode: inPlace, make: func(w *world, id, _ string) { w.Made(id, map[string]string{"a": "made"}) }},
		"a step": {mode: inTree, make: func(w *world, id, _ string) { w.Made(id, map[string]string{"a": "made"}) },
			want: []string{"a"}},
		"by hand": {mode: inTree, make: func(w *world, _, root string) { w.Write(filepath.Join(root, "n"), "x") },
			want: []string{"n"}},
		"applied": {mode: inTree, make: func(w *world, id, _ string) {
			w.Made(id, map[string]string{"a": "made"})
			_, err := filesOf(w).Apply(w.Context(), id, threadfiles.ApplyOptions{Dir: w.Repo})
			require.NoError(w.T, err)
		}},
		"its worktree is gone": {mode: inTree, make: func(w *world, id, root string) {
			w.Made(id, map[string]string{"a": "made"})
			w.Git(w.Repo, "worktree", "remove", "--force", root)
		}, want: []string{"a"}},
		"gone, and applied": {mode: inTree, make: func(w *world, id, root string) {
			w.Made(id, map[string]string{"a": "made"})
			_, err := filesOf(w).Apply(w.Context(), id, threadfiles.ApplyOptions{Dir: w.Repo})
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
			w := workspacetest.New(t)
			ctx := t.Context()
			f := filesOf(w)
			id := w.NewThread(workspace.Options{Mode: tt.mode})
			other := w.NewThread(workspace.Options{Mode: inPlace})
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
			repo, err := files.Find(ctx, w.Env, w.Repo)
			require.NoError(t, err)
			refs := w.Git(repo.Store(w.Dirs.Git()), "for-each-ref", "--format=%(refname)")
			require.NotContains(t, refs, id)
			require.Contains(t, refs, other)
			require.Equal(t, name == "applied", strings.Contains(w.Git(w.Repo, "branch", "--list"), "uwf/"))
		})
	}
	w := workspacetest.New(t)
	require.NoError(t, filesOf(w).Drop(t.Context(), "x", nil))
	require.NoError(t, filesOf(w).Drop(t.Context(), "x", &heads.Workspace{Mode: workspace.AsItIs, Root: w.Repo}))
	none, err := filesOf(w).Unsaved(t.Context(), "x", heads.Facts{})
	require.NoError(t, err)
	require.True(t, none.None())
}

// Which worktrees are listed, and which of them a clean removes.
func TestWorktreesAndClean(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make    func(w *world, id, root string)
		status  protocol.Status
		listed  bool
		checked bool // by a clean
		gone    bool // after it
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
			w := workspacetest.New(t)
			ctx := t.Context()
			id := w.NewThread(workspace.Options{Mode: inTree})
			w.NewThread(workspace.Options{Mode: inPlace})
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

// Worktrees of nobody are removed unless something is in them, or somebody is at work on them.
func TestCleanOfNobodys(t *testing.T) {
	t.Parallel()
	const id = "06EBX0A2S0ABCDEFGHJKMNPQRS"
	for name, tt := range map[string]struct {
		make  func(w *world, root string)
		stays string // a part of why
		gone  bool
	}{
		"clean":        {gone: true},
		"with more":    {make: func(w *world, root string) { w.Write(filepath.Join(root, "n"), "x") }, stays: "n"},
		"with commits": {make: func(w *world, root string) { w.Git(root, "commit", "-q", "--allow-empty", "-m", "mine") }, stays: "commit"},
		"being made": {make: func(w *world, _ string) {
			held, err := w.Keeper().Making(w.Context(), id)
			require.NoError(w.T, err)
			w.T.Cleanup(func() { _ = held.RemoveAndUnlock() })
		}, stays: "at work"},
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
			w := workspacetest.New(t)
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

// A path is taken out of everything that is kept of a thread, and of nothing else; others that have it must be meant.
func TestRedact(t *testing.T) {
	t.Parallel()
	w := workspacetest.New(t)
	ctx := t.Context()
	f := filesOf(w)
	id, other := w.NewThread(workspace.Options{Mode: inPlace}), w.NewThread(workspace.Options{Mode: inPlace})
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

	// A step that was undone has its files still.
	undone := w.Made(id, map[string]string{"later": "secret three"})
	require.NoError(t, w.Heads.Move(ctx, id, undone, *w.Chain(id).Last.Prev))
	w.Change(id, heads.Facts{Undone: []protocol.Hash{undone}})
	out, err = f.Redact(ctx, id, "later", false)
	require.NoError(t, err)
	require.Equal(t, 1, out.States)
	w.Write(filepath.Join(w.Repo, "later"), "")

	// What two threads have is redacted of both, or of none.
	_, err = f.Redact(ctx, other, "a", false)
	require.Equal(t, protocol.CodeInvalid, codeOf(err))
	require.Contains(t, fault.Of(err).Message, id)
	require.Contains(t, fault.Of(err).Hints[0], "--shared")
	out, err = f.Redact(ctx, other, "a", true)
	require.NoError(t, err)
	require.Equal(t, []string{id}, out.Also)
	require.Positive(t, out.States)

	s := w.Keeper().Sources()
	last := w.Chain(id).Last.Files.Tree
	r, err := s.Redaction(ctx, func() (map[protocol.Tree]string, error) { return map[protocol.Tree]string{last: w.Repo}, nil })
	require.NoError(t, err)
	require.Contains(t, r.Paths, "key")
	require.NotEmpty(t, r.Instead[last])
	gone, err := s.Redacted(ctx)
	require.NoError(t, err)
	require.Len(t, gone, len(r.Contents))
}

// Threads whose work is nowhere else stay, with their whole family; force removes them, a dry run nothing.
func TestPrune(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dry, force bool
		pruned     []string
	}{
		"as it is": {pruned: []string{"done", "place"}},
		"by force": {force: true, pruned: []string{"done", "kid", "parent", "place", "sibling", "work"}},
		"dry":      {dry: true, pruned: []string{"done", "place"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workspacetest.New(t)
			ctx := t.Context()
			require.NoError(t, os.MkdirAll(w.Dirs.Home, 0o700))
			w.Heads = fileheads.Open(w.Dirs.Home, w.FS)
			ids, names := map[string]string{}, map[string]string{}
			for _, name := range []string{"done", "place", "work", "parent", "kid", "sibling"} {
				mode := inTree
				if name == "place" {
					mode = inPlace
				}
				id := w.NewThread(workspace.Options{Mode: mode})
				if ids[name], names[id] = id, name; name == "kid" || name == "sibling" {
					w.Change(id, heads.Facts{Parent: &heads.Parent{Thread: ids["parent"]}})
				}
				if name == "work" || name == "kid" {
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
				whose := map[string]string{"parent": ids["kid"], "sibling": ids["kid"]}[names[s.Thread]]
				require.Contains(t, s.Why, whose)
				require.Contains(t, s.Why, "n")
			}
			for name, id := range ids {
				_, err := os.Lstat(w.Dirs.Worktree(id))
				stays := tt.dry || !slices.Contains(tt.pruned, name)
				require.Equal(t, stays && name != "place", err == nil, name)
			}
		})
	}
}

// What was redacted does not come back with a bundle of before, and does not travel with a bundle of after.
func TestRedactedFilesAndBundles(t *testing.T) {
	t.Parallel()
	w, there := workspacetest.New(t), workspacetest.New(t)
	ctx := t.Context()
	id := w.NewThread(workspace.Options{Mode: inPlace})
	w.Made(id, map[string]string{"key": "secret", "a": "made"})
	content := w.Git(w.Repo, "hash-object", filepath.Join(w.Repo, "key"))
	before := w.Bundle(id)
	require.True(t, before.HasObject(protocol.Tree("sha1:"+content)))
	_, err := filesOf(w).Redact(ctx, id, "key", false)
	require.NoError(t, err)
	w.Warnings = nil
	_, err = w.Keeper().KeepFiles(ctx, before, map[string][]protocol.Tree{id: before.Manifest.Trees})
	require.NoError(t, err)
	require.Len(t, w.Warnings, 1)
	there.Import(w, id)
	for _, home := range []*world{w, there} {
		stores, err := (&workspace.Stores{Keeper: home.Keeper()}).All(ctx)
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
		require.Equal(t, &protocol.FileChanges{Changed: []string{"a"}}, workspace.FileChanges(list))
	}
}
