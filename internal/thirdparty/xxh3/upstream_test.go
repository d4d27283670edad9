package xxh3_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	upstream "github.com/zeebo/xxh3"

	"github.com/united-workforce/uwf/internal/thirdparty/xxh3"
)

// TestCopy holds the copy to the original: its files are those of the module that go.mod requires, with
// testdata/lean.diff applied, except those left out.
func TestCopy(t *testing.T) {
	t.Parallel()
	found, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/zeebo/xxh3").Output()
	require.NoError(t, err)
	original, dir := strings.TrimSpace(string(found)), t.TempDir()
	for _, name := range sources(t, original) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(read(t, filepath.Join(original, name))), 0o600))
	}
	diff, err := filepath.Abs("testdata/lean.diff")
	require.NoError(t, err)
	apply := exec.CommandContext(t.Context(), "git", "apply", "-p0", diff)
	// Without a ceiling, git would look for a repository above and skip the files.
	apply.Dir, apply.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := apply.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, sources(t, dir), sources(t, "."))
	for _, name := range sources(t, ".") {
		require.Equal(t, read(t, filepath.Join(dir, name)), read(t, name), name)
	}
}

// sources returns the licence and the source files of a directory that the copy has.
func sources(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case strings.Contains(name, "_avx"), strings.HasSuffix(name, "_test.go"):
		case name == "LICENSE", filepath.Ext(name) == ".go", filepath.Ext(name) == ".s":
			names = append(names, name)
		}
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

func TestSameAsUpstream(t *testing.T) {
	t.Parallel()
	random := make([]byte, 10_000)
	_, err := rand.NewChaCha8([32]byte{1}).Read(random)
	require.NoError(t, err)
	for n := range random {
		var h xxh3.Hasher
		_, _ = h.Write(random[:n/3])
		_, _ = h.Write(random[n/3 : n])
		require.Equal(t, upstream.Hash(random[:n]), h.Sum64(), "%d bytes", n)
	}
}
