//go:build unix

package webcall_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/programtest"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestMain(m *testing.M) { os.Exit(prosetest.Of(m).Run()) }

// A reply counts only if the program succeeds.
func TestOddPrograms(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"exit 0", "exit 3", "echo odd >&2", "printf '\\377\\n' >&2; exit 1", "kill -9 $$",
		"echo '{}' >&2; exit 1", "echo 'warning: x' >&2; echo '{}' >&2", "head -c 9000000 /dev/zero | tr '\\0' x >&2",
	} {
		_, err := call(t, script)
		require.Error(t, err, script)
		require.Less(t, len(err.Error()), 2<<10, script)
		require.NotContains(t, err.Error(), "%!", script)
		if len(err.Error()) < 200 {
			prosetest.Text(t, script+"\n"+err.Error())
		}
	}
	_, err := do(t, "cat >&2; exit 1", webcall.Request{Webhook: &webcall.Webhook{URL: "https://example.org/key-of-the-hook"}})
	require.EqualError(t, err, "uwf-web failed: exit status 1")
	_, err = call(t, "echo '{}' >&2")
	require.NoError(t, err)
	reply, err := call(t, `echo '{"error":{"code":"usage","message":"unknown argument"}}' >&2; exit 2`)
	require.NoError(t, err)
	require.Equal(t, protocol.CodeUsage, reply.Error.Code)
	require.Contains(t, reply.Error.Message, "another release")
	require.NotEmpty(t, reply.Error.Hints)
}

func call(t *testing.T, script string) (webcall.Reply, error) {
	return do(t, script, webcall.Request{Page: &webcall.Page{}})
}

func do(t *testing.T, script string, r webcall.Request) (webcall.Reply, error) {
	dir := t.TempDir()
	programtest.Write(t, filepath.Join(dir, webcall.Program), "#!/bin/sh\n"+script+"\n")
	e := env.Env{Exe: filepath.Join(dir, "uwf"), Dir: dir, Environ: os.Environ()}
	var page bytes.Buffer
	return webcall.Do(t.Context(), e, r, &page)
}
