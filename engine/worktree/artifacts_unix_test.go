//go:build unix

package worktree_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/threadid"
	"github.com/united-workforce/uwf/util/usertest"
)

const (
	oneThread   = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	otherThread = "01ARZ3NDEKTSV4RRFFQ69G5FAW"
)

// Artifacts of agents may be anything: they are counted up to a bound, and copied without links that lead
// outside.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	dirs := home.Dirs{Home: t.TempDir()}
	dir := dirs.Artifacts(oneThread)
	limit := protocol.Config{Artifacts: &protocol.ArtifactsConfig{MaxMB: 1}}
	k := worktree.Keeper{Dirs: dirs, Heads: fileheads.Open(dirs.Home, durable.OS()), Config: func(context.Context) (protocol.Config, error) { return limit, nil }}
	open := func(dir string) error { return k.OpenArtifacts(t.Context(), oneThread, dir) }
	require.NoError(t, open(dir))
	info, err := os.Lstat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, open(dir), "it is there already")

	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	for name, text := range map[string]string{"plan.md": "plan", "a/b/\x1b[31mred\n": "x", "exe": "#!"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "file")))
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "root")))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "a", "circle")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	held, err := worktree.CountArtifacts(dir, 1<<20)
	require.NoError(t, err)
	require.Equal(t, protocol.Artifacts{Dir: dir, Files: 9, Bytes: 7}, held)

	require.NoError(t, k.ForkArtifacts(t.Context(), oneThread, otherThread))
	held, err = worktree.CountArtifacts(dirs.Artifacts(otherThread), 1<<20)
	require.NoError(t, err)
	require.Equal(t, 8, held.Files, "all but the pipe")
	to, err := os.Readlink(filepath.Join(dirs.Artifacts(otherThread), "file"))
	require.NoError(t, err)
	require.Equal(t, outside, to)

	require.NoError(t, os.Truncate(filepath.Join(dir, "plan.md"), 1<<40))
	held, err = worktree.CountArtifacts(dir, 1<<20)
	require.NoError(t, err)
	require.True(t, held.More)
	require.Error(t, open(dir))
	require.Error(t, k.ForkArtifacts(t.Context(), oneThread, "01ARZ3NDEKTSV4RRFFQ69G5FAX"))
	require.NoDirExists(t, dirs.Artifacts("01ARZ3NDEKTSV4RRFFQ69G5FAX"))
	require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0o500))
	require.NoError(t, k.RemoveArtifacts(oneThread))
	require.NoDirExists(t, dir)
	require.FileExists(t, outside)

	require.NoError(t, os.Symlink(filepath.Dir(outside), dir))
	require.Error(t, open(dir), "a link in its place")
	held, err = worktree.CountArtifacts(dirs.Artifacts("none"), 1)
	require.NoError(t, err)
	require.Zero(t, held.Files)
}

// An agent that removed permissions stops neither the next step nor a fork.
func TestClosedArtifacts(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	dirs := home.Dirs{Home: t.TempDir()}
	dir := dirs.Artifacts(oneThread)
	k := worktree.Keeper{Dirs: dirs, Heads: fileheads.Open(dirs.Home, durable.OS()), Config: func(context.Context) (protocol.Config, error) { return protocol.Config{}, nil }}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	for _, name := range []string{"plan.md", "a/b/x"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("text"), 0))
	}
	for _, name := range []string{"a/b", "a", "."} {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0))
	}
	require.NoError(t, k.OpenArtifacts(t.Context(), oneThread, dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), nil, 0o600))
	require.NoError(t, k.ForkArtifacts(t.Context(), oneThread, otherThread))
	held, err := worktree.CountArtifacts(dirs.Artifacts(otherThread), 1<<20)
	require.NoError(t, err)
	require.Equal(t, 5, held.Files)
	require.EqualValues(t, 8, held.Bytes)
}

// Names of files can be any bytes, such as Latin-1.
func TestNamesOfArtifacts(t *testing.T) {
	t.Parallel()
	dirs := home.Dirs{Home: t.TempDir()}
	dir := dirs.Artifacts(oneThread)
	k := worktree.Keeper{Dirs: dirs, Heads: fileheads.Open(dirs.Home, durable.OS()), Config: func(context.Context) (protocol.Config, error) { return protocol.Config{}, nil }}
	if err := os.MkdirAll(filepath.Join(dir, "caf\xe9", "b"), 0o700); errors.Is(err, syscall.EILSEQ) {
		t.Skip("the file system requires UTF-8")
	} else {
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "caf\xe9", "b", "\xff"), []byte("text"), 0o600))
	require.NoError(t, k.OpenArtifacts(t.Context(), oneThread, dir))
	require.NoError(t, k.ForkArtifacts(t.Context(), oneThread, otherThread))
	held, err := worktree.CountArtifacts(dirs.Artifacts(otherThread), 1<<20)
	require.NoError(t, err)
	require.Equal(t, 3, held.Files)
	require.EqualValues(t, 4, held.Bytes)
}

func TestTooManyArtifacts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := worktree.Keeper{Config: func(context.Context) (protocol.Config, error) { return protocol.Config{}, nil }}
	deep := filepath.Join(dir, strings.Repeat("d/", 200))
	require.NoError(t, os.MkdirAll(deep, 0o700))
	require.Error(t, k.OpenArtifacts(t.Context(), oneThread, dir), "too deep")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "d")))
	for i := range 100_001 {
		require.NoError(t, os.Symlink("x", filepath.Join(dir, fmt.Sprint(i))))
	}
	held, err := worktree.CountArtifacts(dir, 1<<30)
	require.NoError(t, err)
	require.Equal(t, []any{100_000, true}, []any{held.Files, held.More})
	require.Error(t, k.OpenArtifacts(t.Context(), oneThread, dir))
}

// A prune removes artifacts of a fork that was never created, unless the fork may just be being created.
func TestSweepOfArtifacts(t *testing.T) {
	t.Parallel()
	dirs := home.Dirs{Home: t.TempDir()}
	known := fileheads.Open(dirs.Home, durable.OS())
	k := worktree.Keeper{Dirs: dirs, Heads: known}
	young, err := threadid.New(time.Unix(1_800_000_000, 0), rand.Reader)
	require.NoError(t, err)
	require.NoError(t, known.Add(t.Context(), otherThread, "0000000000000", heads.Facts{}))
	for _, id := range []string{oneThread, otherThread, young, "no thread"} {
		require.NoError(t, os.MkdirAll(dirs.Artifacts(id), 0o700))
	}
	_, err = k.Prune(t.Context(), prune.Options{Home: dirs.Home, Now: time.Unix(1_800_000_000, 0)}, true)
	require.NoError(t, err)
	require.NoDirExists(t, dirs.Artifacts(oneThread))
	for _, id := range []string{otherThread, young, "no thread"} {
		require.DirExists(t, dirs.Artifacts(id))
	}
}

// Nothing is pruned while threads are lost: their artifacts are still needed.
func TestPruneWithLostThreads(t *testing.T) {
	t.Parallel()
	dirs := home.Dirs{Home: t.TempDir()}
	known := fileheads.Open(dirs.Home, durable.OS())
	k := worktree.Keeper{Dirs: dirs, Heads: known}
	require.NoError(t, known.Add(t.Context(), oneThread, "0000000000000", heads.Facts{}))
	require.NoError(t, os.MkdirAll(dirs.Artifacts(oneThread), 0o700))
	require.NoError(t, os.MkdirAll(dirs.Run(oneThread), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dirs.Run(oneThread), "run.json"), []byte("{}\n"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dirs.Home, "threads.yaml")))
	_, err := k.Prune(t.Context(), prune.Options{Home: dirs.Home, Now: time.Unix(1_800_000_000, 0)}, true)
	require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeCorrupt})
	require.DirExists(t, dirs.Artifacts(oneThread))
}
