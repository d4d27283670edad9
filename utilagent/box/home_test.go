package box

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// docs/security.md lists the visible parts of a home.
func TestDocsListOutput(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "**Your home**")
	require.True(t, found)
	_, after, _ = strings.Cut(after, "```\n")
	listed, _, _ := strings.Cut(after, "```")
	require.ElementsMatch(t, offlimits.ShownInHome(), strings.Fields(listed))
}
