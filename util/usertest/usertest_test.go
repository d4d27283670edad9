package usertest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/usertest"
)

func TestOrdinary(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	require.ErrorIs(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o600), os.ErrPermission)
}
