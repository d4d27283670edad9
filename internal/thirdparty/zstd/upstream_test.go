package zstd_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	upstream "github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/internal/thirdparty/zstd"
)

// TestCopy holds the copy to the original: its files are those of the module that go.mod requires, with
// testdata/lean.diff applied, except those left out.
func TestCopy(t *testing.T) {
	t.Parallel()
	found, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/klauspost/compress").Output()
	require.NoError(t, err)
	original, dir := strings.TrimSpace(string(found)), t.TempDir()
	for to, from := range map[string]string{".": "zstd", "le": "internal/le", "cpuinfo": "internal/cpuinfo"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, to), 0o700))
		for name, text := range sources(t, filepath.Join(original, from)) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, to, name), []byte(text), 0o600))
		}
	}
	diff, err := filepath.Abs("testdata/lean.diff")
	require.NoError(t, err)
	apply := exec.CommandContext(t.Context(), "git", "apply", "-p0", diff)
	// Without a ceiling, git would look for a repository above and skip the files.
	apply.Dir, apply.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := apply.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, part := range []string{".", "le", "cpuinfo"} {
		require.Equal(t, sources(t, filepath.Join(dir, part)), sources(t, part), part)
	}
	require.Equal(t, read(t, filepath.Join(original, "LICENSE")), read(t, "LICENSE"))
}

// sources returns the source files of a directory that the copy has, by name.
func sources(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == "snappy.go", name == "zip.go", name == "cpuinfo.go", strings.HasSuffix(name, "_test.go"):
		case filepath.Ext(name) == ".go", filepath.Ext(name) == ".s":
			files[name] = read(t, filepath.Join(dir, name))
		}
	}
	return files
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

// What one of the two writes, the other reads.
func TestSameAsUpstream(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewChaCha8([32]byte{1}))
	theirs, err := upstream.NewWriter(nil)
	require.NoError(t, err)
	ours, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	reads, err := upstream.NewReader(nil)
	require.NoError(t, err)
	read, err := zstd.NewReader(nil)
	require.NoError(t, err)
	for n := range 200 {
		text := make([]byte, n*n)
		for i := range text {
			text[i] = byte(random.IntN(1 + n/4))
		}
		packed := ours.EncodeAll(text, nil)
		require.Equal(t, theirs.EncodeAll(text, nil), packed, "%d bytes", len(text))
		for _, decode := range []func(input, dst []byte) ([]byte, error){reads.DecodeAll, read.DecodeAll} {
			unpacked, err := decode(packed, []byte{})
			require.NoError(t, err)
			require.Equal(t, text, unpacked)
		}
		if n > 0 {
			packed[len(packed)/2] ^= 1
			_, wrong := reads.DecodeAll(packed, nil)
			_, err := read.DecodeAll(packed, nil)
			require.Equal(t, wrong == nil, err == nil, "damaged")
		}
	}
}
