package tools

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/confine"
)

// self is this test binary under a name that is not a test's.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "agent")
	require.NoError(t, os.Symlink(exe, link))
	return link
}

func TestConfinedCommandsStayInside(t *testing.T) {
	t.Parallel()
	c := Commands{Shell: true, Exe: self(t)}
	w, r := commands(t, c)
	if confine.Level() == 0 {
		require.Contains(t, c.Confinement(), "none")
		return
	}
	require.Contains(t, c.Confinement(), "landlock ")
	require.Equal(t, "[exit 0]", call(t, r, "run_command", args{"command": "echo a > sub/new && mv sub/new moved && echo b > $TMPDIR/x"}))
	secret := filepath.Join(filepath.Dir(w.Dir()), "secret.txt")
	text := call(t, r, "run_command", args{"command": "echo x > " + secret})
	require.Contains(t, text, "can write only to the working directory and $TMPDIR")
	b, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "secret", string(b))
	require.Contains(t, call(t, r, "run_command", args{"command": "exit 7"}), "[exit 7]")
}

// What is committed in a linked work tree goes into the repository beside it.
func TestLinkedWorkTreeCanCommit(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	repo, tree := filepath.Join(base, "repo"), filepath.Join(base, "tree")
	require.NoError(t, os.Mkdir(repo, 0o755))
	git(t, repo, "init", "-q")
	git(t, repo, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "first")
	git(t, repo, "worktree", "add", "-q", tree)
	w, err := OpenWorkspace(tree)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	require.Equal(t, []string{filepath.Join(w.real, "../repo/.git")}, w.gitDirs())

	// A repository that does not know this work tree is not opened by naming it.
	fake := filepath.Join(base, "fake")
	require.NoError(t, os.Mkdir(fake, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(fake, ".git"), []byte("gitdir: "+repo+"/.git/worktrees/tree\n"), 0o644))
	f, err := OpenWorkspace(fake)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.Empty(t, f.gitDirs())
}

func TestCommandsThatMustBeConfinedDoNotRunOtherwise(t *testing.T) {
	t.Parallel()
	_, r := commands(t, Commands{Shell: true, MustConfine: true})
	require.Contains(t, call(t, r, "run_command", args{"command": "true"}), "Error: commands are switched off here: they must be confined")
}
