package worktree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/engine/worktree/worktreetest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/runfiles"
)

type world = worktreetest.World

const (
	inTree  = worktree.InWorktree
	inPlace = worktree.InPlace
	asItIs  = worktree.ModeNone
	written = worktree.ModeInPlace
)

func codeOf(err error) protocol.Code {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

// The mode of a new thread depends on the person's choice, the config, and its directory.
func TestNew(t *testing.T) {
	t.Parallel()
	config := func(mode string, per map[string]string) *protocol.WorkspaceConfig {
		return &protocol.WorkspaceConfig{Default: mode, PerWorkflow: per}
	}
	for name, tt := range map[string]struct {
		options worktree.Options
		config  *protocol.WorkspaceConfig
		dir     string // below the repository; "/" is next to it
		home    bool   // the repository is the whole home directory
		want    string // a mode; "": none is stored
		code    protocol.Code
	}{
		"nothing said":               {},
		"none":                       {options: worktree.Options{Mode: asItIs}},
		"in place":                   {options: worktree.Options{Mode: written}, want: inPlace},
		"in place, as facts have it": {options: worktree.Options{Mode: inPlace}, want: inPlace},
		"in place, below the root":   {options: worktree.Options{Mode: written}, dir: "sub", want: inPlace},
		"in place, in no repository": {options: worktree.Options{Mode: written}, dir: "/", code: protocol.CodeFailed},
		"a worktree":                 {options: worktree.Options{Mode: inTree}, want: inTree},
		"a worktree, below the root": {options: worktree.Options{Mode: inTree}, dir: "sub", want: inTree},
		"a worktree of nothing":      {options: worktree.Options{Mode: inTree}, dir: "/", code: protocol.CodeFailed},
		"no such commit": {options: worktree.Options{Mode: inTree, Base: "nowhere"},
			code: protocol.CodeNotFound},
		"no such mode":          {options: worktree.Options{Mode: "elsewhere"}, code: protocol.CodeUsage},
		"by default":            {options: worktree.Options{Mode: worktree.ModeDefault}, want: inPlace},
		"by default, beside":    {options: worktree.Options{Mode: worktree.ModeDefault}, dir: "/"},
		"by default, at home":   {options: worktree.Options{Mode: worktree.ModeDefault}, home: true},
		"the config wants none": {options: worktree.Options{Mode: worktree.ModeDefault}, config: config(asItIs, nil)},
		"the config wants one": {options: worktree.Options{Mode: worktree.ModeDefault}, config: config(inTree, nil),
			want: inTree},
		"the config, at home": {options: worktree.Options{Mode: worktree.ModeDefault}, config: config(written, nil), home: true,
			want: inPlace},
		"the config, beside": {options: worktree.Options{Mode: worktree.ModeDefault}, config: config(inTree, nil), dir: "/"},
		"for this workflow": {options: worktree.Options{Mode: worktree.ModeDefault}, config: config(written, map[string]string{"w": inTree}),
			want: inTree},
		"for another": {options: worktree.Options{Mode: worktree.ModeDefault}, config: config(written, map[string]string{"x": inTree}),
			want: inPlace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worktreetest.New(t)
			w.Settings.Workspace = tt.config
			dir := filepath.Join(w.Repo, tt.dir)
			if tt.dir == "/" {
				dir = filepath.Dir(w.Repo)
			}
			if tt.home {
				w.Env.Environ = append(w.Env.Environ, "HOME="+w.Repo)
			}
			const id = "06EBX0A2S0ABCDEFGHJKMNPQRS"
			got, err := w.Keeper().New(t.Context(), tt.options, id, "w", dir)
			require.Equal(t, tt.code, codeOf(err), "%v", err)
			if tt.want == "" {
				require.Nil(t, got)
				return
			}
			want := heads.Workspace{Mode: tt.want, Root: dir, Repo: filepath.Join(w.Repo, ".git"), Base: w.Git(w.Repo, "rev-parse", "HEAD")}
			if tt.want == inTree {
				want.Root, want.Branch = filepath.Join(w.Dirs.Worktree(id), tt.dir), "uwf/w-mnpqrs"
				want.Branch = "uwf/w-" + strings.ToLower(id[len(id)-6:])
				require.Equal(t, want.Branch, w.Git(got.Root, "rev-parse", "--abbrev-ref", "HEAD"))
				require.Equal(t, map[string]string{"a": "one\n", "sub/b": "two\n"}, w.Has(w.Dirs.Worktree(id)))
			}
			require.Equal(t, want, *got)
		})
	}
}

func TestWord(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"here": "in-place", "worktree": "worktree", "none": "none", "": ""} {
		require.Equal(t, want, worktree.ModeName(mode))
	}
}

func TestSome(t *testing.T) {
	t.Parallel()
	all := strings.Split("a b c d e f g", " ")
	for n, want := range map[int]string{0: "", 1: "a", 5: "a, b, c, d, e", 6: "a, b, c, d, e and 1 more", 7: "a, b, c, d, e and 2 more"} {
		require.Equal(t, want, worktree.Abbreviate(all[:n]))
	}
	require.NotContains(t, worktree.Abbreviate([]string{"a\x1b[2J\nb"}), "\n")
}

func TestFileChanges(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: written})
	w.Write(filepath.Join(w.Repo, "mine"), "x")
	before := w.Made(id, map[string]string{"n": "new", "a": "changed", "sub/b": ""})
	kept, err := w.Keeper().StepFiles(t.Context(), before)
	require.NoError(t, err)
	list, err := kept.Changes(t.Context())
	require.NoError(t, err)
	require.Equal(t, &protocol.FileChanges{Added: []string{"n"}, Changed: []string{"a"}, Removed: []string{"sub/b"}}, worktree.FileChanges(list))
	for range 10 {
		list = append(list, list...)
	}
	all := worktree.FileChanges(list)
	require.Equal(t, 1000, len(all.Added)+len(all.Changed)+len(all.Removed))
	var patch strings.Builder
	require.NoError(t, kept.Patch(t.Context(), &patch))
	require.Contains(t, patch.String(), "+changed")
	require.NotContains(t, patch.String(), "mine", "which was there before")

	w.Made(id, map[string]string{"n": "newer\nand longer\n"})
	totals := w.Keeper().Totals(t.Context(), w.At(id), 5)
	require.Equal(t, protocol.FileTotals{Files: 1, Added: 2, Removed: 1}, totals[w.At(id)])
	require.Equal(t, 3, totals[before].Files)
	require.Equal(t, 3, totals[""].Files)
	require.Len(t, totals, 3)
	totals = w.Keeper().Totals(t.Context(), w.At(id), 1)
	require.Equal(t, 1, totals[""].Files, "of the newest one alone")
	require.Len(t, totals, 2)
}

// A work tree has one thread at a time, and is free afterwards.
func TestLocks(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	k := w.Keeper()
	id, other := w.NewThread(worktree.Options{Mode: written}), w.NewThread(worktree.Options{Mode: written})
	held, err := k.Open(ctx, id, w.Repo, w.Workspace(id))
	require.NoError(t, err)
	require.True(t, held.Locked())
	_, err = k.Open(ctx, other, filepath.Join(w.Repo, "sub"), w.Workspace(other))
	require.Equal(t, protocol.CodeLocked, codeOf(err))
	require.Len(t, hints.All("", fault.Of(err)), 3)
	_, err = k.Before(ctx, worktree.Step{Thread: w.Thread(other), Dir: w.Repo})
	require.Equal(t, protocol.CodeLocked, codeOf(err))
	held.Release()
	held.Release()
	require.False(t, held.Locked())
	held, err = k.Open(ctx, other, w.Repo, w.Workspace(other))
	require.NoError(t, err)
	held.Release()
	require.False(t, (*worktree.Checkout)(nil).Locked())

	// A failed start frees it.
	w.Settings.Workspace = nil
	k.Config = func(context.Context) (protocol.Config, error) { return protocol.Config{}, errors.ErrUnsupported }
	_, err = k.Open(ctx, id, w.Repo, w.Workspace(id))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	held, err = w.Keeper().Open(ctx, id, w.Repo, w.Workspace(id))
	require.NoError(t, err)
	held.Release()

	lock, err := k.LockCreation(ctx, id)
	require.NoError(t, err)
	_, err = k.LockCreation(ctx, id)
	require.Equal(t, protocol.CodeLocked, codeOf(err))
	second, err := k.LockCreation(ctx, other)
	require.NoError(t, err)
	require.NoError(t, errors.Join(second.RemoveAndUnlock(), lock.RemoveAndUnlock()))
}

// A snapshot has all files except the home's and files that are too large or hidden.
func TestSpec(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: written})
	w.Settings.Workspace = &protocol.WorkspaceConfig{MaxFileMB: 1}
	w.Write(filepath.Join(w.Repo, "big"), strings.Repeat("x", 1<<20+1))
	w.Write(filepath.Join(w.Repo, "fits"), strings.Repeat("x", 1<<20))
	w.Write(filepath.Join(w.Repo, "hidden"), "x")
	k := w.Keeper()
	k.DenyRead = func(_ protocol.Config, dir string) []string {
		require.Equal(t, w.Repo, dir)
		return []string{filepath.Join(w.Repo, "hidden"), "/elsewhere", w.Repo}
	}
	held, err := k.Open(ctx, id, w.Repo, w.Workspace(id))
	require.NoError(t, err)
	require.Contains(t, held.Left, "big")
	require.NotContains(t, held.Left, "fits")
	require.Equal(t, []string{"hidden"}, held.Spec.DenyRead)
	require.Equal(t, "refs/uwf/"+id, held.Spec.Ref)
	require.NotEmpty(t, held.SnapshotSpec())
	require.Empty(t, (*worktree.Checkout)(nil).SnapshotSpec())
	require.Empty(t, held.Spec.Skip)
	held.Release()

	k.Dirs.Home, k.Dirs.Store = filepath.Join(w.Repo, ".uwf"), filepath.Join(w.Repo, "sub", "cas")
	require.NoError(t, os.Mkdir(k.Dirs.Home, 0o700))
	require.NoError(t, os.Mkdir(k.Dirs.Store, 0o700))
	spec, err := k.SpecOf(held.Repo, id)
	require.NoError(t, err)
	require.Equal(t, []string{".uwf", "sub/cas"}, spec.Skip)
	k.Dirs.Store = w.Repo
	_, err = k.SpecOf(held.Repo, id)
	require.Equal(t, protocol.CodeFailed, codeOf(err), "the home itself is no work tree")
}

// Before depends on the files kept by the previous step, and on changes made since.
func TestBefore(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: written})
	before := func(s worktree.Step) (*worktree.Checkout, error) {
		s.Thread, s.Dir, s.Last = w.Thread(id), w.Repo, w.Chain(id).Last
		return w.Keeper().Before(ctx, s)
	}
	k, err := before(worktree.Step{})
	require.NoError(t, err)
	require.Equal(t, k.Spec.Tree, k.Spec.Before, "the first step says what it found")
	require.Equal(t, k.Spec.Tree, k.Before)
	k.Release()
	w.Made(id, map[string]string{"a": "made"})
	last := w.Chain(id).Last.Files.Tree
	k, err = before(worktree.Step{})
	require.NoError(t, err)
	require.Empty(t, k.Spec.Before, "nobody has changed anything")
	require.Equal(t, last, k.Before)
	k.Release()

	// For a moment, the process that made the previous step doesn't check the files again.
	k.Check(ctx, w.Chain(id).Last.Step)
	bin := filepath.Join(t.TempDir(), "git")
	require.NoError(t, os.WriteFile(bin, []byte("#!/bin/sh\nexit 1\n"), 0o755))
	environ := w.Env.Environ
	w.Env.Environ = append([]string{"PATH=" + filepath.Dir(bin)}, environ[1:]...)
	next, err := before(worktree.Step{Previous: k})
	require.NoError(t, err)
	require.Equal(t, last, next.Before)
	require.Equal(t, k.Spec, next.Spec)
	next.Release()
	w.Env.Environ = environ
	w.Write(filepath.Join(w.Repo, "mine"), "x")
	w.Clock = w.Clock.Add(2 * time.Second)
	next, err = before(worktree.Step{Previous: k})
	require.NoError(t, err)
	require.NotEqual(t, last, next.Before)
	next.Release()
	for joins, want := range map[bool]bool{false: true, true: false} {
		k, err = before(worktree.Step{Joins: joins})
		require.NoError(t, err)
		require.Equal(t, want, k.Spec.Before == k.Spec.Tree)
		require.Equal(t, joins, k.Before == last)
		k.Release()
	}

	// A repeated step starts with the same files. Different files found there are kept.
	w.Write(filepath.Join(w.Repo, "mine"), "")
	from, after, err := w.Keeper().TreesAround(ctx, w.Thread(id), w.Chain(id))
	require.NoError(t, err)
	w.Write(filepath.Join(w.Repo, "a"), "by hand")
	warned := len(w.Warnings)
	k, err = before(worktree.Step{Restore: from, Known: after})
	require.NoError(t, err)
	require.Equal(t, "one\n", w.Read(filepath.Join(w.Repo, "a")))
	require.Equal(t, from, k.Before)
	require.Len(t, w.Warnings, warned+1, "it says where that is")
	k.Release()
	lock, err := w.Keeper().LockTree(ctx, id, w.Repo)
	require.NoError(t, err, "it was given back")
	require.NoError(t, lock.RemoveAndUnlock())

	w.Change(id, heads.Facts{Workspace: &heads.Workspace{Mode: asItIs}})
	k, err = before(worktree.Step{})
	require.NoError(t, err)
	require.Nil(t, k)
	from, _, err = w.Keeper().TreesAround(ctx, w.Thread(id), w.Chain(id))
	require.NoError(t, err)
	require.Empty(t, from)
}

// If the files cannot be kept, a step runs without them in a person's directory, but not in its own worktree.
func TestNotKept(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{written, inTree} {
		w := worktreetest.New(t)
		id := w.NewThread(worktree.Options{Mode: mode})
		root := w.Workspace(id).Root
		require.NoError(t, os.RemoveAll(filepath.Join(root, ".git")))
		k, err := w.Keeper().Before(t.Context(), worktree.Step{Thread: w.Thread(id), Dir: root})
		require.Nil(t, k)
		require.Equal(t, map[string]protocol.Code{written: "", inTree: protocol.CodeFailed}[mode], codeOf(err))
		require.Len(t, w.Warnings, map[string]int{written: 1, inTree: 0}[mode])
	}
	w := worktreetest.New(t)
	id := w.NewThread(worktree.Options{Mode: inTree})
	require.NoError(t, os.Rename(w.Repo, w.Repo+"-moved"))
	_, err := w.Keeper().Open(t.Context(), id, w.Workspace(id).Root, w.Workspace(id))
	require.Equal(t, protocol.CodeFailed, codeOf(err))
	require.Contains(t, hints.All("", fault.Of(err))[0], "uwf thread fork "+id)
}

// TestCheck checks the warnings after a step and what is shown of it.
func TestCheck(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: written})
	w.Made(id, map[string]string{"a": "made"})
	k, err := w.Keeper().Before(ctx, worktree.Step{Thread: w.Thread(id), Dir: w.Repo, Last: w.Chain(id).Last})
	require.NoError(t, err)
	defer k.Release()
	tree := w.Chain(id).Last.Files.Tree
	for name, tt := range map[string]struct {
		root  string
		files *protocol.Files
		want  int
	}{
		"as it should be":   {w.Repo, &protocol.Files{Tree: tree}, 0},
		"it keeps none":     {"", nil, 1},
		"it has said so":    {w.Repo, nil, 0},
		"of another place":  {"/x", &protocol.Files{Tree: tree}, 1},
		"it lies":           {w.Repo, &protocol.Files{Tree: protocol.Tree("sha1:" + strings.Repeat("1", 40))}, 1},
		"something is left": {w.Repo, &protocol.Files{Tree: tree, Left: []string{"big"}}, 1},
	} {
		w.Warnings = nil
		s := protocol.Step{Agent: "pi", Root: tt.root, Files: tt.files}
		k.Check(ctx, s)
		require.Len(t, w.Warnings, tt.want, name)
		changed := k.Changed(ctx, s)
		if tt.files != nil && tt.files.Left != nil {
			require.Equal(t, &protocol.FileChanges{Left: []string{"big"}}, changed)
		} else {
			require.Nil(t, changed, name)
		}
	}
	(*worktree.Checkout)(nil).Check(ctx, protocol.Step{})
	require.Nil(t, (*worktree.Checkout)(nil).Changed(ctx, protocol.Step{}))
	(*worktree.Checkout)(nil).Tidy(ctx)
	k.Tidy(ctx)
}

// Files left out by an earlier step are reported once.
func TestLeftIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: written})
	w.Settings.Workspace = &protocol.WorkspaceConfig{MaxFileMB: 1}
	w.Made(id, map[string]string{"big": strings.Repeat("x", 1<<20+1)})
	last := w.Chain(id).Last
	require.Equal(t, []string{"big"}, last.Files.Left)
	for _, of := range []struct {
		last *protocol.Files
		want int
	}{{last.Files, 0}, {&protocol.Files{Tree: last.Files.Tree}, 1}} {
		before := *last
		before.Files = of.last
		k, err := w.Keeper().Before(ctx, worktree.Step{Thread: w.Thread(id), Dir: w.Repo, Last: &before})
		require.NoError(t, err)
		w.Warnings = nil
		k.Check(ctx, last.Step)
		require.Len(t, w.Warnings, of.want)
		k.Release()
	}
}

// The files go back to the state before a step, and forward again, unless a person has changed them since.
func TestTravel(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: written})
	w.Made(id, map[string]string{"a": "made", "n": "new"})
	travel := func(forward bool) (*protocol.FileChanges, error) {
		from, to, err := w.Keeper().TreesAround(ctx, w.Thread(id), w.Chain(id))
		if err != nil {
			return nil, err
		}
		if !forward {
			from, to = to, from
		}
		c, err := w.Keeper().Plan(ctx, w.Thread(id), w.Repo, from, to)
		if err != nil {
			return nil, err
		}
		defer c.Release()
		return c.Write(ctx)
	}
	changed, err := travel(false)
	require.NoError(t, err)
	require.Equal(t, &protocol.FileChanges{Changed: []string{"a"}, Removed: []string{"n"}}, changed)
	require.Equal(t, map[string]string{"a": "one\n", "sub/b": "two\n"}, w.Has(w.Repo))
	_, err = travel(false)
	require.NoError(t, err, "they are so already")
	changed, err = travel(true)
	require.NoError(t, err)
	require.Equal(t, &protocol.FileChanges{Changed: []string{"a"}, Added: []string{"n"}}, changed)
	require.Equal(t, map[string]string{"a": "made", "n": "new", "sub/b": "two\n"}, w.Has(w.Repo))
	w.Write(filepath.Join(w.Repo, "a"), "by hand")
	_, err = travel(false)
	require.Equal(t, protocol.CodeFailed, codeOf(err))
	require.Contains(t, hints.All("", fault.Of(err)), "to leave all files as they are: --keep-files")
	require.Equal(t, "by hand", w.Read(filepath.Join(w.Repo, "a")))
	require.NoFileExists(t, w.RunDir(id).File(runfiles.RestoreFile))

	// A step without files doesn't change them.
	w.Step(id, protocol.Step{Role: "plan"}, map[string]any{"$status": "again"})
	w.Warnings = nil
	changed, err = travel(false)
	require.NoError(t, err)
	require.Nil(t, changed)
	require.Len(t, w.Warnings, 1)
	_, err = w.Keeper().StepFiles(ctx, w.At(id))
	require.Equal(t, protocol.CodeNotFound, codeOf(err))
	var none *worktree.NoFilesError
	require.ErrorAs(t, err, &none)
	require.False(t, none.Gone)
}

// While a change for one thread is incomplete, no other thread works in its directory.
func TestAClaimedTree(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	one, two := w.NewThread(worktree.Options{Mode: written}), w.NewThread(worktree.Options{Mode: written})
	w.Made(one, map[string]string{"a": "made"})
	before, after, err := w.Keeper().TreesAround(ctx, w.Thread(one), w.Chain(one))
	require.NoError(t, err)
	dir := w.RunDir(one)
	require.NoError(t, dir.SetIntent(rundir.Intent{Kind: rundir.Prepared, HeadFrom: w.At(one), TreeFrom: after, TreeTo: before}))
	require.NoError(t, w.Keeper().Restore(ctx, w.Thread(one), w.Repo, after, before))
	open := func(id string) error {
		k, err := w.Keeper().Open(ctx, id, w.Repo, w.Workspace(id))
		if err == nil {
			k.Release()
		}
		return err
	}
	require.Equal(t, protocol.CodeLocked, codeOf(open(two)))
	require.NoError(t, open(one))
	require.NoError(t, dir.DropIntent())
	require.NoError(t, open(two))

	// A fork that was killed has no thread that could finish the change.
	fork := strings.Repeat("0", 25) + "1"
	k, err := w.Keeper().Open(ctx, two, w.Repo, w.Workspace(two))
	require.NoError(t, err)
	require.NoError(t, w.Keeper().Claim(k, fork))
	k.Release()
	require.NoError(t, w.RunDir(fork).SetIntent(rundir.Intent{Kind: rundir.Moving, HeadFrom: w.At(one), HeadTo: w.At(one), TreeFrom: after, TreeTo: before}))
	w.Warnings = nil
	require.NoError(t, open(one))
	require.Len(t, w.Warnings, 1)
	require.NoError(t, open(two))
	require.Len(t, w.Warnings, 1)

	// A step without snapshots waits for a fork that is running, but not for one that was killed.
	bare := worktree.Thread{ID: two, Facts: heads.Facts{Workspace: &heads.Workspace{Mode: worktree.ModeNone}}}
	k, err = w.Keeper().Open(ctx, two, w.Repo, w.Workspace(two))
	require.NoError(t, err)
	require.NoError(t, w.Keeper().Claim(k, fork))
	_, err = w.Keeper().Before(ctx, worktree.Step{Thread: bare, Dir: w.Repo})
	require.Equal(t, protocol.CodeLocked, codeOf(err))
	require.Len(t, w.Warnings, 1)
	k.Release()
	for range 2 {
		_, err = w.Keeper().Before(ctx, worktree.Step{Thread: bare, Dir: w.Repo})
		require.NoError(t, err)
		require.Len(t, w.Warnings, 2)
	}
}

// A thread keeps its files if its repository is moved: files of earlier steps are still found.
func TestAMovedRepository(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: written})
	w.Made(id, map[string]string{"a": "first"})
	before := w.Chain(id).Last.Files.Tree
	moved := w.Repo + "-moved"
	require.NoError(t, os.Rename(w.Repo, moved))
	w.Change(id, heads.Facts{Workspace: &heads.Workspace{Mode: inPlace, Root: moved, Repo: filepath.Join(moved, ".git")}})
	w.Made(id, map[string]string{"a": "second"})
	step, err := w.Keeper().FilesOf(ctx, w.Chain(id))
	require.NoError(t, err)
	require.Equal(t, before, step.Before)
	list, err := step.Changes(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, worktree.FileChanges(list).Changed)
	c, err := w.Keeper().Plan(ctx, w.Thread(id), moved, step.After, step.Before)
	require.NoError(t, err)
	defer c.Release()
	_, err = c.Write(ctx)
	require.NoError(t, err)
	require.Equal(t, "first", w.Read(filepath.Join(moved, "a")))
}
