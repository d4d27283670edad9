package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSmoke measures some cheap rows once, on programs built from the tree. What
// they cost is not its business.
func TestSmoke(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := &bench{dir: filepath.Join(dir, "fixtures"), bin: filepath.Join(dir, "bin"), made: map[string]any{}}
	require.NoError(t, os.Mkdir(b.dir, 0o755))
	for _, name := range []string{"uwf", "uwf-mock"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", b.program(name), "github.com/united-workforce/uwf/cmd/"+name)
		require.NoError(t, silent(build))
	}
	rows, err := b.rows(regexp.MustCompile(`(no-op agent|uwf --version|thread show \||on the kit)`))
	require.NoError(t, err)
	require.Len(t, rows, 5)
	for _, r := range rows {
		got := r.measure(t.Context(), pace{rounds: 1})
		require.Empty(t, got.Error, r.title())
		require.Equal(t, 1, got.Rounds)
		require.Positive(t, got.Median)
	}
}

// TestNames holds that a row can be told from the others, with and without the
// large fixtures.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		b := &bench{bin: t.TempDir(), full: full}
		rows, err := b.rows(regexp.MustCompile(""))
		require.NoError(t, err)
		seen := map[string]bool{}
		for _, r := range rows {
			require.False(t, seen[r.title()], r.title())
			seen[r.title()] = true
		}
		require.GreaterOrEqual(t, len(rows), 15)
	}
}
