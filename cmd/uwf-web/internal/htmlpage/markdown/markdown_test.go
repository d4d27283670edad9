package markdown

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Markdown is rendered without anything that a browser runs, loads or follows, and without hiding a word.
func TestProse(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"# One\n\ntwo **three**":                  `<p class="head head1">One</p>`,
		"[text](https://example.org \"a title\")": `<span class="link">text <span class="address">(https://example.org a title)</span></span>`,
		"![alt](https://example.org/a.png)":       `<span class="link image">alt <span class="address">(https://example.org/a.png)</span></span>`,
		"<https://example.org>":                   `<span class="address">https://example.org</span>`,
		"```go x=\"1\"\na < b\n```":               `<pre><code class="language-go">a &lt; b`,
		"<script>alert(1)</script>":               `&lt;script&gt;alert(1)&lt;/script&gt;`,
		"<!-- hidden -->":                         `&lt;!-- hidden --&gt;`,
		"[hidden]: https://example.org":           `[hidden]: https://example.org`,
		"| a | b |\n| --- | --- |\n| c | d |":     `<td>d</td>`,
		"1. one\n2. two":                          `<li>two</li>`,
		"Use `a|b|c`.\n\n----\n\n2020. The year":  `2020`,
	} {
		out, ok := Render(source)
		require.True(t, ok, source)
		require.Contains(t, out, want, source)
		require.NotRegexp(t, `<(a|img|script|style|iframe)\b|<[^>]* (on\w+|style|href|src)=`, out)
	}
	for _, source := range []string{
		"| a |\n| --- |\n| b | hidden |", "| a |\n|---|\n| b | 1000000 |", "a|b\n-|-\nc|d|$", "| a |\n| --- |\n| b | ✓ |",
		strings.Repeat("a|", 3000) + "\n" + strings.Repeat("-|", 3000) + "\n" + strings.Repeat("a\n", 1000),
		"- " + strings.Repeat("|a", 3000) + "\n  " + strings.Repeat("|-", 3000) + "\n" + strings.Repeat("  a\n", 1000),
		"- | a |\n  |---|\n  | b | $ |", strings.Repeat("- ", 30000), strings.Repeat("1. ", 20000), strings.Repeat("> - ", 10000),
		"&#x202e;evil", "&nbsp;", strings.Repeat("> ", 100) + "deep",
		strings.Repeat("x", mostMarkdown+1),
	} {
		_, ok := Render(source)
		require.False(t, ok, source)
	}
}

// No text of a page's size takes long.
func TestProseIsQuick(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"[", "*a_ ", "> ", "- ", "`", "![](", "<a", "| ", "~~a~", "\\", "*", "_a*", "[a](b "} {
		begun := time.Now()
		_, _ = Render(strings.Repeat(piece, mostMarkdown/len(piece)))
		_, _ = Render(strings.Repeat(piece, mostMarks/len(piece)))
		require.Less(t, time.Since(begun), 3*time.Second, piece)
	}
}
