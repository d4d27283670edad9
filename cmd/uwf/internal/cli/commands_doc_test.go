package cli

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cmdreftest"
)

var update = flag.Bool("update", false, "write docs/commands.md")

// TestCommandReference: docs/commands.md is what the commands say of themselves.
func TestCommandReference(t *testing.T) {
	t.Parallel()
	const path = "../../../../docs/commands.md"
	want := cmdreftest.Markdown((commands{&app.App{}}).root())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))
	require.Equal(t, want, string(got), "go test ./internal/cli -run TestCommandReference -update")
}
