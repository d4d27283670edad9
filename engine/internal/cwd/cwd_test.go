//go:build unix

package cwd_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/util/prosetest"
)

// world is a user's home with typical contents.
type world struct {
	t   *testing.T
	dir string // the parent of the home
}

func newWorld(t *testing.T) world {
	t.Helper()
	dir, err := cwd.Real(t.TempDir())
	require.NoError(t, err)
	w := world{t, dir}
	for _, d := range []string{"home/repo/pkg/deep", "home/repo2", "home/.ssh", "elsewhere/below"} {
		require.NoError(t, os.MkdirAll(w.at(d), 0o755))
	}
	require.NoError(t, os.WriteFile(w.at("home/repo/file"), nil, 0o644))
	return w
}

func (w world) at(path string) string { return filepath.Join(w.dir, filepath.FromSlash(path)) }

func (w world) link(to, name string) {
	w.t.Helper()
	require.NoError(w.t, os.Symlink(to, w.at(name)))
}

// git runs git without any settings.
func (w world) git(dir string, args ...string) {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.org"}, args...)...)
	cmd.Dir, cmd.Env = w.at(dir), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.at("home"), "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, "%s", out)
}

// rules returns the rules of a thread started in a directory.
func (w world) rules(thread string, allowed ...string) cwd.Rules {
	r := cwd.Rules{Thread: w.at(thread), User: w.at("home")}
	for _, a := range allowed {
		r.Allowed = append(r.Allowed, w.at(a))
	}
	return r
}

// leads requires that a location resolves to a directory.
func (w world) leads(r cwd.Rules, location, want string) {
	w.t.Helper()
	got, err := r.Resolve(location)
	require.NoError(w.t, err, location)
	assert.Equal(w.t, w.at(want), got)
}

// refused requires that a location is refused.
func (w world) refused(r cwd.Rules, location string, never bool) {
	w.t.Helper()
	_, err := r.Resolve(location)
	kind := cwd.Outside
	if never {
		kind = cwd.Home
	}
	requireRefused(w.t, err, kind)
}

func requireRefused(t *testing.T, err error, kind cwd.Kind) *cwd.RefusedError {
	t.Helper()
	var no *cwd.RefusedError
	require.ErrorAs(t, err, &no)
	require.Equal(t, kind, no.Kind, "%v", err)
	return no
}

func TestInsideAndOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.rules("home/repo")
	for location, want := range map[string]string{
		"": "home/repo", ".": "home/repo", "pkg": "home/repo/pkg", "pkg/": "home/repo/pkg", "pkg//deep/.": "home/repo/pkg/deep",
		"pkg/../pkg": "home/repo/pkg", "../repo/pkg": "home/repo/pkg",
		w.at("home/repo"): "home/repo", w.at("home/repo") + "//pkg/": "home/repo/pkg",
	} {
		w.leads(r, location, want)
	}
	for _, location := range []string{"../repo2", w.at("home/repo2"), "pkg/../../.ssh/", w.at("home/.ssh"), w.at("elsewhere")} {
		w.refused(r, location, false)
	}
	for _, location := range []string{"..", "../", "../.", w.at("home"), w.at("home") + "/", "../..", w.dir, "/", "//", w.at("home/.ssh/..")} {
		w.refused(r, location, true)
	}
	_, err := r.Resolve("none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	var file *cwd.NoDirError
	_, err = r.Resolve("file")
	require.ErrorAs(t, err, &file)
}

func TestLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.rules("home/repo")
	w.link("pkg", "home/repo/in")
	w.link("../repo2", "home/repo/out")
	w.link(w.at("home"), "home/repo/home")
	w.link("out", "home/repo/twice")
	w.link("../../repo2", "home/repo/pkg/deeper")
	w.link("..", "home/repo/pkg/up") // inside: it resolves to the repository
	w.link("../../../..", "home/repo/pkg/deep/top")
	w.leads(r, "in/deep", "home/repo/pkg/deep")
	w.leads(r, "pkg/up/pkg", "home/repo/pkg")
	w.leads(r, "out/../pkg", "home/repo/pkg") // interpreted as a person would
	for _, location := range []string{"out", "twice", "pkg/deeper", "pkg/up/out/", "home/.ssh", "home/repo2"} {
		w.refused(r, location, false)
	}
	for _, location := range []string{"home", "home/", "pkg/deep/top", "home/."} {
		w.refused(r, location, true)
	}
	w.link("loop", "home/repo/loop")
	_, err := r.Resolve("loop")
	require.Error(t, err)

	// Each visit is checked again.
	require.NoError(t, os.Remove(w.at("home/repo/in")))
	w.link("../repo2", "home/repo/in")
	w.refused(r, "in", false)
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link("elsewhere", "alias")
	w.leads(w.rules("home/repo", "elsewhere"), w.at("elsewhere/below"), "elsewhere/below")
	w.leads(w.rules("home/repo", "elsewhere/"), "../../elsewhere", "elsewhere")
	w.leads(w.rules("home/repo", "alias"), w.at("elsewhere/below"), "elsewhere/below")
	w.leads(w.rules("home/repo", "none", "home"), "../repo2", "home/repo2")
	w.refused(w.rules("home/repo", "elsewhere/below"), w.at("elsewhere"), false)
	w.refused(w.rules("home/repo", "else"), w.at("elsewhere"), false)
	for _, allowed := range []string{"home", ".", "/"} {
		w.refused(w.rules("home/repo", allowed), w.at("home"), true)
		w.refused(w.rules("home/repo", allowed), w.dir, true)
	}
}

// A thread started in the home directory, or above it, may work there.
func TestThreadAtHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.leads(w.rules("home"), "", "home")
	w.leads(w.rules("home"), w.at("home/repo"), "home/repo")
	w.refused(w.rules("home"), "..", true)
	w.leads(w.rules("."), "", ".")
	w.leads(w.rules("."), "home/repo", "home/repo")
	w.refused(w.rules("."), "home", true)
}

// The thread's directory, or its parent, becomes a link after the start.
func TestMovedThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.rules("home/repo/pkg")
	require.NoError(t, os.RemoveAll(w.at("home/repo/pkg")))
	w.link(w.at("home"), "home/repo/pkg")
	for _, location := range []string{"", "repo2", w.at("home/repo2")} {
		_, err := r.Resolve(location)
		require.Equal(t, w.at("home"), requireRefused(t, err, cwd.Moved).Dir)
	}
	r = w.rules("elsewhere/below", "home")
	require.NoError(t, os.Rename(w.at("elsewhere"), w.at("home/elsewhere")))
	w.link(w.at("home/elsewhere"), "elsewhere")
	w.leads(r, "", "home/elsewhere/below")
	r.Allowed = nil
	_, err := r.Resolve("")
	requireRefused(t, err, cwd.Moved)
}

// An imported thread may contain anything.
func TestThreadOfAnotherSystem(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"..", ".", `C:\work`, ""} {
		_, err := cwd.Rules{Thread: dir}.Resolve("")
		prosetest.Error(t, err)
	}
}

func TestWorkTrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, repo := range []string{"home/repo", "home/repo2"} {
		w.git(repo, "init", "-q")
		w.git(repo, "commit", "-q", "--allow-empty", "-m", "c")
		w.git(repo, "worktree", "add", "-q", "--detach", w.dir+"/trees/"+filepath.Base(repo))
	}
	require.NoError(t, os.MkdirAll(w.at("trees/repo/sub"), 0o755))
	w.link(w.at("trees/repo"), "home/repo/tree")
	for _, thread := range []string{"home/repo", "home/repo/pkg"} {
		r := w.rules(thread)
		w.leads(r, w.at("trees/repo"), "trees/repo")
		w.leads(r, w.at("trees/repo/sub"), "trees/repo/sub")
		w.leads(r, w.at("home/repo/tree/sub"), "trees/repo/sub")
		w.refused(r, w.at("trees/repo2"), false)
		w.refused(r, w.at("trees"), false)
		w.refused(r, w.at("home/repo2"), false)
	}
	w.refused(w.rules("home/repo/pkg"), "..", false)

	// From one work tree to another, but not to the main one, from which a person may want to exclude agents.
	w.git("home/repo", "worktree", "add", "-q", "--detach", w.dir+"/trees/more")
	w.leads(w.rules("trees/more"), w.at("trees/repo/sub"), "trees/repo/sub")
	w.refused(w.rules("trees/more"), w.at("home/repo"), false)
	w.refused(w.rules("trees/repo/sub"), w.at("trees/repo"), false)
}

// Files written by an agent in its directory don't allow another one.
func TestForgedWorkTrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, repo := range []string{"home/repo", "home/repo2"} {
		w.git(repo, "init", "-q")
		w.git(repo, "commit", "-q", "--allow-empty", "-m", "c")
	}
	w.git("home/repo2", "worktree", "add", "-q", "--detach", w.dir+"/tree2")
	r := w.rules("home/repo")
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(w.at(path)), 0o755))
		require.NoError(t, os.WriteFile(w.at(path), []byte(text+"\n"), 0o644))
	}

	// Its repository lists a directory that isn't a work tree, or belongs to another repository.
	write("home/repo/.git/worktrees/x/gitdir", w.at("home/repo2/.git"))
	write("home/repo/.git/worktrees/x/commondir", "../..")
	write("home/repo/.git/worktrees/y/gitdir", w.at("elsewhere/.git"))
	write("home/repo/.git/worktrees/z/gitdir", w.at("tree2/.git"))
	w.git("home/repo", "config", "core.worktree", w.at("elsewhere"))
	for _, dir := range []string{"home/repo2", "elsewhere", "tree2"} {
		w.refused(r, w.at(dir), false)
	}
	// It claims to belong to another repository.
	require.NoError(t, os.Rename(w.at("home/repo/.git"), w.at("home/repo/old")))
	for _, to := range []string{w.at("home/repo2/.git"), "../repo2/.git", w.at("home/repo2/.git/worktrees/tree2")} {
		write("home/repo/.git", "gitdir: "+to)
		w.refused(r, w.at("tree2"), false)
		w.refused(r, w.at("home/repo2"), false)
		require.NoError(t, os.Remove(w.at("home/repo/.git")))
	}
	for _, to := range []string{"../repo2/.git", w.at("tree2/.git")} {
		w.link(to, "home/repo/.git")
		w.refused(r, w.at("tree2"), false)
		require.NoError(t, os.Remove(w.at("home/repo/.git")))
	}
	// Its own .git refers to a directory inside it that refers to the other.
	write("home/repo/own/worktrees/x/gitdir", w.at("home/repo/.git"))
	write("home/repo/own/worktrees/x/commondir", w.at("home/repo2/.git"))
	write("home/repo/own/HEAD", "ref: refs/heads/main")
	write("home/repo/.git", "gitdir: own/worktrees/x")
	w.refused(r, w.at("tree2"), false)
	require.NoError(t, os.Remove(w.at("home/repo/own/HEAD")))
	require.NoError(t, os.RemoveAll(w.at("home/repo/own")))
	w.link(w.at("home/repo2/.git"), "home/repo/own")
	w.refused(r, w.at("tree2"), false)
}

// Inside the thread's directory there are places from which git, uwf or other programs take their
// configuration.
func TestSpecialPlacesAreNoWorkplace(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	home, err := filepath.EvalSymlinks(home)
	require.NoError(t, err)
	for _, dir := range []string{
		"repo/.git/hooks", "repo/.GIT", "repo/svc/.workflow", "repo/.workflows", "repo/.uwf", "repo/bare/objects", "repo/bare/refs", "repo/bare/hooks",
		"repo/.worktrees/x", "repo/src/.hidden", ".ssh", ".config/fish", ".local/bin", "repo/a/.ssh",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(home, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(home, "repo/bare/HEAD"), nil, 0o600))
	require.NoError(t, os.Symlink(".git/hooks", filepath.Join(home, "repo/lk")))
	repo := cwd.Rules{Thread: filepath.Join(home, "repo"), User: home}
	for _, location := range []string{".git/hooks", "lk", ".git", ".GIT", "svc/.workflow", ".workflows", ".uwf", "bare", "bare/hooks", "a/.ssh"} {
		_, err := repo.Resolve(location)
		requireRefused(t, err, cwd.Special)
	}
	for _, location := range []string{".worktrees/x", "src/.hidden", "svc"} {
		_, err := repo.Resolve(location)
		require.NoError(t, err, location)
	}
	user := cwd.Rules{Thread: home, User: home}
	for _, location := range []string{".ssh", ".config/fish", ".local/bin", "repo/.git/hooks"} {
		_, err := user.Resolve(location)
		require.Error(t, err, location)
	}
	user.Allowed = []string{filepath.Join(home, ".config")}
	_, err = user.Resolve(".config/fish")
	require.NoError(t, err, "the config lists it")
}

// Starting a thread in or below a special place must be allowed in the config. A work tree below one is
// allowed.
func TestSpecialPlacesStartNoThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, dir := range []string{"home/repo/.git/hooks", "home/.config/fish", "home/.aws", "home/.tool/trees/x/.git", "home/.tool/trees/x/src", "bare.git/objects", "bare.git/refs", "bare.git/main/src", "elsewhere/.ssh/sub"} {
		require.NoError(t, os.MkdirAll(w.at(dir), 0o755))
	}
	for _, file := range []string{"bare.git/HEAD", "bare.git/main/.git", "home/.aws/.git"} {
		require.NoError(t, os.WriteFile(w.at(file), nil, 0o600))
	}
	for _, thread := range []string{
		"home/repo/.git", "home/repo/.git/hooks", "home/.ssh", "home/.config", "home/.config/fish", "home/.aws", "home/.tool", "home/.tool/trees", "bare.git", "bare.git/refs", "elsewhere/.ssh/sub",
	} {
		_, err := w.rules(thread).Resolve("")
		requireRefused(t, err, cwd.Special)
		w.leads(w.rules(thread, thread), "", thread)
	}
	for _, thread := range []string{"home/.tool/trees/x", "home/.tool/trees/x/src", "bare.git/main", "bare.git/main/src"} {
		w.leads(w.rules(thread), "", thread)
	}
}
