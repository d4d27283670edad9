package durable

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFreeSpace(t *testing.T) {
	t.Parallel()
	free, err := FreeSpace(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, free, "this test could not have made its directory")
	_, err = FreeSpace(filepath.Join(t.TempDir(), "nothing"))
	require.Error(t, err)
}
