package worktree_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/engine/worktree/worktreetest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// TestAddWorktree checks the content of a new worktree and the name of its branch.
func TestAddWorktree(t *testing.T) {
	t.Parallel()
	clean := map[string]string{"a": "one\n", "sub/b": "two\n"}
	for name, tt := range map[string]struct {
		make    func(w *world)
		options worktree.Options
		config  *protocol.WorkspaceConfig
		name    string
		branch  string // without the suffix of the id
		code    protocol.Code
		has     map[string]string
		warns   int
	}{
		"clean":          {name: "solve-issue", branch: "uwf/solve-issue-", has: clean},
		"a strange name": {name: "Löse: IT_2!", branch: "uwf/l-se--it_2-", has: clean},
		"a branch uwf": {make: func(w *world) { w.Git(w.Repo, "branch", "uwf") }, name: "w", branch: "uwf-w-",
			has: clean},
		"edited, not told": {make: func(w *world) { w.Write(filepath.Join(w.Repo, "a"), "mine") }, name: "w", branch: "uwf/w-",
			has: clean},
		"edited": {make: func(w *world) { w.Write(filepath.Join(w.Repo, "a"), "mine") },
			options: worktree.Options{Dirty: true}, name: "w", branch: "uwf/w-", has: map[string]string{"a": "mine", "sub/b": "two\n"}},
		"an older commit": {make: func(w *world) {
			w.Write(filepath.Join(w.Repo, "a"), "later")
			w.Git(w.Repo, "commit", "-qam", "second")
		}, options: worktree.Options{Base: "HEAD~1"}, name: "w", branch: "uwf/w-", has: clean},
		"no commit": {make: func(w *world) { w.Git(w.Repo, "update-ref", "-d", "HEAD") }, name: "w",
			code: protocol.CodeFailed},
		"set up": {config: &protocol.WorkspaceConfig{Setup: []string{"sh", "-c", "echo $UWF_WORKTREE_FROM >sub/from"}}, name: "w", branch: "uwf/w-",
			has: map[string]string{"a": "one\n", "sub/b": "two\n", "sub/from": "FROM"}},
		"set up fails": {config: &protocol.WorkspaceConfig{Setup: []string{"sh", "-c", "echo so not; exit 3"}}, name: "w",
			code: protocol.CodeFailed},
		"no set-up": {config: &protocol.WorkspaceConfig{Setup: []string{"no-such-program"}}, name: "w",
			code: protocol.CodeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			w.Settings.Workspace = tt.config
			if tt.make != nil {
				tt.make(w)
			}
			const id = "06EBX0A2S0ABCDEFGHJKMNPQRS"
			tt.options.Mode = inTree
			its, err := w.Keeper().New(t.Context(), tt.options, id, tt.name, w.Repo)
			require.Equal(t, tt.code, codeOf(err), "%v", err)
			if tt.code != "" {
				require.NoDirExists(t, w.Dirs.Worktree(id))
				require.Equal(t, 1, strings.Count(w.Git(w.Repo, "worktree", "list"), "\n")+1)
				require.NotContains(t, w.Git(w.Repo, "branch", "--list", "uwf*"), "uwf")
				require.NoFileExists(t, w.RunDir(id).File(runfiles.RestoreFile))
				return
			}
			require.Equal(t, tt.branch+"mnpqrs", its.Branch)
			has := w.Has(its.Root)
			if has["sub/from"] != "" {
				require.Equal(t, w.Repo+"\n", has["sub/from"])
				has["sub/from"] = "FROM"
			}
			require.Equal(t, tt.has, has)
			require.FileExists(t, w.RunDir(id).File(runfiles.RestoreFile), "it is nobody's yet")
			require.NoError(t, w.Keeper().Created(id))
			require.NoError(t, w.Keeper().Created(id))
			require.NoFileExists(t, w.RunDir(id).File(runfiles.RestoreFile))
		})
	}
}

// The setup of foreign files doesn't run. A failed setup is reported with its reason.
func TestSetUp(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: written})
	k, err := w.Keeper().Open(t.Context(), id, w.Repo, w.Workspace(id))
	require.NoError(t, err)
	k.Release()
	w.Settings.Workspace = &protocol.WorkspaceConfig{Setup: []string{"sh", "-c", "echo so not; exit 3"}}
	n := worktree.NewTree{ID: id, Repo: k.Repo, Dir: w.Repo, Base: k.Repo.Head, Name: "w"}
	outside := filepath.Join(filepath.Dir(w.Repo), "outside")
	w.Write(outside, "mine")
	require.NoError(t, os.Symlink(outside, w.RunDir(id).File(runfiles.SetupFile))) // an agent left it
	_, err = w.Keeper().AddWorktree(t.Context(), n)
	require.Equal(t, "mine", w.Read(outside))
	require.Equal(t, protocol.CodeFailed, codeOf(err))
	require.Contains(t, fault.Of(err).Message, "exit status 3\nso not")
	n.Foreign = true
	_, err = w.Keeper().AddWorktree(t.Context(), n)
	require.NoError(t, err)
	require.Len(t, w.Warnings, 1)
	n.ID, n.Dir = "06EBX0A2S0ABCDEFGHJKMNPQRS", filepath.Dir(w.Repo)
	_, err = w.Keeper().AddWorktree(t.Context(), n)
	require.Error(t, err, "it is outside")
}

// Content of a worktree that exists nowhere else is kept when its thread ends; other content is removed.
func TestLeave(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make  func(w *world, id, root string)
		child bool // it is a child
		kill  bool
		stays bool
		warns int
		only  string // what exists nowhere else, even if the steps are kept
	}{
		"nothing was made":      {warns: 1},
		"a step made something": {make: func(w *world, id, _ string) { w.Made(id, map[string]string{"a": "made"}) }, stays: true},
		"a child's step":        {make: func(w *world, id, _ string) { w.Made(id, map[string]string{"a": "made"}) }, child: true},
		"a killed child's":      {make: func(w *world, id, _ string) { w.Made(id, map[string]string{"a": "made"}) }, child: true, kill: true, stays: true},
		"by hand":               {make: func(w *world, _, root string) { w.Write(filepath.Join(root, "a"), "mine") }, stays: true, warns: 1, only: "a"},
		"by hand, a child": {make: func(w *world, id, root string) {
			w.Made(id, map[string]string{"a": "made"})
			w.Write(filepath.Join(root, "n"), "mine")
		}, child: true, stays: true, warns: 1, only: "n"},
		"a commit": {make: func(w *world, _, root string) { w.Git(root, "commit", "-q", "--allow-empty", "-m", "mine") }, stays: true},
		"a commit without a branch": {make: func(w *world, _, root string) {
			w.Git(root, "switch", "-q", "--detach")
			w.Git(root, "commit", "-q", "--allow-empty", "-m", "mine")
		}, stays: true, warns: 1, only: "commit"},
		"ignored": {make: func(w *world, _, root string) {
			w.Write(filepath.Join(w.Repo, ".git", "info", "exclude"), "*.log\n")
			w.Write(filepath.Join(root, "x.log"), "mine")
		}, stays: true},
		"it is gone": {make: func(w *world, _, root string) { require.NoError(w.T, os.RemoveAll(root)) }},
		"git is gone": {make: func(w *world, _, root string) {
			w.Write(filepath.Join(root, ".git"), "torn")
		}, stays: true, warns: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			ctx := t.Context()
			id := w.NewThread(worktree.Options{Mode: inTree})
			if tt.child {
				start := w.Chain(id).Start
				start.Child = &protocol.Child{Of: w.At(id), Role: "x", Key: "y"}
				child := w.StartWith(start, heads.Facts{Workspace: w.Workspace(id)})
				require.NoError(t, os.Rename(w.Dirs.Worktree(id), w.Dirs.Worktree(child)))
				its := *w.Workspace(id)
				its.Root = w.Dirs.Worktree(child)
				w.Git(w.Repo, "worktree", "repair", its.Root)
				w.Change(child, heads.Facts{Workspace: &its})
				id = child
			}
			root := w.Workspace(id).Root
			if tt.make != nil {
				tt.make(w, id, root)
			}
			w.Warnings = nil
			w.Keeper().RemoveUnused(ctx, worktree.Ended{ID: id, Head: w.At(id), Workspace: w.Workspace(id), Killed: tt.kill})
			_, err := os.Lstat(root)
			require.Equal(t, tt.stays, err == nil)
			require.Len(t, w.Warnings, tt.warns)
			if tt.only != "" {
				require.Contains(t, w.Warnings[0], tt.only)
			}
			if !tt.stays && name != "it is gone" {
				require.Empty(t, w.Git(w.Repo, "branch", "--list", "uwf/*"))
			}
		})
	}
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: written})
	w.Keeper().RemoveUnused(t.Context(), worktree.Ended{ID: id, Head: w.At(id), Workspace: w.Workspace(id)})
	require.DirExists(t, w.Repo)
	require.Empty(t, w.Warnings)
}

// The worktree of a continued thread is made again where its facts say.
func TestComeBack(t *testing.T) {
	t.Parallel()
	made := map[string]string{"a": "made", "sub/b": "two\n"}
	for name, tt := range map[string]struct {
		ended, child, step bool
		facts              heads.Facts
		left               bool // an incomplete worktree
		want               map[string]string
	}{
		"ended":                      {ended: true, step: true, want: made},
		"ended at its start":         {ended: true, want: map[string]string{"a": "one\n", "sub/b": "two\n"}},
		"active":                     {step: true},
		"active, at its start":       {},
		"a child's first":            {child: true, want: map[string]string{"a": "one\n", "sub/b": "two\n"}},
		"a child's second":           {child: true, step: true},
		"an imported child's second": {child: true, step: true, facts: heads.Facts{Imported: &heads.Imported{Confirmed: true}}, want: made},
		"half made":                  {child: true, left: true, want: map[string]string{"a": "one\n", "sub/b": "two\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			id := w.NewThread(worktree.Options{Mode: inTree})
			facts := tt.facts
			if tt.child {
				facts.Parent = &heads.Parent{Thread: "x"}
			}
			w.Change(id, facts)
			if tt.step {
				w.Made(id, map[string]string{"a": "made"})
			}
			if tt.ended {
				w.End(id, protocol.StatusCompleted)
			}
			root := w.Workspace(id).Root
			if tt.left {
				require.NoError(t, os.Remove(filepath.Join(root, "a")))
				w.Write(w.RunDir(id).File(runfiles.RestoreFile), `{"repo":"`+w.Repo+`","commit":"`+w.Git(w.Repo, "rev-parse", "HEAD")+`"}`)
			} else {
				w.Git(w.Repo, "worktree", "remove", "--force", root)
			}
			require.NoError(t, w.Keeper().Recreate(t.Context(), w.Thread(id)))
			if tt.want == nil {
				require.NoDirExists(t, root)
				return
			}
			require.Equal(t, tt.want, w.Has(root))
			require.NoFileExists(t, w.RunDir(id).File(runfiles.RestoreFile))
			require.Equal(t, w.Workspace(id).Branch, w.Git(root, "rev-parse", "--abbrev-ref", "HEAD"))
			w.Write(filepath.Join(root, "a"), "mine")
			require.NoError(t, w.Keeper().Recreate(t.Context(), w.Thread(id)))
			require.Equal(t, "mine", w.Read(filepath.Join(root, "a")), "what is there stays")
		})
	}
}

// A worktree that is made again is at the last commit of its branch.
func TestComeBackToACommit(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: inTree})
	root := w.Workspace(id).Root
	w.Made(id, map[string]string{"a": "made"})
	w.Git(root, "commit", "-qam", "the agent's")
	w.End(id, protocol.StatusCompleted)
	w.Git(w.Repo, "worktree", "remove", "--force", root)
	require.NoError(t, w.Keeper().Recreate(t.Context(), w.Thread(id)))
	require.Equal(t, "the agent's", w.Git(root, "log", "-1", "--format=%s"))
	require.Empty(t, w.Git(root, "status", "--porcelain"))
}

// If a record shows that a child has started, its worktree is kept unchanged.
func TestComeBackOfOneThatHasBegun(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: inTree})
	w.Change(id, heads.Facts{Parent: &heads.Parent{Thread: "x"}})
	w.Record(id, rundir.Record{Role: "plan", Status: rundir.Failed})
	root := w.Workspace(id).Root
	w.Write(filepath.Join(root, "a"), "half")
	require.NoError(t, w.Keeper().Recreate(t.Context(), w.Thread(id)))
	require.Equal(t, "half", w.Read(filepath.Join(root, "a")))
}

// Worktrees that never had a thread are swept, unless their maker is alive, a thread has them, or they have
// content.
func TestSweep(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make func(w *world, id string)
		want bool
	}{
		"its maker was killed": {want: true},
		"its maker lives": {make: func(w *world, id string) {
			held, err := w.Keeper().LockCreation(w.Context(), id)
			require.NoError(w.T, err)
			w.T.Cleanup(func() { _ = held.RemoveAndUnlock() })
		}},
		"it is a thread's": {make: func(w *world, id string) { require.NoError(w.T, w.Keeper().Created(id)) }},
		"a thread stands": {make: func(w *world, id string) {
			require.NoError(w.T, w.Heads.Add(w.Context(), id, w.Add(protocol.Start{Workflow: "0000000000000", Prompt: "x", Cwd: "/"}), heads.Facts{}))
		}},
		"a commit is in it": {make: func(w *world, id string) {
			w.Git(w.Dirs.Worktree(id), "switch", "-q", "--detach")
			w.Git(w.Dirs.Worktree(id), "commit", "-q", "--allow-empty", "-m", "mine")
		}},
		"files are in it": {make: func(w *world, id string) { w.Write(filepath.Join(w.Dirs.Worktree(id), "a"), "half") }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			const id = "06EBX0A2S0ABCDEFGHJKMNPQRS"
			_, err := w.Keeper().New(t.Context(), worktree.Options{Mode: inTree}, id, "w", w.Repo)
			require.NoError(t, err)
			if tt.make != nil {
				tt.make(w, id)
			}
			swept, err := w.Keeper().Sweep(t.Context())
			require.NoError(t, err)
			if !tt.want {
				require.Empty(t, swept)
				require.DirExists(t, w.Dirs.Worktree(id))
				return
			}
			require.Equal(t, []string{w.Dirs.Worktree(id)}, swept)
			require.NoDirExists(t, w.Dirs.Worktree(id))
			require.NoDirExists(t, w.RunDir(id).Path)
			require.Empty(t, w.Git(w.Repo, "branch", "--list", "uwf/*"))
		})
	}
}

// A worktree that cannot be swept doesn't keep others, nor what an interrupted removal has left.
func TestSweepTheOthers(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ids := []string{"06EBX0A2S0ABCDEFGHJKMNPQRS", "06EBX0A2S0ABCDEFGHJKMNPQRT"}
	for _, id := range ids {
		_, err := w.Keeper().New(t.Context(), worktree.Options{Mode: inTree}, id, "w", w.Repo)
		require.NoError(t, err)
	}
	left := filepath.Join(filepath.Dir(w.Dirs.Worktree(ids[0])), ".gone-"+ids[0])
	w.Write(filepath.Join(left, "a"), "left")
	swept, err := w.Keeper().Sweep(t.Context())
	require.Error(t, err)
	require.Equal(t, []string{w.Dirs.Worktree(ids[1])}, swept)
	require.NoDirExists(t, left)
	w.Write(filepath.Join(left, "a"), "left")
	_, err = filesOf(w).Clean(t.Context())
	require.Error(t, err)
	require.NoDirExists(t, w.Dirs.Worktree(ids[0]))
}

// The files of a fork depend on the person's choice and on where the other thread works.
func TestFork(t *testing.T) {
	t.Parallel()
	first, second := map[string]string{"a": "first", "sub/b": "two\n"}, map[string]string{"a": "second", "sub/b": "two\n"}
	start := map[string]string{"a": "one\n", "sub/b": "two\n"}
	for name, tt := range map[string]struct {
		mode   string // of the other thread
		files  string
		at     int // steps
		before bool
		moved  bool
		facts  heads.Facts
		mine   bool // a person changed a file afterwards
		want   string
		code   protocol.Code
		has    map[string]string
	}{
		"by default":               {mode: written, at: 1, want: inTree, has: first},
		"at the newest":            {mode: written, at: 2, want: inTree, has: second},
		"at the start":             {mode: written, want: inTree, has: start},
		"before a step":            {mode: written, at: 2, before: true, want: inTree, has: first},
		"of a worktree":            {mode: inTree, at: 1, want: inTree, has: first},
		"keep":                     {mode: written, files: worktree.FilesKeep, at: 1, want: inPlace, has: second},
		"here":                     {mode: written, files: worktree.FilesHere, at: 1, want: inPlace, has: first},
		"here, changed":            {mode: written, files: worktree.FilesHere, at: 1, mine: true, code: protocol.CodeFailed},
		"keep of a worktree":       {mode: inTree, files: worktree.FilesKeep, at: 1, code: protocol.CodeFailed},
		"here of a worktree":       {mode: inTree, files: worktree.FilesHere, at: 1, code: protocol.CodeFailed},
		"none are kept":            {mode: asItIs, at: 1, want: ""},
		"none are kept, asked for": {mode: asItIs, files: worktree.FilesWorktree, at: 1, code: protocol.CodeNotFound},
		"elsewhere":                {mode: written, at: 1, moved: true, want: inPlace, has: second},
		"elsewhere, a worktree": {mode: written, files: worktree.FilesWorktree, at: 1, moved: true,
			want: inTree, has: first},
		"foreign": {mode: written, at: 1, facts: heads.Facts{Imported: &heads.Imported{}}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			ctx := t.Context()
			id := w.NewThread(worktree.Options{Mode: tt.mode})
			w.Made(id, map[string]string{"a": "first"})
			w.Made(id, map[string]string{"a": "second"})
			if tt.mine {
				w.Write(filepath.Join(w.Repo, "a"), "mine")
			}
			nodes := []protocol.Hash{w.Chain(id).StartHash, *w.Chain(id).Last.Prev, w.At(id)}
			fork := w.Start(w.Chain(id).Start.Workflow, heads.Facts{})
			require.NoError(t, w.Heads.Move(ctx, fork, w.At(fork), nodes[tt.at]))
			f := worktree.Fork{Thread: fork, At: w.Chain(fork), Facts: tt.facts, Moved: tt.moved, Files: tt.files}
			f.Facts.Fork = &heads.Fork{Thread: id, Step: nodes[tt.at]}
			if tt.moved {
				f.Facts.Workspace = &heads.Workspace{Mode: asItIs, Root: w.Repo}
			}
			if tt.before {
				f.Before = nodes[tt.at]
			}
			its, err := w.Keeper().Fork(ctx, f)
			require.Equal(t, tt.code, codeOf(err), "%v", err)
			if tt.code != "" {
				return
			}
			if tt.want == "" {
				require.Nil(t, its)
				return
			}
			require.Equal(t, tt.want, its.Mode)
			require.Equal(t, tt.has, w.Has(its.Root))
			if tt.want == inTree {
				require.Equal(t, w.Dirs.Worktree(fork), its.Root)
				require.Equal(t, w.Git(w.Repo, "rev-parse", "HEAD"), its.Base)
			}
		})
	}
}

// A fork of a step without files uses the current files if a person works there.
func TestForkWithoutFiles(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]protocol.Code{written: "", inTree: protocol.CodeNotFound} {
		w := worktreetest.New(t)
		id := w.NewThread(worktree.Options{Mode: mode})
		head := w.Step(id, protocol.Step{Role: "plan"}, map[string]any{"$status": "again"})
		fork := w.Start(w.Chain(id).Start.Workflow, heads.Facts{})
		its, err := w.Keeper().Fork(t.Context(), worktree.Fork{Thread: fork, At: w.Chain(id), Facts: heads.Facts{Fork: &heads.Fork{Thread: id, Step: head}}})
		require.Equal(t, want, codeOf(err))
		if want == "" {
			require.Equal(t, w.Workspace(id), its)
			require.Len(t, w.Warnings, 1)
		}
	}
	w := worktreetest.New(t)
	its, err := w.Keeper().Fork(t.Context(), worktree.Fork{Facts: heads.Facts{Fork: &heads.Fork{}, Workspace: &heads.Workspace{Mode: asItIs}}})
	require.NoError(t, err)
	require.Equal(t, asItIs, its.Mode, "nobody knows of what it is a fork")
}

// What keeps the files of removed threads is collected, except what a thread needs.
func TestCollectFiles(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	require.NoError(t, os.MkdirAll(w.Dirs.Home, 0o700))
	w.Heads = fileheads.Open(w.Dirs.Home, w.FS)
	stays, gone := w.NewThread(worktree.Options{Mode: written}), w.NewThread(worktree.Options{Mode: written})
	w.Made(stays, map[string]string{"a": "stays"})
	big := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(big) // never fails
	w.Made(gone, map[string]string{"a": string(big)})
	store, _, err := w.Keeper().Finder().Find(ctx, w.Repo, w.Chain(gone).Last.Files.Tree)
	require.NoError(t, err)
	refs := func() string { return w.Read(filepath.Join(store, "uwf-snapshots")) }
	require.Contains(t, refs(), gone)
	forget := func(id string) {
		w.End(id, protocol.StatusCancelled)
		_, err := w.Heads.(*fileheads.Heads).Forget(ctx, map[string]bool{id: true})
		require.NoError(t, err)
	}
	forget(gone)
	alone := 0
	collect := func(dry bool) worktree.CollectedFiles {
		done, err := w.Keeper().CollectFiles(ctx, []string{w.Dirs.Home}, dry, func(do func() error) error { alone++; return do() })
		require.NoError(t, err)
		require.Empty(t, done.Failed)
		return done
	}
	require.Equal(t, 0, collect(false).Refs, "a command may just be making it")
	w.Clock = w.Clock.AddDate(0, 0, 2)
	require.Equal(t, 1, collect(true).Refs)
	require.Contains(t, refs(), gone)
	old := time.Now().AddDate(-1, 0, 0) // git keeps new objects
	require.NoError(t, filepath.WalkDir(filepath.Join(store, "objects"), func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, old, old))
	}))
	done := collect(false)
	require.Equal(t, []int{1, 1, 0}, []int{done.Refs, done.Repositories, done.Removed})
	require.Greater(t, done.Freed, int64(len(big)/2))
	require.NotContains(t, refs(), gone)
	require.Contains(t, refs(), stays)
	require.Positive(t, alone)
	kept, err := w.Keeper().StepFiles(ctx, w.At(stays))
	require.NoError(t, err)
	_, err = kept.Changes(ctx)
	require.NoError(t, err)

	// Our repository is removed with the user's, unless a thread needs it.
	require.NoError(t, os.Rename(w.Repo, w.Repo+"-moved"))
	require.Equal(t, 0, collect(false).Removed)
	forget(stays)
	require.Equal(t, 1, collect(false).Removed)
	require.NoDirExists(t, store)
}

// A step in the user's directory doesn't complete the thread's worktree whose creation was interrupted.
func TestHalfMadeElsewhere(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	const id = "06EBX0A2S0ABCDEFGHJKMNPQRS"
	its, err := w.Keeper().New(t.Context(), worktree.Options{Mode: inTree}, id, "x", w.Repo)
	require.NoError(t, err)
	w.Write(filepath.Join(w.Repo, "a"), "mine")
	k, err := w.Keeper().Open(t.Context(), id, w.Repo, &heads.Workspace{Mode: written, Root: w.Repo})
	require.NoError(t, err)
	k.Release()
	require.Equal(t, "mine", w.Read(filepath.Join(w.Repo, "a")))
	require.NoError(t, os.Remove(filepath.Join(its.Root, "a")))
	k, err = w.Keeper().Open(t.Context(), id, its.Root, its)
	require.NoError(t, err)
	k.Release()
	require.Equal(t, "one\n", w.Read(filepath.Join(its.Root, "a")))
	require.NoFileExists(t, w.RunDir(id).File(runfiles.RestoreFile))
}
