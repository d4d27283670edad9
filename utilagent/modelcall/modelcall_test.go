//go:build unix

package modelcall_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/programtest"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

// A reply counts only if the program succeeds. A usage error means another release.
func TestOddPrograms(t *testing.T) {
	t.Parallel()
	for script, hinted := range map[string]bool{
		"exit 0": false, "exit 3": false, "echo odd": false, "kill -9 $$": false, "echo '{}'; exit 1": false,
		"echo 'unknown argument' >&2; exit 2": true,
	} {
		_, err := call(t, script)
		require.Error(t, err, script)
		_, ok := errors.AsType[*protocol.Error](err)
		require.Equal(t, hinted, ok, script)
	}
	_, err := call(t, "echo '{}'")
	require.NoError(t, err)
}

func call(t *testing.T, script string) (modelcall.Reply, error) {
	dir := t.TempDir()
	programtest.Write(t, filepath.Join(dir, modelcall.Program), "#!/bin/sh\n"+script+"\n")
	e := env.Env{Exe: filepath.Join(dir, "uwf"), Dir: dir, Environ: os.Environ()}
	return modelcall.Do(t.Context(), e, modelcall.Request{Verb: modelcall.Probe})
}
