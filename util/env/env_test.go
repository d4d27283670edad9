package env_test

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
)

func TestGet(t *testing.T) {
	t.Parallel()
	e := env.Env{Environ: []string{"A=1", "B=", "A=2", "C=x=y", "=C:=C:\\work", "junk", "D=1", "D=", "path=lower"}}
	for key, want := range map[string]string{
		"A":   "2",        // the last one wins
		"B":   "",         // empty is unset
		"C":   "x=y",      // only the first = splits
		"=C:": "C:\\work", // Windows' directory of a drive
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

func TestWithLeavesTheOriginalAlone(t *testing.T) {
	t.Parallel()
	environ := make([]string, 1, 10) // room that two copies must not share
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
