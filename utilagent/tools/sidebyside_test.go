package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Concurrent tools don't interfere: each result is the same as alone. (Run it with -race.)
func TestReadingToolsSideBySide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 20 {
		text := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 3000)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", i)), []byte(text), 0o600))
	}
	w, err := OpenWorkspace(dir)
	require.NoError(t, err)
	defer w.Close()
	r, err := NewRegistry(All(w, Commands{})...)
	require.NoError(t, err)
	type call struct {
		name string
		args map[string]any
	}
	var calls []call
	for i := range 6 {
		calls = append(calls,
			call{"read_file", map[string]any{"path": fmt.Sprintf("f%d.txt", i)}},
			call{"grep", map[string]any{"pattern": fmt.Sprintf("file %d$", i)}},
			call{"glob", map[string]any{"pattern": fmt.Sprintf("*%d.txt", i)}},
			call{"list_dir", map[string]any{}})
	}
	var all sync.WaitGroup
	got := make([]Result, len(calls))
	for i, c := range calls {
		tool, known := r.Find(c.name)
		require.True(t, known && tool.Spec().SideBySide && tool.Spec().Effect == Reads)
		all.Go(func() { got[i], _ = r.Call(t.Context(), c.name, c.args) })
	}
	all.Wait()
	for i, c := range calls {
		alone, err := r.Call(t.Context(), c.name, c.args)
		require.NoError(t, err)
		require.Equal(t, alone, got[i])
		require.False(t, alone.Failed, alone.Text)
	}
}
