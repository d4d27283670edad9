package putback_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/utilagent/box/putback"
)

// fewVar holds a workspace for the child process of TestFewDescriptors.
const fewVar = "UWF_TEST_FEW_DESCRIPTORS"

// newRepository creates a repository with a hook and an agent's settings, and returns it with the files.
func newRepository(t *testing.T) (place putback.Place, files []string) {
	t.Helper()
	dir := t.TempDir()
	git := filepath.Join(dir, ".git")
	for _, name := range []string{".git/config", ".git/hooks/post-commit", ".git/info/exclude", ".claude/skills/a/SKILL.md"} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte("mine\n"), 0o600))
		files = append(files, file)
	}
	return placeOf(dir, git), files
}

func placeOf(dir, git string) putback.Place {
	return putback.Place{
		Workspace: dir, GitDirs: []string{git}, Repositories: []string{git}, Obeyed: []string{filepath.Join(dir, ".claude")},
	}
}

func none(string) bool { return false }

// TestFewDescriptors tests that a user's files don't count as new because they could not be read.
func TestFewDescriptors(t *testing.T) {
	if dir := os.Getenv(fewVar); dir != "" {
		beginWithFew(t, placeOf(dir, filepath.Join(dir, ".git")))
		return
	}
	t.Parallel()
	place, files := newRepository(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFewDescriptors$", "-test.parallel=1")
	cmd.Env = append(os.Environ(), fewVar+"="+place.Workspace)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, file := range files {
		require.FileExists(t, file)
	}
}

// beginWithFew saves and restores files with each number of free descriptors, from none to enough.
func beginWithFew(t *testing.T, place putback.Place) {
	all, err := putback.Begin(place, nil)
	require.NoError(t, err)
	failed := 0
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	for limit := range uint64(50) {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: was.Max}))
		b, err := putback.Begin(place, nil)
		_, errEnd := all.End(t.Context(), none, nil)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
		if err != nil {
			require.Error(t, errEnd, "limit %d", limit)
			failed++
			continue
		}
		require.Equal(t, all.Units, b.Units, "limit %d", limit)
	}
	require.NotZero(t, failed)
	require.Less(t, failed, 50)
}

// The entries of a directory that was closed before the command are not the command's, even if it opens the directory.
func TestClosedDirectory(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread() // the thread ends with the test, and obeys permissions even if the user is root
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	require.NoError(t, unix.Capget(&header, &data[0]))
	data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	require.NoError(t, unix.Capset(&header, &data[0]))
	for _, mode := range []os.FileMode{0, 0o400} {
		place, files := newRepository(t)
		for _, name := range []string{".git/hooks", ".claude/skills"} {
			dir := filepath.Join(place.Workspace, name)
			require.NoError(t, os.Chmod(dir, mode))
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) //nolint:gosec // so that it can be removed
		}
		b, err := putback.Begin(place, nil)
		require.NoError(t, err)
		messages, err := b.End(t.Context(), none, nil)
		require.NoError(t, err)
		require.Empty(t, messages)
		for _, name := range []string{".git/hooks", ".claude/skills"} {
			require.NoError(t, os.Chmod(filepath.Join(place.Workspace, name), 0o700)) //nolint:gosec // a directory
		}
		require.NoError(t, os.WriteFile(files[0], []byte("evil\n"), 0o600))
		merge := func(_ context.Context, _ *os.Root, _, _ []byte) ([]string, error) { return []string{"merged"}, nil }
		messages, err = b.End(t.Context(), none, merge)
		require.NoError(t, err)
		require.Contains(t, messages[0]+messages[len(messages)-1], "merged")
		for _, name := range []string{".git/hooks", ".claude/skills"} {
			info, err := os.Stat(filepath.Join(place.Workspace, name))
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm())
			require.NoError(t, os.Chmod(filepath.Join(place.Workspace, name), 0o700)) //nolint:gosec // a directory
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, "mine\n", string(text))
		}
	}
}

// A repository whose objects are behind a link, as several repositories share them, is saved nevertheless.
func TestSharedObjects(t *testing.T) {
	t.Parallel()
	place, files := newRepository(t)
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(place.Workspace, ".git/objects")))
	b, err := putback.Begin(place, nil)
	require.NoError(t, err)
	require.True(t, b.Kept(filepath.Join(place.Workspace, ".git")))
	require.NoError(t, os.WriteFile(files[1], []byte("evil\n"), 0o600))
	_, err = b.End(t.Context(), none, nil)
	require.NoError(t, err)
	text, err := os.ReadFile(files[1])
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(text))
}
