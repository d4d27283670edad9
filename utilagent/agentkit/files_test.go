package agentkit_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// The files of a step are recorded after everything that an agent left behind has been cleaned up. (A report:
// "the hook was said to be removed, and my fork had it".)
func TestFilesOfAStepAreThoseThatStay(t *testing.T) {
	t.Parallel()
	root, store := t.TempDir(), t.TempDir()
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"--git-dir", store}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	git("init", "-q")
	spec := snapshot.Spec{Root: root, Git: store, Index: filepath.Join(t.TempDir(), "index"), Ref: "refs/uwf/one"}
	planted, work := filepath.Join(root, "planted"), filepath.Join(root, "work")
	got := agentkittest.Run(t, agentkit.Options{Name: "clears", Run: func(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
		req.AtEnd(func() {
			require.NoError(t, os.Remove(planted))
			req.Warn("%s", "planted was undone")
		})
		for _, path := range []string{planted, work} {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return agentkit.Result{}, err
			}
		}
		return agentkit.Result{SessionID: "s", Output: "---\n$status: done\n---\n"}, nil
	}}, agentkittest.Scenario{Environ: []string{protocol.EnvSnapshot + "=" + spec.String()}}).Succeeded()
	require.Contains(t, got.Stderr, "planted was undone")
	require.NotNil(t, got.Step.Files, got.Stderr)
	_, tree, _ := strings.Cut(string(got.Step.Files.Tree), ":")
	require.Equal(t, "work\n", git("ls-tree", "-r", "--name-only", tree))
}
