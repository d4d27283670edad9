package confine_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/confine"
)

// BenchmarkConfine measures the overhead of confinement for a command that does nothing, by the number of
// entries in the directory with a hidden path.
func BenchmarkConfine(b *testing.B) {
	exe, err := os.Executable()
	require.NoError(b, err)
	agent := filepath.Join(b.TempDir(), "agent")
	require.NoError(b, os.Symlink(exe, agent))
	for _, entries := range []int{-1, 0, 100, 1000, 10_000} {
		b.Run(fmt.Sprint("entries ", entries), func(b *testing.B) {
			home, err := filepath.EvalSymlinks(b.TempDir())
			require.NoError(b, err)
			for i := range max(entries, 0) {
				require.NoError(b, os.WriteFile(filepath.Join(home, fmt.Sprintf("file-%d", i)), nil, 0o600))
			}
			rules := confine.Rules{Hidden: []string{filepath.Join(home, "keys")}}
			for b.Loop() {
				c := proc.Command{Path: "/bin/true", Dir: "/"}
				if entries >= 0 {
					c, err = confine.Command(agent, rules, c)
					require.NoError(b, err)
				}
				read, write, err := os.Pipe()
				require.NoError(b, err)
				c.Stderr = write
				child, err := proc.Start(c)
				require.NoError(b, err)
				require.NoError(b, write.Close())
				said, err := io.ReadAll(read)
				require.NoError(b, err)
				require.NoError(b, read.Close())
				status, err := child.Wait(b.Context(), 0)
				require.NoError(b, err)
				require.Zero(b, status.Code, string(said))
			}
		})
	}
}
