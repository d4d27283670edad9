package term

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A field of a bundle, such as a directory, is one line and cannot start another.
func TestFieldsAreOneLine(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := Page{To: &b}
	p.Values("directory", "/a\nhint: evil\rstatus  done\u2028x\u200b", "task", "")
	require.NoError(t, p.Err())
	require.Equal(t, "directory  /a hint: evil status  done x\uFFFD\n", b.String())
}

// On a terminal a table is at most as wide as the terminal; elsewhere nothing is cut.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]int{80: 80, 60: 60, 0: 160} {
		var b strings.Builder
		p := Page{To: &b, Width: width}
		table := NewTable("THREAD", "STATUS", "WORKFLOW", "TITLE")
		table.Row("4M9K8ZQ1", "waiting-for-children", strings.Repeat("w", 40), strings.Repeat("ü", 86))
		p.Table(table)
		require.NoError(t, p.Err())
		widest := 0
		for line := range strings.Lines(b.String()) {
			widest = max(widest, Length(strings.TrimSuffix(line, "\n")))
		}
		require.Equal(t, want, widest)
		require.Contains(t, b.String(), "4M9K8ZQ1")
	}
}
