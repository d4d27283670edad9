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
