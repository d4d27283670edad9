package slot

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// A slot's process performs its task, and reports failures as data.
func TestWork(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	var stdout bytes.Buffer
	process := env.Env{
		Dir: dir, Environ: []string{"UWF_HOME=" + home, "PATH=/usr/bin:/bin"}, Stdout: &stdout, Stderr: &stdout, Now: time.Now, Rand: rand.Reader,
	}
	for _, args := range [][]string{nil, {"worker"}, {Argument}, {"x", "{}"}} {
		process.Args = args
		_, called := Work(t.Context(), process)
		require.False(t, called, args)
	}
	work := func(task string) *Problem {
		t.Helper()
		stdout.Reset()
		process.Args = []string{Argument, task}
		status, called := Work(host.Context(t.Context()), process)
		require.True(t, called)
		var a Answer
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &a), "%s", &stdout)
		require.NotNil(t, a.Error)
		require.Equal(t, a.Error.Code.ExitCode(), status)
		return a.Error
	}
	require.Equal(t, protocol.CodeFailed, work("nonsense").Code)
	require.Equal(t, protocol.CodeNotFound, work(`{"do":"step","thread":"`+thread+`","remote":"team"}`).Code)
	require.NoError(t, os.WriteFile(filepath.Join(home, "remotes.yaml"), []byte(`team: {"address":"`+dir+`"}`+"\n"), 0o600))
	missing := work(`{"do":"step","thread":"` + thread + `","remote":"team"}`)
	require.True(t, missing.Machine, "its helper is not installed: %v", missing)
}
