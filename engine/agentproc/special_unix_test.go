//go:build unix

package agentproc

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
)

// If an agent replaces its output files with something else, reading them doesn't block.
func TestStreamsThatAreNoFiles(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, runfiles.StdoutFile), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, runfiles.StderrFile), 0o600))
	_, err := ReadResult(dir)
	prosetest.Error(t, err)
	_, err = Announced(t.Context(), dir)
	prosetest.Error(t, err)
	require.Empty(t, stderrTail(dir))
	ended := make(chan struct{})
	close(ended)
	follow(dir, ended, func(protocol.TurnLine) {})
}
