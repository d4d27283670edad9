//go:build unix

package durable_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
)

// room is the maximum file size in the child that runs fillUp.
const room = 1000

// If a disk fills up during a write, only the previous content remains. A limit on the file size simulates
// the full disk: it also allows a partial write first.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := child("fillup", dir)
	c.Stderr = new(bytes.Buffer)
	require.NoError(t, c.Run(), "%s", c.Stderr)
	require.Equal(t, []string{"history", "other", "table"}, names(t, dir), "what is complete can stay")
	require.Equal(t, "one\n", read(t, filepath.Join(dir, "history")))
	require.Equal(t, "old", read(t, filepath.Join(dir, "table")))
}

func fillUp(args []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
		return err
	}
	fsys, tooLong := durable.OS(), bytes.Repeat([]byte("x"), 2*room)
	history, table := filepath.Join(args[0], "history"), filepath.Join(args[0], "table")
	if err := errors.Join(
		durable.AppendFile(fsys, history, []byte("one\n"), 0o644),
		durable.WriteFile(fsys, table, []byte("old"), 0o644),
	); err != nil {
		return err
	}
	for path, err := range map[string]error{
		history: durable.AppendFile(fsys, history, tooLong, 0o644),
		table:   durable.WriteFile(fsys, table, tooLong, 0o644),
		filepath.Join(args[0], "node"): durable.WriteAll(fsys, []durable.File{
			{Path: filepath.Join(args[0], "other"), Data: []byte("fits"), Perm: 0o444},
			{Path: filepath.Join(args[0], "node"), Data: tooLong, Perm: 0o444},
		}),
	} {
		if pe := (*os.PathError)(nil); !errors.As(err, &pe) || pe.Path != path || !errors.Is(err, syscall.EFBIG) {
			return fmt.Errorf("%s: want %w with that path, got %w", path, syscall.EFBIG, err)
		}
	}
	return nil
}
