package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func filesAt(config, dotEnv string) *Files {
	return &Files{config: file{path: config}, dotEnv: file{path: dotEnv}}
}

// A file is read again only after it was changed.
func TestFilesAreReadOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, dotEnv := filepath.Join(dir, "config.yaml"), filepath.Join(dir, ".env")
	put := func(path, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	f := filesAt(path, dotEnv)
	load := func() string {
		t.Helper()
		c, err := f.Load(t.Context(), process())
		require.NoError(t, err)
		return c.DefaultAgent
	}
	require.Empty(t, load(), "there is none yet")
	put(path, "defaultAgent: a\nagents: {a: {command: uwf-a}}\nproviders: {p: {baseUrl: 'http://localhost', apiKey: a-long-key}}\n")
	put(dotEnv, "TOKEN=a-long-token\n")
	require.Equal(t, "a", load())
	require.Equal(t, []string{"a-long-key", "a-long-token"}, f.secretsSorted())
	first := f.config.doc
	require.Equal(t, "a", load())
	require.Same(t, first, f.config.doc)
	put(path, "defaultAgent: b\nagents: {b: {command: uwf-b}}\n")
	require.Equal(t, "b", load())
	require.Equal(t, []string{"a-long-key", "a-long-token"}, f.secretsSorted(), "an agent may still know the old key")
	put(path, "defaultAgent: [")
	put(dotEnv, "=")
	require.Equal(t, []string{"a-long-key", "a-long-token"}, f.secretsSorted(), "someone is editing the files")
	put(path, "defaultAgent: b\nagents: {b: {command: uwf-b}}\n")
	put(dotEnv, "TOKEN=a-long-token\n")
	e, err := f.WithDotEnv(process())
	require.NoError(t, err)
	require.Equal(t, "a-long-token", e.Get("TOKEN"))
	require.NoError(t, os.Remove(path))
	require.Empty(t, load())
}

func (f *Files) secretsSorted() []string {
	found := slices.DeleteFunc(f.Secrets(process()), func(s string) bool { return s == "" })
	slices.Sort(found)
	return found
}
