package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
)

// No operation changes files outside the directory, even if other users can write the directory.
func TestRooted(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	disk := durable.Rooted(dir)
	rc := filepath.Join(outside, "rc")
	require.NoError(t, os.WriteFile(rc, []byte("mine"), 0o600))
	for link, target := range map[string]string{
		"facts.jsonl": rc, "new": filepath.Join(outside, "made"), "nodes": outside, "inside": "plain",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for what, do := range map[string]func() error{
		"append":              func() error { return disk.Append(at("facts.jsonl"), []byte("x"), 0o600, durable.NoFlush) },
		"append a new file":   func() error { return disk.Append(at("new"), []byte("x"), 0o600, durable.NoFlush) },
		"append by any link":  func() error { return disk.Append(at("inside"), []byte("x"), 0o600, durable.NoFlush) },
		"append below a link": func() error { return disk.Append(at("nodes/rc"), []byte("x"), 0o600, durable.NoFlush) },
		"truncate":            func() error { return disk.Truncate(at("facts.jsonl"), 0) },
		"remove":              func() error { return disk.Remove(at("nodes/rc")) },
		"make a directory":    func() error { return disk.MkdirAll(at("nodes/deep"), 0o700) },
		"rename":              func() error { return disk.Rename(at("nodes/rc"), at("rc")) },
		"replace":             func() error { return durable.WriteFile(disk, at("facts.jsonl"), []byte("x"), 0o600) },
		"write": func() error {
			_, err := disk.WriteTemp(at("nodes/a"), []byte("x"), 0o600, durable.NoFlush)
			return err
		},
		"write above": func() error {
			_, err := disk.WriteTemp(at("../a"), []byte("x"), 0o600, durable.NoFlush)
			return err
		},
	} {
		require.Error(t, do(), what)
	}
	require.Equal(t, []string{"rc"}, names(t, outside))
	require.Equal(t, "mine", read(t, rc))

	require.NoError(t, disk.MkdirAll(at("a/b"), 0o700))
	require.NoError(t, durable.WriteFile(disk, at("a/b/c"), []byte("one"), 0o600))
	require.NoError(t, disk.Append(at("a/b/c"), []byte(" two"), 0o600, durable.FullFlush))
	require.NoError(t, disk.Rename(at("a/b/c"), at("a/d")))
	require.Equal(t, "one two", read(t, at("a/d")))
	require.NoError(t, disk.Truncate(at("a/d"), 3))
	require.Equal(t, "one", read(t, at("a/d")))
	require.NoError(t, disk.Remove(at("a/d")))
	require.Empty(t, names(t, at("a/b")))
}
