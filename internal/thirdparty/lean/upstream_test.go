package lean_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/joho/godotenv" // so that go.mod requires the originals
	_ "github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"
)

// TestCopy holds the copies to the originals: their files are those of the modules that go.mod requires, with
// testdata/lean.diff applied.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copies := map[string]string{"ulid": "github.com/oklog/ulid/v2", "godotenv": "github.com/joho/godotenv"}
	for name, module := range copies {
		found, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		require.NoError(t, err)
		for file, text := range sources(t, strings.TrimSpace(string(found))) {
			path := filepath.Join(dir, name, file)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
	}
	diff, err := filepath.Abs("testdata/lean.diff")
	require.NoError(t, err)
	apply := exec.CommandContext(t.Context(), "git", "apply", "-p0", diff)
	// Without a ceiling, git would look for a repository above and skip the files.
	apply.Dir, apply.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := apply.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name := range copies {
		require.Equal(t, sources(t, filepath.Join(dir, name)), sources(t, name), name)
	}
}

// sources returns the licence and the source files of a directory by name.
func sources(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		name := entry.Name()
		isSource := filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go")
		if isSource || name == "LICENSE" || name == "LICENCE" {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			files[name] = string(data)
		}
	}
	return files
}
