package worktree_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/engine/worktree/worktreetest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/hints"
)

// filesOf returns the files of a home's threads, with the home's locks.
func filesOf(w *world) worktree.Keeper {
	lock := func(ctx context.Context, id string) (worktree.Locked, error) {
		brief, cancel := context.WithCancel(ctx)
		defer cancel()
		if w.Locks.Held(ctx, id) {
			return worktree.Locked{}, &protocol.Error{Code: protocol.CodeLocked, Message: "held", Err: locker.ErrLocked}
		}
		held, err := w.Locks.Lock(brief, id)
		if err != nil {
			return worktree.Locked{}, err
		}
		if _, err := heads.Find(ctx, w.Heads, id); err != nil {
			return worktree.Locked{}, errors.Join(err, held.Unlock())
		}
		return worktree.Locked{Thread: w.Thread(id), Release: func() { _ = held.Unlock() }}, nil
	}
	k := w.Keeper()
	k.Lock, k.Show = lock, w.Show
	return k
}

// commit commits all files of the repository.
func commit(w *world, dir, message string) {
	w.Git(dir, "add", "-A")
	w.Git(dir, "commit", "-qm", message)
}

// An apply commits all or nothing of the result to a branch.
func TestApply(t *testing.T) {
	t.Parallel()
	type want struct {
		code    protocol.Code
		hint    string            // a part of a hint
		subject string            // of the branch's last commit
		has     map[string]string // the person's files afterwards
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
		options worktree.ApplyOptions
		want    want
	}{
		"a commit": {want: want{subject: "the task", has: made, branch: "main", files: changed}},
		"with a message": {options: worktree.ApplyOptions{Message: "mine"},
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
			options: worktree.ApplyOptions{Dirty: true},
			want:    want{subject: "the task", has: map[string]string{"a": "made", "sub/b": "mine"}, branch: "main", files: changed}},
		"the same, and says so": {make: func(w *world, _, _ string) { w.Write(filepath.Join(w.Repo, "a"), "mine") },
			options: worktree.ApplyOptions{Dirty: true},
			want:    want{code: protocol.CodeFailed, hint: "move it to another", subject: "first", has: map[string]string{"a": "mine", "sub/b": "two\n"}}},
		"an untracked file in the way": {make: func(w *world, id, _ string) {
			w.Made(id, map[string]string{"n": "new"})
			w.Write(filepath.Join(w.Repo, "n"), "mine")
		}, want: want{code: protocol.CodeFailed, hint: "move it to another", subject: "first",
			has: map[string]string{"a": "one\n", "sub/b": "two\n", "n": "mine"}}},
		"no branch": {make: func(w *world, _, _ string) { w.Git(w.Repo, "switch", "-q", "--detach") },
			want: want{code: protocol.CodeFailed, hint: "git switch", subject: "first", has: clean}},
		"git is busy": {make: func(w *world, _, _ string) { w.Write(filepath.Join(w.Repo, ".git", "index.lock"), "x") },
			want: want{code: protocol.CodeFailed, hint: "git status", subject: "first", has: clean}},
		"a merge is going on": {make: func(w *world, _, _ string) {
			w.Write(filepath.Join(w.Repo, ".git", "MERGE_HEAD"), w.Git(w.Repo, "rev-parse", "HEAD")+"\n")
		},
			want: want{code: protocol.CodeFailed, hint: "git status", subject: "first", has: clean}},
		"its own files": {mode: written, want: want{subject: "first", has: made, already: true}},
		"its own to a branch": {mode: written, options: worktree.ApplyOptions{Branch: "x"},
			want: want{code: protocol.CodeFailed, hint: "switch -c x", subject: "first", has: made}},
		"no files": {mode: worktree.ModeNone,
			want: want{code: protocol.CodeFailed, hint: "--workspace worktree", subject: "first", has: made}},
		"another repository": {options: worktree.ApplyOptions{Dir: "/"},
			want: want{code: protocol.CodeFailed, hint: "--cwd DIR", subject: "first", has: clean}},
		"its own worktree": {options: worktree.ApplyOptions{Dir: "ROOT"},
			want: want{code: protocol.CodeFailed, hint: "--cwd DIR", subject: "first", has: clean}},
		"its worktree is gone": {make: func(w *world, _, root string) { w.Git(w.Repo, "worktree", "remove", "--force", root) },
			want: want{subject: "the task", has: made, branch: "main", files: changed}},
		"the branch was deleted": {make: func(w *world, _, root string) { w.Git(root, "update-ref", "-d", "HEAD") },
			want: want{code: protocol.CodeFailed, hint: "uwf thread fork", subject: "first", has: clean}},
		"to a branch": {options: worktree.ApplyOptions{Branch: "x"},
			want: want{subject: "first", has: clean, branch: "x"}},
		"to a branch behind": {make: func(w *world, _, _ string) { w.Git(w.Repo, "branch", "x") }, options: worktree.ApplyOptions{Branch: "x"},
			want: want{subject: "first", has: clean, branch: "x"}},
		"to a branch that is out": {options: worktree.ApplyOptions{Branch: "main"},
			want: want{code: protocol.CodeFailed, hint: "leave out --branch", subject: "first", has: clean}},
		"to a branch ahead": {make: func(w *world, _, _ string) {
			w.Git(w.Repo, "branch", "x", w.Git(w.Repo, "commit-tree", "-p", "HEAD", "-m", "mine", "HEAD^{tree}"))
		}, options: worktree.ApplyOptions{Branch: "x"},
			want: want{code: protocol.CodeFailed, hint: "use another branch", subject: "first", has: clean}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			if tt.mode == "" {
				tt.mode = inTree
			}
			id := w.NewThread(worktree.Options{Mode: tt.mode})
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
				require.Contains(t, strings.Join(hints.All("", fault.Of(err)), "\n"), tt.want.hint)
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

// Apply fails while the thread or the work tree is locked.
func TestApplyIsLocked(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: inTree})
	w.Made(id, map[string]string{"a": "made"})
	held, err := w.Locks.Lock(ctx, id)
	require.NoError(t, err)
	_, err = filesOf(w).Apply(ctx, id, worktree.ApplyOptions{Dir: w.Repo})
	require.Equal(t, protocol.CodeLocked, codeOf(err))
	require.NoError(t, held.Unlock())
	tree, err := w.Keeper().LockTree(ctx, "another", w.Repo)
	require.NoError(t, err)
	_, err = filesOf(w).Apply(ctx, id, worktree.ApplyOptions{Dir: w.Repo})
	require.Equal(t, protocol.CodeLocked, codeOf(err))
	require.NoError(t, tree.RemoveAndUnlock())
	_, err = filesOf(w).Apply(ctx, id, worktree.ApplyOptions{Dir: w.Repo})
	require.NoError(t, err)
	locks, err := filepath.Glob(filepath.Join(w.Dirs.Locks(), "tree-*"))
	require.NoError(t, err)
	require.Empty(t, locks, "they were given back")
}

// Apply reports what it leaves out.
func TestApplyLeavesOut(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	w.Settings.Workspace = &protocol.WorkspaceConfig{MaxFileMB: 1}
	id := w.NewThread(worktree.Options{Mode: inTree})
	w.Made(id, map[string]string{"a": "made", "big": strings.Repeat("x", 1<<20+1)})
	out, err := filesOf(w).Apply(t.Context(), id, worktree.ApplyOptions{Dir: w.Repo})
	require.NoError(t, err)
	require.Equal(t, []string{"big"}, out.Left)
	require.Equal(t, map[string]string{"a": "made", "sub/b": "two\n"}, w.Has(w.Repo))
}

// An interrupted apply that wrote the files is finished by the next one. Later changes are left alone.
func TestApplyThatWasCutOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		since   func(w *world)
		writing bool
		has     string
		code    protocol.Code
	}{
		"nothing happened since": {has: "made"},
		"it was writing":         {since: func(w *world) { w.Write(filepath.Join(w.Repo, "a"), "ma") }, writing: true, has: "made"},
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
			w := worktreetest.New(t)
			ctx := t.Context()
			id := w.NewThread(worktree.Options{Mode: inTree})
			w.Made(id, map[string]string{"a": "made"})
			out, err := filesOf(w).Apply(ctx, id, worktree.ApplyOptions{Dir: w.Repo})
			require.NoError(t, err)
			from := w.Git(w.Repo, "rev-parse", "HEAD~1")
			w.Git(w.Repo, "update-ref", "refs/heads/main", from) // the state before the branch moved
			w.Git(w.Repo, "read-tree", from)
			repo, err := snapshot.Find(ctx, w.Env, w.Repo)
			require.NoError(t, err)
			record := filepath.Join(repo.Store(w.Dirs.Git()), "apply", id+".json")
			w.Write(record, `{"root":"`+w.Repo+`","from":"`+from+`","to":"`+out.Commit+`","writing":`+strconv.FormatBool(tt.writing)+`}`)
			if tt.since != nil {
				tt.since(w)
			}
			_, err = filesOf(w).Apply(ctx, id, worktree.ApplyOptions{Dir: w.Repo})
			require.Equal(t, tt.code, codeOf(err), "%v", err)
			require.Equal(t, tt.has, w.Read(filepath.Join(w.Repo, "a")))
			require.NoFileExists(t, record)
			if tt.since == nil || strings.HasSuffix(name, "was writing") {
				require.Equal(t, out.Commit, w.Git(w.Repo, "rev-parse", "HEAD"), "the same commit, once")
				require.Empty(t, w.Git(w.Repo, "status", "--porcelain"))
			}
		})
	}
}

// A thread that continued elsewhere applies the files of its last step.
func TestApplyFromElsewhere(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bool{written: true, inTree: false} {
		w := worktreetest.New(t)
		id := w.NewThread(worktree.Options{Mode: mode})
		w.Made(id, map[string]string{"a": "here"})
		w.Made(id, map[string]string{"a": "elsewhere"})
		root := w.Workspace(id).Root
		w.Write(filepath.Join(root, "a"), "here")
		w.Change(id, heads.Facts{Imported: &heads.Imported{Inherited: true}})
		out, err := filesOf(w).Apply(t.Context(), id, worktree.ApplyOptions{Dir: w.Repo})
		require.NoError(t, err)
		require.Equal(t, "elsewhere", w.Read(filepath.Join(w.Repo, "a")))
		require.Equal(t, &protocol.FileChanges{Changed: []string{"a"}}, out.Files)
		require.Equal(t, want, out.Commit == "")
	}
	from, w := worktreetest.New(t), worktreetest.New(t)
	id := from.NewThread(worktree.Options{Mode: written})
	from.Made(id, map[string]string{"a": "elsewhere"})
	w.Git(w.Repo, "fetch", "-q", from.Repo, "HEAD")
	w.Git(w.Repo, "reset", "-q", "--hard", "FETCH_HEAD")
	w.Import(from, id)
	out, err := filesOf(w).Apply(t.Context(), id, worktree.ApplyOptions{Dir: w.Repo})
	require.NoError(t, err)
	require.Equal(t, "main", out.Branch)
	require.Equal(t, "elsewhere", w.Read(filepath.Join(w.Repo, "a")))
}
