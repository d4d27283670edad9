package env_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
)

func TestGet(t *testing.T) {
	t.Parallel()
	e := env.Env{Environ: []string{"A=1", "B=", "A=2", "C=x=y", "=C:=C:\\work", "junk", "D=1", "D=", "path=lower"}}
	for key, want := range map[string]string{
		"A":   "2",        // the last value applies
		"B":   "",         // empty is unset
		"C":   "x=y",      // only the first = splits
		"=C:": "C:\\work", // current directory of a Windows drive
		"D":   "",         // emptied later
		"E":   "",
		"":    "",
	} {
		require.Equal(t, want, e.Get(key), key)
	}
	want := ""
	if runtime.GOOS == "windows" {
		want = "lower"
	}
	require.Equal(t, want, e.Get("PATH"))
}

func TestWithKeepsOriginal(t *testing.T) {
	t.Parallel()
	environ := make([]string, 1, 10) // capacity that two copies must not share
	environ[0] = "A=0"
	e := env.Env{Environ: environ}
	one, two := e.With("A", "1"), e.With("A", "2")
	require.Equal(t, "0", e.Get("A"))
	require.Equal(t, "1", one.Get("A"))
	require.Equal(t, "2", two.Get("A"))
	require.Empty(t, e.With("A", "").Get("A"))
}

func TestOS(t *testing.T) {
	t.Parallel()
	e, err := env.OS()
	require.NoError(t, err)
	require.Equal(t, os.Args[1:], e.Args)
	require.Equal(t, os.Getenv("PATH"), e.Get("PATH"))
	require.True(t, filepath.IsAbs(e.Dir))
	require.True(t, filepath.IsAbs(e.Exe))
	require.NotNil(t, e.Stdin)
	require.NotNil(t, e.Stdout)
	require.NotNil(t, e.Stderr)
	require.WithinDuration(t, time.Now(), e.Now(), time.Minute)
	_, err = io.ReadFull(e.Rand, make([]byte, 16))
	require.NoError(t, err)
}

// A git hook starts uwf with variables that redirect git to the hook's repository from anywhere.
func TestOSForgetsTheRepositoryOfAHook(t *testing.T) {
	t.Setenv("GIT_DIR", "/somewhere/.git")
	t.Setenv("GIT_INDEX_FILE", "/somewhere/index")
	t.Setenv("GIT_QUARANTINE_PATH", "/somewhere/incoming")
	t.Setenv("GIT_AUTHOR_NAME", "Ann")
	e, err := env.OS()
	require.NoError(t, err)
	require.Empty(t, e.Get("GIT_DIR"))
	require.Empty(t, e.Get("GIT_INDEX_FILE"))
	require.Empty(t, e.Get("GIT_QUARANTINE_PATH"))
	require.Equal(t, "Ann", e.Get("GIT_AUTHOR_NAME"))
}

// The list comes from git itself.
func TestOSForgetsWhatGitLists(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--local-env-vars").Output()
	require.NoError(t, err)
	names := strings.Fields(string(out))
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Setenv(name, "x")
	}
	e, err := env.OS()
	require.NoError(t, err)
	for _, name := range names {
		require.Empty(t, e.Get(name), name)
	}
}
