package tools

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A page shows exactly the requested lines, with consistent line counting.
func FuzzPage(f *testing.F) {
	f.Add("one\ntwo\r\n\nfour", 2, 2)
	f.Add("\xff\x00\n"+strings.Repeat("é", 1500)+"\n", 1, 5)
	f.Add("", 1, 1)
	f.Fuzz(func(t *testing.T, text string, first, most int) {
		p := page{first: max(first, 1), most: bound(most, 10, 100)}
		require.NoError(t, p.read(bufio.NewReaderSize(strings.NewReader(text), 16)))
		n := len(slices.Collect(strings.Lines(text)))
		require.Equal(t, n, p.total)
		require.True(t, utf8.ValidString(p.text.String()))
		var want strings.Builder
		number := 0
		for line := range strings.Lines(text) {
			number++
			if number < p.first || number >= p.first+p.shown {
				continue
			}
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			if len(line) <= maxLineBytes {
				fmt.Fprintf(&want, "%d→%s\n", number, asText(line))
			}
		}
		if !p.cut {
			require.Equal(t, want.String(), p.text.String())
		}
		if p.shown < p.most && p.text.Len() < maxReadBytes-maxLineBytes {
			require.Equal(t, max(n-p.first+1, 0), p.shown, "lines are missing")
		}
	})
}
