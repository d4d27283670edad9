//go:build unix

package files_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// A restore that is killed at any moment is finished by who comes next, and the user's
// repository is as it was.
func TestKilledRestores(t *testing.T) {
	t.Parallel()
	w := repository(t)
	for n := range 400 {
		w.write(fmt.Sprintf("many/%d", n), strings.Repeat("x", n))
	}
	trees := [2]protocol.Tree{w.take().Tree}
	for n := range 400 {
		w.write(fmt.Sprintf("many/%d", n), strings.Repeat("y", n+1))
	}
	w.write("a", "other\n")
	trees[1] = w.take().Tree
	user := w.user()
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 12 {
		to := trees[n%2]
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(w.env.Environ, "FILES_TEST_SPEC="+w.spec.String(), "FILES_TEST_TO="+string(to))
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(10+r.IntN(90))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		w.spec.Tree = ""
		_, err := os.Stat(w.spec.Index + ".restore")
		cut := err == nil
		for _, left := range []string{".graft", ".graft.lock"} { // by a git that was killed later
			require.NoError(t, os.WriteFile(w.spec.Index+left, nil, 0o600))
		}
		kept, err := files.Finish(t.Context(), w.env, w.spec, w.spec.Index+".restore")
		require.NoError(t, err)
		require.Equal(t, cut, kept != "")
		if got := w.take().Tree; cut {
			require.Equal(t, to, got)
		} else {
			require.Contains(t, trees, got)
		}
		w.restore(to)
		require.Equal(t, user, w.user())
	}
}

// A snapshot that is killed at any moment is made by who comes next, and neither git
// directory is damaged, whatever the user does with theirs meanwhile.
func TestKilledSnapshots(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.take()
	r := rand.New(rand.NewPCG(5, 6))
	killed := 0
	for n := range 40 {
		for range 30 {
			w.write(fmt.Sprintf("many/%d", r.IntN(60)), fmt.Sprint(n, r.Int()))
		}
		if n%8 == 7 {
			w.sh("git add -A; git commit -q -m step; git gc -q --prune=now")
		}
		user := w.user()
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(w.env.Environ, "FILES_TEST_SPEC="+w.spec.String())
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(5+r.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		timer.Stop()
		require.Equal(t, user, w.user())
		w.spec.Tree = ""
		require.Equal(t, w.added(), w.take().Tree)
	}
	require.Positive(t, killed)
	w.sh("git fsck --no-dangling; git --git-dir " + w.spec.Git + " fsck --no-dangling")
}
