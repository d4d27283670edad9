package secret_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/secret"
)

// JSON can escape any character, and a stream can be split within an escape.
func TestEscapesOfJSON(t *testing.T) {
	t.Parallel()
	const key = "s3cr3tTok-en_value9"
	s := secret.NewSet(key)
	for _, text := range []string{`s3cr3tTok\u002den_value9`, `\u00733cr3tTok\u002Den_value\u0039`, "s3cr3t\\nTok\n\\u002den_value9", `s3cr3tTok%2Den_value9`, `%733cr3tTok%2den_value\u0039`} {
		require.Equal(t, `{"k":"`+secret.Hidden+`"}`, s.Hide(`{"k":"`+text+`"}`), text)
		for cut := range len(text) {
			var b strings.Builder
			w := s.NewWriter(&b)
			for _, part := range []string{"a ", text[:cut], text[cut:], " b"} {
				_, err := w.Write([]byte(part))
				require.NoError(t, err)
			}
			require.NoError(t, w.Flush())
			require.Equal(t, "a "+secret.Hidden+" b", b.String(), "%s cut at %d", text, cut)
		}
	}
	for _, text := range []string{`\u`, `\u00`, `a\u00zz`, `\u2028`, `C:\users\u0`, `100%`, `%2`, `%zz`} {
		require.Equal(t, text, s.Hide(text))
		var b strings.Builder
		w := s.NewWriter(&b)
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.Equal(t, text, b.String())
	}
}
