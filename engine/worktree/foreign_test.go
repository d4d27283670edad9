package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/engine/worktree/worktreetest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
)

// A foreign thread works where its files are, or else in a new place with them, or else nowhere.
func TestIn(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a": "made", "n": "new", "sub/b": "two\n"}
	for name, tt := range map[string]struct {
		make    func(w *world, dir string) // prepares the directory chosen by a person
		dir     string                     // below the repository; "/": an empty directory
		facts   heads.Facts
		keep    bool
		plain   bool // none of its steps has files
		mode    string
		refused protocol.Code // the error of the step
		code    protocol.Code
		has     map[string]string // the files where it works
	}{
		"it has no files":  {plain: true, mode: asItIs, has: map[string]string{"a": "one\n", "sub/b": "two\n"}},
		"they are there":   {make: func(w *world, dir string) { lay(w, dir, files) }, mode: inPlace, has: files},
		"others are there": {mode: inTree, has: files},
		"below the root":   {dir: "sub", mode: inTree, has: files},
		"nothing is there": {dir: "/", mode: inPlace, has: files},
		"something is there": {dir: "/", make: func(w *world, dir string) { w.Write(filepath.Join(dir, "x"), "y") }, mode: asItIs,
			refused: protocol.CodeNotFound},
		"another repository": {facts: heads.Facts{Repository: &heads.Repository{Base: "1111111111111111111111111111111111111111"}}, mode: asItIs,
			refused: protocol.CodeFailed},
		"as they are": {keep: true, mode: inPlace, has: map[string]string{"a": "one\n", "sub/b": "two\n"}},
		"no commit": {make: func(w *world, dir string) { w.Git(dir, "update-ref", "-d", "HEAD") }, mode: asItIs,
			refused: protocol.CodeNotFound},
		"it was told before": {facts: heads.Facts{Imported: &heads.Imported{Confirmed: true}}, mode: inPlace,
			has: map[string]string{"a": "one\n", "sub/b": "two\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, w := worktreetest.New(t), worktreetest.New(t)
			id := from.NewThread(worktree.Options{Mode: written})
			if tt.plain {
				from.Change(id, heads.Facts{Workspace: &heads.Workspace{Mode: asItIs, Root: from.Repo}})
				from.Made(id, nil)
			} else {
				from.Made(id, map[string]string{"a": "made", "n": "new"})
				from.Made(id, nil)
			}
			w.Git(w.Repo, "fetch", "-q", from.Repo, "HEAD") // a clone with the commit
			w.Import(from, id)
			w.Change(id, tt.facts)
			dir := filepath.Join(w.Repo, tt.dir)
			if tt.dir == "/" {
				dir = filepath.Join(filepath.Dir(w.Repo), "empty")
				require.NoError(t, os.Mkdir(dir, 0o755))
			}
			if tt.make != nil {
				tt.make(w, dir)
			}
			at, elsewhere, err := w.Keeper().WorkspaceIn(t.Context(), w.Thread(id), &heads.Workspace{Mode: asItIs, Root: dir}, tt.keep)
			require.Equal(t, tt.code, codeOf(err), "%v", err)
			require.Equal(t, tt.refused, codeOf(elsewhere.Refused), "%v", elsewhere.Refused)
			require.Equal(t, tt.mode, at.Mode)
			if tt.refused != "" {
				require.NotEmpty(t, hints.All("", fault.Of(elsewhere.Refused)))
				require.Equal(t, w.Chain(id).Last.Files.Tree, elsewhere.Tree)
				return
			}
			root := at.Root
			if tt.mode == inTree {
				require.Equal(t, filepath.Join(w.Dirs.Worktree(id), tt.dir), at.Root)
				require.Equal(t, map[string]string{"a": "one\n", "sub/b": "two\n"}, w.Has(w.Repo), "the person's stay as they are")
				require.Len(t, w.Warnings, 1)
				root = w.Dirs.Worktree(id)
			}
			require.Equal(t, tt.has, w.Has(root))
		})
	}
}

// lay writes files.
func lay(w *world, dir string, all map[string]string) {
	for path, content := range all {
		w.Write(filepath.Join(dir, path), content)
	}
}

// A thread with its own worktree works nowhere else.
func TestInAnotherDirectory(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	id := w.NewThread(worktree.Options{Mode: inTree})
	w.Made(id, map[string]string{"a": "made"})
	in := func(dir string) (*heads.Workspace, error) {
		at, none, err := w.Keeper().WorkspaceIn(ctx, w.Thread(id), &heads.Workspace{Mode: asItIs, Root: dir}, false)
		require.Zero(t, none)
		return at, err
	}
	at, err := in(w.Repo)
	require.NoError(t, err)
	require.Equal(t, w.Workspace(id), at)
	_, err = in(filepath.Dir(w.Repo))
	require.Equal(t, protocol.CodeFailed, codeOf(err))

	// A worktree with the files of an earlier step gets the last step's files if the thread continued
	// elsewhere.
	k, err := w.Keeper().Before(ctx, worktree.Step{Thread: w.Thread(id), Dir: at.Root, Last: w.Chain(id).Last})
	require.NoError(t, err)
	first := k.Spec.Tree
	k.Release()
	w.Made(id, map[string]string{"a": "made elsewhere"})
	w.Write(filepath.Join(at.Root, "a"), "made")
	w.Change(id, heads.Facts{Imported: &heads.Imported{Inherited: true}})
	_, err = in(w.Repo)
	require.NoError(t, err)
	require.Equal(t, "made elsewhere", w.Read(filepath.Join(at.Root, "a")))
	require.NotEqual(t, first, w.Chain(id).Last.Files.Tree)
	w.Write(filepath.Join(at.Root, "a"), "by hand")
	_, err = in(w.Repo)
	require.Equal(t, protocol.CodeFailed, codeOf(err), "that is nobody's to throw away")
	require.Equal(t, "by hand", w.Read(filepath.Join(at.Root, "a")))
	require.NoError(t, os.RemoveAll(w.Dirs.Worktree(id)))
	_, err = in(w.Repo)
	require.NoError(t, err)
	require.Equal(t, "made elsewhere", w.Read(filepath.Join(at.Root, "a")), "it is made again")
}

// Imported files are kept for their threads, and can be exported.
func TestBundledFiles(t *testing.T) {
	t.Parallel()
	from, w := worktreetest.New(t), worktreetest.New(t)
	ctx := t.Context()
	id := from.NewThread(worktree.Options{Mode: written})
	from.Made(id, map[string]string{"a": "made"})
	from.Made(id, map[string]string{"a": "made again"})
	f := from.Bundle(id)
	require.Len(t, f.Manifest.Trees, 3)
	w.Store = from.Store
	n, err := w.Keeper().KeepFiles(ctx, f)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	store, _, err := w.Keeper().Finder().Find(ctx, "", f.Manifest.Trees[0])
	require.NoError(t, err)
	require.Equal(t, w.Keeper().Imported("sha1"), store)
	require.NoError(t, w.Heads.Add(ctx, id, from.At(id), heads.Facts{}))
	require.Len(t, w.Bundle(id).Manifest.Trees, 3)

	between, err := w.Keeper().FilesBetween(ctx, *w.Chain(id).Last.Prev, w.At(id))
	require.NoError(t, err)
	list, err := between.Changes(ctx)
	require.NoError(t, err)
	require.Equal(t, &protocol.FileChanges{Changed: []string{"a"}}, worktree.FileChanges(list))
	var wrong []worktree.FileFault
	count, err := w.Keeper().CheckFiles(ctx, func(f worktree.FileFault) { wrong = append(wrong, f) })
	require.NoError(t, err)
	require.Equal(t, 3, count)
	require.Empty(t, wrong)

	require.NoError(t, os.RemoveAll(store))
	_, err = w.Keeper().CheckFiles(ctx, func(f worktree.FileFault) { wrong = append(wrong, f) })
	require.NoError(t, err)
	require.Len(t, wrong, 3)
	require.Equal(t, worktree.FileFault{Thread: id, Step: w.At(id), Tree: w.Chain(id).Last.Files.Tree}, wrong[0])
	_, err = w.Keeper().StepFiles(ctx, w.At(id))
	var none *worktree.NoFilesError
	require.ErrorAs(t, err, &none)
	require.True(t, none.Gone)
	_, missing, err := w.Keeper().AddFiles(ctx, &f.Manifest)
	require.NoError(t, err)
	require.Equal(t, 3, missing)
}

// A repository for a foreign thread is made completely or not at all. An interrupted one is made again.
func TestNewRepository(t *testing.T) {
	t.Parallel()
	from, w := worktreetest.New(t), worktreetest.New(t)
	ctx := t.Context()
	id := from.NewThread(worktree.Options{Mode: written})
	from.Made(id, map[string]string{"a": "made"})
	w.Import(from, id)
	step, err := w.Keeper().StepFiles(ctx, w.At(id))
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		left  bool // by a killed process
		below string
		tree  protocol.Tree
		want  bool
	}{
		"empty":     {tree: step.After, want: true},
		"below":     {tree: step.After, below: "sub/deep", want: true},
		"cut off":   {tree: step.After, left: true, want: true},
		"no files":  {tree: "sha1:2222222222222222222222222222222222222222"},
		"leads out": {tree: step.After, below: "../x"},
	} {
		dir := filepath.Join(filepath.Dir(w.Repo), name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		if tt.left {
			w.Write(filepath.Join(dir, ".git", "uwf-unfinished"), "x")
			w.Write(filepath.Join(dir, ".git", "HEAD"), "torn")
		}
		at, err := w.Keeper().NewRepository(ctx, id, dir, tt.below, step.Before, tt.tree)
		require.Equal(t, tt.want, err == nil, "%s: %v", name, err)
		require.NoFileExists(t, filepath.Join(dir, ".git", "uwf-unfinished"))
		if !tt.want {
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, entries, name)
			continue
		}
		require.Equal(t, filepath.Join(dir, tt.below), at.Root)
		require.Equal(t, map[string]string{"a": "made", "sub/b": "two\n"}, w.Has(dir))
		require.Equal(t, "one", w.Git(dir, "show", "HEAD:a"))
		require.Equal(t, "1", w.Git(dir, "rev-list", "--count", "HEAD"))
	}
}

// A child that works in its parent's files doesn't work without them.
func TestInOfAChild(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx := t.Context()
	top := w.NewThread(worktree.Options{Mode: asItIs})
	child := w.NewThread(worktree.Options{Mode: asItIs})
	w.Change(child, heads.Facts{Imported: &heads.Imported{}, Parent: &heads.Parent{Thread: top}})
	in := func(dir string) error {
		_, elsewhere, err := w.Keeper().WorkspaceIn(ctx, w.Thread(child), &heads.Workspace{Mode: asItIs, Root: dir}, false)
		require.NoError(t, err)
		return elsewhere.Refused
	}
	require.NoError(t, in(filepath.Dir(w.Repo)), "nobody knows of files")
	w.Change(top, heads.Facts{Repository: &heads.Repository{Base: w.Git(w.Repo, "rev-parse", "HEAD")}})
	require.Equal(t, protocol.CodeInvalid, codeOf(in(filepath.Dir(w.Repo))))
	require.NoError(t, in(w.Repo))

	require.Nil(t, w.Keeper().WithFiles(ctx, w.At(child)))
	w.Change(child, heads.Facts{Workspace: &heads.Workspace{Mode: inPlace, Root: w.Repo}})
	w.Made(child, nil)
	require.Equal(t, w.At(child), w.Keeper().WithFiles(ctx, w.At(child)).Head)
}

// If git cannot make a worktree, existing files stay, and the error has a hint how to find the cause.
func TestWorktreeThatGitRefuses(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	const id = "06EBX0A2S0ABCDEFGHJKMNPQRS"
	w.Write(filepath.Join(w.Repo, ".git", "refs", "heads", "uwf", "w-mnpqrs", "x"), w.Git(w.Repo, "rev-parse", "HEAD")+"\n")
	_, err := w.Keeper().New(t.Context(), worktree.Options{Mode: inTree}, id, "w", w.Repo)
	require.Equal(t, protocol.CodeFailed, codeOf(err))
	require.Contains(t, hints.All("", fault.Of(err))[0], "git -C "+w.Repo+" worktree add")
	require.NoDirExists(t, w.Dirs.Worktree(id))
	require.Contains(t, w.Git(w.Repo, "branch", "--list", "uwf/*"), "uwf/w-mnpqrs/x")
}
