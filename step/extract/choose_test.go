package extract

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

const noBlockAtAll = "the answer has no frontmatter block"

// Which block of an answer counts, and the resulting output. The schema is flat: $status done or failed, and
// a note.
func TestBlocks(t *testing.T) {
	t.Parallel()
	const (
		done   = "---\n$status: done\nnote: changed\n---\n"
		failed = "---\n$status: failed\n---\n"
		broken = "---\n$status: done\nnote: a: b\n---\n"
		two    = "the answer has two frontmatter blocks that differ, in lines "
	)
	for name, c := range map[string]struct{ text, body, err string }{
		"plain":                                {done + "All.", "All.", ""},
		"a blank behind the marker":            {"--- \n" + done[4:] + "All.", "All.", ""},
		"a tab behind both":                    {"---\t\n$status: done\nnote: changed\n---\t\nAll.", "All.", ""},
		"a zero-width space":                   {"\u200b" + done + "All.", "All.", ""},
		"a byte order mark and blank lines":    {"\ufeff\n \n" + done + "All.", "All.", ""},
		"invisible after a preamble":           {"Here:\n\u200b" + done + "All.", "All.", ""},
		"CR LF, with a rule before":            {strings.ReplaceAll("I read.\n\n---\n\nThen.\n\n"+done+"All.", "\n", "\r\n"), "All.", ""},
		"thoughts":                             {"<think>\nOne\n---\n$status: failed\n---\n</think>\n\n" + done + "All.", "All.", ""},
		"thoughts without their tag":           {"Two ways:\n---\nThe second.\n</think>\n" + done + "All.", "All.", ""},
		"a rule before":                        {"I read.\n\n---\n\nThen I changed.\n\n" + done + "All.", "All.", ""},
		"a rule that begins the text":          {"---\n\nI read.\n\n" + done + "All.", "All.", ""},
		"a rule, then words with a colon":      {"I read.\n---\nNote: it is short.\n\n" + done + "All.", "All.", ""},
		"two rules before":                     {"A\n\n---\nB\n\n---\nC\n" + done + "All.", "All.", ""},
		"a rule in the body":                   {done + "A\n\n---\n\nB: c\n\n---\n\nD", "A\n\n---\n\nB: c\n\n---\n\nD", ""},
		"fields of others in the body":         {done + "A\n---\ntitle: Page\n---\nB", "A\n---\ntitle: Page\n---\nB", ""},
		"a quoted block in a fence":            {done + "It said:\n```\n" + failed + "```\nEnd", "It said:\n```\n" + failed + "```\nEnd", ""},
		"a quoted block in a fence, indented":  {done + "- said:\n  ~~~yaml\n" + failed + "  ~~~\nEnd", "- said:\n  ~~~yaml\n" + failed + "  ~~~\nEnd", ""},
		"a fence before the real one":          {"It said:\n```\n" + failed + "```\nI say:\n" + done + "All.", "All.", ""},
		"only a block in a fence, quoted":      {"It said:\n```\n" + failed + "```\nWhat now?", "", noBlockAtAll},
		"a fence at the end":                   {"I reject it. It said:\n\n```yaml\n" + done + "```\n", "", noBlockAtAll},
		"a fence at the end that is a quote":   {done + "It said:\n```\n" + failed + "```", "It said:\n```\n" + failed + "```", ""},
		"a fence around a quote begins":        {"```\n" + failed + "```\nI say:\n" + done + "All.", "", two + "2 and 7"},
		"a fence around the answer":            {"```yaml\n" + done + "```\nAll.", "All.", ""},
		"another answer in the body":           {done + "It said:\n" + failed + "End", "", two + "1 and 6"},
		"an answer thought over":               {failed + "Wait:\n\n" + done, "", two + "1 and 6"},
		"two without words between":            {failed + done, "", two + "1 and 4"},
		"one behind another's line":            {"---\n$status: failed\n" + done, "", two + "1 and 3"},
		"the same one twice":                   {done + "All.\n" + done, "All.\n" + done, ""},
		"a draft, then the same":               {"Draft:\n" + done + "Final:\n" + done + "All.", "Final:\n" + done + "All.", ""},
		"a draft, then another":                {"Draft:\n" + failed + "Final:\n" + done + "All.", "", two + "2 and 6"},
		"an incomplete quote in the body":      {done + "It said:\n---\nnote: hm\n---\nEnd", "It said:\n---\nnote: hm\n---\nEnd", ""},
		"broken, with a quote in the body":     {broken + "It said:\n" + failed, "", "line 3 (note: a: b)"},
		"broken after words, with a quote":     {"Sure!\n" + broken + "It said:\n" + failed, "", "line 4 (note: a: b)"},
		"wrong, with a quote in the body":      {"---\n$status: dne\n---\nIt said:\n" + done, "", "$status"},
		"other fields first":                   {"---\ntitle: x\n---\nSee:\n" + done + "All.", "", "$status"},
		"a status of another name, and quotes": {"---\nstatus: done\nnotes: x\n---\nSee:\n" + done + "All.", "", "$status"},
		"it suspends by status, and quotes":    {"---\nstatus: $SUSPEND\nreason: why?\n---\nSee:\n" + done, "", two + "1 and 6"},
		"a rule first, then a word: as usual":  {"---\nI read.\nNote: it is short.\n\n" + done + "All.", "All.", ""},
		"it suspends, and quotes":              {"---\n$status: $SUSPEND\nreason: why?\n---\nIt said:\n" + done, "", two + "1 and 6"},
		"a code block in a field":              {"---\n$status: done\nnote: |-\n  changed\n---\nA\n```\n" + failed, "A\n```\n" + failed, ""},
		"more documents than anybody reads":    {done + strings.Repeat("---\nkind: Pod\n", 100), strings.TrimPrefix(strings.Repeat("---\nkind: Pod\n", 100), ""), ""},
		"documents before it":                  {"See\n" + strings.Repeat("---\nkind: Pod\n", 100) + done, "", noBlockAtAll},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := Text(t.Context(), c.text, roleOf(t, flat))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, Output{Value: map[string]any{"$status": "done", "note": "changed"}, Body: c.body}, out)
		})
	}
}

// A number sign directly followed by text is part of the text.
func TestNumberSigns(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"note: Fixes #42 and #43, see also C# samples": "Fixes #42 and #43, see also C# samples",
		"note: #42":             "#42",
		"note: done  # all":     "done",
		"note: 'Fixes #1' #two": "Fixes #1",
	} {
		out, err := Text(t.Context(), "---\n$status: done\n"+line+"\n---\nBody", roleOf(t, flat))
		require.NoError(t, err, line)
		require.Equal(t, map[string]any{"$status": "done", "note": want}, out.Value)
	}
	_, err := Text(t.Context(), "---\n$status: done\nnote: it said \"no\" #42\n---\n", roleOf(t, flat))
	prosetest.Error(t, err)
}
