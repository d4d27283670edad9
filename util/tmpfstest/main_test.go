package tmpfstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { Main(m) }

// Directories of killed tests are removed when the next test starts; those of running tests stay.
func TestRoomOfAKilledTestIsRemoved(t *testing.T) {
	t.Parallel()
	if !suits(memory) {
		t.Skip("there is no tmpfs that suits")
	}
	mine := t.TempDir()
	require.True(t, strings.HasPrefix(mine, filepath.Join(memory, prefix)), mine)
	left := filepath.Join(memory, prefix+"left")
	require.NoError(t, os.MkdirAll(filepath.Join(left, "home"), 0o700))
	require.NoError(t, os.WriteFile(left+locks, nil, 0o600))
	dir, held := room()
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, held.RemoveAndUnlock())
	require.NoDirExists(t, left)
	require.NoFileExists(t, left+locks)
	require.DirExists(t, mine)
}
