package endcheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fewVar holds a workspace for the child process of TestFewDescriptors.
const fewVar = "UWF_TEST_FEW_DESCRIPTORS"

// TestFewDescriptors tests that a workspace counts as unknown, not as empty, while there are too few descriptors to
// read it: the user's own settings would count as the command's otherwise.
func TestFewDescriptors(t *testing.T) {
	if dir := os.Getenv(fewVar); dir != "" {
		beginWithFew(t, Options{Workspace: dir, GitDirs: []string{filepath.Join(dir, ".git")}})
		return
	}
	t.Parallel()
	o := newRepository(t)
	shell(t, o.Workspace, "mkdir .git/rebase-merge; echo exec mine > .git/rebase-merge/git-rebase-todo")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFewDescriptors$", "-test.parallel=1")
	cmd.Env = append(os.Environ(), fewVar+"="+o.Workspace)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, name := range []string{"config", "rebase-merge/git-rebase-todo"} {
		require.FileExists(t, filepath.Join(o.Workspace, ".git", name))
	}
}

// beginWithFew begins and ends checks with each number of free descriptors, from none to enough.
func beginWithFew(t *testing.T, o Options) {
	all, err := Begin(o)
	require.NoError(t, err)
	failed := 0
	for limit := range uint64(100) {
		b, errBegin, c, errEnd := withLimit(t, limit, o, all)
		if errBegin == nil {
			require.Equal(t, all.Found(), b.Found(), "limit %d", limit)
		} else {
			failed++
		}
		if errEnd == nil {
			require.Equal(t, Changes{}, c)
		}
	}
	require.NotZero(t, failed)
	require.Less(t, failed, 100)
}

// withLimit begins a check, and ends another one, with a limit of descriptors.
func withLimit(t *testing.T, limit uint64, o Options, all *Before,
) (b *Before, errBegin error, c Changes, errEnd error) {
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: was.Max}))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	b, errBegin = Begin(o)
	c, errEnd = all.End(nil)
	return b, errBegin, c, errEnd
}
