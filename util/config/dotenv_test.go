package config

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestLoadDotEnv(t *testing.T) {
	t.Parallel()
	path := write(t, ".env", "\ufeff# comment\nexport A=from-file\nB='p$1q' # note\nC=\"two\\nlines\"\nD=\nE=${A}-x\nF=a\\$b\nSET=file\nEMPTY=file\n")
	e, err := filesAt("", path).WithDotEnv(process("SET=own", "EMPTY="))
	require.NoError(t, err)
	for name, want := range map[string]string{
		"A": "from-file", "B": "p$1q", "C": "two\nlines", "D": "", "E": "from-file-x", "F": "a$b",
		"SET": "own", "EMPTY": "file",
	} {
		require.Equal(t, want, e.Get(name), name)
	}

	before := process("A=1")
	e, err = filesAt("", filepath.Join(t.TempDir(), "none")).WithDotEnv(before)
	require.NoError(t, err)
	require.Equal(t, before, e)
}

func TestDotEnvErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"A=1\nbad line\nSECRET=sk-123\n",
		"A=1\n\nB=\"sk-123\n",
		"A=x\nB=sk-123$DEF9x\n",
		"A=x\nB=\"$A$C_sk-123\"\n",
		"A=1\nSECRET sk-123",
		"=sk-123",
		"\x00",
	} {
		path := write(t, ".env", text)
		_, err := filesAt("", path).WithDotEnv(process())
		prosetest.Error(t, err, text)
		require.NotContains(t, err.Error(), "sk-123")
		var e *protocol.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, protocol.CodeInvalid, e.Code)
		for _, hint := range e.Hints {
			require.NotContains(t, hint, "sk-123")
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	require.Empty(t, MaskKey(""))
	require.Equal(t, "***", MaskKey("short"))
	require.Equal(t, "***wxyz", MaskKey("sk-0123456789-abcdefwxyz"))
}

func TestExposed(t *testing.T) {
	t.Parallel()
	literal := write(t, "config.yaml", "providers: {x: {baseUrl: http://x, apiKey: k}}\nagents: {a: {command: c, env: {GH_TOKEN: t, MODE: m}}}\n")
	variable := write(t, "config.yaml", "providers: {x: {baseUrl: http://x, apiKey: '${K}'}}\n")
	dotEnv := write(t, ".env", "A=1\n")
	require.Empty(t, filesAt(literal, dotEnv).Exposed(), "only the owner can read them")
	require.Empty(t, filesAt("none", "none").Exposed())

	for _, path := range []string{literal, variable, dotEnv} {
		require.NoError(t, os.Chmod(path, 0o644))
	}
	if runtime.GOOS == "windows" {
		require.Empty(t, filesAt(literal, dotEnv).Exposed(), "modes say nothing there")
		return
	}
	prosetest.Text(t, filesAt(literal, dotEnv).Exposed())
	require.Empty(t, filesAt(variable, "none").Exposed())
}
