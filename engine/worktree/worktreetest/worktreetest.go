// Package worktreetest provides homes with in-memory threads that work in a git repository, for tests. The
// repository is created once per test binary, and each test gets a copy.
package worktreetest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/env"
)

// World is a home and a repository with one commit, which contains the files a ("one\n") and sub/b ("two\n").
type World struct {
	*statustest.World
	Repo string // root of the repository
}

// New returns a new world.
func New(t testing.TB) *World {
	w := &World{World: statustest.New(t)}
	dir, err := filepath.EvalSymlinks(w.Env.Dir)
	require.NoError(t, err)
	w.Repo = filepath.Join(dir, "repo")
	w.Dirs.Home = filepath.Join(dir, "home")
	w.Dirs.Store = filepath.Join(w.Dirs.Home, "cas")
	w.Env.Dir = w.Repo
	w.Env.Environ, err = environ(dir)
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(w.Repo, os.DirFS(template(t))))
	return w
}

func environ(home string) ([]string, error) {
	process, err := env.OS()
	return []string{
		"PATH=" + process.Get("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@x", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@x",
	}, err
}

// template returns the repository to copy, which exists until [Clean] is called.
func template(t testing.TB) string {
	dir, err := made()
	require.NoError(t, err)
	return dir
}

var made = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "repo")
	if err != nil {
		return "", err
	}
	c := exec.Command("sh", "-ec", `git init -q -b main; printf 'one\n' >a; mkdir sub; printf 'two\n' >sub/b; git add .; git commit -qm first; rm -rf .git/hooks`)
	c.Dir = dir
	if c.Env, err = environ(dir); err != nil {
		return dir, err
	}
	return dir, c.Run()
})

// Clean removes the template repository. Call it in TestMain, after the tests.
func Clean() {
	if dir, err := made(); err == nil {
		_ = os.RemoveAll(dir)
	}
}

// Git runs git in a directory and returns its output.
func (w *World) Git(dir string, args ...string) string {
	w.T.Helper()
	c := exec.CommandContext(w.T.Context(), "git", args...)
	c.Dir, c.Env = dir, w.Env.Environ
	out, err := c.CombinedOutput()
	require.NoError(w.T, err, string(out))
	return strings.TrimSpace(string(out))
}

// Keeper returns the keeper of this home's files.
func (w *World) Keeper() worktree.Keeper {
	return worktree.Keeper{
		Env: w.Env, Dirs: w.Dirs, FS: w.FS, Heads: w.Heads, Config: w.Config, Read: w.Store, Warn: w.Warn,
		RunDir: func(id string) rundir.Dir { return w.RunDir(id) },
	}
}

// Write writes a file, or removes it if the content is empty.
func (w *World) Write(path, content string) {
	w.T.Helper()
	if content == "" {
		require.NoError(w.T, os.Remove(path))
		return
	}
	require.NoError(w.T, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(w.T, os.WriteFile(path, []byte(content), 0o644))
}

// Read returns the content of a file, or "" if it doesn't exist.
func (w *World) Read(path string) string {
	data, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(w.T, err)
	}
	return string(data)
}

// Has returns the contents of all files below a directory, without git's own.
func (w *World) Has(dir string) map[string]string {
	w.T.Helper()
	all := map[string]string{}
	require.NoError(w.T, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" {
			if err == nil && d.IsDir() {
				return filepath.SkipDir
			}
			return err
		}
		if rel, _ := filepath.Rel(dir, path); d.Type().IsRegular() {
			all[filepath.ToSlash(rel)] = w.Read(path)
		}
		return nil
	}))
	return all
}

// Thread returns a thread as its lock's holder sees it.
func (w *World) Thread(id string) worktree.Thread {
	w.T.Helper()
	at, err := heads.Find(w.T.Context(), w.Heads, id)
	require.NoError(w.T, err)
	facts, err := w.Heads.Facts(w.T.Context(), id)
	require.NoError(w.T, err)
	return worktree.Thread{ID: id, Head: at.Head, Ended: at.End != nil, Facts: facts}
}

// Chain returns the chain of a thread.
func (w *World) Chain(id string) *thread.Thread {
	w.T.Helper()
	t, err := thread.Open(w.T.Context(), w.Store, w.At(id))
	require.NoError(w.T, err)
	return t
}

// Workspace returns the workspace of a thread.
func (w *World) Workspace(id string) *heads.Workspace { return w.Thread(id).Facts.Workspace }

// NewThread starts a thread of a workflow with one role, plan. o describes how its files are kept.
func (w *World) NewThread(o worktree.Options) string {
	w.T.Helper()
	ctx := w.T.Context()
	id := w.Start(w.Workflow(statustest.Line(map[string]protocol.Role{"plan": {}}, "plan")), heads.Facts{})
	its, err := w.Keeper().New(ctx, o, id, "line", w.Repo)
	require.NoError(w.T, err)
	require.NoError(w.T, w.Heads.SetFacts(ctx, id, heads.Facts{Workspace: its}))
	require.NoError(w.T, w.Keeper().Created(id))
	return id
}

// Made makes a step of a thread whose agent writes the given files below its directory, as [World.Write]
// does. Its snapshot is taken as in a real step.
func (w *World) Made(id string, written map[string]string) protocol.Hash {
	w.T.Helper()
	return w.MadeBy(id, protocol.Step{Role: "plan"}, "again", written)
}

// MadeBy is like [World.Made] for a given step and answer.
func (w *World) MadeBy(id string, s protocol.Step, answer string, written map[string]string) protocol.Hash {
	w.T.Helper()
	ctx := w.T.Context()
	t := w.Thread(id)
	dir := w.Chain(id).Start.Cwd
	if t.Facts.Workspace != nil {
		dir = t.Facts.Workspace.Root
	}
	k, err := w.Keeper().Before(ctx, worktree.Step{Thread: t, Dir: dir, Last: w.Chain(id).Last})
	require.NoError(w.T, err)
	defer k.Release()
	for path, content := range written {
		w.Write(filepath.Join(dir, path), content)
	}
	if k != nil {
		taken, err := snapshot.Take(ctx, w.Env, k.Spec)
		require.NoError(w.T, err)
		s.Root, s.Files = k.Spec.Root, &protocol.Files{Tree: taken.Tree, Before: k.Spec.Before, Left: taken.Left}
	}
	return w.Step(id, s, statustest.Answer(answer))
}

// Change changes the facts of a thread.
func (w *World) Change(id string, facts heads.Facts) {
	w.T.Helper()
	require.NoError(w.T, w.Heads.SetFacts(w.T.Context(), id, facts))
}

// Context returns the context of the test.
func (w *World) Context() context.Context { return w.T.Context() }

// Bundle returns a bundle of a thread with its files.
func (w *World) Bundle(id string) *bundle.File {
	w.T.Helper()
	ctx := w.T.Context()
	t := w.Chain(id)
	m := bundle.Manifest{Hash: w.Store.Algorithm(), Threads: []bundle.Thread{{Thread: id, Head: t.Head}}}
	objects, missing, err := w.Keeper().AddFiles(ctx, &m)
	require.NoError(w.T, err)
	require.Zero(w.T, missing)
	defer func() { require.NoError(w.T, objects.Close()) }()
	var out bytes.Buffer
	_, err = bundle.Write(ctx, &out, w.Store, m, objects)
	require.NoError(w.T, err)
	spool, err := os.CreateTemp(w.Env.Environ[1][len("HOME="):], "spool")
	require.NoError(w.T, err)
	w.T.Cleanup(func() { _ = spool.Close() })
	f, err := bundle.Receive(ctx, &out, spool)
	require.NoError(w.T, err)
	return f
}

// Import imports a thread of another home with its files, as uwf thread import does.
func (w *World) Import(from *World, id string) {
	w.T.Helper()
	ctx := w.T.Context()
	w.Store = from.Store
	t := from.Chain(id)
	f := from.Bundle(id)
	_, err := w.Keeper().KeepFiles(ctx, f)
	require.NoError(w.T, err)
	facts := heads.Facts{Imported: &heads.Imported{From: "x.uwfb", AtMs: w.Clock.UnixMilli()}}
	if its := from.Workspace(id); its != nil && its.Base != "" {
		facts.Repository = &heads.Repository{Base: its.Base}
	}
	require.NoError(w.T, w.Heads.Add(ctx, id, t.Head, facts))
}
