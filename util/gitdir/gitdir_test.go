package gitdir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/gitdir"
)

// repository creates what "git init top" creates.
func repository(t *testing.T, top string) (git string) {
	t.Helper()
	git = filepath.Join(top, ".git")
	require.NoError(t, os.MkdirAll(git, 0o755))
	write(t, filepath.Join(git, "HEAD"), "ref: refs/heads/main\n")
	return git
}

// linked creates what "git worktree add tree" creates.
func linked(t *testing.T, git, tree string) {
	t.Helper()
	own := filepath.Join(git, "worktrees", filepath.Base(tree))
	require.NoError(t, os.MkdirAll(own, 0o755))
	require.NoError(t, os.MkdirAll(tree, 0o755))
	write(t, filepath.Join(tree, ".git"), "gitdir: "+filepath.ToSlash(own)+"\n")
	write(t, filepath.Join(own, "gitdir"), filepath.ToSlash(filepath.Join(tree, ".git"))+"\n")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

func TestLinkedTrees(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	git := repository(t, filepath.Join(dir, "main"))
	tree := filepath.Join(dir, "tree")
	linked(t, git, tree)
	deep := filepath.Join(tree, "a", "b")
	require.NoError(t, os.MkdirAll(deep, 0o755))

	for _, in := range []string{filepath.Join(dir, "main"), tree, deep} {
		got, ok := gitdir.Repository(in)
		require.True(t, ok, in)
		assert.Equal(t, git, got)
	}
	top, ok := gitdir.Holds(git, deep)
	require.True(t, ok)
	assert.Equal(t, tree, top)
	_, ok = gitdir.Holds(git, filepath.Join(dir, "main"))
	assert.False(t, ok, "the main work tree is not linked")
	_, ok = gitdir.Repository(dir)
	assert.False(t, ok)

	other := repository(t, filepath.Join(dir, "other"))
	_, ok = gitdir.Holds(other, tree)
	assert.False(t, ok, "the work tree of another repository")
}

func TestRelativePointers(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	git := repository(t, filepath.Join(dir, "main"))
	tree := filepath.Join(dir, "tree")
	linked(t, git, tree)
	write(t, filepath.Join(tree, ".git"), "gitdir: ../main/.git/worktrees/tree\n")
	write(t, filepath.Join(git, "worktrees", "tree", "gitdir"), "../../../../tree/.git\n")
	got, ok := gitdir.Link(tree)
	require.True(t, ok)
	assert.Equal(t, git, got)
}

// A repository next to its only work trees, as created by "git clone --bare url .bare" with a .git file that
// points to it.
func TestRepositoryWithinTheTree(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	bare := filepath.Join(dir, ".bare")
	require.NoError(t, os.Mkdir(bare, 0o755))
	write(t, filepath.Join(bare, "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(dir, ".git"), "gitdir: ./.bare\n")
	got, ok := gitdir.Repository(dir)
	require.True(t, ok)
	assert.Equal(t, bare, got)
}

// Anyone who works in a directory can write one of the two references.
func TestForgedPointers(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	mine, victim := filepath.Join(dir, "mine"), filepath.Join(dir, "victim")
	git, theirs := repository(t, mine), repository(t, victim)

	// The repository claims a directory without a reference back.
	home := filepath.Join(dir, "home")
	linked(t, git, home)
	require.NoError(t, os.Remove(filepath.Join(home, ".git")))
	_, ok := gitdir.Holds(git, home)
	assert.False(t, ok)
	_, ok = gitdir.Holds(git, victim)
	assert.False(t, ok)

	// A tree claims a repository, or one of its work trees, without a reference back.
	tree := filepath.Join(dir, "tree")
	linked(t, theirs, tree)
	claims := filepath.Join(dir, "claims")
	require.NoError(t, os.Mkdir(claims, 0o755))
	for _, to := range []string{theirs, filepath.Join(theirs, "worktrees", "tree"), "../victim/.git"} {
		write(t, filepath.Join(claims, ".git"), "gitdir: "+to+"\n")
		_, ok := gitdir.Repository(claims)
		assert.False(t, ok, to)
		_, ok = gitdir.Holds(theirs, claims)
		assert.False(t, ok, to)
	}

	// Its .git is a link.
	require.NoError(t, os.Remove(filepath.Join(claims, ".git")))
	require.NoError(t, os.Symlink(theirs, filepath.Join(claims, ".git")))
	_, ok = gitdir.Repository(claims)
	assert.False(t, ok)
	require.NoError(t, os.Remove(filepath.Join(claims, ".git")))
	require.NoError(t, os.Symlink(filepath.Join(tree, ".git"), filepath.Join(claims, ".git")))
	_, ok = gitdir.Repository(claims)
	assert.False(t, ok)
}
