// Package programtest writes programs that a test starts.
package programtest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Write writes an executable file and its missing directories. A program that a parallel test starts holds each
// open file until its exec, and a file that is open for writing can't be started ("text file busy"), so no
// program starts meanwhile.
func Write[T string | []byte](t testing.TB, path string, text T) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
}
