package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/util/cmdreftest"
)

// docs/cli/ocas.md is generated from the commands. Its head is testdata/reference.md.
func TestCommandReference(t *testing.T) {
	t.Parallel()
	const page = "../../docs/cli/ocas.md"
	head, err := os.ReadFile("testdata/reference.md")
	require.NoError(t, err)
	want := cmdreftest.Page((&program{}).app(&ocascli.CLI{Program: "ocas"}), strings.ReplaceAll(string(head), "\r\n", "\n"))
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, strings.ReplaceAll(string(got), "\r\n", "\n"), "go test . -run TestCommandReference -update")
}
