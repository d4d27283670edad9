package guide_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	var names []string
	for _, text := range guide.All() {
		names = append(names, text.Name)
		require.NotEmpty(t, text.About)
		require.Greater(t, len(text.Markdown), 300, text.Name)
		require.True(t, strings.HasSuffix(text.Markdown, "\n"), text.Name)
		require.Zero(t, strings.Count(text.Markdown, "```")%2, "%s: a block is left open", text.Name)
	}
	require.Equal(t, []string{"usage", "user", "author", "adapter", "developer", "bootstrap", "setup", "coming-from"}, names)
	usage := guide.All()[0].Markdown
	require.Contains(t, usage, "# Running workflows")
	require.Contains(t, usage, "\n\n---\n\n# Writing an agent")
}

// TestPlugin checks that the plugin for Claude Code has the same skill.
func TestPlugin(t *testing.T) {
	t.Parallel()
	skill, err := os.ReadFile("../../../../packaging/claude-plugin/skills/uwf/SKILL.md")
	require.NoError(t, err)
	require.Equal(t, guide.Skill(), strings.ReplaceAll(string(skill), "\r\n", "\n"), "cp cmd/uwf/internal/guide/bootstrap.md packaging/claude-plugin/skills/uwf/SKILL.md")
}
