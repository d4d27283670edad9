//go:build unix

package worktree_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/engine/worktree/worktreetest"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/programtest"
)

// The record of an interrupted apply stays if it can't be read, and if the next apply is interrupted as well.
func TestApplyCutOffTwice(t *testing.T) {
	t.Parallel()
	w := worktreetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	id := w.NewThread(worktree.Options{Mode: inTree})
	w.Made(id, map[string]string{"a": "made"})
	out, err := filesOf(w).Apply(ctx, id, worktree.ApplyOptions{Dir: w.Repo})
	require.NoError(t, err)
	from := w.Git(w.Repo, "rev-parse", "HEAD~1")
	w.Git(w.Repo, "update-ref", "refs/heads/main", from) // the state before the branch moved
	w.Git(w.Repo, "read-tree", from)
	repo, err := snapshot.Find(ctx, w.Env, w.Repo)
	require.NoError(t, err)
	record := filepath.Join(repo.Store(w.Dirs.Git()), "apply", id+".json")
	require.NoError(t, os.Mkdir(record, 0o700))
	_, err = filesOf(w).Apply(ctx, id, worktree.ApplyOptions{Dir: w.Repo})
	require.Error(t, err)
	require.NoError(t, os.Remove(record))
	w.Write(record, `{"root":"`+w.Repo+`","from":"`+from+`","to":"`+out.Commit+`","writing":true}`)

	real, err := exec.LookPath("git")
	require.NoError(t, err)
	programs := t.TempDir()
	mark := filepath.Join(programs, "mark") // a pipe: git waits, and so does the test
	require.NoError(t, syscall.Mkfifo(mark, 0o600))
	programtest.Write(t, filepath.Join(programs, "git"), "#!/bin/sh\ncase \"$*\" in *"+out.Commit+"^{tree}*) echo >"+mark+"; exec cat "+mark+";; esac\nexec "+real+" \"$@\"\n")
	f := filesOf(w)
	f.Env.Environ = append([]string{"PATH=" + programs + ":" + os.Getenv("PATH")}, f.Env.Environ[1:]...)
	go func() {
		defer cancel()
		_, _ = os.ReadFile(mark)
	}()
	_, err = f.Apply(ctx, id, worktree.ApplyOptions{Dir: w.Repo})
	require.ErrorIs(t, err, context.Canceled)
	require.FileExists(t, record)
}
