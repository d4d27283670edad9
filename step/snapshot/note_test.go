//go:build unix

package snapshot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/step/snapshot"
)

// counted makes git log its commands, and returns a function that lists those since its last call.
func (w *world) counted() func() []string {
	w.Helper()
	bin, log := filepath.Join(w.dir, "bin"), filepath.Join(w.dir, "commands")
	require.NoError(w, os.Mkdir(bin, 0o755))
	real := strings.TrimSpace(w.sh("command -v git"))
	require.NoError(w, os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\necho \"$1\" >> "+log+"\nexec "+real+" \"$@\"\n"), 0o755))
	w.env.Environ[0] = "PATH=" + bin + ":" + os.Getenv("PATH")
	return func() []string {
		text, _ := os.ReadFile(log)
		require.NoError(w, os.WriteFile(log, nil, 0o644))
		return strings.Fields(string(text))
	}
}

func (w *world) begin() snapshot.Taken {
	w.Helper()
	diskUsage, _, err := snapshot.Begin(w.Context(), w.env, w.repo, &w.spec, w.spec.Index+".restore")
	require.NoError(w, err)
	return diskUsage
}

// Cached information saves processes.
func TestFewProcesses(t *testing.T) {
	t.Parallel()
	w := repository(t)
	require.NoError(t, w.open())
	first := w.begin()
	require.Eventually(t, func() bool { // until the index is newer than the files
		w.take()
		text, err := os.ReadFile(w.spec.Index + ".json")
		return err == nil && !strings.Contains(string(text), "racy")
	}, time.Minute, 200*time.Millisecond)
	look := []string{"diff-files", "ls-files"}
	commands := w.counted()

	require.Equal(t, first.Tree, w.take().Tree)
	require.ElementsMatch(t, look, commands(), "nothing has changed")
	require.Equal(t, first.Tree, w.begin().Tree)
	require.ElementsMatch(t, look, commands(), "nothing has changed before a step")

	w.write("a", "two\n")
	second := w.take()
	require.ElementsMatch(t, append(look, "update-index", "write-tree"), commands())
	require.Equal(t, w.added(), second.Tree)
	commands()
	require.Equal(t, second.Tree, w.begin().Tree)
	require.ElementsMatch(t, look, commands())

	changes, err := snapshot.Diff(t.Context(), w.env, w.spec.Git, first.Tree, second.Tree)
	require.NoError(t, err)
	require.Equal(t, []snapshot.Change{{Path: "a", Status: 'M', Added: 1, Removed: 1}}, changes)
	require.Equal(t, []string{"diff-tree"}, commands())
}

// The note of an index is valid only while the index and the ref are unchanged.
func TestKnownFacts(t *testing.T) {
	t.Parallel()
	w := repository(t)
	first := w.take()
	w.write("a", "two\n")
	second := w.take()
	for name, meddle := range map[string]func(){
		"nothing":          func() {},
		"index is another": func() { w.sh(`GIT_DIR="$STORE" GIT_INDEX_FILE=` + w.spec.Index + ` git read-tree ` + sum(first.Tree)) },
		"index is gone":    func() { require.NoError(t, os.Remove(w.spec.Index)) },
		"note is gone":     func() { require.NoError(t, os.Remove(w.spec.Index+".json")) },
		"note is no note":  func() { require.NoError(t, os.WriteFile(w.spec.Index+".json", []byte("{"), 0o600)) },
		"note is a pipe":   func() { w.sh("rm -f " + w.spec.Index + ".json; mkfifo " + w.spec.Index + ".json") },
		"ref is packed":    func() { w.sh(`git --git-dir "$STORE" pack-refs --all`) },
		"ref is older":     func() { w.sh(`git --git-dir "$STORE" update-ref ` + w.spec.Ref + " " + first.Commit) },
		"ref is gone":      func() { w.sh(`git --git-dir "$STORE" update-ref -d ` + w.spec.Ref) },
		"ref is damaged":   func() { w.sh(`echo nothing > "$STORE/` + w.spec.Ref + `"`) },
		"ref leads nowhere": func() {
			w.sh(`echo 1111111111111111111111111111111111111111 > "$STORE/` + w.spec.Ref + `"`)
		},
		"objects are packed": func() { w.sh(`git --git-dir "$STORE" repack -adq`) },
	} {
		meddle()
		require.Equal(t, second.Tree, w.begin().Tree, name)
		require.Equal(t, sum(second.Tree), strings.TrimSpace(w.sh(`git --git-dir "$STORE" rev-parse `+w.spec.Ref+"^{tree}")), name)
		w.write("a", name)
		require.Equal(t, w.added(), w.take().Tree, name)
		w.write("a", "two\n")
		require.Equal(t, second.Tree, w.take().Tree, name)
		w.sh(`git --git-dir "$STORE" fsck --strict --no-dangling`)
	}
}

// If the index is as new as all files, git reads each of them, but only until the index is rewritten.
func TestIndexAsNewAsTheFiles(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.take()
	second := func(path string) int64 {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.ModTime().Unix()
	}
	made := second(filepath.Join(w.root, "a"))
	require.Eventually(t, func() bool {
		w.take()
		return second(w.spec.Index) > made
	}, time.Minute, 200*time.Millisecond)
	require.Equal(t, w.added(), w.take().Tree)
}

// If another git holds the lock of a ref, we wait.
func TestRefIsLocked(t *testing.T) {
	t.Parallel()
	w := repository(t)
	first := w.take()
	ref := "refs/uwf-kept/" + sum(first.Tree)
	lock := filepath.Join(w.spec.Git, ref+".lock")
	require.NoError(t, os.MkdirAll(filepath.Dir(lock), 0o755))
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	time.AfterFunc(50*time.Millisecond, func() { _ = os.Remove(lock) })
	other := w.repo.Store(filepath.Join(w.dir, "other"))
	require.NoError(t, w.repo.Seed(t.Context(), other, true))
	require.NoError(t, snapshot.Copy(t.Context(), w.env, w.spec.Git, other, first.Tree))
	require.True(t, snapshot.Has(t.Context(), w.env, other, first.Tree))
}
